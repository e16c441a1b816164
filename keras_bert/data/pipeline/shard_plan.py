"""Which documents of which parts make up which shard: the shards that one process would write, in its order.

The plan reads the sizes of one part at a time, so that its memory does not grow with the corpus.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain, groupby, repeat
from typing import NamedTuple

import numpy as np

from keras_bert.data.corpus.held_out import DUPLICATE, SIDES, TRAIN, VALIDATION, SideSplit, is_validation_hash
from keras_bert.data.pipeline.parts import DROPPED, PartFiles, PartName
from keras_bert.data.shards.prepare import ShardSettings
from keras_bert.data.shards.shard_format import ShardCuts, shard_bytes


class Segment(NamedTuple):
    """Consecutive documents of a shard, all from one part: int64 `places` [documents] in it."""

    part: PartName
    places: np.ndarray


class Shard(NamedTuple):
    """What a shard is made of.

    Attributes:
        side: `"train"` or `"validation"`.
        number: counted from 0 on each side.
        segments: its documents, in order.
    """

    side: str
    number: int
    segments: list[Segment]


class _Document(NamedTuple):
    part: PartName
    place: int
    size: int


class ShardPlan:
    """The shards of a corpus in parts.

    Args:
        parts: the files; duplicates must have been recorded.
        settings: how documents are split and cut.

    Attributes:
        left_out: how many duplicates, `empty_documents` and `empty_sentences` are in no shard; complete once `shards`
            has been exhausted.
    """

    left_out: Counter[str]

    def __init__(self, parts: PartFiles, settings: ShardSettings):
        self._parts = parts
        self._share = settings.validation_share
        self._token_bytes = settings.token_bytes
        self._sides = {side: _ShardsOfSide(side, settings.shard_megabytes) for side in SIDES}
        self.left_out = Counter()

    def shards(self, names: Iterable[PartName]) -> Iterator[Shard]:
        """Iterates over the shards of all parts, given in the order of the corpus; those of a side are in order."""
        split = SideSplit[_Document](self._share)
        for name in names:
            with self._parts.open_part(name) as part:
                hashes, token_counts, document_lengths, empty_sentences = part.header()
            sizes = shard_bytes(token_counts, document_lengths, self._token_bytes)
            dropped = self._parts.places(DROPPED, name)
            kept = np.delete(np.arange(len(hashes)), dropped)
            self.left_out[DUPLICATE] += len(dropped)
            self.left_out["empty_documents"] += int((sizes[kept] == 0).sum())
            self.left_out["empty_sentences"] += int(empty_sentences[kept].sum())
            if split.has_both:
                held_out = is_validation_hash(hashes[kept], self._share)
                for side, places in ((TRAIN, kept[~held_out]), (VALIDATION, kept[held_out])):
                    yield from self._sides[side].add(name, places, sizes[places])
            else:
                documents = map(_Document, repeat(name), kept.tolist(), sizes[kept].tolist())
                added = map(split.add, hashes[kept].tolist(), documents)
                yield from self._add_each(chain.from_iterable(added))
        yield from self._add_each(split.rest())
        for shards in self._sides.values():
            yield from shards.rest()

    def _add_each(self, documents: Iterable[tuple[_Document, bool]]) -> Iterator[Shard]:
        """Adds documents that may be of different parts."""
        by_side: dict[str, list[_Document]] = {side: [] for side in SIDES}
        for document, held_out in documents:
            by_side[VALIDATION if held_out else TRAIN].append(document)
        for side, of_side in by_side.items():
            for part, together in groupby(of_side, key=lambda document: document.part):
                places, sizes = np.array([(document.place, document.size) for document in together]).T
                yield from self._sides[side].add(part, places, sizes)


class _ShardsOfSide:
    """Cuts one side's documents into shards."""

    def __init__(self, side: str, shard_megabytes: float):
        self._side = side
        self._cuts = ShardCuts(shard_megabytes)
        self._number = 0
        self._segments: list[Segment] = []

    def add(self, part: PartName, places: np.ndarray, sizes: np.ndarray) -> Iterator[Shard]:
        """Adds documents of a part with these sizes; yields the shards that are full."""
        first = 0
        for last in self._cuts.after(sizes):
            self._segments.append(Segment(part, places[first:last]))
            yield self._shard()
            first = last
        if first < len(places):
            self._segments.append(Segment(part, places[first:]))

    def rest(self) -> Iterator[Shard]:
        """Yields the last shard, unless it is empty."""
        if self._cuts.pending:
            yield self._shard()

    def _shard(self) -> Shard:
        shard = Shard(self._side, self._number, self._segments)
        self._number += 1
        self._segments = []
        return shard
