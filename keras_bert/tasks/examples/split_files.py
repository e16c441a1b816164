"""Which file holds a split."""

import fnmatch
import os

from keras_bert import files
from keras_bert.errors import UserError

_COMPRESSED = ("", ".gz", ".bz2", ".xz")
_SHOWN = 20


def split_file(task, split, folder=""):
    """The file of a split: in the task's own folder below `folder`, else in `folder` itself.

    Raises `UserError` that says which files are there.
    """
    names = task.splits[split].files
    homes = [files.join(folder, home) for home in task.folders] + [os.fspath(folder)]
    for home in homes:
        for name in names:
            for ending in _COMPRESSED:
                path = files.join(home, name + ending)
                if files.exists(path):
                    return path
    if folder:
        needed = " or ".join(files.join(home, name) for home in (*task.folders[:1], "") for name in names[:1])
        where = folder
    else:
        needed = names[0]
        where = files.parent(names[0])
    raise UserError(
        f"{where}: needs {needed}, for the split {split!r} of {task.name}. Received: {_contents(where, task.folders)}. "
        "Give the folder or the file that holds it."
    )


def find_split_files(task, folder):
    """`{split: path}` of the splits of which a folder holds the file, for tasks whose files have names of many kinds.

    Args:
        task: has a `name` and `patterns`: split to the names that its file may have, the likeliest first; * stands for
            anything, and each may be compressed.
        folder: the folder.

    Raises:
        UserError: none is there, or one split has several; they are named.
    """
    names = files.list_folder(folder)
    found = {}
    for split, patterns in task.patterns.items():
        matches = (
            [name for name in names for ending in _COMPRESSED if fnmatch.fnmatchcase(name, pattern + ending)]
            for pattern in patterns
        )
        chosen = list(dict.fromkeys(next(filter(None, matches), [])))
        if len(chosen) > 1:
            raise UserError(
                f"{folder}: needs one file for {split}. Received: {', '.join(chosen)}. Name the one to take."
            )
        if chosen:
            found[split] = files.join(folder, chosen[0])
    if not found:
        needed = " or ".join(patterns[0] for patterns in task.patterns.values())
        raise UserError(f"{folder}: needs {needed}, for {task.name}. Received: {_contents(folder, ())}.")
    return found


def _contents(folder, subfolders):
    """What stands in a folder and in those subfolders, in words."""
    if not files.is_folder(folder):
        return "no such folder"
    names = [
        files.join(home, name)
        for home in (*subfolders, "")
        if files.is_folder(files.join(folder, home))
        for name in files.list_folder(files.join(folder, home))
        if name not in subfolders
    ]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"a folder with {', '.join(names[:_SHOWN]) or 'nothing in it'}{more}"


def found_files(task, folder):
    """`{split: path}` of a task's files in a folder; see `find_split_files`."""
    if not folder:
        raise UserError(f"{task.name}: needs its files. Received: none. Give --data-dir, or --train and --dev.")
    return find_split_files(task, folder)
