"""Detects the formats of files with documents, and reads plain text and CoNLL-U."""

import re
from collections.abc import Iterable, Iterator
from itertools import chain

from keras_bert.core.errors import UserError
from keras_bert.data.corpus.corpus_report import LONGEST_DOCUMENT, CorpusReport
from keras_bert.data.corpus.text_lines import Unreadable, plain_ending, remedy_of, until_damage, what_is_no_text
from keras_bert.data.tables.tables import table_format
from keras_bert.data.windows import groups
from keras_bert.text.sentences import divide_text, split_sentences

PLAIN = "plain text"
WIKI_EXTRACTOR = "WikiExtractor's format"
MEDIAWIKI = "a MediaWiki dump"
WARC = "a web archive"
CONLLU = "CoNLL-U"
TABLE = "a table"

_MAGIC = {b"<doc ": WIKI_EXTRACTOR, b"<mediawiki": MEDIAWIKI, b"<?xml": MEDIAWIKI, b"WARC/": WARC}


def format_of(path: str, start: bytes) -> str:
    """The format of a file.

    Args:
        start: the file's first kilobytes, decompressed, without white space in front.

    Raises:
        UserError: the format cannot be read, such as HTML or PDF.
    """
    if found := what_is_no_text(plain_ending(path), start):
        remedy = remedy_of(found, "Extract its text first, or leave it out.")
        raise UserError(f"{path}: needs text. Received: {found}. {remedy}")
    if magic := next((name for mark, name in _MAGIC.items() if start.startswith(mark)), None):
        return magic
    if table_format(path, start):
        return TABLE
    return CONLLU if is_conllu(start.decode("utf-8", "replace").split("\n")) else PLAIN


_COLUMNS = 10
_FORM, _UPOS, _MISC = 1, 3, 9
_NUMBER = re.compile(r"\d+([-.]\d+)?")


class AnnotatedText(str):
    """The text of a document, with its sentences and the labels of their words.

    Attributes:
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
    """The documents of a CoNLL-U file (universaldependencies.org/format.html), words labelled with their UPOS.

    A file without `# newdoc` is one document.

    A multiword token (`1-2`) has the label of its first word. `report` counts the cuts of long documents. Raises
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
        sentence.add(line.split("\t"))
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
        self._covered = 0  # The number of the last word whose text is already there, in a multiword token.
        self._awaits_label = False

    def add(self, cells: list[str]) -> None:
        number, form, label = cells[0], cells[_FORM], cells[_UPOS]
        if "." in number:  # An empty node, which is not in the text.
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


# In novels with blank lines between paragraphs, or around headings and verse, 20% or more of the blocks are a single
# sentence; in Wikipedia's articles 1–14%. Fewer than 20 blocks are not enough to tell.
_BOOK_SAMPLE = 200
_FEWEST_BLOCKS = 20
_BOOK_SINGLE_SHARE = 0.2
_BOOK_PASSAGE = 10_000  # Characters.


def plain_documents(lines: Iterable[str], report: CorpusReport) -> tuple[Iterable[str], bool]:
    """Blocks between blank lines; in a book, where a block is only a paragraph or a heading, many blocks are joined.

    A file counts as a book if at least `_BOOK_SINGLE_SHARE` of its first blocks are a single sentence, because such
    documents give no segment pairs.

    Args:
        report: counts the cuts of long documents.

    Returns:
        (the documents, whether the file is a book)
    """
    blocks = _blocks(lines, report)
    sample = next(groups(blocks, len, LONGEST_DOCUMENT, _BOOK_SAMPLE), [])
    blocks = chain(sample, blocks)
    singles = sum(len(split_sentences(block)) == 1 for block in sample)
    if len(sample) < _FEWEST_BLOCKS or singles < _BOOK_SINGLE_SHARE * len(sample):
        return blocks, False
    return ("\n\n".join(passage) for passage in groups(blocks, len, _BOOK_PASSAGE)), True


def _blocks(lines: Iterable[str], report: CorpusReport) -> Iterator[str]:
    block, length = [], 0
    for line in chain(lines, [""]):
        if line.strip():
            block.append(line)
            length += len(line) + 1
            if length > LONGEST_DOCUMENT:
                *full, rest = divide_text("\n".join(block), LONGEST_DOCUMENT)
                yield from full
                report.cuts += len(full)
                block, length = [rest], len(rest) + 1
        elif block:
            yield "\n".join(block).strip()
            block, length = [], 0
