"""Packed rows: whole sentences, greedy, in order, within the length, ending where they must."""

import numpy as np
import pytest
import tensorflow as tf
from random_shards import offsets, random_offsets

from keras_bert.data.batches.packing import most_documents, plan_packed
from keras_bert.data.batches.raw_lines import split_lines
from keras_bert.data.batches.text_plans import pack_sentences

LENGTH = 24
SHAPES = {  # documents, sentences per document, tokens per sentence
    "ordinary": (300, (1, 12), (1, 14)),
    "tiny documents": (600, (1, 2), (1, 5)),
    "long sentences": (60, (1, 5), (1, 90)),
    "one document": (1, (300, 301), (1, 14)),
}


def shard_of(shape):
    return random_offsets(*SHAPES[shape], seed=1)


def _oracle(sentences, documents, length, documents_in_row):
    """The rows put together in plain Python, sentence by sentence: lists of [start, end] per document."""
    rows, row, free = [], [], length - 1
    for first, last in zip(documents[:-1], documents[1:]):
        is_new_document = True
        for start, end in zip(sentences[first:last], sentences[first + 1 : last + 1]):
            for piece in range(start, end, length - 2):
                piece_end = min(piece + length - 2, end)
                if row and (
                    free < piece_end - piece + is_new_document or (is_new_document and len(row) == documents_in_row)
                ):
                    rows.append(row)
                    row = []
                if not row:
                    free, is_new_document = length - 1, True
                free -= piece_end - piece + is_new_document
                if is_new_document:
                    row.append([piece, piece_end])
                    is_new_document = False
                else:
                    row[-1][1] = piece_end
    return [*rows, row]


@pytest.mark.parametrize("packing", ["document", "full"])
@pytest.mark.parametrize("shape", SHAPES)
def test_rows_are_those_of_a_greedy_loop_over_sentences(shape, packing):
    sentences, documents = shard_of(shape)
    width = most_documents(packing, LENGTH)
    plan = plan_packed(sentences, documents, LENGTH, width)
    assert plan.dtype == np.int32 and plan.shape[1] == 2 * width + 1
    found = [[list(span) for span in row[:-1].reshape(-1, 2).tolist() if span != [0, 0]] for row in plan]
    assert found == _oracle(sentences.tolist(), documents.tolist(), LENGTH, width)
    begins = [row[0][0] in sentences[documents] for row in found]
    assert plan[:, -1].tolist() == [not is_start for is_start in begins]


@pytest.mark.parametrize("width", [1, 2, 5])
@pytest.mark.parametrize("shape", SHAPES)
def test_filled_rows_are_rows_of_sentences_of_one_token(shape, width):
    sentences, documents = shard_of(shape)
    filled = plan_packed(sentences, documents, LENGTH, width, fills=True)
    of_tokens = plan_packed(np.arange(sentences[-1] + 1), sentences[documents], LENGTH, width)
    assert np.array_equal(filled, of_tokens)


def test_filled_rows_leave_hardly_any_padding():
    sentences, documents = shard_of("ordinary")
    rows = [len(plan_packed(sentences, documents, LENGTH, 5, fills)) for fills in (False, True)]
    places = sentences[-1] + len(documents) - 1  # Every token, and a [SEP] for every document.
    assert rows[1] == pytest.approx(places / (LENGTH - 2), rel=0.03) and rows[0] > 1.15 * rows[1]


def test_a_row_is_filled_to_the_last_place():
    """Two documents of 10 tokens need [CLS] and two [SEP]: 23 places, not 22."""
    sentences, documents = offsets([10, 10]), offsets([1, 1])
    assert len(plan_packed(sentences, documents, 23, 2)) == 1
    assert len(plan_packed(sentences, documents, 22, 2)) == 2


def test_no_token_no_row():
    assert plan_packed(np.array([0]), np.array([0]), LENGTH, 2).shape == (0, 5)


def test_bound_of_documents():
    assert [most_documents("full", length) for length in (8, 128, 512)] == [2, 8, 32]
    assert most_documents("document", 512) == 1


TEXT_SHAPES = {  # documents, sentences per document, tokens per sentence
    "ordinary": (300, (1, 12), (1, 14)),
    "tiny documents": (600, (1, 2), (1, 5)),
    "long sentences": (60, (1, 5), (1, 90)),
    "one sentence": (1, (1, 2), (7, 8)),
}


@pytest.mark.parametrize("packing", ["document", "full", "filled"])
@pytest.mark.parametrize("shape", TEXT_SHAPES)
def test_rows_are_those_planned_in_numpy(shape, packing):
    rng = np.random.default_rng(2)
    documents, sentences, tokens = TEXT_SHAPES[shape]
    counts = rng.integers(*sentences, documents)
    lengths = rng.integers(*tokens, counts.sum())
    offsets = [np.concatenate([[0], np.cumsum(values)]) for values in (lengths, counts)]
    width, fills = most_documents(packing, 24), packing == "filled"
    planned = plan_packed(*offsets, 24, width, fills)[:, :-1]

    # Sentences without tokens, and gaps in the documents' numbers, must change nothing.
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
