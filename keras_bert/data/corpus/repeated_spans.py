"""Removes spans of sentences that occurred earlier in the corpus: all but the first (Raffel et al. 2020, section 2.2).

Exact up to collisions of 64-bit hashes, with memory that hardly depends on the size of the text: the text is read
twice. The first reading writes the hash of every span to the disk, 16 bytes each, in 256 files by the first bits of the
hash. Each file is sorted by itself, which shows its repeated spans, one bit each. The second reading removes them.
"""

import os
import tempfile
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import numpy as np

from keras_bert.config.corpus import FilterConfig
from keras_bert.core.errors import UserError
from keras_bert.data.corpus.corpus_report import CorpusReport
from keras_bert.data.corpus.filters import too_few_sentences
from keras_bert.data.corpus.held_out import text_hash
from keras_bert.text.sentences import split_sentences

_MOST_IN_MEMORY = 1 << 22  # Spans. Writing them takes some 250 MB.
_PARTS = 256
_LONGEST_GAP = 64  # Characters of white space between sentences that are kept.


def span_hashes(sentences: Sequence[str], length: int) -> list[int]:
    """The hash of every span of `length` sentences, by its first sentence; case and the width of spaces are ignored."""
    plain = _plain(sentences)
    return [text_hash("\n".join(plain[first : first + length])) for first in range(len(plain) - length + 1)]


def _plain(sentences: Sequence[str]) -> list[str]:
    return [" ".join(sentence.lower().split()) for sentence in sentences]


def _overlapped_firsts(sentences: Sequence[str], starts: Sequence[int], length: int) -> set[int]:
    """The sentences of spans whose first occurrence overlaps with a repetition that begins at one of `starts`."""
    plain, repeated = _plain(sentences), set(starts)
    return {
        number
        for start in starts
        for first in range(max(start - length + 1, 0), start)
        if first not in repeated and plain[first : first + length] == plain[start : start + length]
        for number in range(first, first + length)
    }


def without_spans(text: str, sentences: Sequence[str], starts: Sequence[int], length: int) -> tuple[str, int]:
    """Removes the spans of `length` sentences that begin with the sentences numbered `starts`; they may overlap.

    Where a span overlaps its own first occurrence, as in "Row on. Row on. Row on. Row on.", the first one stays whole.

    Args:
        sentences: `split_sentences(text)`.
        starts: indices into `sentences`.
        length: the length of a span in sentences.

    Returns: (the rest of the text, how many sentences were removed)
    """
    removed = {number for first in starts for number in range(first, first + length)}
    removed -= _overlapped_firsts(sentences, starts, length)
    kept: list[tuple[str, str]] = []  # Sentences, each with the white space after it.
    place = 0
    for number, sentence in enumerate(sentences):
        place = text.index(sentence, place) + len(sentence)
        rest = text[place : place + _LONGEST_GAP]
        gap = rest[: len(rest) - len(rest.lstrip())]
        if number not in removed:
            kept.append((sentence, gap))
        elif kept and gap.count("\n") > kept[-1][1].count("\n"):  # The last sentence of a paragraph.
            kept[-1] = (kept[-1][0], gap)
    return "".join(chain.from_iterable(kept)).strip(), len(removed)


