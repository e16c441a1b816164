"""Which label may follow which in a scheme that marks entities, or words, with one label per token."""

from collections.abc import Sequence

import numpy as np

from keras_bert.config.heads import BIO

_OPEN, _GOES_ON = ("B", "I"), ("I", "E")  # Prefixes after which an entity is open, and those that need an open one.


def forbidden_transitions(labels: Sequence[str], scheme: str | None) -> np.ndarray:
    """bool [labels + 1, labels + 1]: whether a label (row) may not be followed by another (column).

    The last row is for the first label of a sentence, the last column for the last one.

    Args:
        labels: O, or a prefix and mostly a type, as in B-PER or B.
        scheme: `BIO`, `BIOES` (with or without O), or None for labels of any kind, of which all may follow each other.
    """
    size = len(labels) + 1
    forbidden = np.zeros((size, size), bool)
    if scheme is None:
        return forbidden
    # What stands before and after a sentence is like an O.
    parts = [(prefix, type) for prefix, _, type in (label.partition("-") for label in (*labels, "O"))]
    for row, (before, type_before) in enumerate(parts):
        for column, (after, type_after) in enumerate(parts):
            is_open = before in _OPEN and (after in _GOES_ON) and type_before == type_after
            if scheme == BIO:
                forbidden[row, column] = after == "I" and not is_open
            else:
                forbidden[row, column] = (before in _OPEN or after in _GOES_ON) and not is_open
    forbidden[-1, -1] = False  # Sentences are not empty.
    return forbidden
