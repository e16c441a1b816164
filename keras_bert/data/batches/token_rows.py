"""Rows of ids of any length, as flat arrays."""

import dataclasses

import numpy as np

from keras_bert.data.batches.feature_files import FeatureFile


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
    """

    ids: np.ndarray
    starts: np.ndarray
    second_starts: np.ndarray
    extra: dict[str, np.ndarray]
    token_extra: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    token_files: dict[str, FeatureFile] = dataclasses.field(default_factory=dict)
    group_starts: np.ndarray | None = None

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

    def __len__(self) -> int:
        """How many examples there are."""
        return len(self.second_starts if self.group_starts is None else self.group_starts[1:])
