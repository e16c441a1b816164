"""The examples on the pages of docs/."""

import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def blocks(page):
    """(language, content, line) of every fenced block that has a language."""
    with open(os.path.join(ROOT, page), encoding="utf-8") as file:
        content = file.read()
    for found in re.finditer(r"^```(\w+)\n(.*?)^```", content, re.MULTILINE | re.DOTALL):
        yield found[1], found[2], content.count("\n", 0, found.start(2))
