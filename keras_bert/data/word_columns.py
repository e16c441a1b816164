"""Words in columns, one a line with a blank line between sentences: CoNLL's shared tasks and files of that kind."""

import difflib
import re

from keras_bert.data.tagged_words import TaggedReader
from keras_bert.errors import UserError

DOCUMENT = "-DOCSTART-"  # Between documents, in the columns of a word.
_NAMES = re.compile(r"#\s*global\.columns\s*=\s*(.*)")  # CoNLL-U Plus.
_BLANKS = re.compile(r"[ \t]+")


class ColumnsReader(TaggedReader):
    """Reads a file in columns.

    Where the first line with cells has a tab, tabs part the cells, which may hold spaces; else spaces do.

    Args:
        path: the file, compressed or not; "-" for standard input.
        word, label: the columns, by number (0 the first, -1 the last) or by name. `label` None reads none.
        columns: the columns' names. Where a column is asked for by name and these are not given, they stand in the
            first line, plain or as CoNLL-U Plus writes them (`# global.columns = ID FORM …`); in a file that begins
            with the latter, lines that begin with # between sentences are comments.
        labels_needed: whether a file without the labels' column, or with an empty cell in it, is refused; else those
            words are without.

    Raises:
        UserError: of `whole` and `windows`: the file cannot be read or has no words, a line has more or fewer cells
            than the first, a cell that is needed is empty, or there is no such column; with the line.
    """

    def __init__(self, path, word=0, label=-1, columns=None, labels_needed=True):
        super().__init__(path)
        self._word, self._label, self._columns, self._labels_needed = word, label, columns, labels_needed
        self._has_named = any(isinstance(column, str) for column in (word, label))
        self._split = self._place = self._width = None
        self._with_comments = self._in_sentence = False
        self.names_line, self.separator = 0, " "

    def _read(self, line, number, sentences):
        text = (line.removeprefix("\ufeff") if number == 1 else line).rstrip("\r\n")
        if not text.strip():
            self._in_sentence = False
            sentences.end()
            return
        named = _NAMES.match(text) if self._place is None else None
        if named:
            self._columns, self._with_comments, self.names_line = _BLANKS.split(named[1].strip()), True, number
            return
        if self._with_comments and not self._in_sentence and text.startswith("#"):
            return
        self._split = self._split or (_by_tabs if "\t" in text else _by_blanks)
        cells = self._split(text)
        if self._place is None and self._columns is None and self._has_named:
            self._columns, self.names_line = cells, number
            return
        if cells[0].startswith(DOCUMENT):
            self._in_sentence = False
            sentences.end()
            return
        where = f"{self.path} line {number}"
        if self._place is None:
            self._width, self.separator = len(self._columns or cells), "\t" if "\t" in text else " "
            self._place = self._places(where, text)
        if len(cells) != self._width:
            told = "the names say" if self._columns else "the lines before it have"
            raise UserError(
                f"{where}: needs {self._width} cells, as {told}. "
                f"Received: {len(cells)} in {text[:80]!r}. "
                f"{'Tabs' if self._split is _by_tabs else 'Spaces'} part them; a blank line ends a sentence."
            )
        word, *label = (cells[column] for column in self._place)
        if not word or self._labels_needed and not all(label):
            raise UserError(f"{where}: needs a word{' and its label' if label else ''}. Received: {text!r}.")
        sentences.add(word, label[0] or None if label else None, number)
        self._in_sentence = True

    def _places(self, where, text):
        """[the words' column] or [the words', the labels']."""
        word = _place(where, self._word, self._columns, self._width)
        if self._label is None:
            return [word]
        try:
            label = _place(where, self._label, self._columns, self._width)
        except UserError:
            if self._labels_needed:
                raise
            return [word]
        if label != word:
            return [word, label]
        if self._labels_needed:
            raise UserError(f"{where}: needs a column for the words and one for the labels. Received: {text!r}.")
        return [word]

    def _check(self, words):
        if not words:
            raise UserError(f"{self.path}: needs words in columns, one a line. Received: none.")

    def labelled(self, tagged, labels):
        """The lines of a window again with a column more at the end, the predicted label of each word.

        The lines between documents get an O, so that every line has as many cells, as conlleval wants it, and the names
        of columns one more, PREDICTED.

        Args:
            tagged: the `TaggedWords` of one of `windows`.
            labels: list of str, one a word.
        """

        def change(text, number, word):
            if word is not None:
                cell = labels[word]
            elif number == self.names_line:
                cell = "PREDICTED"
            elif text.removeprefix("\ufeff").startswith(DOCUMENT):
                cell = "O"
            else:
                return text
            return f"{text.rstrip(' ')}{' ' if text.startswith('#') and word is None else self.separator}{cell}"

        return tagged.changed(change)


def _by_tabs(text):
    return [cell.strip(" ") for cell in text.split("\t")]


def _by_blanks(text):
    return _BLANKS.split(text.strip(" \t"))


def _place(where, column, columns, width):
    if isinstance(column, str):
        if column in (columns or ()):
            return list(columns).index(column)
        nearest = difflib.get_close_matches(column, columns or (), n=1)
        hint = f" The nearest is {nearest[0]!r}." if nearest else ""
        raise UserError(
            f"{where}: needs a column {column!r}. Received: the columns {', '.join(map(repr, columns))}.{hint}"
        )
    if not -width <= column < width:
        raise UserError(f"{where}: needs a column {column}, counted from 0. Received: {width} columns.")
    return column % width
