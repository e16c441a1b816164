"""Dynamic masking by the original's rules, dependent on (seed, epoch, example) alone."""

import numpy as np
import pytest
import tensorflow as tf

from keras_bert.config.objectives import MaskingConfig
from keras_bert.data.batches.mask_units import _take_what_fits
from keras_bert.data.batches.masking import DynamicMasking, example_keys, random_bits
from keras_bert.text.vocabulary import Vocabulary

WORDS, PIECES = 60, 40
VOCABULARY = Vocabulary(
    ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    + [f"w{number}" for number in range(WORDS)]
    + [f"##p{number}" for number in range(PIECES)]
)
PAD, CLS, SEP, MASK = VOCABULARY.pad_id, VOCABULARY.cls_id, VOCABULARY.sep_id, VOCABULARY.mask_id
FIRST_PIECE = 5 + WORDS


def _batch(rows, sequence_length=40, seed=0, pieces_share=0.4):
    """[CLS] A [SEP] B [SEP] of random lengths; A and B may begin with a continuation."""
    rng = np.random.default_rng(seed)
    ids = np.full((rows, sequence_length), PAD, np.int32)
    lengths = rng.integers(5, sequence_length + 1, rows).astype(np.int32)
    for row, length in zip(ids, lengths):
        is_piece = rng.random(length) < pieces_share
        pieces, heads = rng.integers(FIRST_PIECE, len(VOCABULARY), length), rng.integers(5, FIRST_PIECE, length)
        row[:length] = np.where(is_piece, pieces, heads)
        row[0] = CLS
        row[rng.integers(2, length - 2) if length > 5 else 2] = row[length - 1] = SEP
    return ids, lengths


def _mask(ids, lengths, example_ids=None, epoch=0, seed=1, predictions=6, **config):
    example_ids = np.arange(len(ids)) if example_ids is None else example_ids
    masking = DynamicMasking(MaskingConfig(**config), predictions, VOCABULARY, seed)
    batch = masking(tf.constant(ids), tf.constant(lengths), tf.constant(example_ids, tf.int64), epoch)
    return {key: value.numpy() for key, value in batch.items()}


def _chosen(batch):
    return [tuple(row[weights > 0]) for row, weights in zip(batch["masked_lm_positions"], batch["masked_lm_weights"])]


def _oracle(row, length, scores, predictions, whole_word, share=0.15):
    """create_masked_lm_predictions in plain Python, with its shuffle replaced by the order of the scores."""
    words = []
    for position in range(length):
        if row[position] in (CLS, SEP):
            continue
        follows = words and words[-1][-1] == position - 1
        if whole_word and follows and row[position] >= FIRST_PIECE:
            words[-1].append(position)
        else:
            words.append([position])
    score_of = (lambda number: scores[number]) if whole_word else (lambda number: scores[words[number][0]])
    budget = min(predictions, max(1, int(round(length * share))))
    chosen = []
    for number in sorted(range(len(words)), key=score_of, reverse=True):
        if len(chosen) >= budget:
            break
        if len(chosen) + len(words[number]) <= budget:
            chosen.extend(words[number])
    return tuple(sorted(chosen))


@pytest.mark.parametrize("unit", ["token", "word"])
@pytest.mark.parametrize("pieces_share", [0.4, 0.9])
def test_choice_is_the_originals_given_the_same_scores(unit, pieces_share):
    ids, lengths = _batch(400, pieces_share=pieces_share)
    batch = _mask(ids, lengths, unit=unit)
    scores = random_bits(example_keys(1, 0, np.arange(400)), tf.range(40)[None, :]).numpy()
    expected = [_oracle(*arguments, 6, unit == "word") for arguments in zip(ids, lengths, scores)]
    assert _chosen(batch) == expected
    assert {len(row) for row in expected} >= {1, 2, 3, 4, 5, 6}


def test_greedy_choice_is_the_sequential_one():
    rng = np.random.default_rng(0)
    sizes, budgets = rng.integers(0, 9, (500, 30)), rng.integers(0, 25, 500)
    taken = _take_what_fits(tf.constant(sizes, tf.int32), tf.constant(budgets, tf.int32)).numpy()
    for row, left, result in zip(sizes, budgets, taken):
        for size, is_taken in zip(row, result):
            assert is_taken == (0 < size <= left)
            left -= size * is_taken


def test_words_are_masked_whole_also_at_the_beginning_of_a_segment():
    word, piece = 5, FIRST_PIECE
    row = [CLS, piece, piece, word, piece, SEP, piece, word, SEP]
    words = ({1, 2}, {3, 4}, {6}, {7})
    ids, lengths = np.array([row] * 200, np.int32), np.full(200, 9, np.int32)
    seen = set()
    for chosen in _chosen(_mask(ids, lengths, predictions=9, share=0.4, unit="word")):
        assert all(word <= set(chosen) or not word & set(chosen) for word in words)
        seen.update(chosen)
    assert seen == {1, 2, 3, 4, 6, 7}


