"""Expands the globs and folders that users give into files, on a disk or remote."""

import fnmatch
import glob
import os
from collections.abc import Iterable

from keras_bert.errors import UserError
from keras_bert.files import StrPath, ask, files_below, is_file, is_folder, is_remote, join, list_folder


def expand(patterns: Iterable[StrPath]) -> list[str]:
    """The files that the patterns match, in the order of the patterns and sorted within each, without duplicates.

    A path that exists literally is taken literally, even with glob characters in it: a file, a folder, or the leading
    folders of a pattern. A folder stands for all files below it, `**` for any number of folders. Raises `UserError` for
    a pattern that matches no file.
    """
    found: list[str] = []
    for pattern in patterns:
        pattern = os.fspath(pattern)
        if is_folder(pattern):
            matches = files_below(pattern)
        elif is_file(pattern):
            matches = [pattern]
        else:
            matches = (_remote_matches if is_remote(pattern) else _local_matches)(*_split_pattern(pattern))
        matches = [path for path, is_match in zip(matches, ask(is_file, matches)) if is_match]
        if not matches:
            raise UserError(f"No file matches {pattern!r}. Give a file, a folder or a quoted glob that exists.")
        found.extend(matches)
    return list(dict.fromkeys(found))


def _split_pattern(pattern: str) -> tuple[list[str], list[str]]:
    """(components of the literal folder that a pattern begins with, the other components)."""
    parts = pattern.split("/")
    fixed = next((place for place, part in enumerate(parts) if glob.has_magic(part)), len(parts) - 1)
    while fixed < len(parts) - 1 and is_folder("/".join(parts[: fixed + 1])):
        fixed += 1
    return parts[:fixed], parts[fixed:]


def _local_matches(folder: list[str], parts: list[str]) -> list[str]:
    return sorted(glob.glob("/".join([*map(glob.escape, folder), *parts]), recursive=True))


def _remote_matches(folder_parts: list[str], parts: list[str]) -> list[str]:
    folder = "/".join(folder_parts)
    if "**" in parts:
        return [path for path in files_below(folder) if _fits(path[len(folder) + 1 :].split("/"), parts)]
    paths = [folder]
    for part in parts:
        folders = [path for path, below in zip(paths, ask(is_folder, paths)) if below]
        listed = zip(folders, ask(list_folder, folders))
        paths = [join(path, name) for path, names in listed for name in names if _is_like(name, part)]
    return sorted(paths)


def _is_like(name: str, part: str) -> bool:
    # As on a disk, only a pattern that begins with a dot matches hidden files.
    return fnmatch.fnmatchcase(name, part) and (part.startswith(".") or not name.startswith("."))


def _fits(names: list[str], parts: list[str]) -> bool:
    """Whether the components of a path match those of a pattern."""
    if not parts or not names:
        return parts in ([], ["**"]) and not names
    if parts[0] == "**":
        return _fits(names, parts[1:]) or _fits(names[1:], parts)
    return _is_like(names[0], parts[0]) and _fits(names[1:], parts[1:])
