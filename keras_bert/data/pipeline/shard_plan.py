"""Which documents of which parts make up which shard: the shards that one process would write, in its order.

The plan reads the sizes of one part at a time, so that its memory does not grow with the corpus.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from keras_bert.data.corpus.held_out import SIDES, TRAIN, VALIDATION, is_validation_hash
from keras_bert.data.pipeline.parts import PartFiles
from keras_bert.data.shards.shard_format import ShardCuts, TokenizedDocuments, shard_bytes

PartName = tuple[int, int]  # (source, block)


class Moved(NamedTuple):
    """A document that does not stand where its part has it.

    Attributes:
        source, block, place: where its part has it.
        size: its bytes in a shard.
    """

    source: int
    block: int
    place: int
    size: int


class Segment(NamedTuple):
    """Consecutive documents of a shard, all from one part.

    Attributes:
        source, block: the part.
        first, last: the stretch among those documents of the part that are on the shard's side and not moved; or
            `first` is the place of a moved document and `last` is -1.
    """

    source: int
    block: int
    first: int
    last: int


class Shard(NamedTuple):
    """What a shard is made of.

    Attributes:
        side: `"train"` or `"validation"`.
        number: counted from 0 on each side.
        segments: its documents, in order.
        moved: all moved documents of the corpus.
    """

    side: str
    number: int
    segments: list[Segment]
    moved: list[Moved]


@dataclass
class Totals:
    """Counts that the shards do not tell.

    Attributes:
        duplicates, empty: documents left out because an earlier one is the same, or because they have no token.
        empty_sentences: left out of the other documents.
    """

    duplicates: int = 0
    empty: int = 0
    empty_sentences: int = 0


@dataclass
class _Start:
    """The order of the first documents, as `split_documents` gives it until both sides are seen.

    It holds back the document closest to the other side: each such document follows where the next closer one stood,
    and the last of them where the first document of the other side stands.

    Attributes:
        held: the documents that were held back, in order.
        followed: `(part, place)`, before which each of them follows; None at the end of the corpus.
        side: the side on which each of them follows.
    """

    held: list[Moved] = field(default_factory=list)
    followed: list[tuple[PartName, int] | None] = field(default_factory=list)
    sides: list[str] = field(default_factory=list)

    def inserted(self, part: PartName | None, side: str) -> list[tuple[int, Moved]]:
        """`(place, moved)` of the documents that follow in a part on a side; None for the end of the corpus."""
        return [
            (where[1] if where else 0, moved)
            for moved, where, its_side in zip(self.held, self.followed, self.sides)
            if (where[0] if where else None) == part and its_side == side
        ]


class ShardPlan:
    """The shards of a corpus in parts.

    Args:
        parts: the files; duplicates must have been recorded.
        names: all parts in the order of the corpus.
        share: share of validation, between 0 and 1.
        shard_megabytes: size of a shard in million bytes.
        token_bytes: bytes of a token.

    Attributes:
        totals: complete once `shards` has been exhausted.
    """

    totals: Totals

    def __init__(
        self, parts: PartFiles, names: Sequence[PartName], share: float, shard_megabytes: float, token_bytes: int
    ):
        self._parts = parts
        self._names = names
        self._share = share
        self._shard_megabytes = shard_megabytes
        self._token_bytes = token_bytes
        self.totals = Totals()

    def shards(self) -> Iterator[Shard]:
        """Iterates over the shards, those of a side in order."""
        start = self._start()
        shards = {side: _ShardsOfSide(side, self._shard_megabytes, start.held) for side in SIDES}
        self.totals = Totals()
        for name in self._names:
            with self._parts.open_part(*name) as part:
                sizes = self._sizes(part["token_counts"], part["document_lengths"])
                hashes, empty_sentences = part["hashes"], part["empty_sentences"]
            dropped = self._parts.dropped(*name)
            is_kept = np.ones(len(hashes), bool)
            is_kept[dropped] = False
            self.totals.duplicates += len(dropped)
            self.totals.empty += int((sizes[is_kept] == 0).sum())
            self.totals.empty_sentences += int(empty_sentences[is_kept].sum())
            for side, places in places_by_side(name, hashes, dropped, self._share, start.held).items():
                first = 0
                for place, moved in start.inserted(name, side):
                    last = int(np.searchsorted(places, place))
                    yield from shards[side].add(*name, first, sizes[places[first:last]])
                    yield from shards[side].add_moved(moved)
                    first = last
                yield from shards[side].add(*name, first, sizes[places[first:]])
        for side in SIDES:
            for _, moved in start.inserted(None, side):
                yield from shards[side].add_moved(moved)
            yield from shards[side].rest()

    def _sizes(self, token_counts: np.ndarray, document_lengths: np.ndarray) -> np.ndarray:
        return shard_bytes(token_counts, document_lengths, self._token_bytes)

    def _start(self) -> _Start:
        start, documents = _Start(), 0
        first_side, closest = None, np.uint64(0)
        for name in self._names:
            with self._parts.open_part(*name) as part:
                hashes = part["hashes"]
                places = np.delete(np.arange(len(hashes)), self._parts.dropped(*name))
                if not len(places):
                    continue
                held_out = is_validation_hash(hashes[places], self._share)
                if first_side is None:
                    first_side = bool(held_out[0])
                others = np.flatnonzero(held_out != first_side)
                one_sided = places[: others[0]] if len(others) else places
                documents += len(one_sided)
                distances = ~hashes[one_sided] if first_side else hashes[one_sided]
                for place, distance in _running_minima(one_sided, distances):
                    if start.held and distance >= closest:
                        continue
                    if start.held:
                        start.followed.append((name, place))
                    size = self._sizes(part["token_counts"][[place]], part["document_lengths"][[place]])
                    start.held.append(Moved(*name, place, int(size[0])))
                    closest = distance
            if len(others):
                start.followed.append((name, int(places[others[0]])))
                break
        side = VALIDATION if first_side else TRAIN
        start.sides = [side] * len(start.held)
        if len(start.followed) < len(start.held):  # All documents are on one side.
            start.followed.append(None)
            start.sides[-1] = TRAIN if first_side or documents == 1 else VALIDATION
        return start


class _ShardsOfSide:
    """Cuts one side's documents into shards."""

    def __init__(self, side: str, shard_megabytes: float, moved: list[Moved]):
        self._side = side
        self._moved = moved
        self._cuts = ShardCuts(shard_megabytes)
        self._number = 0
        self._segments: list[Segment] = []
        self._bytes = 0

    def add(self, source: int, block: int, first: int, sizes: np.ndarray) -> Iterator[Shard]:
        """Adds documents of a part with these sizes; yields the shards that are full."""
        start = 0
        for end in self._cuts.after(sizes):
            self._segments.append(Segment(source, block, first + start, first + end))
            yield self._shard()
            start = end
        if start < len(sizes):
            self._segments.append(Segment(source, block, first + start, first + len(sizes)))
            self._bytes += int(sizes[start:].sum())

    def add_moved(self, moved: Moved) -> Iterator[Shard]:
        """Adds one document; yields the shard if that is full."""
        self._segments.append(Segment(moved.source, moved.block, moved.place, -1))
        self._bytes += moved.size
        for _ in self._cuts.after(np.array([moved.size])):
            yield self._shard()

    def rest(self) -> Iterator[Shard]:
        """Yields the last shard, unless it is empty."""
        if self._bytes:
            yield self._shard()

    def _shard(self) -> Shard:
        shard = Shard(self._side, self._number, self._segments, self._moved)
        self._number += 1
        self._segments, self._bytes = [], 0
        return shard


