"""Vectors from counts, compared with the definition in plain Python and NumPy's own SVD."""

import collections
import math

import numpy as np
import pytest

from keras_bert.data.corpus_vectors import CONTEXT_POWER, FEWEST_OCCURRENCES, corpus_vectors, count_tokens


def text_of(pieces, length, seed=0):
    """Random ids in which some follow others more often."""
    rng = np.random.default_rng(seed)
    return (rng.zipf(1.5, length) * rng.integers(1, 5, length) % pieces).astype("uint16")


def reference(tokens, pieces, width, window):
    """Positive pointwise mutual information with right and with left neighbours; then U·√S of its SVD."""
    pairs = collections.Counter()
    for place, left in enumerate(tokens):
        for distance in range(1, window + 1):
            if place + distance < len(tokens):
                pairs[int(left), int(tokens[place + distance])] += 1 / distance
    sides = []
    for counts in (pairs, {(right, left): count for (left, right), count in pairs.items()}):
        rows, contexts = collections.Counter(), collections.Counter()
        for (row, context), count in counts.items():
            rows[row] += count
            contexts[context] += count
        smoothed = {context: count**CONTEXT_POWER for context, count in contexts.items()}
        side = np.zeros((pieces, pieces))
        for (row, context), count in counts.items():
            share = smoothed[context] / sum(smoothed.values())
            side[row, context] = max(math.log(count / (rows[row] * share)), 0.0)
        sides.append(side)
    left, singular_values, _ = np.linalg.svd(np.hstack(sides), full_matrices=False)
    vectors = left[:, :width] * np.sqrt(singular_values[:width])
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


@pytest.mark.parametrize("window", [1, 2, 3])
def test_vectors_are_those_of_the_definition(window):
    """Compared by cosines, because a singular vector may change sign."""
    tokens = text_of(40, 3000)
    counts, vectors = corpus_vectors([tokens], 40, 32, window)
    assert counts.tolist() == np.bincount(tokens, minlength=40).tolist()
    known = counts >= FEWEST_OCCURRENCES
    assert 20 < known.sum() and vectors.dtype == np.float32
    expected = reference(tokens, 40, 32, window)[known]
    np.testing.assert_allclose(vectors[known] @ vectors[known].T, expected @ expected.T, atol=1e-3)


def test_pieces_that_stand_in_the_same_place_are_alike():
    """The tied decoder needs this; pieces that only stand next to each other must not be alike."""
    rng = np.random.default_rng(0)
    sentences = [[10, 20 + rng.integers(2), 30 + rng.integers(2), rng.integers(40, 60)] for _ in range(2000)]
    vectors = corpus_vectors([np.concatenate(sentences)], 60, 16)[1]
    assert vectors[20] @ vectors[21] > 0.7 and vectors[30] @ vectors[31] > 0.7
    assert vectors[20] @ vectors[30] < 0.2


def test_rare_pieces_have_none_and_a_text_in_parts_has_the_same_ones():
    tokens = np.concatenate([text_of(30, 2000), [31] * (FEWEST_OCCURRENCES - 1), text_of(30, 500, 1)])
    counts, vectors = corpus_vectors([tokens], 40, 8)
    assert counts[31] == FEWEST_OCCURRENCES - 1 and not vectors[31].any() and not vectors[35].any()
    known = counts >= FEWEST_OCCURRENCES
    np.testing.assert_allclose(np.linalg.norm(vectors[known], axis=1), 1.0, rtol=1e-5)
    parts = [tokens[:7], tokens[7:8], tokens[8:900], tokens[900:]]
    for received, expected in zip(corpus_vectors(parts, 40, 8), (counts, vectors), strict=True):
        np.testing.assert_array_equal(received, expected)
    np.testing.assert_array_equal(count_tokens(parts, 40), counts)


def test_any_width_up_to_the_vocabulary_and_no_text_at_all():
    assert corpus_vectors([text_of(12, 400)], 12, 12)[1].shape == (12, 12)
    counts, vectors = corpus_vectors([], 12, 4)
    assert not counts.any() and not vectors.any()
