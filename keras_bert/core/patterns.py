"""The files that a user's pattern stands for, on a disk or on any store.

A path that exists is taken literally, whatever characters it holds; only the rest is a pattern.
"""

import fnmatch
import glob
import os
from collections.abc import Iterable, Iterator
from itertools import islice

from keras_bert.core.errors import UserError
from keras_bert.core.files import (
    StrPath,
    files_below,
    is_file,
    is_folder,
    is_remote,
    is_stream,
    join,
    list_folder,
    map_paths,
    parent,
    real,
)

_MARKER = "_SUCCESS"  # Spark and Hadoop write it beside the files of a complete table.


def expand(patterns: Iterable[StrPath]) -> list[str]:
    """The files that the patterns match, in the order of the patterns and sorted within each, without duplicates.

    A path that exists literally is taken literally, even with glob characters in it: a file, a folder, or the leading
    folders of a pattern. A folder stands for all files below it, as `folder/**` does, and `**` for any number of
    folders. Neither matches hidden files, files in hidden folders, or `_SUCCESS`. Links are followed, but a file that
    a pattern reaches in several ways counts once. Raises `UserError` for a pattern that matches no file, and
    `PermissionError` for a folder that may not be read.
    """
    found: list[str] = []
    for pattern in patterns:
        matches = matched(pattern)
        if not matches and is_folder(pattern):
            raise UserError(f"{os.fspath(pattern)}: needs files that are not hidden. Received: none. Give other data.")
        if not matches and is_stream(pattern):
            raise UserError(
                f"{os.fspath(pattern)}: needs a file, which can be read more than once. Received: a pipe or a device. "
                "Write the data to a file."
            )
        if not matches:
            raise UserError(
                f"No file matches {os.fspath(pattern)!r}. Give a file, a folder or a quoted glob that exists."
            )
        found.extend(matches)
    return list(dict.fromkeys(found))


def reached(pattern: StrPath, paths: Iterable[str]) -> str | None:
    """The first of `paths`, as `real` names them, that `expand` finds by a pattern, or would find if it existed."""
    pattern = os.fspath(pattern)
    is_literal = not glob.has_magic(pattern) or is_folder(pattern)
    folder_parts, parts = (pattern.rstrip("/").split("/"), ["**"]) if is_literal else _split_pattern(pattern)
    start = join(real("/".join([*folder_parts, ""])), "")
    return next((path for path in paths if path.startswith(start) and fits(path[len(start) :].split("/"), parts)), None)


def matched(pattern: StrPath) -> list[str]:
    """The files that one pattern of `expand` matches; there may be none."""
    pattern = os.fspath(pattern)
    if is_folder(pattern):
        matches = _matches([pattern.rstrip("/")], ["**"])
    elif is_file(pattern):
        matches = [pattern]
    else:
        matches = _matches(*_split_pattern(pattern))
    return [path for path, is_match in zip(matches, map_paths(is_file, matches)) if is_match]


def _split_pattern(pattern: str) -> tuple[list[str], list[str]]:
    """(components of the literal folder that a pattern begins with, the other components)."""
    parts = pattern.split("/")
    fixed = next((place for place, part in enumerate(parts) if glob.has_magic(part)), len(parts) - 1)
    while fixed < len(parts) - 1 and is_folder("/".join(parts[: fixed + 1])):
        fixed += 1
    return parts[:fixed], parts[fixed:]


def _matches(folder_parts: list[str], parts: list[str]) -> list[str]:
    folder = "/".join(folder_parts)
    if "**" in parts:
        found = _matches_below("/".join([*folder_parts, ""]), parts)
    elif is_remote(folder):
        found = _remote_matches(folder, parts)
    else:
        found = sorted(glob.glob("/".join([*map(glob.escape, folder_parts), *parts])))
        if not found and is_folder(folder):
            list_folder(folder)  # Unlike glob, it raises `PermissionError`.
    return _without_repeats(path for path in found if os.path.basename(path) != _MARKER)


def _matches_below(folder: str, parts: list[str]) -> list[str]:
    """The files below a folder, "" or with a slash at its end, that match the components of a pattern, sorted."""
    start = folder or "./"
    enters_hidden = any(part.startswith(".") for part in parts)
    below = files_below(start) if is_remote(start) else _linked_files_below(start, enters_hidden)
    names = (path[len(start) :] for path in below)
    return sorted(folder + name for name in names if fits(name.split("/"), parts))


def _linked_files_below(folder: str, enters_hidden: bool, above: frozenset[str] = frozenset()) -> Iterator[str]:
    """The files below a folder on a disk, including those in linked folders. `above`: the folders that contain it."""
    here = real(folder)
    if here in above:  # A link to a folder that contains it would never end.
        return
    for _, folders, names in islice(os.walk(folder, onerror=_require_permission), 1):
        yield from (join(folder, name) for name in names)
        for name in folders:
            if enters_hidden or not name.startswith("."):  # A .git or .venv may hold more files than all else.
                yield from _linked_files_below(join(folder, name), enters_hidden, above | {here})


def _require_permission(error: OSError) -> None:
    if isinstance(error, PermissionError):  # The text in the folder would be left out without a word.
        raise error


def _without_repeats(paths: Iterable[str]) -> list[str]:
    """The paths, sorted, without those that reach a file again by a link, such as `latest` to a folder beside it."""
    are_links = {path: os.path.islink(path) for path in paths}  # No remote path is one.
    folders = {folder: real(folder) for folder in set(map(parent, are_links))}
    found: dict[str, str] = {}
    for path in sorted(are_links, key=lambda path: (are_links[path], path)):  # A file itself before links to it.
        file = real(path) if are_links[path] else join(folders[parent(path)], os.path.basename(path))
        found.setdefault(file, path)
    return sorted(found.values())


def _remote_matches(folder: str, parts: list[str]) -> list[str]:
    paths = [folder]
    for part in parts:
        folders = [path for path, below in zip(paths, map_paths(is_folder, paths)) if below]
        listed = zip(folders, map_paths(list_folder, folders))
        paths = [join(path, name) for path, names in listed for name in names if _is_like(name, part)]
    return sorted(paths)


def _is_like(name: str, part: str) -> bool:
    # As on a disk, only a pattern that begins with a dot matches hidden files.
    return fnmatch.fnmatchcase(name, part) and (part.startswith(".") or not name.startswith("."))


def fits(names: list[str], parts: list[str]) -> bool:
    """Whether the components of a path match those of a pattern; `**` stands for any number of folders, not hidden."""
    if not parts or not names:
        return not parts and not names
    if parts[0] == "**":
        # At the end, `**` also stands for the file's own name, so `a*/**` does not match a file `a1` itself.
        return fits(names, parts[1:] or ["*"]) or _is_like(names[0], "*") and fits(names[1:], parts)
    return _is_like(names[0], parts[0]) and fits(names[1:], parts[1:])
