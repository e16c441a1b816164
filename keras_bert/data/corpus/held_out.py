"""The split of documents into training and validation, by a hash of their text, and exact duplicates.

Text streamed by `data.source: text` is split in the graph instead, by the first line of each document
(`data/batches/raw_lines.py`).
"""

import hashlib
import math
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, TypeVar

import numpy as np

TRAIN, VALIDATION = SIDES = ("train", "validation")
DUPLICATE = "duplicate"
_HASHES = 2**64
Item = TypeVar("Item")


def is_validation(text: str, share: float) -> bool:
    """Whether a document is held out: a pure function of its text, true for `share` of all texts."""
    return text_hash(text) < share * _HASHES


def is_validation_hash(hashes: np.ndarray, share: float) -> np.ndarray:
    """Like `is_validation`, but from the hashes of texts: uint64 [documents] to bool [documents]."""
    return hashes < np.uint64(_first_training_hash(share))  # NumPy would compare with a float inexactly.


def training_hashes_from(share: float, least: int, greatest: int) -> int:
    """The lowest hash that `SideSplit` puts into train, given the `least` and the `greatest` hash of all documents."""
    first = _first_training_hash(share)
    if least < first <= greatest:
        return first
    if least == greatest:  # A single document is not held out.
        return least
    return least + 1 if first <= least else greatest


class SideSplit(Generic[Item]):
    """Assigns documents, one after the other, to training or validation.

    The side is decided by `is_validation`, with one exception: if two or more documents all fall on one side, the one
    closest to the other side goes there, so that neither side is empty. That document is held back until both sides
    have been seen; otherwise the order is kept.

    Args:
        share: share of validation, between 0 and 1.

    Attributes:
        has_both: whether both sides have been seen. From then on no document is held back.
    """

    def __init__(self, share: float):
        if not 0.0 < share < 1.0:
            raise ValueError(f"share: needs a share between 0 and 1. Received: {share!r}.")
        self.has_both = False
        self._first_training = _first_training_hash(share)
        self._held: tuple[int, Item, bool] | None = None  # (distance to the other side, document, side)
        self._is_single = True

    def add(self, value: int, document: Item) -> list[tuple[Item, bool]]:
        """Adds a document with the hash `value`, which no earlier one may have.

        Returns: `(document, whether it is held out for validation)` of the documents that come next.
        """
        side = value < self._first_training
        if self.has_both:
            return [(document, side)]
        candidate = (-value if side else value, document, side)
        if self._held is None:
            self._held = candidate
            return []
        self._is_single = False
        if self._held[2] != side:
            self.has_both = True
            return [self._held[1:], (document, side)]
        self._held, farther = sorted((self._held, candidate), key=lambda held: held[0])
        return [farther[1:]]

    def rest(self) -> list[tuple[Item, bool]]:
        """Like `add`, but for the document still held back after the last one. A single document goes to train."""
        if self._held is None or self.has_both:
            return []
        _, document, side = self._held
        return [(document, not self._is_single and not side)]


def split_documents(
    documents: Iterable[str], share: float, dropped: Counter[str] | None = None
) -> Iterator[tuple[str, bool]]:
    """Assigns every document to one side, like `SideSplit`, and drops exact duplicates, keeping the first.

    Memory is at most 32 bytes per document.

    Args:
        share: share of validation, between 0 and 1.
        dropped: counts the duplicates.

    Yields:
        (document, whether it is held out for validation)
    """
    split, seen = SideSplit[str](share), HashSet()
    for document in documents:
        value = text_hash(document)
        if seen.add(value):
            yield from split.add(value, document)
        elif dropped is not None:
            dropped[DUPLICATE] += 1
    yield from split.rest()


def training_documents(documents: Iterable[str], share: float) -> Iterator[str]:
    """The documents that are not held out, to learn a vocabulary from."""
    return (document for document, held_out in split_documents(documents, share) if not held_out)


def text_hashes(texts: Sequence[str]) -> np.ndarray:
    """`text_hash` of each text: uint64 [texts]."""
    return np.array([text_hash(text) for text in texts], np.uint64)


def text_hash(text: str) -> int:
    """64 bits of the text's BLAKE2 hash."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8"), digest_size=8).digest(), "little")


def _first_training_hash(share: float) -> int:
    return math.ceil(share * _HASHES)


class HashSet:
    """A set of 64-bit hashes with open addressing: at most 32 bytes each, including the old table while it grows.

    Python's own set takes some 80. Among six million documents, two collide with a probability of one in a million.
    """

    def __init__(self) -> None:
        self._table = array("Q", bytes(8 * 1024))
        self._length = 0

    def add(self, value: int) -> bool:
        """Adds a hash and returns whether it was new."""
        value = value or 1  # 0 marks a free slot.
        if 4 * self._length >= 3 * len(self._table):
            old = self._table
            self._table = array("Q", bytes(16 * len(old)))
            for earlier in old:
                if earlier:
                    self._table[self._place(earlier)] = earlier
        place = self._place(value)
        if self._table[place]:
            return False
        self._table[place] = value
        self._length += 1
        return True

    def _place(self, value: int) -> int:
        """The slot of a hash, or the free slot where it belongs."""
        mask = len(self._table) - 1
        place = value & mask
        while self._table[place] not in (0, value):
            place = (place + 1) & mask
        return place
