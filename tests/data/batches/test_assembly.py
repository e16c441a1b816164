"""Rows made from spans, and what is predicted in them, compared with plain references."""

import numpy as np
import pytest
import tensorflow as tf
from tiny import VOCABULARY

from keras_bert.data.batches.packing import assemble_rows, next_and_previous_tokens, with_segment_of_cls
from keras_bert.text.sentencepiece_vocabulary import unigram_model
from keras_bert.text.xlnet_vocabulary import SPECIAL_TOKENS, XlnetVocabulary

LENGTH = 40


@pytest.mark.parametrize("spans", [1, 2, 4, 5, 9])
def test_rows_are_cls_and_each_span_with_its_separator(spans):
    rng = np.random.default_rng(spans)
    tokens = np.arange(100, 1100)
    plan = np.zeros((300, 2 * spans), np.int64)
    expected = []
    for row in plan:
        ids, numbers, sources = [VOCABULARY.cls_id], [0], [None]
        for number in range(rng.integers(0, spans + 1)):
            length = int(rng.integers(1, (LENGTH - 1) // spans))
            start = int(rng.integers(0, 1000 - length))
            row[2 * number : 2 * number + 2] = start, start + length
            ids += [*tokens[start : start + length].tolist(), VOCABULARY.sep_id]
            numbers += [number] * (length + 1)
            sources += [*range(start, start + length), None]
        expected.append((ids, numbers, sources))
    rows = assemble_rows(tf.constant(tokens, tf.uint16), tf.constant(plan), LENGTH, VOCABULARY)
    for number, (ids, numbers, sources) in enumerate(expected):
        padding = [0] * (LENGTH - len(ids))
        assert rows.lengths[number] == len(ids)
        assert rows.word_ids[number].numpy().tolist() == ids + padding
        assert rows.span_numbers[number].numpy().tolist() == numbers + padding
        found = rows.sources[number].numpy()
        assert all(found[place] == source for place, source in enumerate(sources) if source is not None)
        assert found.min() >= 0 and found.max() < 1000


def test_an_xlnets_rows_are_each_span_with_its_separator_and_cls():
    """A row that only fills up a batch is <cls> alone."""
    vocabulary = XlnetVocabulary(unigram_model([(token, 0.0) for token in SPECIAL_TOKENS], b"", len(SPECIAL_TOKENS)))
    cls, sep, pad = vocabulary.cls_id, vocabulary.sep_id, vocabulary.pad_id
    plan = tf.constant([[5, 8, 20, 21], [3, 5, 0, 0], [0, 0, 0, 0]], tf.int64)
    rows = assemble_rows(tf.range(100, 200), plan, 9, vocabulary)
    expected = [[105, 106, 107, sep, 120, sep, cls], [103, 104, sep, cls], [cls]]
    assert rows.lengths.numpy().tolist() == [len(ids) for ids in expected]
    assert rows.word_ids.numpy().tolist() == [ids + [pad] * (9 - len(ids)) for ids in expected]
    segments = with_segment_of_cls(tf.zeros_like(rows.word_ids), rows.lengths, vocabulary).numpy().tolist()
    assert segments == [[0] * (len(ids) - 1) + [2] + [0] * (9 - len(ids)) for ids in expected]


CLS, SEP = VOCABULARY.cls_id, VOCABULARY.sep_id


def test_against_a_plain_reference():
    rng = np.random.default_rng(0)
    rows = [[CLS], [CLS, 9, SEP], [CLS, *[7] * 9, SEP, 8, 9, SEP, 6, 6, SEP][:16]]
    rows += [
        [CLS, *(int(token) for _ in range(3) for token in (*rng.integers(5, 60, rng.integers(1, 5)), SEP))]
        for _ in range(20)
    ]
    ids = np.array([row + [0] * (16 - len(row)) for row in rows], "int32")
    lengths = tf.constant([len(row) for row in rows])
    predictions = next_and_previous_tokens(tf.constant(ids), lengths, VOCABULARY)
    found = {name: value.numpy() for name, value in predictions.items()}
    np.testing.assert_array_equal(found["input_word_ids"], ids)
    assert found["next_token_ids"].dtype == np.int32 and found["next_token_weights"].dtype == np.float32
    for number, row in enumerate(rows):
        expected = {place: row[place + 1] for place in range(len(row) - 1) if row[place] != SEP}
        places = np.flatnonzero(found["next_token_weights"][number]).tolist()
        assert {place: found["next_token_ids"][number, place] for place in places} == expected
        # From right to left: not from a [SEP] on which another document follows to the end of the one before it.
        last = len(row) - 1
        expected = {place: row[place - 1] for place in range(1, len(row)) if row[place] != SEP or place == last}
        places = np.flatnonzero(found["previous_token_weights"][number]).tolist()
        assert {place: found["previous_token_ids"][number, place] for place in places} == expected
    assert found["next_token_weights"].sum() > 100 < found["previous_token_weights"].sum()
