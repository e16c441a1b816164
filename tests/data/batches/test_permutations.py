"""Orders of prediction, compared with the published algorithm in plain Python on the same random numbers."""

import numpy as np
import pytest
import tensorflow as tf
from permuted_rows import local_perm, sample_mask
from scipy.stats import chisquare

from keras_bert.config.objectives import MaskingConfig
from keras_bert.data.batches.masking import LENGTHS, drawn_lengths, example_keys, low_bits, random_bits
from keras_bert.data.batches.permutations import LONGEST_SPAN, Permutations, scattered_spans
from keras_bert.layers.relative_attention import hidden_by_order
from keras_bert.text.sentencepiece_vocabulary import unigram_model
from keras_bert.text.xlnet_vocabulary import SPECIAL_TOKENS, XlnetVocabulary

PIECES = [*SPECIAL_TOKENS, *(f"▁w{number}" for number in range(40)), *(f"p{number}" for number in range(20))]
VOCABULARY = XlnetVocabulary(unigram_model([(piece, -1.0) for piece in PIECES], b"", len(SPECIAL_TOKENS)))
ROWS, LENGTH, PREDICTIONS = 300, 64, 11
SHARE = 1 / 6
MASKING = MaskingConfig(share=SHARE)


@pytest.fixture(scope="module")
def rows():
    """(ids, lengths): text with a <sep> inside, and <sep> <cls> at the end."""
    rng = np.random.default_rng(0)
    ids = rng.integers(len(SPECIAL_TOKENS), len(PIECES), (ROWS, LENGTH)).astype("int32")
    lengths = rng.integers(1, LENGTH + 1, ROWS).astype("int32")
    lengths[:100] = LENGTH
    for row, length in zip(ids, lengths):
        row[length // 3], row[max(length - 2, 0)], row[length - 1] = (
            VOCABULARY.sep_id,
            VOCABULARY.sep_id,
            VOCABULARY.cls_id,
        )
        row[length:] = VOCABULARY.pad_id
    return ids, lengths


def _ordered(rows, numbers=None, seed=1, epoch=0, masking=MASKING):
    ids, lengths = rows
    numbers = np.arange(len(ids)) if numbers is None else numbers
    order = Permutations(masking, PREDICTIONS, VOCABULARY, seed)
    batch = order(tf.constant(ids[numbers]), tf.constant(lengths[numbers]), tf.constant(numbers, tf.int64), epoch)
    return {name: value.numpy() for name, value in batch.items()}


def _text(ids, lengths):
    is_special = np.isin(ids, (VOCABULARY.cls_id, VOCABULARY.sep_id))
    return (np.arange(LENGTH) < lengths[:, None]) & ~is_special, is_special


def test_a_share_of_nothing_is_a_token_of_each_row(rows):
    """As for the masked LM; dividing the tokens by 0 would end in a traceback."""
    predicted = _ordered(rows, masking=MaskingConfig(share=0.0))["masked_lm_weights"].sum(axis=1)
    assert np.array_equal(predicted, _text(*rows)[0].any(axis=1))


def test_spans_are_those_of_the_published_algorithm(rows):
    ids, lengths = rows
    text, _ = _text(ids, lengths)
    continuation = ids >= len(SPECIAL_TOKENS) + 40
    budget = np.maximum(1, np.round(lengths * SHARE)).astype("int32")
    keys = example_keys(7, 0, tf.range(ROWS, dtype=tf.int64))
    found = scattered_spans(tf.constant(text), tf.constant(continuation), lengths, tf.constant(budget), SHARE, keys)
    steps = tf.range(LENGTH)[None, :]
    sizes = drawn_lengths(keys, [1 / size for size in range(1, LONGEST_SPAN + 1)])(steps).numpy()
    parts = low_bits(random_bits(keys, steps + LENGTHS)).numpy() / 2**32
    for row in range(ROWS):
        candidates = set(np.flatnonzero(text[row]))
        starts = set(np.flatnonzero(text[row] & ~continuation[row]))
        draws = zip(sizes[row].tolist(), parts[row].tolist())
        expected = sample_mask(starts, candidates, lengths[row], budget[row], SHARE, draws)
        assert set(np.flatnonzero(found[row])) == expected
    assert found.numpy()[:100].sum(axis=1).mean() > 0.5 * LENGTH * SHARE


def test_the_drawn_share_of_the_text_and_nothing_else_is_predicted(rows):
    ids, lengths = rows
    batch, (text, _) = _ordered(rows), _text(ids, lengths)
    budget = np.minimum(np.minimum(PREDICTIONS, np.maximum(1, np.round(lengths * SHARE))), text.sum(axis=1))
    np.testing.assert_array_equal(batch["masked_lm_weights"].sum(axis=1), budget)
    at = np.take_along_axis(ids, batch["masked_lm_positions"], axis=1)
    used = batch["masked_lm_weights"] > 0
    np.testing.assert_array_equal(batch["masked_lm_ids"], np.where(used, at, 0))
    assert np.take_along_axis(text, batch["masked_lm_positions"], axis=1)[used].all()
    np.testing.assert_array_equal(batch["input_word_ids"], ids)


def test_what_a_token_sees_is_what_the_published_algorithm_lets_it_see(rows):
    """Except the diagonal of special tokens, which the content stream sees and the query stream does not have."""
    ids, lengths = rows
    batch, (_, is_special) = _ordered(rows), _text(ids, lengths)
    hidden = hidden_by_order(batch["permutation_ranks"]).numpy()
    for row in np.flatnonzero(lengths == LENGTH)[:20]:
        ranks, masked = batch["permutation_ranks"][row], np.zeros(LENGTH, bool)
        masked[batch["masked_lm_positions"][row][batch["masked_lm_weights"][row] > 0]] = True
        ranked = masked | is_special[row]
        assert (ranks >= 0).tolist() == ranked.tolist() and len(set(ranks[ranked])) == ranked.sum()
        expected = np.array(local_perm(ranks, masked, is_special[row]))
        expected[np.diag_indices(LENGTH)] |= is_special[row]
        np.testing.assert_array_equal(hidden[row], expected)


def test_an_order_depends_on_seed_epoch_and_example_alone(rows):
    whole, some = _ordered(rows), np.array([7, 3, 250])
    for name, value in _ordered(rows, some).items():
        np.testing.assert_array_equal(value, whole[name][some])
    for other in (_ordered(rows, seed=2), _ordered(rows, epoch=1)):
        assert (other["permutation_ranks"] != whole["permutation_ranks"]).any(axis=1)[:100].all()


def test_every_order_of_the_predictions_is_as_likely():
    """A row with three predicted tokens has six orders."""
    ids = np.full((3000, 20), len(SPECIAL_TOKENS), "int32")
    ids[:, -2:] = VOCABULARY.sep_id, VOCABULARY.cls_id
    batch = _ordered((ids, np.full(3000, 20, "int32")))
    ranks = np.take_along_axis(batch["permutation_ranks"], batch["masked_lm_positions"], axis=1)
    orders = np.argsort(ranks[:, :3], axis=1) @ [9, 3, 1]
    assert chisquare(np.unique(orders, return_counts=True)[1]).pvalue > 1e-3
