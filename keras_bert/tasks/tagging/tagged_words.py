"""Sentences of labelled words, and the lines they were read from."""

import dataclasses
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from keras_bert.core.errors import UserError
from keras_bert.data.corpus.text_lines import read_whole_lines
from keras_bert.data.tables.rows import Reading
from keras_bert.data.tables.tables import open_table
from keras_bert.data.windows import windows
from keras_bert.tasks.answer_files import json_line, with_texts
from keras_bert.tasks.labels import BadCell, bad_cell_at, check_text, is_missing

_CHARACTERS_AT_ONCE = 1 << 18


@dataclasses.dataclass
class TaggedWords:
    """The words of a file, or of some of its lines, sentence by sentence.

    Attributes:
        origin: the file, for messages.
        words: the words.
        labels: one label per word, None for a word without one; None if no word has a label.
        starts: int64 [sentences + 1], where each sentence starts in `words`.
        lines: int64 [words], the line of each word, counted from 1.
        source: the lines or texts read, for `reader` to write them with answers; None if they need not be written.
        first_line: the number of the first of these lines.
        reader: the reader of these lines; None if `source` is.
        documents: int64 [documents + 1], the first sentence of each document, then the number of sentences; None if the
            file marks no documents.
    """

    origin: str
    words: list[str]
    labels: list[str | None] | None
    starts: np.ndarray
    lines: np.ndarray
    source: list[str] | None = None
    first_line: int = 1
    reader: "TaggedReader | None" = None
    documents: np.ndarray | None = None

    @property
    def sentences(self) -> int:
        """The number of sentences."""
        return len(self.starts) - 1

    def place(self, word: int) -> str:
        """The file and line of a word, for messages."""
        return f"{self.origin} line {self.lines[word]}"

    def changed(self, change: Callable[[str, int, int | None], str]) -> Iterator[str]:
        """The lines of `source` with new texts and their original line ends.

        Args:
            change: function (text without line end, line number, index of its word or None) -> the new text.
        """
        assert self.source is not None, "Only what `TaggedReader.windows` yields can be changed."
        word_of_line = {line: word for word, line in enumerate(self.lines.tolist())}
        for number, line in enumerate(self.source, self.first_line):
            text = line.rstrip("\r\n")
            yield change(text, number, word_of_line.get(number)) + line[len(text) :]


class Sentences:
    """Collects the words of a file while it is read.

    Attributes:
        words, labels, lines: one item per word.
        documents: the first sentence of each document.
    """

    def __init__(self) -> None:
        self.words, self.labels, self.lines = list[str](), list[str | None](), list[int]()
        self._starts = [0]
        self.documents: list[int] = []
        self._known: dict[str | None, Any] = {}  # Keeps each word in memory once, however often it occurs.

    def add(self, word: str, label: str | None, line: int) -> None:
        """Adds a word to the current sentence."""
        self.words.append(self._known.setdefault(word, word))
        self.labels.append(self._known.setdefault(label, label))
        self.lines.append(line)

    def end(self) -> None:
        """Ends the current sentence, unless it has no words."""
        if len(self.words) > self._starts[-1]:
            self._starts.append(len(self.words))

    def begin_document(self) -> None:
        """Ends the current sentence; the next one begins a document."""
        self.end()
        self.documents.append(len(self._starts) - 1)

    def tagged(self, origin: str, **fields: Any) -> TaggedWords:
        """The words collected; `fields` are further fields of `TaggedWords`."""
        self.end()
        labelled = any(label is not None for label in self.labels)
        documents = np.unique([0, *self.documents, len(self._starts) - 1]) if self.documents else None
        return TaggedWords(
            origin,
            self.words,
            self.labels if labelled else None,
            np.array(self._starts, np.int64),
            np.array(self.lines, np.int64),
            documents=documents,
            **fields,
        )


class TaggedReader:
    """Reads one file of words; subclasses define its format in `_read`.

    Args:
        path: the file, compressed or not; "-" for stdin.

    Class attributes:
        needed: what the file must have, for messages.
    """

    needed: ClassVar[str]

    def __init__(self, path: str):
        self.path = path

    def whole(self) -> TaggedWords:
        """All words at once. Raises `UserError` if the file cannot be read, a line is malformed, or it has no words."""
        sentences = Sentences()
        for number, line in numbered(read_whole_lines(self.path)):
            self._read_marked(line, number, sentences)
        tagged = sentences.tagged(self.path)
        self._check(len(tagged.words))
        return tagged

    def windows(self, by_document: bool = False) -> Iterator[TaggedWords]:
        """The words in windows of whole sentences, a few hundred thousand characters each, with their lines.

        Args:
            by_document: whether to keep documents whole; a file that marks none is then a single window.

        Raises `UserError` as `whole` does.
        """
        words = 0
        for first, lines, sentences in self._blocks(by_document):
            tagged = sentences.tagged(self.path, source=lines, first_line=first, reader=self)
            words += len(tagged.words)
            yield tagged
        self._check(words)

    def _blocks(self, by_document: bool) -> Iterator[tuple[int, list[str], Sentences]]:
        """Yields (number of the first line, lines, their sentences); see `windows`."""
        block, sentences, characters, first = list[str](), Sentences(), 0, 1
        source, lines = itertools.tee(read_whole_lines(self.path))
        for original, (number, line) in zip(source, numbered(lines)):
            if characters >= _CHARACTERS_AT_ONCE:
                # A block without a document mark must mean that the whole file has none.
                at_document = by_document and sentences.documents and self._marks_document(line)
                if at_document or not by_document and not block[-1].strip():
                    yield first, block, sentences
                    block, sentences, characters, first = [], Sentences(), 0, number
            block.append(original)
            characters += len(original)
            self._read_marked(line, number, sentences)
        if block:
            yield first, block, sentences

    def _read_marked(self, line: str, number: int, sentences: Sentences) -> None:
        """Like `_read`, but also begins a document where the line marks one."""
        if self._marks_document(line):
            sentences.begin_document()
        self._read(line, number, sentences)

    def _marks_document(self, line: str) -> bool:
        """Whether a line marks the start of a document, given the lines read before it; by default, none does."""
        return False

    def notes(self) -> list[str]:
        """What the user should know about the lines read so far, one string per note."""
        return []

    def labelled(self, tagged: TaggedWords, labels: list[str]) -> Iterator[str]:
        """The lines of one of `windows` with these labels, one per word."""
        raise NotImplementedError

    def _read(self, line: str, number: int, sentences: Sentences) -> None:
        """Adds the words of a line of `numbered` to `sentences`. Raises `UserError`."""
        raise NotImplementedError

    def _check(self, words: int) -> None:
        """Raises `UserError` if `words`, the number of words in the whole file, is 0."""
        if not words:
            raise UserError(f"{self.path}: needs {self.needed}. Received: none.")


