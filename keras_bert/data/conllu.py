"""CoNLL-U, the format of Universal Dependencies (universaldependencies.org/format.html): words and their UPOS."""

import re

from keras_bert.data.tagged_words import TaggedReader
from keras_bert.errors import UserError

_COLUMNS = 10
_FORM, _UPOS = 1, 3
_WORD, _MULTIWORD, _EMPTY = re.compile(r"[1-9]\d*"), re.compile(r"\d+-\d+"), re.compile(r"\d+\.\d+")


class ConlluReader(TaggedReader):
    """Reads the syntactic words of a treebank with their UPOS.

    A multiword token (`1-2`) is passed over, as the words that it is made of follow it, and an empty node (`5.1`), as
    it stands for nothing that is written. A word whose UPOS is `_` has no label; where none has one, `labels` is None.

    Args:
        path: the file, compressed or not; "-" for standard input.
        labels_needed: of no meaning here, where labels have their column.

    Raises:
        UserError: of `whole` and `windows`: the file cannot be read or has no words, a line has not ten cells, or a
            word's number is not the one after the last; with the line.
    """

    def __init__(self, path, labels_needed=True):
        super().__init__(path)
        self._number, self._words = 0, 0
        self._passed = {_MULTIWORD: 0, _EMPTY: 0}
        self._unlabelled, self._first_unlabelled = 0, None

    def _read(self, line, number, sentences):
        text = (line.removeprefix("\ufeff") if number == 1 else line).rstrip("\r\n")
        if not text.strip():
            sentences.end()
            self._number = 0
            return
        if text.startswith("#"):
            return
        cells, where = text.split("\t"), f"{self.path} line {number}"
        if len(cells) != _COLUMNS:
            raise UserError(
                f"{where}: needs {_COLUMNS} cells with tabs between, as CoNLL-U has. "
                f"Received: {len(cells)} in {text[:80]!r}."
            )
        kind = next((kind for kind in self._passed if kind.fullmatch(cells[0])), None)
        if kind:
            self._passed[kind] += 1
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
        if cells[_UPOS] == "_":
            self._unlabelled += 1
            self._first_unlabelled = self._first_unlabelled or number
        sentences.add(cells[_FORM], None if cells[_UPOS] == "_" else cells[_UPOS], number)

    def _check(self, words):
        if not words:
            raise UserError(f"{self.path}: needs sentences in CoNLL-U. Received: none.")

    def notes(self):
        found = []
        if any(self._passed.values()):
            found.append(
                f"{self.path}: passed over {self._passed[_MULTIWORD]:,} multiword tokens, whose words are read, and "
                f"{self._passed[_EMPTY]:,} empty nodes."
            )
        if 0 < self._unlabelled < self._words:
            found.append(
                f"{self.path}: {self._unlabelled:,} words without a UPOS (the first: line {self._first_unlabelled}) "
                "are neither trained on nor scored."
            )
        return found

    def labelled(self, tagged, labels):
        """The lines of a window again with these UPOS; all else is as it was.

        Args:
            tagged: the `TaggedWords` of one of `windows`.
            labels: list of str, one a word.
        """

        def change(text, number, word):
            if word is None:
                return text
            cells = text.split("\t")
            cells[_UPOS] = labels[word]
            return "\t".join(cells)

        return tagged.changed(change)
