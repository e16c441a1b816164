"""Words in columns, one per line with blank lines between sentences, as in CoNLL's shared tasks."""

import re
from collections.abc import Callable, Iterator
from typing import Any

from keras_bert.core.errors import UserError, nearest_name
from keras_bert.data.tables.json_rows import is_json
from keras_bert.data.tables.tables import is_table
from keras_bert.tasks.tagging.tagged_words import Sentences, SentencesReader, TaggedReader, TaggedWords

DOCUMENT = "-DOCSTART-"  # Marks the start of a document, instead of a word.
_NAMES = re.compile(r"#\s*global\.columns\s*=\s*(.*)")  # CoNLL-U Plus.
_NEW_DOCUMENT = re.compile(r"#\s*newdoc\b")  # CoNLL-U.
_NO_WORD = re.compile(r"\d+[-.]\d+[ \t]")
_BLANKS = re.compile(r"[ \t]+")
_JSON_LIST = re.compile(r'\s*\[\s*".*"\s*\]\s*')


def words_reader(path: str, **options: Any) -> TaggedReader:
    """The reader of a file: `SentencesReader` for a table with lists, otherwise `ColumnsReader`."""
    return SentencesReader(path, **options) if is_table(path, of_lists=True) else ColumnsReader(path, **options)


class ColumnsReader(TaggedReader):
    """Reads a file in columns.

    If the first line with cells, -DOCSTART- aside, contains a tab, cells are separated by tabs and may contain spaces;
    otherwise they are separated by spaces. If a column is given by name, that line names all columns. In CoNLL-U
    Plus, a comment before it names them (`# global.columns = ID FORM …`), lines between sentences that start with #
    are comments too, and multiword tokens and empty nodes are skipped as by `ConlluReader`.

    Args:
        path: the file, compressed or not; "-" for stdin.
        word: the column of the words, by number (0 is the first) or by name; None for the one named text, or the first.
        label: the column of the labels, by number (-1 is the last) or by name.
        labels_needed: whether to refuse a file without a label column, or with an empty cell in it; otherwise such
            words have no label.

    Attributes:
        names_line: the number of the line with the names of the columns; 0 if there is none.
        separator: what separates the cells, a tab or a space.

    Raises:
        UserError: from `whole` and `windows`, with the line: the file cannot be read or has no words, a line has more
            or fewer cells than the first, a required cell is empty, or there is no such column.
    """

    needed = "words in columns, one per line"

    def __init__(self, path: str, word: int | str | None = None, label: int | str = -1, labels_needed: bool = True):
        super().__init__(path)
        self._word, self._label, self._labels_needed = word, label, labels_needed
        self._has_named = any(isinstance(column, str) for column in (word, label))
        self._columns: list[str] = []
        self._split: Callable[[str], list[str]] | None = None
        self._place: list[int] | None = None
        self._width = 0
        self._with_comments = self._in_sentence = False
        self.names_line, self.separator = 0, " "

    def _marks_document(self, line: str) -> bool:
        is_comment = self._with_comments and not self._in_sentence
        return _is_document(line) or is_comment and bool(_NEW_DOCUMENT.match(line))

    def _read(self, line: str, number: int, sentences: Sentences) -> None:
        text = line.rstrip("\r\n")
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
        if _is_document(text):
            self._in_sentence = False
            return
        where = f"{self.path} line {number}"
        if self._split is None and (is_json(text) or _JSON_LIST.fullmatch(text)):
            raise UserError(f"{where}: needs {self.needed}. Received: JSON. Give a file whose name ends in .json.")
        self._split = self._split or (_by_tabs if "\t" in text else _by_blanks)
        cells = self._split(text)
        if self._has_named and not self._columns:
            self._columns, self.names_line = cells, number
            return
        if self._place is None:
            self._width, self.separator = len(self._columns or cells), "\t" if "\t" in text else " "
            self._place = self._places(where, text)
        if len(cells) != self._width:
            reason = "one for each column name" if self._columns else "as in the lines before it"
            raise UserError(
                f"{where}: needs {self._width} cells, {reason}. "
                f"Received: {len(cells)} in {text[:80]!r}. "
                f"{'Tabs' if self._split is _by_tabs else 'Spaces'} separate cells; a blank line ends a sentence."
            )
        self._in_sentence = True
        if self._is_skipped(text):
            return
        word, *label = (cells[column] for column in self._place)
        if not word or self._labels_needed and not all(label):
            raise UserError(f"{where}: needs a word{' and its label' if label else ''}. Received: {text!r}.")
        sentences.add(word, label[0] or None if label else None, number)

    def _is_skipped(self, text: str) -> bool:
        """Whether a line of words has a multiword token, whose words follow, or an empty node."""
        return self._with_comments and self._columns[0] == "ID" and bool(_NO_WORD.match(text))

    def _places(self, where: str, text: str) -> list[int]:
        """The numbers of the columns: [words] or [words, labels]."""
        default = "text" if "text" in self._columns else 0
        word = _place(where, default if self._word is None else self._word, self._columns, self._width)
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

    def labelled(self, tagged: TaggedWords, labels: list[str]) -> Iterator[str]:
        """The lines of a window with an additional last column, the predicted label of each word.

        A -DOCSTART- line gets an O, so that all lines have the same number of cells, as conlleval requires; the line
        with the names of the columns gets PREDICTED, and a line with cells but no word gets _.
        """

        def change(text: str, number: int, word: int | None) -> str:
            if word is not None:
                cell = labels[word]
            elif number == self.names_line:
                cell = "PREDICTED"
            elif _is_document(text):
                cell = "O"
            elif self._is_skipped(text):
                cell = "_"
            else:
                return text
            return f"{text.rstrip(' ')}{' ' if text.startswith('#') and word is None else self.separator}{cell}"

        return tagged.changed(change)


