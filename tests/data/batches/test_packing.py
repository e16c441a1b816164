"""Packed rows: whole sentences, greedy, in order, within the length, and ending where they must."""

import numpy as np
import pytest

from keras_bert.data.batches.packing import most_documents, plan_packed

LENGTH = 24
SHAPES = {  # documents, sentences a document, tokens a sentence
    "ordinary": (300, (1, 12), (1, 14)),
    "tiny documents": (600, (1, 2), (1, 5)),
    "long sentences": (60, (1, 5), (1, 90)),
    "one document": (1, (300, 301), (1, 14)),
}


def _offsets(lengths):
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)


def _shard(shape):
    rng = np.random.default_rng(1)
    documents, sentences, tokens = SHAPES[shape]
    sentence_counts = rng.integers(*sentences, documents)
    return _offsets(rng.integers(*tokens, sentence_counts.sum())), _offsets(sentence_counts)


def _oracle(sentences, documents, length, documents_in_row):
    """The rows put together sentence by sentence in plain Python: lists of [start, end] by document."""
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
    sentences, documents = _shard(shape)
    width = most_documents(packing, LENGTH)
    plan = plan_packed(sentences, documents, LENGTH, width)
    assert plan.dtype == np.int32 and plan.shape[1] == 2 * width + 1 and not plan[:, -1].any()
    found = [[list(span) for span in row[:-1].reshape(-1, 2).tolist() if span != [0, 0]] for row in plan]
    assert found == _oracle(sentences.tolist(), documents.tolist(), LENGTH, width)


@pytest.mark.parametrize("width", [1, 2, 5])
@pytest.mark.parametrize("shape", SHAPES)
def test_filled_rows_are_rows_of_sentences_of_one_token(shape, width):
    sentences, documents = _shard(shape)
    filled = plan_packed(sentences, documents, LENGTH, width, fills=True)
    of_tokens = plan_packed(np.arange(sentences[-1] + 1), sentences[documents], LENGTH, width)
    assert np.array_equal(filled, of_tokens)


def test_filled_rows_leave_hardly_any_padding():
    sentences, documents = _shard("ordinary")
    rows = [len(plan_packed(sentences, documents, LENGTH, 5, fills)) for fills in (False, True)]
    places = sentences[-1] + len(documents) - 1  # Every token and a [SEP] for every document.
    assert rows[1] == pytest.approx(places / (LENGTH - 2), rel=0.03) and rows[0] > 1.15 * rows[1]


@pytest.mark.parametrize("shape", SHAPES)
def test_document_rows_stay_in_their_document_and_full_ones_leave_less_padding(shape):
    sentences, documents = _shard(shape)
    edges = sentences[documents]
    rows = plan_packed(sentences, documents, LENGTH, 1)
    assert np.array_equal(np.searchsorted(edges, rows[:, 0], "right"), np.searchsorted(edges, rows[:, 1] - 1, "right"))
    full = plan_packed(sentences, documents, LENGTH, most_documents("full", LENGTH))
    assert len(full) <= len(rows) and (len(full) < len(rows) or shape == "one document")


def test_a_row_is_filled_to_the_last_place():
    """Two documents of 10 take [CLS] and two [SEP]: 23 places, not 22."""
    sentences, documents = _offsets([10, 10]), _offsets([1, 1])
    assert len(plan_packed(sentences, documents, 23, 2)) == 1
    assert len(plan_packed(sentences, documents, 22, 2)) == 2


def test_no_token_no_row():
    assert plan_packed(np.array([0]), np.array([0]), LENGTH, 2).shape == (0, 5)


def test_bound_of_documents():
    assert [most_documents("full", length) for length in (8, 128, 512)] == [2, 8, 32]
    assert most_documents("document", 512) == 1