@pytest.mark.parametrize("unit", ["token", "word", "ngram", "span"])
def test_number_of_predictions_counts_cls_and_sep_and_rounds_as_python(unit):
    lengths = np.arange(3, 41, dtype=np.int32)
    ids = np.full((38, 40), PAD, np.int32)
    for row, length in zip(ids, lengths):
        row[:length] = [CLS, *[7] * (length - 3), SEP, SEP]
    for share, predictions in ((0.15, 20), (0.15, 3), (0.25, 20)):
        batch = _mask(ids, lengths, predictions=predictions, share=share, unit=unit)
        wanted = [min(predictions, max(1, int(round(length * share))), length - 3) for length in lengths.tolist()]
        assert batch["masked_lm_weights"].sum(axis=1).tolist() == wanted


@pytest.mark.parametrize("unit", ["token", "word", "ngram", "span"])
def test_output_format(unit):
    ids, lengths = _batch(300)
    batch = _mask(ids, lengths, unit=unit)
    types = {key: value.dtype.name for key, value in batch.items()}
    assert types == {
        "input_word_ids": "int32",
        "masked_lm_positions": "int32",
        "masked_lm_ids": "int32",
        "masked_lm_weights": "float32",
    }
    restored = batch["input_word_ids"].copy()
    for row, positions, originals, weights in zip(
        restored, batch["masked_lm_positions"], batch["masked_lm_ids"], batch["masked_lm_weights"]
    ):
        count = int(weights.sum())
        assert np.all(weights[:count] == 1) and np.all(weights[count:] == 0)
        assert np.all(positions[count:] == 0) and np.all(originals[count:] == 0)
        assert np.all(np.diff(positions[:count]) > 0)
        assert not set(originals[:count]) & {PAD, CLS, SEP}
        row[positions[:count]] = originals[:count]
    assert np.array_equal(restored, ids), "a place that is not predicted was changed"


def test_a_row_with_nothing_to_predict_stays():
    ids = np.array([[CLS, SEP, SEP, PAD], [PAD] * 4], np.int32)
    for unit in ("token", "word", "ngram", "span"):
        batch = _mask(ids, np.array([3, 0], np.int32), predictions=2, unit=unit)
        assert np.array_equal(batch["input_word_ids"], ids)
        assert not batch["masked_lm_weights"].any()


def test_shares_of_mask_random_and_unchanged():
    ids = np.full((4000, 40), 7, np.int32)
    batch = _mask(ids, np.full(4000, 40, np.int32))
    replaced = np.take_along_axis(batch["input_word_ids"], batch["masked_lm_positions"], axis=1).ravel()
    # 7 and [MASK] are in the vocabulary that random tokens are drawn from.
    assert np.mean(replaced == MASK) == pytest.approx(0.8 + 0.1 / len(VOCABULARY), abs=0.01)
    assert np.mean(replaced == 7) == pytest.approx(0.1 + 0.1 / len(VOCABULARY), abs=0.008)
    others = np.bincount(replaced, minlength=len(VOCABULARY))
    others = np.delete(others, [7, MASK])
    assert others.min() > 0
    expected = others.mean()
    assert np.sum((others - expected) ** 2 / expected) < 150, "chi-square, 102 degrees of freedom"


def test_shares_of_the_config_are_used():
    ids, lengths = np.full((500, 40), 7, np.int32), np.full(500, 40, np.int32)
    only_masks = _mask(ids, lengths, mask_token_share=1.0, random_token_share=0.0)
    assert np.all(np.take_along_axis(only_masks["input_word_ids"], only_masks["masked_lm_positions"], axis=1) == MASK)
    unchanged = _mask(ids, lengths, mask_token_share=0.0, random_token_share=0.0)
    assert np.array_equal(unchanged["input_word_ids"], ids)


def test_every_position_is_as_likely():
    counts = np.zeros(40)
    batch = _mask(np.full((5000, 40), 7, np.int32), np.full(5000, 40, np.int32))
    np.add.at(counts, batch["masked_lm_positions"].ravel(), 1)
    assert np.sum((counts - 750) ** 2 / 750) < 75, "chi-square, 39 degrees of freedom"


