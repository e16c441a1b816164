"""A document whose words are labelled, and CoNLL-U files of them (universaldependencies.org/format.html)."""

import re
from collections.abc import Iterable, Iterator

from keras_bert.data.corpus.text_lines import Unreadable

_COLUMNS = 10
_FORM, _UPOS, _MISC = 1, 3, 9
_NUMBER = re.compile(r"\d+([-.]\d+)?")
_HEADER = re.compile(r"# ?(global\.columns|newdoc|newpar|sent_id|text)\b")


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


def is_conllu(line: str) -> bool:
    """Whether the first line of a file is one of CoNLL-U."""
    return bool(_HEADER.match(line)) or (line.startswith("1") and line.count("\t") == _COLUMNS - 1)


def conllu_documents(lines: Iterable[str]) -> Iterator[AnnotatedText]:
    """The documents of a CoNLL-U file, words labelled with their UPOS; one document if it has no `# newdoc`.

    A multiword token (`1-2`) has the label of its first word. Raises `Unreadable` for a line that is not CoNLL-U.
    """
    sentences: list[str] = []
    words: list[list[tuple[int, int, str]]] = []
    sentence = _Sentence()
    for number, line in enumerate(lines, start=1):
        line = line.rstrip("\r\n")
        if not line.strip() or line.startswith("#"):
            _add(sentence, sentences, words)
            sentence = _Sentence()
            if line.startswith("# newdoc") and sentences:
                yield AnnotatedText.of(sentences, words)
                sentences, words = [], []
            continue
        cells = line.split("\t")
        if len(cells) != _COLUMNS or not _NUMBER.fullmatch(cells[0]):
            raise Unreadable(f"line {number} is not a number and nine more cells, as in CoNLL-U")
        sentence.add(cells)
    _add(sentence, sentences, words)
    if sentences:
        yield AnnotatedText.of(sentences, words)


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
