"""Packing in the graph against packing in NumPy, and where lines are split."""

import numpy as np
import pytest
import tensorflow as tf

from keras_bert.data.batches.packing import most_documents, plan_packed
from keras_bert.data.batches.raw_lines import split_lines
from keras_bert.data.batches.text_plans import pack_sentences

SHAPES = {  # documents, sentences a document, tokens a sentence
    "ordinary": (300, (1, 12), (1, 14)),
    "tiny documents": (600, (1, 2), (1, 5)),
    "long sentences": (60, (1, 5), (1, 90)),
    "one sentence": (1, (1, 2), (7, 8)),
}


@pytest.mark.parametrize("packing", ["document", "full", "filled"])
@pytest.mark.parametrize("shape", SHAPES)
def test_rows_are_those_planned_in_numpy(shape, packing):
    rng = np.random.default_rng(2)
    documents, sentences, tokens = SHAPES[shape]
    counts = rng.integers(*sentences, documents)
    lengths = rng.integers(*tokens, counts.sum())
    offsets = [np.concatenate([[0], np.cumsum(values)]) for values in (lengths, counts)]
    width, fills = most_documents(packing, 24), packing == "filled"
    planned = plan_packed(*offsets, 24, width, fills)[:, :-1]

    # Sentences without a token, and numbers of documents with gaps, must change nothing.
    numbers = np.repeat(np.arange(documents, dtype=np.int32) * 3 + 1, counts)
    places = np.sort(rng.integers(0, len(lengths) + 1, 20))
    lengths = np.insert(lengths, places, 0)
    numbers = np.insert(numbers, places, numbers[np.minimum(places, len(numbers) - 1)])
    spans = tf.function(pack_sentences)(tf.constant(lengths, tf.int64), tf.constant(numbers), 24, width, fills)
    assert spans.dtype == tf.int64
    assert np.array_equal(spans, planned)


def test_no_sentence_no_row():
    for lengths in ([], [0, 0]):
        lengths = tf.constant(lengths, tf.int64)
        assert pack_sentences(lengths, tf.zeros_like(lengths, tf.int32), 24, 3).shape == (0, 6)


def test_lines_are_split_after_stops_and_nothing_is_lost():
    lines = ['He said: "No!" Then he left. 3.5 km on, it rained… (He sang.)', "", "中文。“好！”他说。end", "one"]
    sentences, line = split_lines(tf.constant(lines))
    assert [sentence.decode() for sentence in sentences.numpy()] == [
        'He said: "No!"',
        "Then he left.",
        "3.5 km on, it rained…",
        "(He sang.)",
        "",
        "中文。",
        "“好！”",
        "他说。",
        "end",
        "one",  # noqa: E501
    ]
    assert line.numpy().tolist() == [0, 0, 0, 0, 1, 2, 2, 2, 2, 3]
