"""Sentences of words with a label each, and the lines that they were read from."""

import dataclasses

import numpy as np

from keras_bert.files import atomic_write


@dataclasses.dataclass
class TaggedWords:
    """The words of a file, sentence after sentence.

    Attributes:
        origin: the file, for messages.
        words: list of str.
        labels: list of str, one a word, None for a word without; None where the file has none at all.
        starts: int64 [sentences + 1], where each sentence begins in `words`.
        lines: int64 [words], the line of each, from 1.
        source: list of str, all lines of the file with their ends.
        notes: what a user should know, one line each.
        names_line: the line with the columns' names, 0 where there is none.
    """

    origin: str
    words: list
    labels: list | None
    starts: np.ndarray
    lines: np.ndarray
    source: list
    notes: tuple = ()
    names_line: int = 0

    @property
    def sentences(self):
        return len(self.starts) - 1

    def place(self, word):
        """Where a word stands, for messages."""
        return f"{self.origin} line {self.lines[word]}"

    def write(self, path, change):
        """Writes the file again, line by line, their ends as they were.

        Args:
            path: the new file.
            change: function (line's text without its end, its number, its word's index or None) -> the new text.
        """
        word_of_line = {line: word for word, line in enumerate(self.lines.tolist())}
        with atomic_write(path, "wb") as stream:
            for number, line in enumerate(self.source, 1):
                text = line.rstrip("\r\n")
                stream.write((change(text, number, word_of_line.get(number)) + line[len(text) :]).encode("utf-8"))


class Sentences:
    """Gathers a file's words as a reader meets them.

    Attributes:
        words, labels, lines: lists, one item a word.
    """

    def __init__(self):
        self.words, self.labels, self.lines = [], [], []
        self._starts = [0]

    def add(self, word, label, line):
        self.words.append(word)
        self.labels.append(label)
        self.lines.append(line)

    def end(self):
        """Ends a sentence; one without words is none."""
        if len(self.words) > self._starts[-1]:
            self._starts.append(len(self.words))

    def tagged(self, origin, source, labelled, **fields):
        """The `TaggedWords` of what was gathered."""
        self.end()
        return TaggedWords(
            origin,
            self.words,
            self.labels if labelled else None,
            np.array(self._starts, np.int64),
            np.array(self.lines, np.int64),
            source,
            **fields,
        )
