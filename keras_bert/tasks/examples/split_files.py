"""Finds the file of a split."""

import fnmatch
import glob
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from keras_bert import files
from keras_bert.data.corpus.text_lines import COMPRESSED
from keras_bert.data.tables.tables import is_data_set
from keras_bert.errors import MissingData, UserError
from keras_bert.tasks.task import Split

_SHOWN = 20


class NamedFiles(Protocol):
    """A task whose files have fixed names: `Task` and `SpanTask`."""

    @property
    def name(self) -> str: ...
    @property
    def folders(self) -> tuple[str, ...]: ...
    @property
    def splits(self) -> Mapping[str, Split]: ...


class FilePatterns(Protocol):
    """A task whose files are found by patterns: `TaggingTask` and `ChoiceTask`.

    `patterns` are the names that the file of each split may have, the likeliest first; * matches anything.
    """

    @property
    def name(self) -> str: ...
    @property
    def patterns(self) -> Mapping[str, Sequence[str]]: ...


def split_file(task: NamedFiles, split: str, folder: str = "") -> str:
    """The file of a split: in the task's own folder below `folder`, or else in `folder` itself.

    Without a folder, it may be anything that `read_table` takes.

    Raises `MissingData`, naming the files that are there, if there is none.
    """
    names = task.splits[split].files
    if not folder and (is_data_set(names[0]) or glob.has_magic(names[0]) and not files.exists(names[0])):
        return names[0]
    homes = [files.join(folder, home) for home in task.folders] + [os.fspath(folder)]
    for home in homes:
        for name in names:
            for ending in ("", *COMPRESSED):
                path = files.join(home, name + ending)
                if files.exists(path):
                    return path
    if folder:
        needed = " or ".join(files.join(home, name) for home in (*task.folders[:1], "") for name in names[:1])
        where = folder
    else:
        needed = names[0]
        where = files.parent(names[0])
    raise MissingData(
        f"{where}: needs {needed}, for the split {split!r} of {task.name}. Received: {_contents(where, task.folders)}. "
        "Give the folder or the file that holds it."
    )


def find_split_files(task: FilePatterns, folder: str | None) -> dict[str, str]:
    """`{split: path}` of the files in a folder that match a task's patterns, compressed or not.

    Raises:
        MissingData: no folder is given, or no file matches.
        UserError: several files match for one split.
    """
    if not folder:
        raise needs_files(task.name, (patterns[0] for patterns in task.patterns.values()))
    names = files.list_folder(folder)
    found = {}
    for split, patterns in task.patterns.items():
        matches = (
            [name for name in names for ending in ("", *COMPRESSED) if fnmatch.fnmatchcase(name, pattern + ending)]
            for pattern in patterns
        )
        chosen = list(dict.fromkeys(next(filter(None, matches), [])))
        if len(chosen) > 1:
            raise UserError(
                f"{folder}: needs one file for {split}. Received: {', '.join(chosen)}. Name the one to "
                "use with --train, --dev or --test."
            )
        if chosen:
            found[split] = files.join(folder, chosen[0])
    if not found:
        needed = " or ".join(patterns[0] for patterns in task.patterns.values())
        raise MissingData(f"{folder}: needs {needed}, for {task.name}. Received: {_contents(folder, ())}.")
    return found


def needs_files(task_name: str, names: Iterable[str]) -> MissingData:
    """The error that a task has no source but files of these names, and none are given."""
    listed = ", ".join(dict.fromkeys(names))
    return MissingData(
        f"{task_name}: needs its files ({listed}). Received: none. Give --data-dir FOLDER, or --train and --dev."
    )


def task_folder(folder: str, names: Iterable[str]) -> str:
    """The first of these folders that is in a benchmark's folder, or else that folder itself."""
    homes = (files.join(folder, name) for name in names)
    return next(filter(files.is_folder, homes), folder)


def _contents(folder: str, subfolders: Iterable[str]) -> str:
    """The names in a folder and in these subfolders of it, in words."""
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


def file_of(task_name: str, paths: Mapping[str, str], split: str) -> str:
    """The path of a split. Raises `MissingData` if the split has no file."""
    if split not in paths:
        raise MissingData(f"{task_name}: needs a file for the split {split!r}. Received: {', '.join(paths) or 'none'}.")
    return paths[split]
