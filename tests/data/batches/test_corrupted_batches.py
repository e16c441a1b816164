"""Batches for a model with a decoder, from shards and from raw text: what it reads and writes."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from random_shards import LENGTH, numbered_vocabulary, take, write_shards
from raw_text import equal, text_tokenizer, write_texts

from keras_bert.config.objectives import MaskingConfig, ObjectiveConfig, PhaseConfig
from keras_bert.core.errors import UserError
from keras_bert.data.batches.corruption.corruption import Corruption, most_targets
from keras_bert.data.batches.packing import assemble_rows
from keras_bert.data.batches.raw_lines import RawLines
from keras_bert.data.batches.shard_batches import ShardBatches
from keras_bert.data.batches.text_batches import TextBatches
from keras_bert.text.vocabulary import SPECIAL_TOKENS, RowPattern, Vocabulary

START, BATCH = 3, 8
VOCABULARY = Vocabulary([*SPECIAL_TOKENS, ".", "!", *(f"w{number}" for number in range(40)), "[unused1]", "[unused0]"])
FULL_STOPS = (5, 6)


def objective(*kinds, **settings):
    return ObjectiveConfig(
        tokens="decoded", pair="none", packing="document", corruption=_corruption(kinds=list(kinds), **settings)
    )


def _corruption(**settings):
    return dataclasses.replace(ObjectiveConfig().corruption, **settings)


def rows_of_texts(rows=64):
    """[CLS] text [SEP] of random lengths, a fifth of the tokens full stops; the last row only fills up the batch."""
    rng = np.random.default_rng(5)
    lengths = rng.integers(3, LENGTH + 1, rows)
    ids = np.where(rng.random((rows, LENGTH)) < 0.2, 5, rng.integers(7, 47, (rows, LENGTH)))
    ids[:, 0], ids[np.arange(rows), lengths - 1] = VOCABULARY.cls_id, VOCABULARY.sep_id
    lengths[-1] = 1
    ids = np.where(np.arange(LENGTH) < lengths[:, None], ids, VOCABULARY.pad_id)
    return tf.constant(ids, tf.int32), tf.constant(lengths, tf.int32)


def corrupted(*kinds, epoch=0, seed=1, ids=None, **settings):
    corruption = Corruption(_corruption(kinds=list(kinds), **settings), MaskingConfig(), VOCABULARY, seed, START)
    words, lengths = rows_of_texts()
    numbers = tf.range(len(words), dtype=tf.int64)
    made = tf.function(corruption, autograph=False)(words, lengths, numbers, epoch)
    return {name: value.numpy() for name, value in made.items()}, words.numpy(), lengths.numpy()


def test_a_decoder_restores_the_text_that_all_corruptions_changed():
    kinds = ("masking", "deletion", "infilling", "sentences", "rotation")
    made, words, lengths = corrupted(*kinds)
    targets = np.where(lengths[:, None] > 1, words, VOCABULARY.pad_id)
    np.testing.assert_array_equal(made["target_ids"], targets)
    np.testing.assert_array_equal(made["decoder_input_ids"][:, 1:], targets[:, :-1])
    assert (made["decoder_input_ids"][:, 0] == START).all()
    expected = np.arange(LENGTH) < np.where(lengths > 1, lengths, 0)[:, None]
    np.testing.assert_array_equal(made["target_weights"], expected)
    read = made["input_mask"].sum(axis=1)
    assert (read[:-1] > 2).all() and (read < lengths).mean() > 0.8 and read[-1] == 1
    ends = made["input_word_ids"][np.arange(len(read)), read - 1][:-1]
    assert (ends == VOCABULARY.sep_id).all() and (made["input_word_ids"][:-1, 0] == VOCABULARY.cls_id).all()


def test_one_corruption_of_several_is_drawn_for_each_text():
    made, words, lengths = corrupted("masking", "rotation", applied="one")
    masked, rotated = (corrupted(kind)[0]["input_word_ids"] for kind in ("masking", "rotation"))
    is_masked, is_rotated = ((made["input_word_ids"] == rows).all(axis=1) for rows in (masked, rotated))
    assert (is_masked | is_rotated).all() and 20 < is_masked.sum() < 44


def test_mass_decodes_a_fragment_at_its_place_in_the_row():
    made, words, lengths = corrupted("fragment")
    width = most_targets(_corruption(kinds=["fragment"]), LENGTH)
    assert made["target_ids"].shape == (64, width) == (64, 15)
    for row, length, first, targets, weights in zip(
        words, lengths, made["decoder_first_place"], made["target_ids"], made["target_weights"]
    ):
        count = int(weights.sum())
        assert count == (max(1, round((length - 2) / 2)) if length > 1 else 0)
        np.testing.assert_array_equal(targets[:count], row[first : first + count])
    assert (made["decoder_input_ids"][:, 0] == VOCABULARY.mask_id).all()


def test_t5_decodes_the_spans_by_the_sentinels_of_a_vocabulary():
    made, words, lengths = corrupted("sentinels", share=0.5)
    sentinels = [VOCABULARY.ids["[unused0]"], VOCABULARY.ids["[unused1]"]]
    for row, length, read, targets, weights in zip(
        words[:-1], lengths, made["input_word_ids"], made["target_ids"], made["target_weights"]
    ):
        targets = targets[: int(weights.sum())].tolist()
        assert targets[-1] == VOCABULARY.sep_id
        spans = targets[1:-2] if length > 3 else []
        assert [token for token in targets if token in sentinels] == sentinels[: 1 + (length > 3)]
        text = read[: read.tolist().index(VOCABULARY.sep_id) + 1].tolist()
        whole = sum(([*spans] if token == sentinels[0] else [token] for token in text), [])
        assert whole == row[:length].tolist()


def test_a_corruption_is_a_function_of_seed_epoch_and_example():
    made, again, other = (corrupted("infilling", "sentences", epoch=epoch)[0] for epoch in (1, 1, 2))
    assert equal(made, again) and not np.array_equal(made["input_word_ids"], other["input_word_ids"])
    assert not np.array_equal(made["input_word_ids"], corrupted("infilling", "sentences", seed=2)[0]["input_word_ids"])


class WithoutCls(Vocabulary):
    """Rows end with [SEP] but begin with the text, as T5's do."""

    row_pattern = RowPattern((), (VOCABULARY.sep_id,), (VOCABULARY.sep_id,))


