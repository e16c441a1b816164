"""Hooks of mkdocs: the site has the pages beside README.md too, and their links work from docs/."""

import os
import posixpath
import re
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# {path in the repository: path on the site} of what lies outside docs/.
OUTSIDE = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "LICENSE": "LICENSE",
    "tests/export/open_as_serving.c": "open_as_serving.c",
}
_LINK = re.compile(r"(\]\()([^)#:\s]+)")


def on_files(files: Files, config: Any) -> Files:
    """Adds the files of `OUTSIDE`."""
    for path, on_site in OUTSIDE.items():
        with open(os.path.join(ROOT, path), encoding="utf-8") as stream:
            files.append(File.generated(config, on_site, content=stream.read()))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Turns links between files of the repository into links between pages of the site."""
    on_site = page.file.src_uri
    if on_site.endswith(".ipynb"):
        return markdown
    paths = {place: path for path, place in OUTSIDE.items()}
    folder = posixpath.dirname(paths.get(on_site, f"docs/{on_site}"))

    def link(found: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder, found[2]))
        target = OUTSIDE.get(path) or path.removeprefix("docs/")
        return found[1] + posixpath.relpath(target, posixpath.dirname(on_site) or ".")

    return _LINK.sub(link, markdown)
