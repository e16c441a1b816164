"""Reads segmented texts (plain text, CoNLL-U, a column of a table) as characters with labels that mark the words."""

import abc
import re
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from keras_bert.data.corpus.text_lines import plain_ending, read_whole_lines
from keras_bert.data.tables.tables import is_table, read_table
from keras_bert.tasks.labels import bad_cell_at, check_text
from keras_bert.tasks.tagging.tagged_words import RowsReader, TaggedWords, numbered
from keras_bert.tasks.tagging.word_files import conllu_cells

BEGIN, INSIDE, END, SINGLE = LABELS = ("B", "I", "E", "S")
_RANGE = re.compile(r"(\d+)-(\d+)")


def segmented_reader(
    path: str, text: str = "text", format: str | None = None, labels_needed: bool = True
) -> "SegmentedReader":
    """The reader of a file: CoNLL-U (.conllu), a table (`is_table`), or else plain text, a text on each line.

    Args:
        path: the file, compressed or not; "-" for stdin.
        text, format: the column of a table that holds the texts, and its format; see `Reading`.
    """
    if plain_ending(path) == ".conllu":
        return _TreebankReader(path)
    return _TableReader(path, text, format) if is_table(path, format) else _PlainReader(path)


def word_labels(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yields (character, label) for all characters of the words."""
    for word in words:
        labels = SINGLE if len(word) == 1 else BEGIN + INSIDE * (len(word) - 2) + END
        yield from zip(word, labels)


def words_of(characters: Sequence[str], begins: np.ndarray) -> list[str]:
    """The words, which begin at the characters flagged in `begins`, bool [characters], and always at the first."""
    words: list[list[str]] = []
    for character, is_first in zip(characters, begins.tolist()):
        if is_first or not words:
            words.append([])
        words[-1].append(character)
    return ["".join(word) for word in words]


def begins(labels: Iterable[str | None] | None) -> np.ndarray:
    """bool [characters]: whether a word begins at each."""
    return np.array([label in (BEGIN, SINGLE) for label in labels or ()], bool)


class SegmentedReader(RowsReader):
    """Reads texts as sentences of characters without blanks, each labelled with its place in its word.

    Blanks separate words. In CoNLL-U, words are those of the surface text: a multiword token (`1-2`), not the words it
    stands for; and a blank follows each, unless it has `SpaceAfter=No`.

    Raises:
        UserError: from `whole` and `windows`: the file cannot be read, is malformed, or has no text.
    """

    needed = "texts"

    @abc.abstractmethod
    def _texts(self) -> Iterator[tuple[int, list[str], str]]:
        """Yields (line, words, the text with its own blanks) of each text; an empty one has no words."""

    def _rows(self) -> Iterator[tuple[int, Sequence[str], Sequence[str | None], str]]:
        for line, words, text in self._texts():
            labelled = list(word_labels(words))
            characters, labels = zip(*labelled) if labelled else ((), ())
            yield line, characters, labels, text

    def labelled(self, tagged: TaggedWords, labels: list[str]) -> Iterator[str]:
        """Yields a line for each text, even an empty one, with a blank between words; the text's own blanks stay."""
        first = 0
        for text in tagged.source or ():
            after_blanks = begins(label for _, label in word_labels(text.split()))
            end = first + len(after_blanks)
            yield " ".join(words_of(tagged.words[first:end], begins(labels[first:end]) | after_blanks)) + "\n"
            first = end


class _PlainReader(SegmentedReader):
    def _texts(self) -> Iterator[tuple[int, list[str], str]]:
        for number, line in numbered(read_whole_lines(self.path)):
            yield number, line.split(), line


class _TreebankReader(SegmentedReader):
    def _texts(self) -> Iterator[tuple[int, list[str], str]]:
        words: list[str] = []
        text = ""
        first = inside = 0  # The line where the sentence starts, and the last word of the latest multiword token.
        for number, line in numbered(read_whole_lines(self.path)):
            if not line.strip():
                if words:
                    yield first, words, text
                words, text, inside = [], "", 0
            elif not line.startswith("#"):
                cells = conllu_cells(line.rstrip("\r\n"), f"{self.path} line {number}")
                together = _RANGE.fullmatch(cells[0])
                if together:
                    inside = int(together[2])
                if together or cells[0].isdecimal() and int(cells[0]) > inside:
                    first = first if words else number
                    words += cells[1].split()
                    text += cells[1] + ("" if "SpaceAfter=No" in cells[9].split("|") else " ")
        if words:
            yield first, words, text


class _TableReader(SegmentedReader):
    def __init__(self, path: str, text: str, format: str | None):
        super().__init__(path)
        self._text, self._format = text, format

    def _texts(self) -> Iterator[tuple[int, list[str], str]]:
        for row in read_table(self.path, [self._text], format=self._format, options="--text COLUMN"):
            with bad_cell_at(row.place):
                text = check_text(row.cells[0])
            yield row.line, text.split(), text
