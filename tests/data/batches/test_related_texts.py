"""Related and unrelated pairs compared with plain Python on the same random numbers; and batches of both sources."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
from random_shards import LENGTH, DocumentWriter, restored, take
from raw_text import TEXTS, equal, text_tokenizer, write_texts
from shortened import shortened

from keras_bert.config.objectives import MaskingConfig, ObjectiveConfig, PhaseConfig
from keras_bert.data.batches import related_texts
from keras_bert.data.batches.corruption.texts import stream_bits
from keras_bert.data.batches.masking import example_keys
from keras_bert.data.batches.packing import PaddedRows
from keras_bert.data.batches.plans import plan_related
from keras_bert.data.batches.raw_lines import RawLines
from keras_bert.data.batches.shard_batches import ShardBatches
from keras_bert.data.batches.text_batches import TextBatches
from keras_bert.data.batches.text_plans import relate_sentences
from keras_bert.data.shards.shard_files import ShardSet
from keras_bert.models.term import RUNNING_TEXT
from keras_bert.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from tests.support import plain_related_texts as plain

SEQ, ROWS, SEED, EPOCH = 40, 600, 5, 2
MOST = (SEQ - 3) // 2
VOCABULARY = Vocabulary([*SPECIAL_TOKENS, ".", ",", *(f"w{number}" for number in range(20)), "##a", "##b", "##c"])
OBJECTIVE = ObjectiveConfig(pair="related", match=True)


def has_letters(word):
    return VOCABULARY.tokens[word[0]] not in ".,"


def sentence(rng, begins_inside):
    """Words of one to three pieces, at most `MOST` in all; a divided sentence may begin inside a word."""
    words, most = [], rng.integers(1, MOST + 1)
    while True:
        head = rng.integers(27, 30) if begins_inside and not words else rng.integers(5, 27)
        word = (int(head), *map(int, rng.integers(27, 30, rng.choice([0, 0, 1, 2]))))
        if sum(map(len, [*words, word])) > most:
            return words or [(5,)]
        words.append(word)


@pytest.fixture(scope="module")
def given():
    """(both sentences of every row, labels, `PaddedRows`); the last row is [CLS] alone."""
    rng = np.random.default_rng(0)
    pairs = [[sentence(rng, rng.random() < 0.2) for _ in range(2)] for _ in range(ROWS)]
    ids, segments, lengths = np.zeros((ROWS + 1, SEQ), "int32"), np.zeros((ROWS + 1, SEQ), "int32"), []
    for row, (first, second) in enumerate(pairs):
        parts = [
            [VOCABULARY.cls_id, *itertools.chain(*first), VOCABULARY.sep_id],
            [*itertools.chain(*second), VOCABULARY.sep_id],
        ]
        lengths.append(sum(map(len, parts)))
        ids[row, : lengths[-1]], segments[row, len(parts[0]) : lengths[-1]] = sum(parts, []), 1
    ids[ROWS, 0] = VOCABULARY.cls_id
    sources = np.arange(ids.size).reshape(ids.shape)
    rows = PaddedRows(*map(tf.constant, (ids, np.array([*lengths, 1], "int32"), segments, sources)))
    return pairs, rng.integers(0, 2, ROWS + 1).astype("int32"), rows


def expected_rows(pairs, labels):
    """[(ids, segments, shared)] of each row."""
    keys = example_keys(SEED, EPOCH, tf.range(ROWS, dtype=tf.int64))
    streams = [related_texts._SINGLE, related_texts._DROPPED, related_texts._ORDER]
    streams += [stream + more for stream in related_texts._SWAPS for more in (0, 1)]
    widths = [14, *[MOST] * 6]
    bits = [stream_bits(keys, stream, width).numpy().tolist() for stream, width in zip(streams, widths)]
    rows = []
    for (first, second), label, *numbers in zip(pairs, labels, *bits):
        texts = plain.pair(first, second, label, has_letters, MOST, *numbers)
        ids, segments, shared = [VOCABULARY.cls_id], [0], [-1]
        for segment, (text, other) in enumerate([texts, texts[::-1]]):
            for word in text:
                ids += word
                shared += [int(word in other) if has_letters(word) else -1] * len(word)
            ids, shared = [*ids, VOCABULARY.sep_id], [*shared, -1]
            segments += [segment] * (len(ids) - len(segments))
        rows.append((ids, segments, shared))
    return rows


@pytest.fixture(scope="module")
def made(given):
    maker = related_texts.PairMaker(VOCABULARY, SEED)
    _, labels, rows = given
    call = tf.function(lambda *values: maker(*values), autograph=False)
    (ids, lengths, segments, sources), shared = call(
        rows, tf.constant(labels), tf.range(ROWS + 1, dtype=tf.int64), tf.constant(EPOCH)
    )
    return [values.numpy() for values in (ids, segments, shared, lengths, sources)]


def test_pairs_are_plain_pythons(given, made):
    *values, lengths, sources = made
    filled = [[row[:length].tolist() for row, length in zip(rows, lengths)] for rows in values]
    for row, (one, other) in enumerate(zip(zip(*filled), expected_rows(*given[:2]))):
        assert one == other, (row, given[1][row])
    ids, _, shared = values
    assert filled[0][ROWS] == [VOCABULARY.cls_id]  # Only fills up the batch.
    is_filled = np.arange(SEQ) < lengths[:, None]
    assert not ids[~is_filled].any() and (shared[~is_filled] == -1).all()
    # Marks of words and phrases are at the tokens' old places.
    assert np.array_equal(given[2].word_ids.numpy().ravel()[sources][is_filled], ids[is_filled])


def test_lengths_hardly_tell_the_label_and_unrelated_texts_share_words(given, made):
    _, segments, shared, lengths, _ = (values[:ROWS] for values in made)
    labels = given[1][:ROWS]
    long = np.array([sum(map(len, first)) > 10 for first, _ in given[0]])
    for values in (lengths, segments.sum(axis=1)):
        related, unrelated = (values[long & (labels == label)][:, None] for label in (0, 1))
        larger = (related > unrelated.T).mean() + (related == unrelated.T).mean() / 2
        assert abs(larger - 0.5) < 0.1
    related, unrelated = (
        (shared[labels == label] == 1).sum() / (shared[labels == label] >= 0).sum() for label in (0, 1)
    )
    assert 0.3 < unrelated < 0.6 and 0.75 < related < 0.95


def documents(rng, count=60):
    return [rng.integers(1, 30, rng.integers(1, 9)).tolist() for _ in range(count)]


def require_plan(spans, texts, max_tokens):
    """Every long enough sentence comes once, cut to half a row, beside another of its document."""
    bounds, found = [0], []
    for number, text in enumerate(texts):
        for length in text:
            while length > 0:
                part = min(length, max_tokens // 2)
                found += (
                    [(bounds[-1], bounds[-1] + part, number)] if part >= min(12, -(-(max_tokens // 2) // 2)) else []
                )
                bounds.append(bounds[-1] + part)
                length -= part
    document = {(start, end): number for start, end, number in found}
    counts = np.bincount([number for *_, number in found])
    assert [tuple(row[:2]) for row in spans.tolist()] == [tuple(row[:2]) for row in found if counts[row[2]] > 1]
    for row in spans.tolist():
        assert document[tuple(row[:2])] == document[tuple(row[2:4])] and row[:2] != row[2:4]


@pytest.mark.parametrize("max_tokens", [29, 60])
def test_plans_put_each_sentence_beside_another_of_its_document(max_tokens):
    """With NumPy for shards, in the graph for raw text; closer in length than random pairs; half are unrelated."""
    rng = np.random.default_rng(1)
    texts = documents(rng)
    lengths = [length for text in texts for length in text]
    sentences, firsts = np.cumsum([0, *lengths]), np.cumsum([0, *map(len, texts)])
    plan = plan_related(sentences, firsts, max_tokens, (1, 2))
    require_plan(plan[:, :4], texts, max_tokens)
    assert abs(plan[:, 4].mean() - 0.5) < 0.05
    numbers = np.repeat(np.arange(len(texts)), [*map(len, texts)])
    key = example_keys(7, 3, tf.constant([11], tf.int64))
    spans, labels = relate_sentences(tf.constant(lengths, tf.int64), tf.constant(numbers), max_tokens, OBJECTIVE, key)
    require_plan(spans.numpy(), texts, max_tokens)
    assert abs(labels.numpy().mean() - 0.5) < 0.15
    for planned in (plan, spans.numpy()):
        own, other = planned[:, 1] - planned[:, 0], planned[:, 3] - planned[:, 2]
        assert np.abs(own - other).mean() < 0.8 * np.abs(own[:, None] - own).mean()


@pytest.mark.parametrize("max_tokens", [29, 60])
def test_the_other_rows_hold_what_follows_in_the_document(max_tokens):
    """Given a share of pairs, they hold as many tokens as fit or are left; the pairs stay the same."""
    rng = np.random.default_rng(1)
    texts = documents(rng)
    lengths = np.array([length for text in texts for length in text])
    sentences, firsts = np.cumsum([0, *lengths]), np.cumsum([0, *map(len, texts)])
    numbers = np.repeat(np.arange(len(texts)), [*map(len, texts)])
    key = example_keys(7, 3, tf.constant([11], tf.int64))

    def in_graph(share):
        objective = ObjectiveConfig(pair="related", match=True, related_share=share)
        spans, labels = relate_sentences(tf.constant(lengths), tf.constant(numbers), max_tokens, objective, key)
        return np.column_stack([spans, labels])

    document_ends = sentences[firsts]
    for plan in (lambda share: plan_related(sentences, firsts, max_tokens, (1, 2), share), in_graph):
        pairs, rows = plan(1.0), plan(0.6)
        runs_on = rows[:, 4] == RUNNING_TEXT
        np.testing.assert_array_equal(rows[~runs_on], pairs[~runs_on])
        assert abs(runs_on.mean() - 0.4) < 0.15
        start, *ends, _ = rows[runs_on].T
        np.testing.assert_array_equal(start, pairs[runs_on, 0])
        end = document_ends[np.searchsorted(document_ends, start, side="right")]
        np.testing.assert_array_equal(ends, [np.minimum(start + max_tokens, end)] * 3)


def joined(ids):
    return "".join(f" {token} " for token in ids)


@pytest.mark.parametrize("share", shortened([0.5, 1.0]))
@pytest.mark.parametrize("kind", shortened(["shards", "raw text"]))
def test_batches_hold_the_pairs_and_start_anywhere(kind, share, tmp_path):
    objective = ObjectiveConfig(pair="related", match=True, related_share=share)
    vocabulary, masking = text_tokenizer().vocabulary, MaskingConfig(unit="word")
    phase = PhaseConfig(sequence_length=LENGTH, batch_size=8, max_predictions_per_seq=5)
    sentences = [[line + "." for line in text.split(".")] for text in itertools.chain(*TEXTS)]
    texts = [joined(text_tokenizer()(lines).flat_values.numpy()) for lines in sentences]
    if kind == "shards":
        with DocumentWriter(str(tmp_path / "shards"), vocabulary, 0.005) as writer:
            for lines in sentences:
                writer.add(list(text_tokenizer()(lines).numpy()))
        shards = ShardSet.open(str(tmp_path / "shards"), vocabulary)
        source = ShardBatches(shards, vocabulary, phase, objective, masking, 3, str(tmp_path / "plans"), 3)
    else:
        lines = RawLines([write_texts(tmp_path)], 0.1)
        source = TextBatches(lines, text_tokenizer(), phase, objective, masking, 3)
    batches = take(source.epoch(0).take(8))
    assert source.next_share == pytest.approx(share / 2, abs=0.1)
    for batch, again in zip(batches[5:], take(source.epoch(0, 5).take(3)), strict=True):
        assert equal(batch, again)
    for batch in batches:
        for ids, segments, label, weights in zip(
            restored(batch), batch["input_type_ids"], batch["match_labels"], batch["match_weights"]
        ):
            tokens = [vocabulary.tokens[token] for token in ids]
            text = [" ".join(np.array(tokens)[(segments == n) & (ids != 0)]).replace(" ##", "") for n in (0, 1)]
            words = [set(part.split()) for part in text]
            for place in np.flatnonzero(weights):
                if not tokens[place].startswith("##") and not tokens[place + 1].startswith("##"):
                    assert label[place] == (tokens[place] in words[1 - segments[place]])
        runs_on = batch["related_labels"] == RUNNING_TEXT
        assert not batch["input_type_ids"][runs_on].any() and not batch["match_weights"][runs_on].any()
        assert (batch["masked_lm_weights"].sum(axis=1) > 0).all()
        for ids in restored(batch)[runs_on]:
            assert any(joined(ids[1 : np.flatnonzero(ids)[-1]]) in text for text in texts)
    labels = {label for batch in batches for label in batch["related_labels"].tolist()}
    assert labels == ({0, 1} if share == 1 else {0, 1, RUNNING_TEXT})
