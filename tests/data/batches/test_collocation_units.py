"""Collocations as units of masks, compared with a reference in plain Python."""

import numpy as np
import pytest
import tensorflow as tf

from keras_bert.config.objectives import MaskingConfig
from keras_bert.data.batches.collocation_units import CollocationUnits
from keras_bert.data.batches.masking import DynamicMasking, example_keys, random_bits
from keras_bert.text.vocabulary import SPECIAL_TOKENS, Vocabulary

VOCABULARY = Vocabulary([*SPECIAL_TOKENS, *"abcdef", "##x", "##y"])
CLS, SEP = VOCABULARY.cls_id, VOCABULARY.sep_id
FIRST_PIECE = VOCABULARY.tokens.index("##x")
LENGTH, PREDICTIONS = 48, 9


def ids_of(text):
    return tuple(VOCABULARY.tokens.index(piece) for piece in text.split())


# One lies inside another, two overlap, one has six words and is never found, one repeats itself.
COLLOCATIONS = [*map(ids_of, ("a b", "b c", "a b c d e", "c ##x d", "d ##x e ##y ##x f", "f f f", "a b c d e f"))]


def random_rows(rows=300, seed=0):
    """[CLS] A [SEP] B [SEP] and padding, with few different words, so that collocations are frequent."""
    rng = np.random.default_rng(seed)
    ids = rng.choice(np.arange(5, len(VOCABULARY)), (rows, LENGTH)).astype(np.int32)
    for row in ids:
        for _ in range(3):
            phrase = COLLOCATIONS[rng.integers(len(COLLOCATIONS))]
            start = rng.integers(1, LENGTH - len(phrase))
            row[start : start + len(phrase)] = phrase
    lengths = rng.integers(6, LENGTH + 1, rows).astype(np.int32)
    for row, length in zip(ids, lengths):
        row[0] = CLS
        row[rng.integers(2, length - 2)] = row[length - 1] = SEP
        row[length:] = 0
    return ids, lengths


def units_of(row, length):
    """The positions of each unit, from the left: the longest collocation of at most five words, or else one word."""
    segments, units = [[]], []
    for position in range(length):
        if row[position] in (CLS, SEP):
            segments.append([])
        elif segments[-1] and row[position] >= FIRST_PIECE:
            segments[-1][-1].append(position)
        else:
            segments[-1].append([position])
    for words in segments:
        while words:
            lengths = [1] + [
                size
                for size in range(2, min(5, len(words)) + 1)
                if tuple(row[place] for word in words[:size] for place in word) in COLLOCATIONS
            ]
            units.append([place for word in words[: max(lengths)] for place in word])
            words = words[max(lengths) :]
    return units


def masked(ids, lengths, numbers=None, epoch=0, seed=1, collocations=COLLOCATIONS, **config):
    numbers = np.arange(len(ids)) if numbers is None else numbers
    masking = DynamicMasking(MaskingConfig(unit="pmi", **config), PREDICTIONS, VOCABULARY, seed, None, collocations)
    batch = masking(tf.constant(ids), tf.constant(lengths), tf.constant(numbers, tf.int64), epoch)
    return {key: value.numpy() for key, value in batch.items()}


def chosen(batch):
    return [tuple(row[weights > 0]) for row, weights in zip(batch["masked_lm_positions"], batch["masked_lm_weights"])]


def test_units_are_the_longest_collocations_from_the_left_and_words():
    ids, lengths = random_rows()
    candidate = (np.arange(LENGTH) < lengths[:, None]) & (ids != CLS) & (ids != SEP)
    units = CollocationUnits(COLLOCATIONS, len(VOCABULARY))
    heads = units.heads(tf.constant(ids), tf.constant(candidate), tf.constant(ids >= FIRST_PIECE)).numpy()
    expected = [units_of(*row) for row in zip(ids, lengths)]
    assert [np.flatnonzero(row).tolist() for row in heads] == [[unit[0] for unit in row] for row in expected]
    found = [tuple(row[unit]) for row, of_row in zip(ids, expected) for unit in of_row]
    assert all(found.count(phrase) > 10 for phrase in COLLOCATIONS[:-1]) and COLLOCATIONS[-1] not in found


def test_whole_units_are_chosen_in_random_order_while_they_fit():
    ids, lengths = random_rows()
    keys = example_keys(1, 3, tf.range(len(ids), dtype=tf.int64))
    scores = random_bits(keys, tf.range(LENGTH)[None, :]).numpy().astype(float)
    expected = []
    for row, length, score in zip(ids, lengths, scores):
        units, taken = units_of(row, length), []
        budget = min(PREDICTIONS, max(1, round(int(length) * 0.15)))
        for number in sorted(range(len(units)), key=lambda unit: -score[unit]):
            if len(taken) + len(units[number]) <= budget:
                taken += units[number]
        expected.append(tuple(sorted(taken)))
    assert chosen(masked(ids, lengths, epoch=3)) == expected


def test_masks_are_a_function_of_the_seed_the_epoch_and_the_example():
    ids, lengths = random_rows(64)
    whole, part = masked(ids, lengths), masked(ids[10:13], lengths[10:13], np.arange(10, 13))
    assert all(np.array_equal(part[key], value[10:13]) for key, value in whole.items())
    for change in ({"epoch": 1}, {"seed": 2}, {"numbers": np.arange(64) + 64}):
        assert chosen(masked(ids, lengths, **change)) != chosen(whole)


def test_a_run_of_tokens_is_replaced_alike():
    """All of it becomes [MASK] or none, as in the paper; drawn by token, most collocations would be mixed."""
    ids, lengths = random_rows()
    batch = masked(ids, lengths, random_token_share=0.0, mask_token_share=0.5)
    kinds = set()
    for row, positions in zip(batch["input_word_ids"], chosen(batch)):
        for run in np.split(np.array(positions, int), np.flatnonzero(np.diff(positions) > 1) + 1):
            is_mask = set((row[run] == VOCABULARY.mask_id).tolist())
            assert len(is_mask) <= 1, "only a row without units that fit has none"
            kinds |= is_mask
    assert kinds == {True, False}


def test_without_collocations_words_are_masked():
    ids, lengths = random_rows(64)
    masking = DynamicMasking(MaskingConfig(unit="word"), PREDICTIONS, VOCABULARY, 1)
    words = masking(tf.constant(ids), tf.constant(lengths), tf.range(64, dtype=tf.int64))
    assert np.array_equal(masked(ids, lengths, collocations=[])["masked_lm_positions"], words["masked_lm_positions"])
    with pytest.raises(ValueError, match="collocations: needed for unit: pmi"):
        DynamicMasking(MaskingConfig(unit="pmi"), PREDICTIONS, VOCABULARY, 1)
