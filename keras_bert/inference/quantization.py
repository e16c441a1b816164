"""Smaller vectors for search: fewer dimensions, and fewer bits per dimension."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

import numpy as np
import scipy.sparse

from keras_bert.config.inference import BINARY, FLOAT16, INT8, check_quantization
from keras_bert.core.errors import UserError

_STEPS = 255  # Between the 256 codes of int8.
_LOWEST_CODE = -128
_COPIED_AT_ONCE = 1 << 22  # Bytes.


@dataclass(frozen=True)
class QuantizedVectors:
    """The result of `quantize_vectors`.

    Attributes:
        vectors: float32, float16 or int8 [texts, width], sparse if given so; for `binary` uint8
            [texts, ceil(width / 8)], a bit for each value above 0, the first in the highest bit.
        ranges: for `int8`, float32 [2, width], the values of the codes -128 and 127 in each dimension; else None.
    """

    vectors: np.ndarray
    ranges: np.ndarray | None = None


def quantize_vectors(
    vectors: np.ndarray, precision: str = "float32", size: int | None = None, ranges: np.ndarray | None = None
) -> QuantizedVectors:
    """Makes vectors smaller, as the command `embed` does.

    Code `c` of int8 stands for `low + (c + 128) * (high - low) / 255`; values outside the range are clipped; a
    dimension whose range is empty has code 0. Compare binary vectors by the number of different bits, the others by
    cosine.

    Args:
        vectors: float [texts, width]; sparse ones stay sparse.
        precision: `float32`, `float16`, `int8` or `binary`; for sparse vectors only `float32`.
        size: keeps the first `size` dimensions and scales each vector to length 1; for models trained for this
            (Kusupati et al. 2022, Matryoshka Representation Learning). From each sparse vector, keeps the `size`
            largest values, unscaled.
        ranges: for `int8`, the ranges of other vectors, to which these will be compared; by default from the lowest to
            the highest value of these vectors.

    Raises:
        UserError: vectors of another shape or with NaN or infinite numbers, an unknown precision, a size outside 1 to
            the vectors' width, or ranges of another width.

    Example:
        bert = keras_bert.load("runs/demo")
        documents = bert.encode(["The cat sat.", "A dog slept on the mat."])
        stored = keras_bert.quantize_vectors(documents, "int8")
        question = bert.encode(["Who sat?"])
        query = keras_bert.quantize_vectors(question, "int8", ranges=stored.ranges).vectors      # [1, hidden] int8
    """
    vectors = vectors if scipy.sparse.issparse(vectors) else np.asarray(vectors)
    if vectors.ndim != 2:
        raise UserError(
            f"vectors: needs the shape [texts, width]. Received: {list(vectors.shape)}. Put one vector into a list."
        )
    if not np.isfinite(scipy.sparse.csr_array(vectors).data if scipy.sparse.issparse(vectors) else vectors).all():
        raise UserError("vectors: needs finite numbers. Received: NaN or infinite ones. Leave their vectors out.")
    check_quantization(vectors.shape[1], precision, size, ranges is not None, scipy.sparse.issparse(vectors))
    vectors = shorten(vectors, size)
    if precision == BINARY:
        return QuantizedVectors(np.packbits(vectors > 0, axis=1))
    if precision == FLOAT16:
        return QuantizedVectors(vectors.astype("float16"))
    if precision != INT8:
        return QuantizedVectors(vectors)
    if ranges is None:
        if not len(vectors):
            raise UserError("ranges: needs vectors to take them from. Received: none. Give ranges.")
        ranges = np.stack([vectors.min(axis=0), vectors.max(axis=0)])
    ranges = np.asarray(ranges, "float32")
    if ranges.shape != (2, vectors.shape[1]):
        raise UserError(
            f"ranges: needs the shape [2, {vectors.shape[1]}], as the vectors are wide. "
            f"Received: {list(ranges.shape)}. Give the ranges of vectors of the same model and size."
        )
    return QuantizedVectors(_int8(vectors, ranges), ranges)


def shorten(vectors: np.ndarray, size: int | None) -> np.ndarray:
    """The vectors as float32, with a `size` shortened as by `quantize_vectors`."""
    if scipy.sparse.issparse(vectors):
        return vectors if size is None else largest_values(scipy.sparse.csr_array(vectors), size)
    vectors = np.asarray(vectors, "float32")
    if size is None:
        return vectors
    vectors = vectors[:, :size]
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.maximum(lengths, np.finfo("float32").tiny)


def largest_values(vectors: scipy.sparse.csr_array, size: int) -> scipy.sparse.csr_array:
    """Keeps at most the `size` largest values of each sparse vector [rows, width]; among equal ones, the first."""
    lengths = np.diff(vectors.indptr)
    rows = np.repeat(np.arange(len(lengths)), lengths)
    order = np.lexsort((vectors.indices, -vectors.data, rows))  # By row, then the largest first.
    rank = np.arange(len(order)) - np.repeat(vectors.indptr[:-1], lengths)
    kept = np.sort(order[rank < size])
    starts = np.concatenate([[0], np.cumsum(np.minimum(lengths, size))])
    return scipy.sparse.csr_array((vectors.data[kept], vectors.indices[kept], starts), vectors.shape)


def _int8(vectors: np.ndarray, ranges: np.ndarray) -> np.ndarray:
    low, high = ranges
    step = (high - low) / _STEPS
    codes = np.rint((vectors - low) / np.where(step > 0, step, 1)) + _LOWEST_CODE
    return np.where(step > 0, np.clip(codes, _LOWEST_CODE, _LOWEST_CODE + _STEPS), 0).astype("int8")


class SpooledVectors:
    """Float32 vectors [rows, width], kept in a file until the range of each dimension, which int8 codes need, is known.

    Args:
        stream: an empty file, open for reading and writing.

    Attributes:
        ranges: float32 [2, width], the lowest and the highest values so far; None before the first vector.
    """

    ranges: np.ndarray | None = None

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def append(self, vectors: np.ndarray) -> None:
        """Adds vectors float32 [rows, width]."""
        if not len(vectors):
            return
        self._stream.write(np.ascontiguousarray(vectors).data)
        low, high = vectors.min(axis=0), vectors.max(axis=0)
        if self.ranges is not None:
            low, high = np.minimum(low, self.ranges[0]), np.maximum(high, self.ranges[1])
        self.ranges = np.stack([low, high])

    def blocks(self) -> Iterator[np.ndarray]:
        """Yields all vectors in order, in float32 blocks [rows, width] of a few megabytes."""
        if self.ranges is None:
            return
        width = self.ranges.shape[1]
        row = width * self.ranges.itemsize
        self._stream.seek(0)
        while block := self._stream.read(max(1, _COPIED_AT_ONCE // row) * row):
            yield np.frombuffer(block, "float32").reshape(-1, width)
