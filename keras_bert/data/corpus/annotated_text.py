"""A document whose words are labelled, and CoNLL-U files of them (universaldependencies.org/format.html)."""

import re
from collections.abc import Iterable, Iterator

from keras_bert.data.corpus.text_lines import Unreadable

_COLUMNS = 10
_FORM, _UPOS, _MISC = 1, 3, 9
_NUMBER = re.compile(r"\d+([-.]\d+)?")


class AnnotatedText(str):
    """The text of a document, with its sentences and the labels of their words.

    Attributes:
        sentences: the sentences.
        words: for each sentence, (start, end, label) of its labelled words, in code points, ascending.
    """

    sentences: list[str]
    words: list[list[tuple[int, int, str]]]

    @classmethod
    def of(cls, sentences: list[str], words: list[list[tuple[int, int, str]]]) -> "AnnotatedText":
        """The document of these sentences."""
        text = cls("\n".join(sentences))
        text.sentences, text.words = sentences, words
        return text


def is_conllu(lines: Iterable[str]) -> bool:
    """Whether the first line of a file that is neither blank nor a comment is a word of CoNLL-U."""
    return _cells(next((line for line in lines if line.strip() and not line.startswith("#")), "")) is not None


def _cells(line: str) -> list[str] | None:
    """The cells of a word; None if the line is none."""
    cells = line.rstrip("\r\n").split("\t")
    return cells if len(cells) == _COLUMNS and _NUMBER.fullmatch(cells[0]) else None


def conllu_documents(lines: Iterable[str]) -> Iterator[AnnotatedText]:
    """The documents of a CoNLL-U file, words labelled with their UPOS; one document if it has no `# newdoc`.

    A multiword token (`1-2`) has the label of its first word. Raises `Unreadable` at a line that is not CoNLL-U, after
    the sentences before it.
    """
    sentences: list[str] = []
    words: list[list[tuple[int, int, str]]] = []
    sentence, problem = _Sentence(), None
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith("#"):
            _add(sentence, sentences, words)
            sentence = _Sentence()
            if line.startswith("# newdoc") and sentences:
                yield AnnotatedText.of(sentences, words)
                sentences, words = [], []
            continue
        cells = _cells(line)
        if cells is None:
            problem = Unreadable(f"line {number} is not a number and nine more cells, as in CoNLL-U")
            break
        sentence.add(cells)
    _add(sentence, sentences, words)
    if sentences:
        yield AnnotatedText.of(sentences, words)
    if problem:
        raise problem


class _Sentence:
    """A sentence that grows line by line."""

    def __init__(self) -> None:
        self.text = ""
        self.words: list[tuple[int, int, str]] = []
        self._covered = 0  # The last word that a multiword token has written.
        self._awaits_label = False

    def add(self, cells: list[str]) -> None:
        number, form, label = cells[0], cells[_FORM], cells[_UPOS]
        if "." in number:  # Not in the text.
            return
        first, _, last = number.partition("-")
        if not last and int(first) <= self._covered:
            if self._awaits_label:
                start, end, _ = self.words[-1]
                self.words[-1], self._awaits_label = (start, end, label), False
            return
        self.words.append((len(self.text), len(self.text) + len(form), label))
        self.text += form if "SpaceAfter=No" in cells[_MISC].split("|") else f"{form} "
        if last:
            self._covered, self._awaits_label = int(last), True


def _add(sentence: _Sentence, sentences: list[str], words: list[list[tuple[int, int, str]]]) -> None:
    text = sentence.text.rstrip()
    if text:
        sentences.append(text)
        words.append(sentence.words)
