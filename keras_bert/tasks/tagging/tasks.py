"""The tasks of tagging: where their files stand, how they are read and how predictions are written."""

from collections.abc import Callable
from dataclasses import dataclass

from keras_bert.data.conllu import read_conllu, write_conllu
from keras_bert.data.word_columns import read_columns, write_columns


@dataclass(frozen=True)
class TaggingTask:
    """A task of tagging, as data.

    Attributes:
        name: as in `--task NAME`.
        read: function (path, ...) -> `TaggedWords`.
        write: function (tagged, labels, path).
        marks_entities: whether the labels mark entities; None where they tell it themselves.
        patterns: split to the names that its file may have in a folder, for `split_files.find_split_files`.
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