@pytest.mark.parametrize("unit", ["token", "word", "ngram", "span"])
def test_a_mask_does_not_know_its_batch(unit):
    ids, lengths = _batch(64)
    whole = _mask(ids, lengths, unit=unit)
    order = np.random.default_rng(0).permutation(64)
    shuffled = _mask(ids[order], lengths[order], order, unit=unit)
    part = _mask(ids[10:13], lengths[10:13], np.arange(10, 13), unit=unit)
    for key, value in whole.items():
        assert np.array_equal(shuffled[key], value[order])
        assert np.array_equal(part[key], value[10:13])


def test_a_parallel_map_and_a_late_start_give_the_same_masks():
    ids, lengths = _batch(64)
    whole = _mask(ids, lengths, epoch=2, unit="word")["input_word_ids"]
    masking = DynamicMasking(MaskingConfig(unit="word"), 6, VOCABULARY, 1)
    for calls, start in ((1, 0), (4, 0), (4, 5)):
        dataset = tf.data.Dataset.from_tensor_slices((ids, lengths, np.arange(64))).skip(start * 8).batch(8)
        dataset = dataset.map(lambda *rows: masking(*rows, 2), num_parallel_calls=calls)
        masked = np.concatenate([batch["input_word_ids"] for batch in dataset.as_numpy_iterator()])
        assert np.array_equal(masked, whole[start * 8 :])


def _agreement(first, second):
    """The share of the positions chosen in the first that are also chosen in the second."""
    pairs = list(zip(_chosen(first), _chosen(second)))
    return sum(len(set(one) & set(other)) for one, other in pairs) / sum(len(one) for one, _ in pairs)


@pytest.mark.parametrize(
    "change",
    [
        {"epoch": 1},
        {"epoch": 256},
        {"seed": 2},
        {"seed": 257},
        {"seed": 2**31 + 1},
        {"example_ids": np.arange(1, 2001)},
        {"example_ids": np.arange(2000) + 2**32},
    ],
)
def test_neighbouring_keys_give_unrelated_masks(change):
    """Two masks that are unrelated agree in 6 of 40 places by chance."""
    ids, lengths = np.full((2000, 40), 7, np.int32), np.full(2000, 40, np.int32)
    assert _agreement(_mask(ids, lengths), _mask(ids, lengths, **change)) == pytest.approx(6 / 40, abs=0.012)


def test_random_bits_of_neighbouring_keys_do_not_correlate():
    def uniforms(seed=1, epoch=0, first_id=0, first_place=0):
        keys = example_keys(seed, epoch, tf.range(first_id, first_id + 500, dtype=tf.int64))
        return random_bits(keys, tf.range(first_place, first_place + 100)[None, :]).numpy().ravel() / 2.0**64

    base = uniforms()
    others = [
        uniforms(seed=2),
        uniforms(epoch=1),
        uniforms(first_id=1),
        uniforms(first_place=1),
        uniforms(seed=2, first_place=1),
        uniforms(epoch=1, first_id=1),
        uniforms(seed=0, epoch=1),
    ]
    assert np.histogram(base, 20, (0, 1))[0] == pytest.approx(2500, rel=0.1)
    for other in others:
        assert abs(np.corrcoef(base, other)[0, 1]) < 0.02, "more than four standard deviations"


def test_random_bits_are_splitmix64():
    """The first numbers of Java's SplittableRandom(seed 1234567), the published test vector of SplitMix64."""
    first = random_bits(tf.constant([1234567], tf.uint64), tf.range(3)[None, :]).numpy()[0].tolist()
    assert first == [6457827717110365317, 3203168211198807973, 9817491932198370423]


def test_random_tokens_are_drawn_from_the_vocabulary_or_from_the_unigram():
    """Chi-square of the replacements of 40,000 tokens, all of which are replaced."""
    ids, lengths = np.full((1000, 42), 7, np.int32), np.full(1000, 42, np.int32)
    counts = np.random.default_rng(0).integers(0, 50, len(VOCABULARY))
    counts[[PAD, CLS, SEP, MASK]] = 0
    config = MaskingConfig(share=1.0, mask_token_share=0.0, random_token_share=1.0, random_from="unigram")
    masking = DynamicMasking(config, 42, VOCABULARY, 1, counts)
    drawn = masking(tf.constant(ids), tf.constant(lengths), tf.range(1000, dtype=tf.int64))["input_word_ids"].numpy()
    found = np.bincount(drawn.ravel(), minlength=len(VOCABULARY))
    expected = counts / counts.sum() * found.sum()
    assert not found[expected == 0].any()
    there = expected > 0
    assert np.sum((found - expected)[there] ** 2 / expected[there]) < 150, "chi-square, about 98 degrees of freedom"
    with pytest.raises(ValueError, match="token_counts: needed for random_from: unigram"):
        DynamicMasking(config, 42, VOCABULARY, 1)
