"""Splits plain text into documents: blocks between blank lines, or passages of a book."""

from collections.abc import Iterable, Iterator
from itertools import chain

from keras_bert.data.corpus.corpus_report import LONGEST_DOCUMENT, CorpusReport
from keras_bert.text.sentences import divide_text, split_sentences

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
        lines: the lines of the file.
        report: counts where documents are cut.

    Returns:
        (the documents, whether the file is a book)
    """
    blocks = _blocks(lines, report)
    sample, length = [], 0
    for block in blocks:
        sample.append(block)
        length += len(block)
        if len(sample) == _BOOK_SAMPLE or length >= LONGEST_DOCUMENT:
            break
    blocks = chain(sample, blocks)
    singles = sum(len(split_sentences(block)) == 1 for block in sample)
    if len(sample) < _FEWEST_BLOCKS or singles < _BOOK_SINGLE_SHARE * len(sample):
        return blocks, False
    return _passages(blocks), True


def _passages(blocks: Iterable[str]) -> Iterator[str]:
    passage, length = [], 0
    for block in blocks:
        passage.append(block)
        length += len(block)
        if length >= _BOOK_PASSAGE:
            yield "\n\n".join(passage)
            passage, length = [], 0
    if passage:
        yield "\n\n".join(passage)


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
