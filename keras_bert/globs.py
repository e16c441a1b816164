"""Users' patterns: the files that globs and folders name, on a disk or in a store."""

import fnmatch
import glob as local_glob
import os

from keras_bert import stores
from keras_bert.errors import UserError
from keras_bert.files import ask, files_below, is_file, is_folder, is_remote


def expand(patterns):
    """Every file that the patterns name, in the order given and sorted within each.

    A folder stands for all files below it, `**` for any folders between. Raises `UserError` for a pattern that names
    nothing.
    """
    found = []
    for pattern in patterns:
        pattern = os.fspath(pattern)
        if is_folder(pattern):
            matches = files_below(pattern)
        elif is_remote(pattern):
            matches = _matches_in_store(pattern)
        else:
            matches = sorted(local_glob.glob(pattern, recursive=True))
        matches = [path for path, is_match in zip(matches, ask(is_file, matches)) if is_match]
        if not matches:
            raise UserError(f"No file matches {pattern!r}. Give a file, a folder or a quoted glob that exists.")
        found.extend(matches)
    return list(dict.fromkeys(found))


def _matches_in_store(pattern):
    parts = pattern.split("/")
    if "**" not in parts:
        return sorted(stores.call("glob", pattern))
    fixed = next(place for place, part in enumerate(parts) if local_glob.has_magic(part))
    base, parts = "/".join(parts[:fixed]), parts[fixed:]
    return [path for path in files_below(base) if _fits(path[len(base) + 1 :].split("/"), parts)]


def _fits(names, parts):
    """Whether the names of a path are those of a pattern's parts."""
    if not parts or not names:
        return parts in ([], ["**"]) and not names
    if parts[0] == "**":
        return _fits(names, parts[1:]) or _fits(names[1:], parts)
    return fnmatch.fnmatchcase(names[0], parts[0]) and _fits(names[1:], parts[1:])
