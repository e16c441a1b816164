"""CoNLL-U, the format of Universal Dependencies (universaldependencies.org/format.html): words and their UPOS."""

import re
from collections.abc import Iterator

from keras_bert.errors import UserError
from keras_bert.tasks.tagging.tagged_words import Sentences, TaggedReader, TaggedWords

_COLUMNS = 10
_FORM, _UPOS = 1, 3
_WORD, _MULTIWORD, _EMPTY = re.compile(r"[1-9]\d*"), re.compile(r"\d+-\d+"), re.compile(r"\d+\.\d+")


class ConlluReader(TaggedReader):
    """Reads the syntactic words of a treebank with their UPOS.

    Multiword tokens (`1-2`) are skipped, because their words follow them, and so are empty nodes (`5.1`), which are not
    in the text. A word whose UPOS is `_` has no label; if no word has one, `labels` is None.

    Args:
        path: the file, compressed or not; "-" for stdin.
        labels_needed: ignored, because CoNLL-U always has a column for the labels.

    Raises:
        UserError: from `whole` and `windows`, with the line: the file cannot be read or has no words, a line does not
            have ten cells, or a word's number does not follow the previous one.
    """

    def __init__(self, path: str, labels_needed: bool = True):
        super().__init__(path)
        self._number, self._words = 0, 0
        self._skipped = {_MULTIWORD: 0, _EMPTY: 0}
        self._unlabelled = 0
        self._first_unlabelled: int | None = None

    def _read(self, line: str, number: int, sentences: Sentences) -> None:
        text = line.rstrip("\r\n")
        if not text.strip():
            sentences.end()
            self._number = 0
            return
        if text.startswith("#"):
            return
        cells, where = text.split("\t"), f"{self.path} line {number}"
        if len(cells) != _COLUMNS:
            raise UserError(
                f"{where}: needs {_COLUMNS} cells separated by tabs, as in CoNLL-U. "
                f"Received: {len(cells)} in {text[:80]!r}."
            )
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
        if cells[_UPOS] == "_":
            self._unlabelled += 1
            self._first_unlabelled = self._first_unlabelled or number
        sentences.add(cells[_FORM], None if cells[_UPOS] == "_" else cells[_UPOS], number)

    def _check(self, words: int) -> None:
        if not words:
            raise UserError(f"{self.path}: needs sentences in CoNLL-U. Received: none.")

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
        """The lines of a window with these labels as UPOS, otherwise unchanged.

        Args:
            tagged: one of `windows`.
            labels: one label per word.
        """

        def change(text: str, number: int, word: int | None) -> str:
            if word is None:
                return text
            cells = text.split("\t")
            cells[_UPOS] = labels[word]
            return "\t".join(cells)

        return tagged.changed(change)
