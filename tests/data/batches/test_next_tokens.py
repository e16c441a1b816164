"""Next tokens against a plain reference: all of a row, but not from one document to the next."""

import numpy as np
import tensorflow as tf
from tiny import VOCABULARY

from keras_bert.data.batches.packing import next_and_previous_tokens

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
