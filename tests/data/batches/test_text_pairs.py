"""Segment pairs planned in the graph, compared with plain Python; and batches of raw text."""

import functools
from bisect import bisect_left

import numpy as np
import pytest
import tensorflow as tf
from random_shards import LENGTH, restored, take
from raw_text import TEXTS, equal, text_source, text_tokenizer, write_texts

from keras_bert.config.objectives import MaskingConfig, ObjectiveConfig, PhaseConfig
from keras_bert.core.errors import UserError
from keras_bert.data.batches import text_batches
from keras_bert.data.batches.masking import example_keys
from keras_bert.data.batches.raw_lines import RawLines
from keras_bert.data.batches.text_batches import TextBatches
from keras_bert.data.batches.text_plans import pair_sentences
from keras_bert.text.sentencepiece_vocabulary import unigram_model
from keras_bert.text.t5_pieces import T5Tokenizer
from keras_bert.text.t5_vocabulary import T5Vocabulary

GOLDEN, MASK_64 = 0x9E3779B97F4A7C15, 2**64 - 1
SHAPES = {  # documents, sentences per document, tokens per sentence
    "ordinary": (60, (1, 30), (0, 20)),
    "single sentences": (200, (1, 2), (1, 60)),
    "long sentences": (40, (1, 6), (1, 300)),
    "one document": (1, (80, 81), (1, 20)),
}


def _mixed(bits):
    """SplitMix64's finaliser."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        bits = (bits ^ (bits >> shift)) * factor & MASK_64
    return bits ^ (bits >> 31)


def _kept(a, b, most):
    """Google's loop: the longer one loses a token, or B if they are equal, until both fit."""
    while a + b > most:
        a, b = (a - 1, b) if a > b else (a, b - 1)
    return a, b


