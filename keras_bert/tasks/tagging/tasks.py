"""The tagging tasks, as data: where their files are, and how they are read and written."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from keras_bert.tasks.tagging.conllu import ConlluReader
from keras_bert.tasks.tagging.tagged_words import TaggedReader
from keras_bert.tasks.tagging.word_columns import words_reader
from keras_bert.tasks.task import PublishedScore


@dataclass(frozen=True)
class TaggingTask:
    """A tagging task, as data.

    Attributes:
        name: as in `--task NAME`.
        reader: function (path, options) -> the reader of a file; the options say where its labels are.
        in_columns: whether columns may be chosen.
        marks_entities: whether the labels mark entities; None if the labels themselves show it.
        patterns: the names that the file of each split may have in a folder; see `split_files.FilePatterns`.
        published: published scores.
    """

    name: str
    reader: Callable[..., TaggedReader]
    in_columns: bool
    marks_entities: bool | None
    patterns: Mapping[str, tuple[str, ...]]
    published: tuple[PublishedScore, ...] = ()


_COLUMN_FILES = {
    "train": ("eng.train", "train.*", "*.train", "*-train.*"),
    "dev": ("eng.testa", "dev.*", "valid.*", "*.dev", "*.testa", "*-dev.*"),
    "test": ("eng.testb", "test.*", "*.test", "*.testb", "*-test.*"),
}
_TREEBANK_FILES = {
    split: (f"*-ud-{split}.conllu", f"{split}.conllu", f"*{split}.conllu") for split in ("train", "dev", "test")
}

# CoNLL-2003 by fine-tuning, from the paper's table 7.
_CONLL = tuple(
    PublishedScore(system, "f1", value, split)
    for split, base, large in (("dev", 96.4, 96.6), ("test", 92.4, 92.8))
    for system, value in (("BERT base", base), ("BERT large", large))
)

NER = TaggingTask("ner", words_reader, True, True, _COLUMN_FILES, _CONLL)
POS = TaggingTask("pos", ConlluReader, False, False, _TREEBANK_FILES)
TOKENS = TaggingTask("tokens", words_reader, True, None, _COLUMN_FILES)
TAGGING = {task.name: task for task in (NER, POS, TOKENS)}
