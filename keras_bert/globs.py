"""Users' patterns: the files that globs and folders name, on a disk or in a store."""

import fnmatch
import glob
import os

from keras_bert.errors import UserError
from keras_bert.files import ask, files_below, is_file, is_folder, is_remote, join, list_folder


def expand(patterns):
    """Every file that the patterns name, in the order given and sorted within each.

    What exists as it is typed is that, whatever signs are in it: a file, a folder, or the folder that a pattern begins
    with. A folder stands for all files below it, `**` for any folders between. Raises `UserError` for a pattern that
    names nothing.
    """
    found = []
    for pattern in patterns:
        pattern = os.fspath(pattern)
        if is_folder(pattern):
            matches = files_below(pattern)
        elif is_file(pattern):
            matches = [pattern]
        else:
            matches = (_matches_in_store if is_remote(pattern) else _matches_on_disk)(*_as_typed(pattern))
        matches = [path for path, is_match in zip(matches, ask(is_file, matches)) if is_match]
        if not matches:
            raise UserError(f"No file matches {pattern!r}. Give a file, a folder or a quoted glob that exists.")
        found.extend(matches)
    return list(dict.fromkeys(found))


def _as_typed(pattern):
    """(the parts of the folder that a pattern begins with, the parts that are patterns)."""
    parts = pattern.split("/")
    fixed = next((place for place, part in enumerate(parts) if glob.has_magic(part)), len(parts) - 1)
    while fixed < len(parts) - 1 and is_folder("/".join(parts[: fixed + 1])):
        fixed += 1
    return parts[:fixed], parts[fixed:]


def _matches_on_disk(folder, parts):
    return sorted(glob.glob("/".join([*map(glob.escape, folder), *parts]), recursive=True))


def _matches_in_store(folder, parts):
    folder = "/".join(folder)
    if "**" in parts:
        return [path for path in files_below(folder) if _fits(path[len(folder) + 1 :].split("/"), parts)]
    paths = [folder]
    for part in parts:
        folders = [path for path, below in zip(paths, ask(is_folder, paths)) if below]
        listed = zip(folders, ask(list_folder, folders))
        paths = [join(path, name) for path, names in listed for name in names if _is_like(name, part)]
    return sorted(paths)


def _is_like(name, part):
    # As on a disk, where hidden files are asked for by their dot.
    return fnmatch.fnmatchcase(name, part) and (part.startswith(".") or not name.startswith("."))


def _fits(names, parts):
    """Whether the names of a path are those of a pattern's parts."""
    if not parts or not names:
        return parts in ([], ["**"]) and not names
    if parts[0] == "**":
        return _fits(names, parts[1:]) or _fits(names[1:], parts)
    return _is_like(names[0], parts[0]) and _fits(names[1:], parts[1:])