def _pairs(texts, most, objective, key):
    """[(a_start, a_end, b_start, b_end, label)] of documents, each a list of its sentences' lengths."""
    bounds, firsts = [0], [0]
    for text in texts:
        for length in text:
            while length > 0:  # A longer sentence counts as several.
                bounds.append(bounds[-1] + min(length, most))
                length -= most
        if len(bounds) - 1 > firsts[-1]:
            firsts.append(len(bounds) - 1)
    others = len(firsts) - 2

    def draw(start, number):
        return _mixed((key + (start * 512 + number + 1) * GOLDEN) & MASK_64)

    def halves(start, number):
        bits = draw(start, number)
        return bits >> 32, bits & (2**32 - 1)

    def heads(start, number, tosses):
        """The heads among `tosses` coins, which are the bits of several draws from the highest on."""
        coins = [
            draw(start, number + word) >> bit & 1 for word in range(-(-2 * most // 64)) for bit in reversed(range(64))
        ]
        return sum(coins[:tosses])

    found = []
    for document, (first, last) in enumerate(zip(firsts, firsts[1:])):
        sentence, start = first, bounds[first]
        while bounds[last] - start >= 2:
            short, size = halves(start, 0)
            target = 2 + (size * (most - 1) >> 32) if short < round(objective.short_sequence_share * 2**32) else most
            label, place = halves(start, 1)
            is_random = objective.pair == "nsp" and others > 0 and label < round(objective.random_next_share * 2**32)
            stop = bisect_left(bounds, start + target, sentence + 1, last)
            end, inside = bounds[stop], stop == sentence + 1
            divided = sentence if inside else sentence + 1 + (place * (stop - sentence - 1) >> 32)
            middle = start + 1 + (place * (end - start - 1) >> 32) if inside else bounds[divided]
            b_start, b_end = middle, end
            if is_random:
                other = halves(start, 2)[1] * others >> 32
                other += other >= document
                which, offset = halves(start, 3)
                drawn = firsts[other] + (which * (firsts[other + 1] - firsts[other]) >> 32)
                length = bounds[drawn + 1] - bounds[drawn]
                b_start = bounds[drawn] + (min(1 + (offset * (length - 1) >> 32), length - 1) if inside else 0)
                wanted = max(target - (middle - start), 1)
                b_end = bounds[bisect_left(bounds, b_start + wanted, drawn + 1, firsts[other + 1])]
            a, b = _kept(middle - start, b_end - b_start, most)
            a_start = start + heads(start, 5, middle - start - a)
            b_start += heads(start, 5 + -(-2 * most // 64), b_end - b_start - b)
            pair = (a_start, a_start + a, b_start, b_start + b)
            if objective.pair == "sop":
                is_random = draw(start, 4) >> 32 < 2**31
                pair = (*pair[2:], *pair[:2]) if is_random else pair
            found.append((*pair, int(is_random)))
            goes_back = objective.pair == "nsp" and is_random and not (inside and stop == last)
            sentence, start = (divided, middle) if goes_back else (stop, end)
    return found


@pytest.mark.parametrize("settings", [{}, {"random_next_share": 1.0, "short_sequence_share": 0.5}, {"pair": "sop"}])
@pytest.mark.parametrize("shape", SHAPES)
def test_pairs_are_those_of_plain_python(shape, settings):
    rng = np.random.default_rng(1)
    count, sentences, tokens = SHAPES[shape]
    texts = [rng.integers(*tokens, rng.integers(*sentences)).tolist() for _ in range(count)]
    objective = ObjectiveConfig(**settings)
    key = example_keys(7, 3, tf.constant([11], tf.int64))
    expected = _pairs(texts, 61, objective, int(key[0]))
    lengths = tf.constant([length for text in texts for length in text], tf.int64)
    numbers = tf.constant([number * 3 for number, text in enumerate(texts) for _ in text], tf.int64)

    @tf.function(autograph=False)
    def planned_pairs(lengths, numbers):
        return pair_sentences(lengths, numbers, 61, objective, key)

    planned = planned_pairs(lengths, numbers)
    assert np.concatenate([planned[0], planned[1][:, None]], axis=1).tolist() == list(map(list, expected))
    labels = planned[1].numpy()
    if shape == "one document" and objective.pair == "nsp":
        assert not labels.any()
    elif len(labels) > 200:
        share = objective.random_next_share if objective.pair == "nsp" else 0.5
        assert labels.mean() == pytest.approx(share, abs=0.12)


def test_no_sentence_no_pair():
    for lengths in ([], [0, 0], [1]):
        lengths = tf.constant(lengths, tf.int64)
        key = example_keys(0, 0, tf.constant([0], tf.int64))
        spans, labels = pair_sentences(lengths, tf.zeros_like(lengths), 29, ObjectiveConfig(), key)
        assert spans.shape == (0, 4) and labels.shape == (0,)


@pytest.fixture(scope="module")
def make_source(tmp_path_factory):
    folder = write_texts(tmp_path_factory.mktemp("text"))
    return functools.cache(lambda pair="nsp", names=(folder,), **options: text_source(names, pair, **options))


def _rows(batches):
    """(ids before masking, segments, label) of the real rows."""
    rows = []
    for batch in batches:
        label = next(batch[name] for name in ("next_sentence_labels", "sentence_order_labels") if name in batch)
        columns = (restored(batch), batch["input_type_ids"], label)
        is_real = batch["example_weights"] > 0
        rows += [(tuple(ids), tuple(types), int(one)) for ids, types, one in zip(*(each[is_real] for each in columns))]
    return rows


@pytest.mark.slow
@pytest.mark.parametrize("pair", ["nsp", "sop"])
def test_rows_are_two_segments_of_the_text(make_source, pair):
    source = make_source(pair)
    rows, vocabulary = _rows(take(source.all_batches())), text_tokenizer().vocabulary
    tokenized = [" ".join(map(str, ids)) for file in TEXTS for ids in text_tokenizer()(file).numpy()]
    labels = []
    for ids, segments, label in rows:
        first, second = (index for index, token in enumerate(ids) if token == vocabulary.sep_id)
        assert ids[0] == vocabulary.cls_id and not any(ids[second + 1 :])
        assert segments == tuple(int(first < place <= second) for place in range(LENGTH))
        a, b = (" ".join(map(str, part)) for part in (ids[1:first], ids[first + 1 : second]))
        assert a and b
        if label:
            a, b = b, a
        is_in_one = any(a in text and b in text[text.index(a) :] for text in tokenized)
        assert is_in_one or (pair == "nsp" and label)
        labels.append(label)
    assert np.mean(labels) == pytest.approx(0.5, abs=0.1)
    assert source.next_share == pytest.approx(1 - np.mean(labels), abs=0.1)


@pytest.mark.slow
def test_segments_of_a_vocabulary_without_cls(tmp_path):
    """As T5's: the second text's first token must not be in the first segment; related pairs need a [CLS]."""
    letters = [(f"▁{letter}", -1.0) for letter in "abcdefgh"]
    special = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
    tokenizer = T5Tokenizer(T5Vocabulary(unigram_model([*special, *letters], b"", unknown=2)))
    (tmp_path / "a.txt").write_text("a b c d e f g h\nd e f\ng h a b\n\n" * 40, encoding="utf-8")
    lines = RawLines([str(tmp_path / "a.txt")], 0.0)
    phase = PhaseConfig(sequence_length=LENGTH, batch_size=8, max_predictions_per_seq=2)
    source = TextBatches(lines, tokenizer, phase, ObjectiveConfig(pair="sop"), MaskingConfig(), 3)
    batch = take(source.epoch(0).take(1))[0]
    for ids, segments, length in zip(restored(batch), batch["input_type_ids"], batch["input_mask"].sum(axis=1)):
        first = ids.tolist().index(tokenizer.vocabulary.sep_id) + 1
        assert segments.tolist() == [0] * first + [1] * (length - first) + [0] * (LENGTH - length)
    with pytest.raises(UserError, match="objective.pair: related needs rows that begin with .CLS."):
        TextBatches(lines, tokenizer, phase, ObjectiveConfig(pair="related"), MaskingConfig(), 3)


@pytest.mark.slow
def test_a_start_anywhere_gives_the_pairs_of_the_whole_stream(make_source):
    source = make_source(batch_size=64)
    whole = take(source.epoch(0).take(20))
    assert 20 * 64 > 1.2 * len(_rows(take(source.all_batches()))), "the stream goes on in a second epoch"
    part = take(source.epoch(0, 18).take(2))
    assert all(equal(one, other) for one, other in zip(part, whole[18:], strict=True))
    assert _rows(whole[:2]) != _rows(take(make_source(batch_size=64, seed=4).epoch(0).take(2)))


@pytest.mark.slow
@pytest.mark.parametrize("refresh", ["epoch", "never"])
def test_epochs_have_other_pairs_if_they_are_refreshed(make_source, refresh):
    source = make_source(batch_size=1, refresh=refresh)
    blocks = [list(source._shuffled_rows(tf.constant(epoch, tf.int64)).as_numpy_iterator()) for epoch in (0, 1)]
    contents = [sorted(tuple(row) for block in epoch for row in block[0].tolist()) for epoch in blocks]
    assert blocks[0][0][0].tolist() != blocks[1][0][0].tolist()
    assert (contents[0] == contents[1]) == (refresh == "never")


@pytest.mark.slow
def test_documents_go_on_over_chunks_that_are_read_together(make_source, tmp_path, monkeypatch):
    """If parts of one document counted as two, pairs would get wrong labels."""
    sentence = "The cat sees the dog in the garden."
    path = tmp_path / "long.txt"
    path.write_text("\n".join([sentence] * 1500) + "\n\n" + "\n".join([sentence] * 1500), encoding="utf-8")
    lines = RawLines([str(path)], 0.001)
    numbers = [np.unique(documents).tolist() for _, _, documents in lines.chunks(False).as_numpy_iterator()]
    assert len({number for part in numbers for number in part}) == 2 and len(numbers) == 6
    assert make_source(names=(str(path),)).next_share < 1
    monkeypatch.setattr(text_batches, "_CHUNKS_PAIRED_AT_ONCE", 1)
    monkeypatch.setattr(text_batches, "_SMALLEST_SHARE", 1.0)
    path.write_text("\n".join([sentence] * 1500), encoding="utf-8")
    with pytest.raises(UserError, match="needs two documents for training that are read together"):
        make_source("nsp", (str(path),))
