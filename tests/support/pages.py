"""The examples on the pages of docs/."""

import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def text_of(page):
    """The content of a page, given by its path in the repository."""
    with open(os.path.join(ROOT, page), encoding="utf-8") as file:
        return file.read()


def blocks(page):
    """(language, content, line) of every fenced block that has a language."""
    content = text_of(page)
    for found in re.finditer(r"^```(\w+)\n(.*?)^```", content, re.MULTILINE | re.DOTALL):
        yield found[1], found[2], content.count("\n", 0, found.start(2))