def test_rows_without_cls_begin_with_their_text():
    vocabulary = WithoutCls(VOCABULARY.tokens)
    tokens = tf.range(10, 20)
    rows = assemble_rows(tokens, tf.constant([[0, 4], [2, 8], [0, 0]], tf.int64), 8, vocabulary)
    sep = vocabulary.sep_id
    expected = [[10, 11, 12, 13, sep, 0, 0, 0], [12, 13, 14, 15, 16, 17, sep, 0], [0] * 8]
    assert rows.word_ids.numpy().tolist() == expected and rows.lengths.numpy().tolist() == [5, 7, 0]
    corruption = Corruption(_corruption(kinds=["rotation"]), MaskingConfig(), vocabulary, 1, 0)
    made = corruption(rows.word_ids, rows.lengths, tf.range(3, dtype=tf.int64))
    assert made["target_ids"].numpy().tolist() == expected
    assert made["input_mask"].numpy().sum(axis=1).tolist() == [5, 7, 1]


@pytest.mark.parametrize("of_shards", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_sources_make_batches_that_start_anywhere(tmp_path, of_shards):
    phase = PhaseConfig(sequence_length=LENGTH, batch_size=BATCH, max_predictions_per_seq=5)
    chosen, masking = objective("fragment"), MaskingConfig()
    if of_shards:
        vocabulary = numbered_vocabulary(90)
        shards = write_shards(tmp_path / "shards", vocabulary, 20)
        source = ShardBatches(shards, vocabulary, phase, chosen, masking, 3, tmp_path / "plans", decoder_start=START)
    else:
        lines = RawLines([write_texts(tmp_path)], 0.1)
        source = TextBatches(lines, text_tokenizer(), phase, chosen, masking, 3, decoder_start=START)
    batches, later = take(source.epoch(0).take(5)), take(source.epoch(0, 3).take(2))
    assert all(equal(*pair) for pair in zip(batches[3:], later, strict=True))
    shapes = {name: value.shape for name, value in batches[0].items()}
    assert shapes == {
        **dict.fromkeys(("input_word_ids", "input_mask", "input_type_ids"), (BATCH, LENGTH)),
        **dict.fromkeys(("decoder_input_ids", "target_ids", "target_weights"), (BATCH, 15)),
        **dict.fromkeys(("decoder_first_place", "example_weights"), (BATCH,)),
    }
    assert all(batch["target_weights"].sum() > 0 for batch in batches)


def test_a_vocabulary_lacks_sentinels_or_full_stops():
    for kind, lack in (("sentinels", "T5's sentinels"), ("sentences", "a full stop")):
        with pytest.raises(UserError, match=f"objective.corruption.kinds: {kind} needs a vocabulary with .*{lack}"):
            Corruption(_corruption(kinds=[kind]), MaskingConfig(), numbered_vocabulary(20), 1, START)
