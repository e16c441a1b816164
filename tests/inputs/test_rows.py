"""Truncation, windows and padding, compared with NumPy."""

import numpy as np
import pytest
import tensorflow as tf
from numpy_encoder_inputs import pair_inputs, pair_lengths, single_inputs
from served import VOCABULARY

from keras_bert.inference.texts import encoder_inputs
from keras_bert.inputs.rows import PieceSpans, flat_rows, padded_length, padded_lengths, padded_rows
from keras_bert.inputs.windows import head_and_tail, truncate, truncate_pairs

ROWS = [[7, 8, 9], [], [6], [9] * 12]
OTHERS = [[10], [11, 12], [], [13] * 9]


def rows(lists):
    return PieceSpans.of(
        tf.RaggedTensor.from_row_lengths(tf.constant(sum(lists, []), tf.int32), [len(row) for row in lists])
    )


def padded(inputs, seq):
    return {name: np.pad(column, [(0, 0), (0, seq - column.shape[1])]) for name, column in inputs.items()}


def test_pairs_are_truncated_as_by_numpy():
    lengths = np.array([(a, b) for a in range(9) for b in range(9)])
    for longest in range(14):
        firsts, seconds = (PieceSpans(None, None, tf.constant(column, tf.int32)) for column in lengths.T)
        kept = np.stack([part.lengths for part in truncate_pairs(firsts, seconds, longest)], axis=1)
        assert kept.tolist() == [list(pair_lengths(a, b, longest)) for a, b in lengths.tolist()]


@pytest.mark.parametrize("longest", [8, 10, 40])
def test_texts_are_padded_as_by_numpy(longest):
    received = padded_rows([truncate(rows(ROWS), longest - 2)], VOCABULARY, [4, longest])
    expected = padded(single_inputs([row[: longest - 2] for row in ROWS], VOCABULARY), longest)
    assert {name: column.numpy().tolist() for name, column in received.items()} == {
        name: column.tolist() for name, column in expected.items()
    }


@pytest.mark.parametrize("longest", [8, 11, 40])
def test_pairs_are_padded_as_by_numpy(longest):
    received = padded_rows(truncate_pairs(rows(ROWS), rows(OTHERS), longest - 3), VOCABULARY, [4, longest])
    expected = padded(pair_inputs(ROWS, OTHERS, VOCABULARY, longest), longest)
    for name, column in received.items():
        np.testing.assert_array_equal(column, expected[name], name)


def test_no_rows_are_padded():
    """Serving may receive a batch without rows."""
    assert padded_rows([rows([])], VOCABULARY, [4, 8])["input_word_ids"].shape == (0, 4)


def test_lengths_waste_less_than_a_quarter():
    lengths = padded_lengths(512, finest=8)
    assert lengths[:9] == [8, 16, 24, 32, 40, 48, 56, 64, 80] and lengths[-1] == 512 and len(lengths) < 25
    for needed in range(32, 513):
        chosen = int(padded_length(lengths, tf.constant(needed)))
        assert needed <= chosen < 1.25 * needed + 8 and chosen in lengths
    assert padded_lengths(40, 8)[-1] == 40 and padded_lengths(5, 8) == [5]
    assert int(padded_length([5], tf.constant(3))) == 5


@pytest.mark.parametrize("rows", [ROWS, [np.array([5, 6])], [[]], [[], [7]]])
def test_lists_and_arrays_are_padded_to_the_longest(rows):
    received, expected = encoder_inputs(rows, VOCABULARY), single_inputs(rows, VOCABULARY)
    for name, column in expected.items():
        assert received[name].dtype == np.int32
        np.testing.assert_array_equal(received[name], column, name)


def test_rows_without_padding_are_those_with_it():
    """With two segments, cuts that keep the head and tail of the second, and empty rows."""
    firsts, seconds = rows(ROWS), rows(OTHERS)
    segments = [firsts, head_and_tail(seconds, truncate(seconds, 6))]
    padded, flat = padded_rows(segments, VOCABULARY), flat_rows(segments, VOCABULARY)
    mask = padded["input_mask"].numpy() == 1
    np.testing.assert_array_equal(flat.ids, padded["input_word_ids"].numpy()[mask])
    np.testing.assert_array_equal(flat.lengths, mask.sum(axis=1))
    for types, start in zip(padded["input_type_ids"].numpy(), flat.second_starts.numpy(), strict=True):
        assert types[:start].sum() == 0 and types[start] == 1


def test_pairs_are_cut_as_the_original_cuts_them():
    def original(first, second, longest):
        while first + second > longest:
            first, second = (first - 1, second) if first > second else (first, second - 1)
        return first, second

    for first in range(9):
        for second in range(9):
            for longest in range(14):
                assert pair_lengths(first, second, longest) == original(first, second, longest)
