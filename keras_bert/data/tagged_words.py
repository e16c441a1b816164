"""Sentences of words with a label each, and the lines that they were read from."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from keras_bert.data.text_lines import read_whole_lines

_CHARACTERS_AT_ONCE = 1 << 18


@dataclasses.dataclass
class TaggedWords:
    """The words of a file, or of some of its lines, sentence after sentence.

    Attributes:
        origin: the file, for messages.
        words: list of str.
        labels: list of str, one a word, None for a word without; None where there are none at all.
        starts: int64 [sentences + 1], where each sentence begins in `words`.
        lines: int64 [words], the line of each, from 1.
        source: the lines that were read, with their ends; None where nothing is to be written again.
        first_line: the number of the first of them.
        reader: the `TaggedReader` that they come from; None with `source`.
    """

    origin: str
    words: list
    labels: list | None
    starts: np.ndarray
    lines: np.ndarray
    source: list | None = None
    first_line: int = 1
    reader: "TaggedReader | None" = None

    @property
    def sentences(self):
        return len(self.starts) - 1

    def place(self, word):
        """Where a word stands, for messages."""
        return f"{self.origin} line {self.lines[word]}"

    def changed(self, change: Callable) -> Iterator[str]:
        """The lines of `source` with other texts and the ends that they had.

        Args:
            change: function (line's text without its end, its number, its word's index or None) -> the new text.
        """
        word_of_line = {line: word for word, line in enumerate(self.lines.tolist())}
        for number, line in enumerate(self.source, self.first_line):
            text = line.rstrip("\r\n")
            yield change(text, number, word_of_line.get(number)) + line[len(text) :]


class Sentences:
    """Gathers a file's words as a reader meets them.

    Attributes:
        words, labels, lines: lists, one item a word.
    """

    def __init__(self):
        self.words, self.labels, self.lines = [], [], []
        self._starts = [0]
        self._known = {}  # Each word is in memory once, however often it stands in the file.

    def add(self, word, label, line):
        self.words.append(self._known.setdefault(word, word))
        self.labels.append(self._known.setdefault(label, label))
        self.lines.append(line)

    def end(self):
        """Ends a sentence; one without words is none."""
        if len(self.words) > self._starts[-1]:
            self._starts.append(len(self.words))

    def tagged(self, origin, **fields):
        """The `TaggedWords` of what was gathered; `labels` is None where no word has one."""
        self.end()
        labelled = any(label is not None for label in self.labels)
        return TaggedWords(
            origin,
            self.words,
            self.labels if labelled else None,
            np.array(self._starts, np.int64),
            np.array(self.lines, np.int64),
            **fields,
        )


class TaggedReader:
    """Reads one file of words; a format is what `_read` makes of a line.

    Args:
        path: the file, compressed or not; "-" for standard input.
    """

    def __init__(self, path):
        self.path = path

    def whole(self) -> TaggedWords:
        """All words at once. Raises `UserError`: the file cannot be read, a line is wrong, there is no word."""
        sentences = Sentences()
        for number, line in enumerate(read_whole_lines(self.path), 1):
            self._read(line, number, sentences)
        tagged = sentences.tagged(self.path)
        self._check(len(tagged.words))
        return tagged

    def windows(self) -> Iterator[TaggedWords]:
        """The words of whole sentences, some hundred thousand characters at a time, with their lines.

        Raises `UserError` as `whole`.
        """
        words = 0
        for first, lines in _blocks(read_whole_lines(self.path)):
            sentences = Sentences()
            for number, line in enumerate(lines, first):
                self._read(line, number, sentences)
            tagged = sentences.tagged(self.path, source=lines, first_line=first, reader=self)
            words += len(tagged.words)
            yield tagged
        self._check(words)

    def notes(self) -> list[str]:
        """What a user should know of what was read so far, one line each."""
        return []

    def labelled(self, tagged: TaggedWords, labels: list[str]) -> Iterator[str]:
        """The lines of one of `windows` again with these labels, one a word."""
        raise NotImplementedError

    def _read(self, line, number, sentences):
        """Adds what a line of the file, with its end, says to `Sentences`. Raises `UserError`."""
        raise NotImplementedError

    def _check(self, words):
        """Raises `UserError` where there are no words in all the file."""
        raise NotImplementedError


def _blocks(lines: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    """(number of the first line, lines); each block but the last ends behind an empty line, so between sentences."""
    first, block, characters = 1, [], 0
    for line in lines:
        block.append(line)
        characters += len(line)
        if characters >= _CHARACTERS_AT_ONCE and not line.strip():
            yield first, block
            first, block, characters = first + len(block), [], 0
    if block:
        yield first, block
