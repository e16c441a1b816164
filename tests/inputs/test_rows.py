"""Cutting, packing and padding in the graph, beside what training does in NumPy."""

import numpy as np
import pytest
import tensorflow as tf
from served import VOCABULARY

from keras_bert.inference.encoder_inputs import encoder_inputs, pair_inputs, pair_lengths
from keras_bert.inputs.padding import padded_length, padded_lengths
from keras_bert.inputs.pieces import PieceSpans
from keras_bert.inputs.segments import padded_rows
from keras_bert.inputs.truncation import truncate, truncate_pairs

ROWS = [[7, 8, 9], [], [6], [9] * 12]
OTHERS = [[10], [11, 12], [], [13] * 9]


def rows(lists):
    return PieceSpans.of(
        tf.RaggedTensor.from_row_lengths(tf.constant(sum(lists, []), tf.int32), [len(row) for row in lists])
    )


def padded(inputs, seq):
    return {name: np.pad(column, [(0, 0), (0, seq - column.shape[1])]) for name, column in inputs.items()}


def test_pairs_are_cut_as_in_training():
    lengths = np.array([(a, b) for a in range(9) for b in range(9)])
    for longest in range(14):
        firsts, seconds = (PieceSpans(None, None, tf.constant(column, tf.int32)) for column in lengths.T)
        kept = np.stack([part.lengths for part in truncate_pairs(firsts, seconds, longest)], axis=1)
        assert kept.tolist() == [list(pair_lengths(a, b, longest)) for a, b in lengths.tolist()]


@pytest.mark.parametrize("longest", [8, 10, 40])
def test_texts_are_packed_as_in_training(longest):
    packed = padded_rows([truncate(rows(ROWS), longest - 2)], VOCABULARY, [4, longest])
    expected = padded(encoder_inputs([row[: longest - 2] for row in ROWS], VOCABULARY), longest)
    assert {name: column.numpy().tolist() for name, column in packed.items()} == {
        name: column.tolist() for name, column in expected.items()
    }


@pytest.mark.parametrize("longest", [8, 11, 40])
def test_pairs_are_packed_as_in_training(longest):
    packed = padded_rows(truncate_pairs(rows(ROWS), rows(OTHERS), longest - 3), VOCABULARY, [4, longest])
    expected = padded(pair_inputs(ROWS, OTHERS, VOCABULARY, longest), longest)
    for name, column in packed.items():
        np.testing.assert_array_equal(column, expected[name], name)


def test_no_rows_are_packed():
    """Serving may be asked for nothing."""
    assert padded_rows([rows([])], VOCABULARY, [4, 8])["input_word_ids"].shape == (0, 4)


def test_lengths_waste_less_than_a_quarter():
    lengths = padded_lengths(512, finest=8)
    assert lengths[:9] == [8, 16, 24, 32, 40, 48, 56, 64, 80] and lengths[-1] == 512 and len(lengths) < 25
    for needed in range(32, 513):
        chosen = int(padded_length(lengths, tf.constant(needed)))
        assert needed <= chosen < 1.25 * needed + 8 and chosen in lengths
    assert padded_lengths(40, 8)[-1] == 40 and padded_lengths(5, 8) == [5]
    assert int(padded_length([5], tf.constant(3))) == 5
