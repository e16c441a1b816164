"""Exact search, compared with sorting everything at once."""

import numpy as np
import pytest

from keras_bert import quantize_vectors
from keras_bert.inference import search
from keras_bert.inference.search import cosines, equal_bits, nearest


@pytest.mark.parametrize("sizes", [[60], [7, 1, 40, 12], [1] * 60])
def test_blocks_find_what_a_stable_sort_of_all_finds(sizes, monkeypatch):
    """With many equal similarities: the vector that comes first wins, wherever a block ends."""
    monkeypatch.setattr(search, "_SCORES_AT_ONCE", 100)
    random = np.random.default_rng(1)
    queries, vectors = (random.integers(0, 2, (count, 4)).astype("float32") for count in (9, 60))
    blocks = np.split(vectors, np.cumsum(sizes)[:-1])
    for depth in (1, 10, 59, 60, 80):
        places, scores = nearest(queries, iter(blocks), depth, lambda one, other: one @ other.T)
        expected = np.argsort(-(queries @ vectors.T), axis=1, kind="stable")[:, :depth]
        np.testing.assert_array_equal(places, expected)
        np.testing.assert_array_equal(scores, np.take_along_axis(queries @ vectors.T, expected, axis=1))


def test_binary_vectors_are_compared_by_their_bits():
    """The bits that pad the last byte are not dimensions."""
    vectors = np.random.default_rng(0).normal(size=(6, 21))
    bits = quantize_vectors(vectors, "binary").vectors
    expected = ((vectors[:2, None] > 0) == (vectors > 0)).mean(axis=-1)
    np.testing.assert_allclose(equal_bits(21)(bits[:2], bits), expected, atol=1e-7)


@pytest.mark.parametrize("precision", ["float16", "int8"])
def test_others_are_compared_by_their_cosine(precision):
    """Products of int8 overflow in int8, and a vector of zeros has no direction."""
    vectors = np.random.default_rng(0).normal(size=(6, 20)).astype("float32")
    small = quantize_vectors(vectors, precision).vectors
    small[3] = 0
    exact = small.astype("float64")
    lengths = np.maximum(np.linalg.norm(exact, axis=1), 1e-30)
    np.testing.assert_allclose(
        cosines(small[:4], small), (exact[:4] @ exact.T) / lengths[:4, None] / lengths, atol=1e-6
    )
