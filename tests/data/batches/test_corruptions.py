"""The corruptions of MASS, BART and T5, and their statistics, compared with plain Python on the same random numbers."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from keras_bert.config.objectives import MaskingConfig
from keras_bert.data.batches.corruption import fragment, restored, sentinels, texts
from keras_bert.data.batches.masking import example_keys
from keras_bert.text.vocabulary import Vocabulary
from tests.support import plain_corruptions as plain

MASK, WORDS, WIDTH, ROWS = 4, 60, 46, 300
FULL_STOPS, SENTINELS = {10, 11}, list(range(99, 79, -1))
ENDS = np.isin(np.arange(WORDS), list(FULL_STOPS))
POISSON = restored.poisson(3.0)


@functools.cache
def batch(rows=ROWS, width=WIDTH, shortest=1):
    """Texts of all lengths with a seventh of the tokens full stops; and the keys of their examples."""
    rng = np.random.default_rng(7)
    lengths = rng.integers(shortest, width + 1, rows).astype(np.int32)
    ids = np.where(rng.random((rows, width)) < 1 / 7, rng.integers(10, 12, (rows, width)), 0)
    ids = np.where(ids == 0, rng.integers(12, WORDS, (rows, width)), ids)
    ids = np.where(np.arange(width) < lengths[:, None], ids, 0).astype(np.int32)
    return texts.Texts(tf.constant(ids), tf.constant(lengths)), example_keys(3, 1, tf.range(rows, dtype=tf.int64))


def listed(made):
    """The texts as lists, which end where the texts end."""
    rows = [row[:length].tolist() for row, length in zip(made.word_ids.numpy(), made.lengths.numpy())]
    assert (made.word_ids.numpy()[np.arange(made.width) >= made.lengths.numpy()[:, None]] == 0).all()
    return rows


def bits(keys, stream, width=WIDTH):
    return texts.stream_bits(keys, stream, width).numpy().tolist()


@pytest.mark.parametrize("share", [0.15, 0.3, 0.9])
@pytest.mark.parametrize("name", ["mask", "delete", "infill", "permute", "rotate"])
def test_barts_corruptions_are_plain_pythons(name, share):
    given, keys = batch()
    corrupt, expected, streams = {
        "mask": (
            lambda: restored.mask_tokens(given, keys, share, MASK),
            lambda text, bits: plain.mask_tokens(text, bits, share, MASK),
            [restored._MASKED],
        ),
        "delete": (
            lambda: restored.delete_tokens(given, keys, share),
            lambda text, bits: plain.delete_tokens(text, bits, share),
            [restored._DELETED],
        ),
        "infill": (
            lambda: restored.infill_spans(given, keys, share, 3.0, MASK),
            lambda text, *bits: plain.infill_spans(text, *bits, share, POISSON, MASK, WIDTH),
            [restored._SPAN_LENGTHS, restored._SPAN_PLACES],
        ),
        "permute": (
            lambda: restored.permute_sentences(given, keys, ENDS),
            lambda text, bits: plain.permute_sentences(text, bits, FULL_STOPS),
            [restored._SENTENCES],
        ),
        "rotate": (lambda: restored.rotate(given, keys), plain.rotate, [restored._ROTATION]),
    }[name]
    made = corrupt()
    assert made.width == given.width
    assert listed(made) == [expected(*row) for row in zip(listed(given), *(bits(keys, stream) for stream in streams))]
    if name == "permute":
        assert listed(made) != listed(given) and [*map(sorted, listed(made))] == [*map(sorted, listed(given))]


def test_empty_spans_are_left_out_of_texts_without_room():
    given, keys = batch(rows=1000, width=6)
    drawn = zip(listed(given), bits(keys, restored._SPAN_LENGTHS, 2), bits(keys, restored._SPAN_PLACES, 6))
    expected = [plain.infill_spans(*row, 0.3, POISSON, MASK, 6) for row in drawn]
    assert listed(restored.infill_spans(given, keys, 0.3, 3.0, MASK)) == expected
    longer = [len(new) - len(old) for new, old in zip(expected, listed(given))]
    assert longer.count(1) > 10 and any(new == old for new, old in zip(expected, listed(given)))


@pytest.mark.parametrize("share", [0.15, 0.5, 0.9])
def test_mass_fragments_are_plain_pythons(share):
    given, keys = batch()
    corrupted, fragments, starts = fragment.mask_fragment(given, keys, share, MaskingConfig(), MASK, WORDS)
    draws = zip(listed(given), bits(keys, fragment._START), bits(keys, fragment._REPLACEMENTS))
    expected = [plain.mask_fragment(*row, share, MASK, WORDS) for row in draws]
    assert [*zip(listed(corrupted), listed(fragments), starts.numpy())] == expected
    assert fragments.width == fragment.fragment_length(WIDTH, share)


@pytest.mark.parametrize(("share", "length", "most"), [(0.15, 3.0, 20), (0.5, 1.0, 20), (0.9, 3.0, 20), (0.5, 1.5, 5)])
def test_t5s_spans_are_its_codes(share, length, most):
    given, keys = batch()
    corrupted, targets = sentinels.replace_spans(given, keys, share, length, SENTINELS[:most])
    draws = zip(listed(given), bits(keys, sentinels._NOISE), bits(keys, sentinels._KEPT))
    expected = [plain.replace_spans(*row, share, length, SENTINELS[:most]) for row in draws]
    assert [*zip(listed(corrupted), listed(targets))] == expected
    assert targets.width == sentinels.targets_length(WIDTH, share, length, most)


def test_infilling_has_the_papers_share_and_poisson_lengths_with_empty_spans():
    """30% of the tokens, in spans of 0 to many tokens with a mean of 3, at every place alike (Lewis et al. 2020)."""
    given, keys = batch(rows=2000, width=200, shortest=200)
    made = restored.infill_spans(given, keys, 0.3, 3.0, MASK)
    rows = listed(made)
    masks = np.array([row.count(MASK) for row in rows])
    assert ({*zip(made.lengths.numpy() - masks)}) == {(140,)}  # 60 of 200 tokens are gone.
    drawn = [plain.span_lengths(60, numbers, POISSON)[:-1] for numbers in bits(keys, restored._SPAN_LENGTHS, 60)]
    assert [len(lengths) + 1 for lengths in drawn] == masks.tolist()
    shares = np.bincount(np.concatenate(drawn), minlength=8) / sum(map(len, drawn))
    # The span that exceeds the budget is cut and left out here; such spans are longer than others.
    assert abs(shares[:6] - np.array(POISSON[:6])).max() < 0.02 and shares[0] > 0.045
    first, last = np.mean([row[:20].count(MASK) for row in rows]), np.mean([row[-20:].count(MASK) for row in rows])
    assert abs(first - last) < 0.15 and abs(first - 20 * masks.sum() / made.lengths.numpy().sum()) < 0.1


def test_t5s_spans_have_the_papers_share_and_mean_length():
    """15% of the tokens in spans of 3 (Raffel et al. 2020, section 3.3.4): of 200 tokens, 30 in 10 spans."""
    given, keys = batch(rows=2000, width=200, shortest=200)
    corrupted, targets = sentinels.replace_spans(given, keys, 0.15, 3.0, SENTINELS)
    assert {*corrupted.lengths.numpy()} == {200 - 30 + 10} and {*targets.lengths.numpy()} == {30 + 11}
    lengths = [[len(span) for span in _spans(row)] for row in listed(targets)]
    # As likely as any other division of 30 into 10: a span of 1 has a probability of 9 / 29.
    assert abs(np.mean([length == 1 for row in lengths for length in row]) - 9 / 29) < 0.01


def _spans(targets):
    """The tokens after each sentinel."""
    spans = []
    for token in targets[:-1]:
        if token in SENTINELS:
            spans.append([])
        else:
            spans[-1].append(token)
    return spans


def test_mass_masks_at_a_uniform_place_80_10_10():
    given, keys = batch(rows=2000, width=200, shortest=200)
    corrupted, _, starts = fragment.mask_fragment(given, keys, 0.5, MaskingConfig(), MASK, WORDS)
    starts = starts.numpy()
    assert abs(starts.mean() - 50) < 1.5 and starts.min() == 0 and starts.max() == 100
    inside = np.arange(200) - starts[:, None]
    inside = (inside >= 0) & (inside < 100)
    new, old = corrupted.word_ids.numpy()[inside], given.word_ids.numpy()[inside]
    assert abs((new == MASK).mean() - 0.8 - 0.1 / WORDS) < 0.005 and abs((new == old).mean() - 0.1) < 0.01


def test_rotation_begins_anywhere_and_permutation_keeps_whole_sentences():
    given, keys = batch(rows=4000, width=40, shortest=40)
    ordered = texts.Texts(tf.tile(tf.range(40)[None, :], [4000, 1]), given.lengths)
    begins = restored.rotate(ordered, keys).word_ids.numpy()[:, 0]
    assert np.bincount(begins, minlength=40).min() > 60  # 100 are expected.
    stops = np.isin(np.arange(WORDS), [9, 19, 20, 29])  # 19 and 20 together end one sentence; 30 to 39 have no end.
    begins = restored.permute_sentences(ordered, keys, stops).word_ids.numpy()[:, 0]
    assert [*np.unique(begins)] == [0, 10, 21, 30] and np.bincount(begins).max() < 1100


def test_frames_hold_the_texts_between_special_tokens():
    rows, lengths = tf.constant([[1, 7, 8, 2, 0], [1, 7, 8, 9, 2], [1, 0, 0, 0, 0]]), tf.constant([4, 5, 1])
    inner = texts.unframed(rows, lengths, 1, 1)
    assert listed(inner) == [[7, 8], [7, 8, 9], []]
    whole = texts.framed(inner, (1,), (2,), 3)
    assert whole.word_ids.numpy().tolist() == [[1, 7, 8, 2, 3], [1, 7, 8, 9, 2], [3] * 5]
    assert texts.framed(inner, (), (2,), 3).word_ids.numpy().tolist() == [[7, 8, 2, 3], [7, 8, 9, 2], [3] * 4]


def test_sentences_end_with_full_stops_and_closed_quotations():
    pieces = [".", "##?", '!"', "..", "a.", '"', "。", ",", "##)"]
    vocabulary = Vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *pieces])
    ends = restored.sentence_ends(vocabulary)
    assert [vocabulary.tokens[index] for index in np.flatnonzero(ends)] == [".", "##?", '!"', "..", "。"]
