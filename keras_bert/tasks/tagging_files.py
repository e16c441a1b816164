"""The tasks of tagging: where their files stand, how they are read and how predictions are written."""

import fnmatch
from collections.abc import Callable
from dataclasses import dataclass

from keras_bert import files
from keras_bert.data.conllu import read_conllu, write_conllu
from keras_bert.data.word_columns import read_columns, write_columns
from keras_bert.errors import UserError

_ENDINGS = ("", ".gz", ".bz2", ".xz")
_SHOWN = 20


@dataclass(frozen=True)
class TaggingTask:
    """A task of tagging, as data.

    Attributes:
        name: as in `--task NAME`.
        read: function (path, ...) -> `TaggedWords`.
        write: function (tagged, labels, path).
        marks_entities: whether the labels mark entities; None where they tell it themselves.
        patterns: split to the names that its file may have, the likeliest first; * stands for anything.
    """

    name: str
    read: Callable
    write: Callable
    marks_entities: bool | None
    patterns: dict


_COLUMN_FILES = {
    "train": ("eng.train", "train.*", "*.train", "*-train.*"),
    "dev": ("eng.testa", "dev.*", "valid.*", "*.dev", "*.testa", "*-dev.*"),
    "test": ("eng.testb", "test.*", "*.test", "*.testb", "*-test.*"),
}
_TREEBANK_FILES = {
    split: (f"*-ud-{split}.conllu", f"{split}.conllu", f"*{split}.conllu") for split in ("train", "dev", "test")
}

NER = TaggingTask("ner", read_columns, write_columns, True, _COLUMN_FILES)
POS = TaggingTask("pos", read_conllu, write_conllu, False, _TREEBANK_FILES)
TOKENS = TaggingTask("tokens", read_columns, write_columns, None, _COLUMN_FILES)
TAGGING = {task.name: task for task in (NER, POS, TOKENS)}


def find_tagging_files(task, folder):
    """`{split: path}` of the splits that a folder holds.

    Raises:
        UserError: none is there, or one split has several; they are named.
    """
    names = files.list_folder(folder)
    found = {}
    for split, patterns in task.patterns.items():
        matches = (
            [name for name in names for ending in _ENDINGS if fnmatch.fnmatchcase(name, pattern + ending)]
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
        shown = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
        needed = " or ".join(patterns[0] for patterns in task.patterns.values())
        raise UserError(f"{folder}: needs {needed}, for {task.name}. Received: {shown or 'nothing there'}.")
    return found
