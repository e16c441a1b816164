"""A conditional random field against the enumeration of all sequences of labels."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from keras_bert.layers.crf import FORBIDDEN, Chain, CrfTaggingHead, best_paths, log_likelihood, marginals

BATCH, SEQ, LABELS = 5, 6, 3
# Words in the middle of pieces, in every place, one alone, and none.
MASK = np.array([[0, 1, 1, 0, 1, 1], [1, 1, 1, 1, 1, 1], [0, 0, 1, 0, 0, 0], [0] * 6, [1, 0, 0, 0, 0, 1]], bool)


def scores(seed=0, forbidden=True):
    random = np.random.default_rng(seed)
    emissions, starts, transitions, ends = (
        random.normal(0, 2, shape).astype("float32")
        for shape in ((BATCH, SEQ, LABELS), (BATCH, LABELS), (LABELS, LABELS), (BATCH, LABELS))
    )
    if forbidden:
        transitions[0, 2] = starts[0, 1] = ends[4, 0] = FORBIDDEN
    return emissions, starts, transitions, ends


def chain(values):
    emissions, *others = map(tf.constant, values)
    return Chain(emissions, tf.constant(MASK), *others)


def enumerated(values, row):
    """{labels of the positions in the mask: score} of every sequence."""
    emissions, starts, transitions, ends = (np.asarray(value, "float64") for value in values)
    places = np.flatnonzero(MASK[row])
    return {
        labels: starts[row, labels[0]]
        + ends[row, labels[-1]]
        + sum(emissions[row, place, label] for place, label in zip(places, labels))
        + sum(transitions[pair] for pair in itertools.pairwise(labels))
        for labels in itertools.product(range(LABELS), repeat=len(places))
        if labels
    }


def partition(found):
    return np.logaddexp.reduce(list(found.values()))


def gold():
    labels = np.random.default_rng(1).integers(0, LABELS, (BATCH, SEQ)).astype("int32")
    labels[1] = [1, 1, 2, 0, 0, 1]
    return np.where(MASK, labels, -1)


@pytest.mark.parametrize("jit_compile", [False, True])
def test_likelihoods_and_marginals_are_those_of_all_sequences(jit_compile):
    """A wrong partition function trains a wrong model and looks like a slow one."""
    values = scores()
    likelihood = tf.function(log_likelihood, autograph=False, jit_compile=jit_compile)
    found, shares = (result.numpy() for result in likelihood(chain(values), tf.constant(gold())))
    np.testing.assert_array_equal(marginals(chain(values)).numpy(), shares) if not jit_compile else None
    for row in range(BATCH):
        by_labels = enumerated(values, row)
        if not by_labels:
            assert found[row] == 0 and not shares[row].any()
            continue
        labels = tuple(gold()[row][MASK[row]].tolist())
        assert found[row] == pytest.approx(by_labels[labels] - partition(by_labels), rel=1e-4)
        expected = np.zeros((MASK[row].sum(), LABELS))
        for sequence, score in by_labels.items():
            expected[np.arange(len(sequence)), list(sequence)] += np.exp(score - partition(by_labels))
        np.testing.assert_allclose(shares[row][MASK[row]], expected, atol=1e-5)
        assert not shares[row][~MASK[row]].any()


def test_gradients_are_those_of_the_enumeration():
    """They are computed from marginals, not by differentiating the loop."""
    values, step = scores(forbidden=False), 1e-4
    tensors = [tf.constant(value) for value in values]
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        emissions, *others = tensors
        total = tf.reduce_sum(log_likelihood(Chain(emissions, tf.constant(MASK), *others), tf.constant(gold()))[0])
    gradients = tape.gradient(total, tensors)

    def enumerated_total(changed):
        rows = (row for row in range(BATCH) if MASK[row].any())
        found = ((enumerated(changed, row), tuple(gold()[row][MASK[row]].tolist())) for row in rows)
        return sum(by_labels[labels] - partition(by_labels) for by_labels, labels in found)

    random = np.random.default_rng(2)
    for number, gradient in enumerate(gradients):
        for _ in range(6):
            place = tuple(random.integers(size) for size in gradient.shape)
            ends = []
            for sign in (1, -1):
                changed = [value.astype("float64") for value in values]
                changed[number][place] += sign * step
                ends.append(enumerated_total(changed))
            assert gradient.numpy()[place] == pytest.approx((ends[0] - ends[1]) / (2 * step), abs=1e-3)


@pytest.mark.parametrize("seed", range(4))
def test_the_best_path_is_the_best_of_all_sequences(seed):
    values = scores(seed)
    found = best_paths(chain(values)).numpy()
    for row in np.flatnonzero(MASK.any(axis=1)):
        by_labels = enumerated(values, row)
        assert tuple(found[row][MASK[row]].tolist()) == max(by_labels, key=by_labels.get)


def test_forbidden_transitions_are_impossible_whatever_the_emissions():
    """I after O, or at the start, must not come out even if the model is sure of it."""
    head = CrfTaggingHead(3, 4, forbidden=[[0, 0, 1, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 1, 0]])
    head.build((None, None, 4))
    emissions = np.zeros((2, 5, 3), "float32")
    emissions[0, :, 2], emissions[1, ::2, 0], emissions[1, 1::2, 2] = 100, 100, 100
    sentences = head.chain(tf.constant(emissions), tf.ones((2, 5), tf.bool))
    paths = best_paths(sentences).numpy()
    assert paths[0].tolist()[0] != 2 and (paths[0][1:] == 2).all()
    for path in paths:
        assert not any(pair == (0, 2) for pair in itertools.pairwise(path.tolist()))
    labels = tf.constant([[2, 2, 2, 2, 2], [0, 2, 0, 2, 0]])
    assert np.exp(log_likelihood(sentences, labels)[0].numpy()).tolist() == [0, 0]
    # A part of a sentence may go on where the part before it was left.
    part = head.chain(tf.constant(emissions), tf.ones((2, 5), tf.bool), tf.zeros(2), tf.zeros(2))
    assert best_paths(part).numpy()[0].tolist() == [2] * 5