class RepeatedSpans:
    """Finds the repeated spans of a corpus.

    Call `add` for every document in order, then `close`; `starts` then describes them in the same order.

    Args:
        length: sentences in a span, at least 1.
    """

    def __init__(self, length: int):
        self._length = length
        self._counts = array("I")  # Spans in each document.
        self._hashes = array("Q")  # Only of the spans that are not on disk.
        self._spans = 0
        self._folder: tempfile.TemporaryDirectory | None = None
        self._bits = np.zeros(0, np.uint8)

    def add(self, text: str) -> None:
        """Adds the next document. Raises `UserError` if the disk is full."""
        hashes = span_hashes(split_sentences(text), self._length)
        self._counts.append(len(hashes))
        self._hashes.extend(hashes)
        self._spans += len(hashes)
        if len(self._hashes) >= _MOST_IN_MEMORY:
            self._spill()

    def close(self) -> None:
        """Compares the spans once all documents have been added. Raises `UserError` if the disk is full."""
        self._bits = np.zeros(self._spans // 8 + 1, np.uint8)
        if self._folder is None:
            self._compare(np.frombuffer(self._hashes, np.uint64), np.arange(self._spans, dtype=np.uint64))
        else:
            self._spill()
            with self._folder:
                for name in sorted(os.listdir(self._folder.name)):
                    pairs = np.fromfile(os.path.join(self._folder.name, name), np.uint64).reshape(-1, 2)
                    self._compare(pairs[:, 0], pairs[:, 1])
            self._folder = None
        self._hashes = array("Q")

    def starts(self) -> Iterator[list[int]]:
        """Yields, for each document in order, the first sentences of its repeated spans."""
        first = 0
        for count in self._counts:
            places = np.arange(first, first + count)
            yield np.flatnonzero(self._bits[places >> 3] & (1 << (places & 7))).tolist() if count else []
            first += count

    def _compare(self, hashes: np.ndarray, indices: np.ndarray) -> None:
        """Marks every span that equals an earlier one; `indices` must ascend."""
        order = np.argsort(hashes, kind="stable")
        ordered = hashes[order]
        repeated = indices[order[1:][ordered[1:] == ordered[:-1]]]
        np.bitwise_or.at(self._bits, repeated >> 3, (1 << (repeated & 7)).astype(np.uint8))

    def _spill(self) -> None:
        """Appends the hashes in memory to the files on disk, one for each part."""
        hashes = np.frombuffer(self._hashes, np.uint64)
        indices = np.arange(self._spans - len(hashes), self._spans, dtype=np.uint64)
        parts = (hashes >> np.uint64(64 - 8)).astype(np.int64)
        order = np.argsort(parts, kind="stable")
        pairs = np.stack([hashes[order], indices[order]], axis=1)
        ends = np.cumsum(np.bincount(parts, minlength=_PARTS))
        try:
            if self._folder is None:
                self._folder = tempfile.TemporaryDirectory(prefix="repeated_spans-")
            for part, rows in enumerate(np.split(pairs, ends[:-1])):
                with open(os.path.join(self._folder.name, f"{part:03d}"), "ab") as stream:
                    stream.write(rows.tobytes())
        except OSError as error:
            where = tempfile.gettempdir()
            raise UserError(
                f"{where}: cannot hold the hashes of repeated_spans ({error.strerror or error}). They take 16 bytes a "
                "sentence. Make room, or set TMPDIR to a folder with more."
            ) from None
        self._hashes = array("Q")


def remove_repeated_spans(
    documents: Iterable[str], all_starts: Iterator[list[int]], filters: FilterConfig, report: CorpusReport
) -> Iterator[str]:
    """Yields the documents without their repeated spans, and without documents that become too short.

    Args:
        documents: the documents that were compared, in the same order.
        all_starts: their `RepeatedSpans.starts`.
        filters: its `repeated_spans` is the length of a span; its `min_sentences` applies to what is left.
        report: counts what is removed; a document that is dropped no longer counts as read.

    Raises:
        UserError: the documents are not those that were compared.
    """
    changed = UserError("The corpus: changed while it was read. Start again when no one writes to its files.")
    length = filters.repeated_spans
    for document in documents:
        starts = next(all_starts, None)
        if starts is None:
            raise changed
        if starts:
            sentences = split_sentences(document)
            if starts[-1] + length > len(sentences):
                raise changed
            document, removed = without_spans(document, sentences, starts, length)
            report.removed["repeated_spans"] += removed
            if not document or (filters.min_sentences and too_few_sentences(document, filters)):
                report.documents -= 1
                report.filtered["repeated_spans"] += 1
                continue
        yield document
    if next(all_starts, None) is not None:
        raise changed
