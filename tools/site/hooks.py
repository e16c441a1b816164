"""Hooks of mkdocs: the site includes README.md and the pages beside it, and their links work."""

import logging
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
# Strict builds fail on its warnings.
_log = logging.getLogger("mkdocs.hooks.site")
_LINK_IN_HTML = re.compile(r'href="([^":#]+\.(?:md|ipynb))([#"])')
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


def on_page_content(html: str, page: Any, config: Any, files: Files) -> str:
    """Turns a notebook's links to files into links to their pages, which mkdocs does only for Markdown."""
    if not page.file.src_uri.endswith(".ipynb"):
        return html
    folder = posixpath.dirname(page.file.src_uri)

    def link(found: re.Match[str]) -> str:
        target = files.get_file_from_path(posixpath.normpath(posixpath.join(folder, found[1])))
        if target is None:
            _log.warning(f"{page.file.src_uri}: links to {found[1]}, which is not on the site.")
            return found[0]
        return f'href="{target.url_relative_to(page.file)}{found[2]}'

    return _LINK_IN_HTML.sub(link, html)
