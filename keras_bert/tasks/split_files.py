"""Which file holds a split."""

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
        where = os.path.dirname(names[0]) or "."
    raise UserError(
        f"{where}: needs {needed}, for the split {split!r} of {task.name}. Received: {_contents(where, task.folders)}. "
        "Give the folder or the file that holds it."
    )


def _contents(folder, subfolders):
    """What stands in a folder and in those subfolders, in words."""
    if not _is_folder(folder):
        return "no such folder"
    names = [
        files.join(home, name)
        for home in (*subfolders, "")
        if _is_folder(files.join(folder, home))
        for name in files.list_folder(files.join(folder, home))
        if name not in subfolders
    ]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"a folder with {', '.join(names[:_SHOWN]) or 'nothing in it'}{more}"


def _is_folder(path):
    return files.exists(path) if files.is_remote(path) else os.path.isdir(path)
