"""Rows out of spans, with few of them and with many."""

import numpy as np
import pytest
import tensorflow as tf

from keras_bert.data.batches.packing import assemble_rows
from keras_bert.text.vocabulary import Vocabulary

VOCABULARY = Vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abc"])
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
