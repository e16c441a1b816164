"""Words in columns, one a line with a blank line between sentences: CoNLL's shared tasks and files of that kind."""

import difflib
import re

from keras_bert.data.tagged_words import Sentences
from keras_bert.data.text_lines import read_whole_lines
from keras_bert.errors import UserError

DOCUMENT = "-DOCSTART-"  # Between documents, in the columns of a word.
_NAMES = re.compile(r"#\s*global\.columns\s*=\s*(.*)")  # CoNLL-U Plus.
_BLANKS = re.compile(r"[ \t]+")


def read_columns(path, word=0, label=-1, columns=None):
    """The `TaggedWords` of a file in columns.

    Where the first line with cells has a tab, tabs part the cells, which may hold spaces; else spaces do.

    Args:
        path: the file, compressed or not; "-" for standard input.
        word, label: the columns, by number (0 the first, -1 the last) or by name. `label` None reads none.
        columns: the columns' names. Where a column is asked for by name and these are not given, they stand in the
            first line, plain or as CoNLL-U Plus writes them (`# global.columns = ID FORM …`); in a file that begins
            with the latter, lines that begin with # between sentences are comments.

    Raises:
        UserError: the file cannot be read or has no words, a line has more or fewer cells than the first, a cell that
            is needed is empty, or there is no such column; with the line.
    """
    source = read_whole_lines(path)
    sentences, place = Sentences(), None
    split, with_comments, width = None, False, None
    in_sentence, names_line = False, 0
    for number, line in enumerate(source, 1):
        text = (line.removeprefix("\ufeff") if number == 1 else line).rstrip("\r\n")
        if not text.strip():
            in_sentence = False
            sentences.end()
            continue
        named = _NAMES.match(text) if place is None else None
        if named:
            columns, with_comments, names_line = _BLANKS.split(named[1].strip()), True, number
            continue
        if with_comments and not in_sentence and text.startswith("#"):
            continue
        split = split or (_by_tabs if "\t" in text else _by_blanks)
        cells = split(text)
        if place is None and columns is None and any(isinstance(column, str) for column in (word, label)):
            columns, names_line = cells, number
            continue
        if cells[0].startswith(DOCUMENT):
            in_sentence = False
            sentences.end()
            continue
        where = f"{path} line {number}"
        if place is None:
            width = len(columns or cells)
            place = [_place(where, column, columns, width) for column in (word, label) if column is not None]
            if len(set(place)) < 1 + (label is not None):
                raise UserError(f"{where}: needs a column for the words and one for the labels. Received: {text!r}.")
        if len(cells) != width:
            raise UserError(
                f"{where}: needs {width} cells, as {'the names say' if columns else 'the lines before it have'}. "
                f"Received: {len(cells)} in {text[:80]!r}. "
                f"{'Tabs' if split is _by_tabs else 'Spaces'} part them; a blank line ends a sentence."
            )
        values = [cells[column] for column in place]
        if not all(values):
            raise UserError(
                f"{where}: needs a word{' and its label' if label is not None else ''}. Received: {text!r}."
            )
        sentences.add(values[0], values[1] if label is not None else None, number)
        in_sentence = True
    if not sentences.words:
        raise UserError(f"{path}: needs words in columns, one a line. Received: none.")
    return sentences.tagged(path, source, label is not None, names_line=names_line)


def write_columns(tagged, labels, path):
    """Writes the file again with a column more at the end, the predicted label of each word.

    The lines between documents get an O, so that every line has as many cells, as conlleval wants it, and the names of
    columns one more, PREDICTED.

    Args:
        tagged: the `TaggedWords`.
        labels: list of str, one a word.
        path: the new file.
    """
    separator = "\t" if "\t" in tagged.source[tagged.lines[0] - 1] else " "

    def change(text, number, word):
        if word is not None:
            cell = labels[word]
        elif number == tagged.names_line:
            cell = "PREDICTED"
        elif text.removeprefix("\ufeff").startswith(DOCUMENT):
            cell = "O"
        else:
            return text
        return f"{text.rstrip(' ')}{' ' if text.startswith('#') and word is None else separator}{cell}"

    tagged.write(path, change)


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
