"""Planned segment pairs: labels, spans and shares."""

import numpy as np
import pytest
from random_shards import offsets, random_offsets

from keras_bert.data.batches.plans import _truncate, plan_pairs, plan_swapped, repeat_to_count

SHAPES = {  # documents, sentences per document, tokens per sentence
    "ordinary": (1000, (1, 30), (3, 50)),
    "single sentences": (6000, (1, 2), (2, 60)),
    "long sentences": (300, (1, 10), (1, 900)),
    "few documents": (3, (3000, 6000), (3, 50)),
}


def shard_of(shape):
    return random_offsets(*SHAPES[shape], seed=0)


def _lengths(plan):
    return plan[:, 1] - plan[:, 0], plan[:, 3] - plan[:, 2]


@pytest.mark.parametrize("share", [0.5, 0.3])
@pytest.mark.parametrize("shape", SHAPES)
def test_share_of_random_next_is_the_one_asked_for(shape, share):
    plan = plan_pairs(*shard_of(shape), 61, (1,), share)
    assert len(plan) > 1000
    assert plan[:, 4].mean() == pytest.approx(share, abs=0.01)


def test_every_stretch_of_a_plan_has_the_share():
    plan = plan_pairs(*shard_of("ordinary"), 61, (1,))
    stretches = plan[: len(plan) // 100 * 100, 4].reshape(-1, 100).mean(axis=1)
    assert np.abs(stretches - 0.5).max() <= 0.2


@pytest.mark.parametrize("shape", SHAPES)
def test_spans_are_not_empty_fit_and_stay_in_one_document(shape):
    sentences, documents = shard_of(shape)
    plan = plan_pairs(sentences, documents, 61, (1,))
    a_length, b_length = _lengths(plan)
    assert plan.dtype == np.int32
    assert min(a_length.min(), b_length.min()) >= 1
    assert (a_length + b_length).max() <= 61
    edges = sentences[documents]
    for start, end in (plan[:, :2].T, plan[:, 2:4].T):
        assert np.array_equal(np.searchsorted(edges, start, "right"), np.searchsorted(edges, end - 1, "right"))


@pytest.mark.parametrize("shape", SHAPES)
def test_label_0_goes_on_in_the_text_and_label_1_is_another_document(shape):
    sentences, documents = shard_of(shape)
    plan = plan_pairs(sentences, documents, 61, (1,))
    edges = sentences[documents]
    document_a, document_b = np.searchsorted(edges, plan[:, [0, 2]].T, "right")
    is_next = plan[:, 4] == 0
    assert np.array_equal(document_a == document_b, is_next)
    assert np.all(plan[is_next, 2] >= plan[is_next, 1])
    not_truncated = is_next & (sum(_lengths(plan)) < 61)
    assert not_truncated.any()
    assert np.array_equal(plan[not_truncated, 2], plan[not_truncated, 1])


def test_other_documents_are_drawn_evenly():
    sentences, documents = offsets(np.full(2000, 10)), offsets(np.full(20, 100))
    plan = plan_pairs(sentences, documents, 20, (1,), 1.0)
    own, other = plan[:, 0] // 1000, plan[:, 2] // 1000
    counts = np.zeros((20, 20))
    np.add.at(counts, (own, other), 1)
    assert counts.diagonal().sum() == 0
    assert counts.sum(axis=0) == pytest.approx(len(plan) / 20, rel=0.35)


def test_chunks_are_whole_sentences_divided_between_two_of_them():
    sentences, documents = offsets(np.full(1000, 10)), offsets(np.full(100, 10))
    plan = plan_pairs(sentences, documents, 1000, (1,), 0.0, 0.0)
    assert np.array_equal(plan[:, 0], np.arange(100) * 100)
    assert np.array_equal(plan[:, 3], np.arange(1, 101) * 100)
    assert set(plan[:, 1] % 100) == set(range(10, 100, 10))


@pytest.mark.parametrize("sentences_each, starts_inside", [(1, True), (10, False)])
def test_a_random_b_starts_inside_a_sentence_where_a_ends_inside_one(sentences_each, starts_inside):
    """Otherwise a B that begins with a whole sentence would reveal the label."""
    sentences, documents = offsets(np.full(1000, 10)), offsets(np.full(1000 // sentences_each, sentences_each))
    plan = plan_pairs(sentences, documents, 1000, (1,), 1.0, 0.0)
    a_ends_inside, b_starts_inside = plan[:, 1] % 10 > 0, plan[:, 2] % 10 > 0
    assert np.array_equal(a_ends_inside, b_starts_inside)
    assert np.mean(a_ends_inside) == 1 if starts_inside else np.mean(a_ends_inside) < 0.5


def test_after_a_random_b_the_unused_sentences_go_back():
    sentences, documents = offsets(np.full(1000, 10)), offsets(np.full(100, 10))
    plan = plan_pairs(sentences, documents, 1000, (1,), 1.0, 0.0)
    same_document = plan[1:, 0] // 100 == plan[:-1, 0] // 100
    assert same_document.mean() > 0.5
    assert np.array_equal(plan[1:][same_document, 0], plan[:-1][same_document, 1])


def test_without_truncation_every_token_is_in_exactly_one_pair():
    sentences, documents = offsets(np.full(10_000, 1)), offsets(np.full(10, 1000))
    plan = plan_pairs(sentences, documents, 9, (1,), 0.0)
    uses = np.zeros(10_000, int)
    for a_start, a_end, b_start, b_end, _ in plan:
        uses[a_start:a_end] += 1
        uses[b_start:b_end] += 1
    assert uses.max() == 1
    assert np.count_nonzero(uses == 0) <= 10, "only the last token of a document can be left alone"


def test_a_long_sentence_is_used_whole():
    plan = plan_pairs(offsets([1000]), offsets([1]), 25, (1,), 0.0, 0.0)
    assert np.array_equal(plan[:, 0], np.arange(40) * 25)
    assert np.array_equal(plan[:, 3], np.arange(1, 41) * 25)


def test_share_of_short_sequences():
    sentences, documents = offsets(np.full(200_000, 1)), offsets([200_000])
    a_length, b_length = _lengths(plan_pairs(sentences, documents, 11, (1,), 0.0, 0.3))
    counts = np.bincount(a_length + b_length, minlength=12) / len(a_length)
    assert counts[2:11] == pytest.approx(0.03, abs=0.005), "uniform from 2 to max_tokens"
    assert counts[11] == pytest.approx(0.73, abs=0.01)


def test_truncation_is_the_originals_loop():
    lengths = np.array([(a, b, limit) for a in range(1, 14) for b in range(1, 14) for limit in range(2, 12)])
    for a, b, limit in lengths:
        spans = _truncate(*np.array([[0], [a], [100], [100 + b]]), limit, np.random.default_rng(0))
        kept = [a, b]
        while sum(kept) > limit:
            kept[0 if kept[0] > kept[1] else 1] -= 1
        assert [int(spans[1][0] - spans[0][0]), int(spans[3][0] - spans[2][0])] == kept


def test_truncation_takes_from_front_and_back_alike():
    zeros = np.zeros(2000, int)
    a_start, a_end, _, _ = _truncate(zeros, zeros + 100, zeros + 200, zeros + 210, 50, np.random.default_rng(0))
    assert a_start.mean() == pytest.approx(30, abs=0.5)
    assert a_start.std() == pytest.approx(np.sqrt(60) / 2, rel=0.1)


def test_one_document_has_only_next_sentences():
    plan = plan_pairs(offsets(np.full(500, 7)), offsets([500]), 40, (1,))
    assert len(plan) > 50
    assert not plan[:, 4].any()


@pytest.mark.parametrize("sentences, documents", [([0], [0]), ([0, 1, 2], [0, 1, 2]), ([0, 0], [0, 1])])
def test_no_two_tokens_in_a_row_make_no_pair(sentences, documents):
    assert plan_pairs(np.array(sentences), np.array(documents), 40, (1,)).shape == (0, 5)


def test_entropy_decides_the_plan():
    shard = shard_of("ordinary")
    plan = plan_pairs(*shard, 61, (1, 2, 3))
    assert np.array_equal(plan, plan_pairs(*shard, 61, (1, 2, 3)))
    other = plan_pairs(*shard, 61, (1, 3, 3))
    size = min(len(plan), len(other))
    assert np.mean(np.all(plan[:size] == other[:size], axis=1)) < 0.02


def test_repeat_to_count_goes_round_evenly():
    plan = np.arange(50).reshape(10, 5)
    rng = np.random.default_rng(0)
    fewer, more = repeat_to_count(plan, 7, rng)[:, 0], repeat_to_count(plan, 25, rng)[:, 0]
    assert len(set(fewer)) == 7
    assert set(np.unique(more, return_counts=True)[1]) == {2, 3}
    assert list(fewer) != sorted(fewer)


@pytest.mark.parametrize("shape", SHAPES)
def test_half_of_the_pairs_are_swapped_and_otherwise_follow_each_other(shape):
    """Swapped back, they are the same pairs as without random next sentences."""
    shard = shard_of(shape)
    plan, in_order = plan_swapped(*shard, 61, (1,)), plan_pairs(*shard, 61, (1,), 0.0)
    is_swapped = plan[:, 4] == 1
    assert is_swapped.mean() == pytest.approx(0.5, abs=0.01)
    back = np.where(is_swapped[:, None], plan[:, [2, 3, 0, 1]], plan[:, :4])
    assert np.array_equal(back, in_order[:, :4])
    assert np.all(back[:, 1] <= back[:, 2])
    stretches = is_swapped[: len(plan) // 100 * 100].reshape(-1, 100).mean(axis=1)
    assert np.abs(stretches - 0.5).max() <= 0.1
    assert plan.dtype == np.int32 and not np.array_equal(
        is_swapped[:1000], plan_swapped(*shard, 61, (2,))[:1000, 4] == 1
    )