def documents_of(shard: Shard, share: float, parts: PartFiles) -> Iterator[TokenizedDocuments]:
    """Iterates over the documents of a shard, segment by segment."""
    for segment in shard.segments:
        name = (segment.source, segment.block)
        with parts.open_part(*name) as part:
            if segment.last == -1:
                places = np.array([segment.first])
            else:
                sides = places_by_side(name, part["hashes"], parts.dropped(*name), share, shard.moved)
                places = sides[shard.side][segment.first : segment.last]
            yield part.documents(places)


def places_by_side(
    name: PartName, hashes: np.ndarray, dropped: np.ndarray, share: float, moved: Sequence[Moved]
) -> dict[str, np.ndarray]:
    """The places of a part's documents on each side, int64 [documents], without duplicates and moved ones."""
    is_kept = np.ones(len(hashes), bool)
    is_kept[dropped] = False
    is_kept[[document.place for document in moved if document[:2] == name]] = False
    held_out = is_validation_hash(hashes, share)
    return {TRAIN: np.flatnonzero(is_kept & ~held_out), VALIDATION: np.flatnonzero(is_kept & held_out)}


def _running_minima(places: np.ndarray, values: np.ndarray) -> Iterator[tuple[int, np.uint64]]:
    """`(place, value)` where a value is smaller than all before it."""
    if len(values):
        least = np.minimum.accumulate(values)
        is_new = np.concatenate([[True], least[1:] < least[:-1]])
        yield from zip(places[is_new].tolist(), values[is_new])