class RowsReader(TaggedReader):
    """Reads a source that has a whole sentence per row; subclasses yield them in `_rows`.

    Raises:
        UserError: from `whole` and `windows`: the source cannot be read, is malformed, or has no words.
    """

    def _rows(self) -> Iterator[tuple[int, Sequence[str], Sequence[str | None], str]]:
        """Yields (line, words, the label of each word or None, the `source` text for `labelled`) of each sentence."""
        raise NotImplementedError

    def whole(self) -> TaggedWords:
        tagged = self._tagged(self._rows())
        self._check(len(tagged.words))
        return tagged

    def windows(self, by_document: bool = False) -> Iterator[TaggedWords]:
        found = 0
        for window in windows(self._rows(), lambda row: sum(map(len, row[1])) + 1, _CHARACTERS_AT_ONCE):
            tagged = self._tagged(window, reader=self, source=[row[3] for row in window])
            found += len(tagged.words)
            yield tagged
        self._check(found)

    def _tagged(
        self, rows: Iterable[tuple[int, Sequence[str], Sequence[str | None], str]], **fields: Any
    ) -> TaggedWords:
        sentences = Sentences()
        for line, words, labels, _ in rows:
            for word, label in zip(words, labels, strict=True):
                sentences.add(word, label, line)
            sentences.end()
        return sentences.tagged(self.path, **fields)


class SentencesReader(RowsReader):
    """Reads a table with a sentence in each row: a list of words, and a list of their labels.

    Args:
        source: as for `read_table`.
        word, label: the names of the columns.
        labels_needed: whether to refuse a sentence without labels, or with a word without one.
    """

    needed = "sentences of words"

    def __init__(self, source: str, word: str | int = "text", label: str | int = "label", labels_needed: bool = True):
        self._table, self._needed = open_table(source), labels_needed
        super().__init__(self._table.name)
        self._word, self._label = str(word), str(label)

    def _rows(self) -> Iterator[tuple[int, Sequence[str], Sequence[str | None], str]]:
        wanted = (self._word, self._label) if self._needed else (self._word,)
        optional = () if self._needed or self._word == self._label else (self._label,)
        if self._needed and self._word == self._label:
            raise UserError(
                f"data.label (--label): needs another column than the words. Received: {self._word!r} for both."
            )
        for row in self._table.rows(Reading(wanted, optional, options="--text and --label", optional_in_rows=True)):
            words, labels = (*row.cells, None)[:2]
            if labels is None and not self._needed and isinstance(words, list):
                labels = [None] * len(words)
            if not isinstance(words, list) or not isinstance(labels, list) or len(words) != len(labels):
                raise UserError(
                    f"{row.place}: needs a list of words and one of as many labels. Received: {words!r:.60} and "
                    f"{labels!r:.60}."
                )
            with bad_cell_at(row.place):
                words = [check_text(word, "words that are text") for word in words]
                labels = [_label(label) for label in labels]
            if self._needed and None in labels:
                word = words[labels.index(None)]
                raise UserError(f"{row.place}: needs a label for each word. Received: {word!r:.60} without one.")
            yield row.line, words, labels, json.dumps(words)

    def labelled(self, tagged: TaggedWords, labels: list[str]) -> Iterator[str]:
        """A JSON object for each sentence, with the columns of the words and of their labels."""
        first = 0
        for words in map(json.loads, tagged.source or ()):
            found = with_texts({self._word: words}, {self._label: labels[first : first + len(words)]})
            first += len(words)
            yield json_line(found)


def _label(cell: object) -> str | None:
    """The label in a cell, a text or a number; None if it is missing or blank. Raises `BadCell`."""
    if is_missing(cell) or isinstance(cell, str) and not cell.strip():
        return None
    if not isinstance(cell, (str, bool, int, float)):
        raise BadCell(f"needs labels that are text or numbers. Received: {cell!r:.60}")
    label = check_text(str(cell), "labels that are text").strip()
    if "\n" in label or "\r" in label:
        raise BadCell(f"needs labels without line breaks. Received: {label!r:.60}")
    return label


def numbered(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """(number, line) of the lines of a file, with line ends, but without a byte order mark."""
    for number, line in enumerate(lines, 1):
        yield number, line.removeprefix("\ufeff") if number == 1 else line
