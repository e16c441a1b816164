"""CoNLL-U, the format of Universal Dependencies (universaldependencies.org/format.html): words and their UPOS."""

import re

from keras_bert.data.tagged_words import Sentences
from keras_bert.data.text_lines import read_whole_lines
from keras_bert.errors import UserError

_COLUMNS = 10
_FORM, _UPOS = 1, 3
_WORD, _MULTIWORD, _EMPTY = re.compile(r"[1-9]\d*"), re.compile(r"\d+-\d+"), re.compile(r"\d+\.\d+")


def read_conllu(path):
    """The `TaggedWords` of a treebank: its syntactic words with their UPOS.

    A multiword token (`1-2`) is passed over, as the words that it is made of follow it, and an empty node (`5.1`), as
    it stands for nothing that is written. A word whose UPOS is `_` has no label; where none has one, `labels` is None.

    Args:
        path: the file, compressed or not; "-" for standard input.

    Raises:
        UserError: the file cannot be read or has no words, a line has not ten cells, or a word's number is not the one
            after the last; with the line.
    """
    source = read_whole_lines(path)
    sentences, number, passed, unlabelled = Sentences(), 0, {_MULTIWORD: 0, _EMPTY: 0}, []
    for line_number, line in enumerate(source, 1):
        text = (line.removeprefix("\ufeff") if line_number == 1 else line).rstrip("\r\n")
        if not text.strip():
            sentences.end()
            number = 0
            continue
        if text.startswith("#"):
            continue
        cells, where = text.split("\t"), f"{path} line {line_number}"
        if len(cells) != _COLUMNS:
            raise UserError(
                f"{where}: needs {_COLUMNS} cells with tabs between, as CoNLL-U has. "
                f"Received: {len(cells)} in {text[:80]!r}."
            )
        kind = next((kind for kind in passed if kind.fullmatch(cells[0])), None)
        if kind:
            passed[kind] += 1
            continue
        number += 1
        if not _WORD.fullmatch(cells[0]) or int(cells[0]) != number:
            raise UserError(
                f"{where}: needs the word number {number} of its sentence (or 1-2 for a multiword token, 1.1 for an "
                f"empty node). Received: {cells[0]!r}. A blank line ends a sentence."
            )
        if not cells[_FORM].strip():
            raise UserError(f"{where}: needs a word in the second cell. Received: {text[:80]!r}.")
        if cells[_UPOS] == "_":
            unlabelled.append(line_number)
        sentences.add(cells[_FORM], None if cells[_UPOS] == "_" else cells[_UPOS], line_number)
    if not sentences.words:
        raise UserError(f"{path}: needs sentences in CoNLL-U. Received: none.")
    labelled = len(unlabelled) < len(sentences.words)
    return sentences.tagged(path, source, labelled, notes=tuple(_notes(path, passed, unlabelled if labelled else [])))


def write_conllu(tagged, labels, path):
    """Writes the file again with these UPOS; all else is byte for byte as it was.

    Args:
        tagged: the `TaggedWords` of `read_conllu`.
        labels: list of str, one a word.
        path: the new file.
    """

    def change(text, number, word):
        if word is None:
            return text
        cells = text.split("\t")
        cells[_UPOS] = labels[word]
        return "\t".join(cells)

    tagged.write(path, change)


def _notes(path, passed, unlabelled):
    if passed[_MULTIWORD] or passed[_EMPTY]:
        yield (
            f"{path}: passed over {passed[_MULTIWORD]:,} multiword tokens, whose words are read, and "
            f"{passed[_EMPTY]:,} empty nodes."
        )
    if unlabelled:
        yield (
            f"{path}: {len(unlabelled):,} words without a UPOS (the first: line {unlabelled[0]}) are neither trained "
            "on nor scored."
        )
