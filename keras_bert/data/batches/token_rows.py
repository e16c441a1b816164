"""Rows of ids of any length, as flat arrays."""

import dataclasses
import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from keras_bert.data.batches.feature_files import FeatureFile
from keras_bert.data.windows import offsets


@dataclasses.dataclass
class TargetRows:
    """The texts that a decoder learns to generate, one per example, as flat arrays.

    Attributes:
        ids: int32 or uint16 [tokens], all targets one after the other, each with its end token.
        starts: int64 [examples + 1], where each target starts in `ids`.
    """

    ids: np.ndarray
    starts: np.ndarray

    @property
    def lengths(self) -> np.ndarray:
        """int64 [examples]."""
        return np.diff(self.starts)


@dataclasses.dataclass
class TokenRows:
    """Rows of ids, special tokens included, as flat arrays.

    Attributes:
        ids: int32 or uint16 [tokens], all rows one after the other.
        starts: int64 [rows + 1], where each row starts in `ids`.
        second_starts: int32 [rows], the position in the row where the second segment starts; the row's length if none.
        extra: {name: array [examples, ...]} to add to the batches: labels, weights, numbers of examples.
        token_extra: {name: int32 [tokens]} to add to the batches as [batch, width], -1 at padding: labels of tokens.
        token_files: {name: file} of features to add to the batches as [batch, width, ...], 0 at padding.
        group_starts: int64 [examples + 1], the first row of each example, for examples with several rows (choices);
            None if every row is an example.
        last_segment: the segment of each row's last token, as in `RowPattern`.
        targets: a decoder's targets, to add to the batches as `target_ids`, int32 [batch, width of the targets], -1 at
            padding.
    """

    ids: np.ndarray
    starts: np.ndarray
    second_starts: np.ndarray
    extra: dict[str, np.ndarray]
    token_extra: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    token_files: dict[str, FeatureFile] = dataclasses.field(default_factory=dict)
    group_starts: np.ndarray | None = None
    last_segment: int | None = None
    targets: TargetRows | None = None

    @property
    def lengths(self) -> np.ndarray:
        """int64 [examples]: the tokens of each example's longest row."""
        lengths = np.diff(self.starts)
        return lengths if self.group_starts is None else np.maximum.reduceat(lengths, self.group_starts[:-1])

    @property
    def group_sizes(self) -> np.ndarray:
        """int64 [examples]: how many rows each example has."""
        one = np.broadcast_to(np.int64(1), len(self))  # Takes no memory, even for ten million rows.
        return one if self.group_starts is None else np.diff(self.group_starts)

    @property
    def sizes(self) -> np.ndarray:
        """int64 [examples]: the other dimension of an example's shape: its target's length or its number of rows."""
        return self.targets.lengths if self.targets else self.group_sizes

    def fingerprint(self) -> str:
        """The SHA-256 of the rows alone: `ids`, `starts` and `second_starts`."""
        digest = hashlib.sha256()
        for values in (self.ids, self.starts, self.second_starts):
            digest.update(f"{values.dtype} {values.shape}".encode() + values.tobytes())
        return digest.hexdigest()

    def __len__(self) -> int:
        """How many examples there are."""
        return len(self.second_starts if self.group_starts is None else self.group_starts[1:])


def joined_rows(parts: Sequence[TokenRows]) -> TokenRows:
    """The rows of several parts with the same extras, one part after the other.

    `example_weights` are 1 in a part without them. Files of features are dropped.
    """
    if len(parts) == 1:
        return parts[0]
    names = dict.fromkeys(name for part in parts for name in part.extra)
    groups = [part.group_starts for part in parts if part.group_starts is not None]
    return TokenRows(
        np.concatenate([part.ids for part in parts]),
        _joined_starts([part.starts for part in parts]),
        np.concatenate([part.second_starts for part in parts]),
        {name: np.concatenate([_extra(part, name) for part in parts]) for name in names},
        {name: np.concatenate([part.token_extra[name] for part in parts]) for name in parts[0].token_extra},
        group_starts=_joined_starts(groups) if groups else None,
        last_segment=parts[0].last_segment,
        targets=_joined_targets([part.targets for part in parts if part.targets]),
    )


def _joined_targets(parts: Sequence[TargetRows]) -> TargetRows | None:
    if not parts:
        return None
    return TargetRows(np.concatenate([part.ids for part in parts]), _joined_starts([part.starts for part in parts]))


def _joined_starts(parts: Sequence[np.ndarray]) -> np.ndarray:
    """The boundaries [n + 1] of several parts that are joined, from those of each part."""
    return offsets(np.concatenate([np.diff(part) for part in parts]))


def _extra(part: TokenRows, name: str) -> np.ndarray:
    if name == "example_weights" and name not in part.extra:
        return np.ones(len(part), np.float32)
    return part.extra[name]


class GrowingArray:
    """Numbers of one type in a single growing block of memory, without Python objects or parts to join at the end."""

    def __init__(self, dtype: DTypeLike):
        self._dtype = np.dtype(dtype)
        self._bytes = bytearray()

    def extend(self, values: ArrayLike) -> None:
        """Appends numbers [n], which must fit the type."""
        self._bytes += np.asarray(values, self._dtype).tobytes()

    def array(self) -> np.ndarray:
        """All numbers, [n]. The array shares this object's memory: nothing can be appended while it is in use."""
        return np.frombuffer(self._bytes, self._dtype)
