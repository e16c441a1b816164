"""A document whose words are labelled, and CoNLL-U files of them (universaldependencies.org/format.html)."""

import re
from collections.abc import Iterable, Iterator
from itertools import chain

from keras_bert.data.corpus.corpus_report import LONGEST_DOCUMENT, CorpusReport
from keras_bert.data.corpus.text_lines import Unreadable, until_damage

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
    return _is_word(next((line for line in lines if line.strip() and not line.startswith("#")), ""))


def _is_word(line: str) -> bool:
    cells = line.split("\t")
    return len(cells) == _COLUMNS and bool(_NUMBER.fullmatch(cells[0]))


def conllu_documents(lines: Iterable[str], report: CorpusReport) -> Iterator[AnnotatedText]:
    """The documents of a CoNLL-U file, words labelled with their UPOS; one document if it has no `# newdoc`.

    A multiword token (`1-2`) has the label of its first word. `report` counts where documents are cut. Raises
    `Unreadable` at a line that is not CoNLL-U, after the sentences before it.
    """
    sentences: list[str] = []
    words: list[list[tuple[int, int, str]]] = []
    length, sentence = 0, _Sentence()
    damage: list[Unreadable] = []
    for line in chain(until_damage(_well_formed(lines), damage), ["# newdoc"]):
        if not line.strip() or line.startswith("#"):
            text = sentence.text.rstrip()
            if text:
                if sentences and length + len(text) > LONGEST_DOCUMENT:
                    yield AnnotatedText.of(sentences, words)
                    sentences, words, length = [], [], 0
                    report.cuts += 1
                sentences.append(text)
                words.append(sentence.words)
                length += len(text) + 1
            sentence = _Sentence()
            if line.startswith("# newdoc") and sentences:
                yield AnnotatedText.of(sentences, words)
                sentences, words, length = [], [], 0
            continue
        sentence.add(line.rstrip("\r\n").split("\t"))
    if damage:
        raise damage[0]


def _well_formed(lines: Iterable[str]) -> Iterator[str]:
    for number, line in enumerate(lines, start=1):
        if line.strip() and not line.startswith("#") and not _is_word(line):
            raise Unreadable(f"line {number} is not a number and nine more cells, as in CoNLL-U")
        yield line


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
