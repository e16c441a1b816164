"""Vectors of fewer bits and dimensions, compared with plain NumPy."""

import numpy as np
import pytest

from keras_bert import UserError, quantize_vectors

VECTORS = np.random.default_rng(1).normal(0.2, 1, (50, 20)).astype("float32")


def test_int8_has_the_codes_of_each_dimensions_range():
    """Compared in float64, where a value may round to the next code; decoded floats are within half a step."""
    found = quantize_vectors(VECTORS, "int8")
    low, high = VECTORS.min(axis=0), VECTORS.max(axis=0)
    np.testing.assert_array_equal(found.ranges, [low, high])
    assert found.vectors.dtype == "int8"
    step = (high.astype("float64") - low) / 255
    expected = np.clip(np.rint((VECTORS.astype("float64") - low) / step) - 128, -128, 127)
    assert np.abs(found.vectors - expected).max() <= 1 and np.mean(found.vectors == expected) > 0.99
    assert found.vectors.min(axis=0).tolist() == [-128] * 20 and found.vectors.max(axis=0).tolist() == [127] * 20
    decoded = low + (found.vectors.astype("float64") + 128) * step
    assert (np.abs(decoded - VECTORS) <= step * 0.501).all()


def test_given_ranges_clip_what_is_outside():
    ranges = np.array([[-1, 0, 2], [1, 1, 2]], "float32")
    found = quantize_vectors(np.array([[-9, 0.25, 2], [9, 2, 7]], "float32"), "int8", ranges=ranges)
    assert found.vectors.tolist() == [[-128, -64, 0], [127, 127, 0]]
    assert found.ranges is ranges
    assert quantize_vectors([[-9, 0.25, 2]], "int8", ranges=ranges.tolist()).vectors.tolist() == [[-128, -64, 0]]


def test_binary_packs_the_signs():
    found = quantize_vectors(VECTORS, "binary")
    assert found.vectors.dtype == "uint8" and found.vectors.shape == (50, 3) and found.ranges is None
    np.testing.assert_array_equal(np.unpackbits(found.vectors, axis=1)[:, :20], VECTORS > 0)


def test_a_size_keeps_the_first_dimensions_at_length_1():
    cut = VECTORS[:, :7] / np.linalg.norm(VECTORS[:, :7], axis=1, keepdims=True)
    np.testing.assert_allclose(quantize_vectors(VECTORS, size=7).vectors, cut, rtol=1e-6)
    half = quantize_vectors(VECTORS, "float16", size=7).vectors
    assert half.dtype == "float16"
    np.testing.assert_allclose(half, cut, atol=1e-3)
    assert quantize_vectors(np.zeros((1, 4)), size=2).vectors.tolist() == [[0, 0]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"precision": "int4"}, "precision: needs one of float32, float16, int8, binary. Received: 'int4'"),
        ({"size": 21}, "size: needs 1 to 20, the width of the vectors. Received: 21"),
        ({"precision": "binary", "ranges": np.zeros((2, 20))}, "ranges: needs the precision int8. Received: binary"),
        ({"precision": "int8", "ranges": np.zeros((2, 8))}, r"needs the shape \[2, 20\].*Received: \[2, 8\]"),
    ],
)
def test_what_does_not_fit_is_refused(options, message):
    with pytest.raises(UserError, match=message):
        quantize_vectors(VECTORS, **options)


def test_a_single_vector_is_refused_and_a_list_of_one_taken():
    """Both would end in an error about a missing shape."""
    with pytest.raises(UserError, match=r"needs the shape \[texts, width\]. Received: \[20\]. Put one vector into"):
        quantize_vectors(VECTORS[0], "binary")
    assert quantize_vectors([VECTORS[0]], "binary").vectors.shape == (1, 3)


@pytest.mark.parametrize("precision", ["float32", "int8", "binary"])
@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_vectors_that_are_no_numbers_are_refused(precision, number):
    """NaN used to become 0, like a dimension without a range."""
    vectors = VECTORS.copy()
    vectors[3, 1] = number
    with pytest.raises(UserError, match="vectors: needs finite numbers. Received: NaN or infinite ones."):
        quantize_vectors(vectors, precision)


def test_no_vectors_have_no_ranges():
    with pytest.raises(UserError, match="ranges: needs vectors to take them from"):
        quantize_vectors(VECTORS[:0], "int8")