def _is_document(line: str) -> bool:
    return line.lstrip("\ufeff \t").startswith(DOCUMENT)


def _by_tabs(text: str) -> list[str]:
    return [cell.strip(" ") for cell in text.split("\t")]


def _by_blanks(text: str) -> list[str]:
    return _BLANKS.split(text.strip(" \t"))


def _place(where: str, column: int | str, names: list[str], width: int) -> int:
    if isinstance(column, str):
        if column in names:
            return names.index(column)
        hint = nearest_name(column, {name: repr(name) for name in names})
        raise UserError(
            f"{where}: needs a column {column!r}. Received: the columns {', '.join(map(repr, names))}.{hint}"
        )
    if not -width <= column < width:
        raise UserError(f"{where}: needs a column {column}, counted from 0. Received: {width} columns.")
    return column % width


_COLUMNS = 10
_FORM, _UPOS = 1, 3
_WORD, _MULTIWORD, _EMPTY = re.compile(r"[1-9]\d*"), re.compile(r"\d+-\d+"), re.compile(r"\d+\.\d+")


def conllu_cells(text: str, where: str) -> list[str]:
    """The ten cells of a line of CoNLL-U. Raises `UserError`, naming the place `where` it stands, for other numbers."""
    cells = text.split("\t")
    if len(cells) != _COLUMNS:
        raise UserError(
            f"{where}: needs {_COLUMNS} cells separated by tabs, as in CoNLL-U. "
            f"Received: {len(cells)} in {text[:80]!r}."
        )
    return cells


class ConlluReader(TaggedReader):
    """Reads the syntactic words of a treebank with their UPOS.

    Multiword tokens (`1-2`) are skipped, because their words follow them, and so are empty nodes (`5.1`), which are not
    in the text. A word whose UPOS is `_` or blank has no label; if no word has one, `labels` is None.

    Args:
        path: the file, compressed or not; "-" for stdin.
        labels_needed: ignored, because CoNLL-U always has a column for the labels.

    Raises:
        UserError: from `whole` and `windows`, with the line: the file cannot be read or has no words, a line does not
            have ten cells, or a word's number does not follow the previous one.
    """

    needed = "sentences in CoNLL-U"

    def __init__(self, path: str, labels_needed: bool = True):
        super().__init__(path)
        self._number, self._words = 0, 0
        self._skipped = {_MULTIWORD: 0, _EMPTY: 0}
        self._unlabelled = 0
        self._first_unlabelled: int | None = None

    def _marks_document(self, line: str) -> bool:
        return bool(_NEW_DOCUMENT.match(line))

    def _read(self, line: str, number: int, sentences: Sentences) -> None:
        text = line.rstrip("\r\n")
        if not text.strip():
            sentences.end()
            self._number = 0
            return
        if text.startswith("#"):
            return
        where = f"{self.path} line {number}"
        cells = conllu_cells(text, where)
        kind = next((kind for kind in self._skipped if kind.fullmatch(cells[0])), None)
        if kind:
            self._skipped[kind] += 1
            return
        self._number += 1
        if not _WORD.fullmatch(cells[0]) or int(cells[0]) != self._number:
            raise UserError(
                f"{where}: needs the word number {self._number} of its sentence (or 1-2 for a multiword token, 1.1 for "
                f"an empty node). Received: {cells[0]!r}. A blank line ends a sentence."
            )
        if not cells[_FORM].strip():
            raise UserError(f"{where}: needs a word in the second cell. Received: {text[:80]!r}.")
        self._words += 1
        upos = cells[_UPOS].strip()
        label = None if upos in ("", "_") else upos
        if label is None:
            self._unlabelled += 1
            self._first_unlabelled = self._first_unlabelled or number
        sentences.add(cells[_FORM], label, number)

    def notes(self) -> list[str]:
        found = []
        if any(self._skipped.values()):
            found.append(
                f"{self.path}: skipped {self._skipped[_MULTIWORD]:,} multiword tokens, whose words are read, and "
                f"{self._skipped[_EMPTY]:,} empty nodes."
            )
        if 0 < self._unlabelled < self._words:
            found.append(
                f"{self.path}: {self._unlabelled:,} words without a UPOS (the first: line {self._first_unlabelled}) "
                "are neither trained on nor scored."
            )
        return found

    def labelled(self, tagged: TaggedWords, labels: list[str]) -> Iterator[str]:
        """The lines of a window with these labels as UPOS, otherwise unchanged."""

        def change(text: str, number: int, word: int | None) -> str:
            if word is None:
                return text
            cells = text.split("\t")
            cells[_UPOS] = labels[word]
            return "\t".join(cells)

        return tagged.changed(change)
