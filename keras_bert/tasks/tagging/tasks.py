"""The tasks of tagging: where their files stand, how they are read and written again."""

from collections.abc import Callable
from dataclasses import dataclass

from keras_bert.tasks.tagging.conllu import ConlluReader
from keras_bert.tasks.tagging.word_columns import ColumnsReader


@dataclass(frozen=True)
class TaggingTask:
    """A task of tagging, as data.

    Attributes:
        name: as in `--task NAME`.
        reader: the `TaggedReader` of a file, called with its path and what says where its labels are.
        in_columns: whether columns may be chosen.
        marks_entities: whether the labels mark entities; None where they tell it themselves.
        patterns: split to the names that its file may have in a folder, for `split_files.find_split_files`.
    """

    name: str
    reader: Callable
    in_columns: bool
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

NER = TaggingTask("ner", ColumnsReader, True, True, _COLUMN_FILES)
POS = TaggingTask("pos", ConlluReader, False, False, _TREEBANK_FILES)
TOKENS = TaggingTask("tokens", ColumnsReader, True, None, _COLUMN_FILES)
TAGGING = {task.name: task for task in (NER, POS, TOKENS)}
