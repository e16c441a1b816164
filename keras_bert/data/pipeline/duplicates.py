"""Duplicates among documents that different workers have read, found by their hashes."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from keras_bert.core.imports import import_extra


class Hashes(NamedTuple):
    """The hashes of some documents of one part.

    Attributes:
        source, block: the part.
        places: int64 [documents], their places in the part, ascending.
        hashes: uint64 [documents].
    """

    source: int
    block: int
    places: np.ndarray
    hashes: np.ndarray


def in_buckets(part: Hashes, buckets: int) -> Iterator[tuple[int, Hashes]]:
    """Divides a part's hashes so that equal hashes of any parts have the same bucket: `(bucket, hashes)`."""
    numbers = (part.hashes % np.uint64(buckets)).astype(np.int64)
    order = np.argsort(numbers, kind="stable")
    ends = np.searchsorted(numbers[order], np.arange(buckets), side="right")
    for bucket, chosen in enumerate(np.split(order, ends[:-1])):
        if len(chosen):
            yield bucket, Hashes(part.source, part.block, part.places[chosen], part.hashes[chosen])


def find_duplicates(bucket: Iterable[Hashes]) -> Iterator[tuple[tuple[int, int], np.ndarray]]:
    """Of documents with equal hashes, all but the first of the corpus.

    Args:
        bucket: the hashes of parts, in any order, each part once.

    Yields: `((source, block), places)` for each part with duplicates; places are int64 [duplicates], ascending.
    """
    parts = sorted(bucket, key=lambda part: (part.source, part.block))
    hashes = np.concatenate([part.hashes for part in parts])
    order = np.argsort(hashes, kind="stable")
    is_again = np.zeros(len(hashes), bool)
    is_again[order[1:]] = hashes[order[1:]] == hashes[order[:-1]]
    ends = np.cumsum([len(part.hashes) for part in parts])
    for part, again in zip(parts, np.split(is_again, ends[:-1])):
        if again.any():
            yield (part.source, part.block), part.places[again]


if TYPE_CHECKING:
    import apache_beam as beam
else:
    beam = import_extra("apache_beam", "--runner")


class FindDuplicates(beam.DoFn):
    """`(bucket, hashes)` to `((source, block), places)`; see `find_duplicates`."""

    def process(self, element: Any) -> Iterator[Any]:
        yield from find_duplicates(element[1])
