"""The source compared with its plans and shards: what rows and batches hold, and what is refused."""

import numpy as np
import pytest
import tensorflow as tf
from random_shards import (
    LENGTH,
    PREDICTIONS,
    DocumentWriter,
    batch_spec,
    examples,
    expected_spec,
    numbered_vocabulary,
    open_source,
    planned_examples,
    restored,
    take,
    write_shards,
)

from keras_bert.config.objectives import ObjectiveConfig
from keras_bert.core.errors import UserError
from keras_bert.data.batches.plans import Plans
from keras_bert.data.shards.shard_files import ShardSet
from keras_bert.data.shards.shard_format import TokenizedDocuments


def test_batches_have_static_shapes(make_source):
    assert batch_spec(make_source().epoch(0)) == expected_spec(8, PREDICTIONS, "next_sentence_labels")


def test_rows_are_the_planned_pairs(make_source, shards, vocabulary, plans_folder):
    source = make_source()
    planned = planned_examples(shards, vocabulary, plans_folder)
    assert source.examples_per_epoch == len(planned)
    assert sorted(examples(source.all_batches())) == sorted(planned)


@pytest.mark.parametrize("packing", ["document", "full", "filled"])
def test_packed_rows_are_the_planned_spans_each_with_its_separator(
    make_source, shards, vocabulary, plans_folder, packing
):
    objective = ObjectiveConfig(pair="none", packing=packing)
    source = make_source(objective=objective)
    plans = Plans(plans_folder, shards, LENGTH, objective, 3)
    planned = []
    for number, name in enumerate(shards.names):
        tokens, _, _ = shards.read(name)
        for row in np.load(plans.path(number, 0), allow_pickle=False)[:, :-1]:
            ids = [vocabulary.cls_id]
            for start, end in row.reshape(-1, 2):
                if end > start:
                    ids += [*tokens[start:end].tolist(), vocabulary.sep_id]
            planned.append(tuple(ids + [vocabulary.pad_id] * (LENGTH - len(ids))))
    batches = take(source.all_batches())
    assert all("next_sentence_labels" not in batch and not batch["input_type_ids"].any() for batch in batches)
    rows = [tuple(row) for batch in batches for row in restored(batch)[batch["example_weights"] > 0].tolist()]
    assert sorted(rows) == sorted(planned)
    filled = sum(batch["input_mask"][batch["example_weights"] > 0].sum() for batch in batches)
    assert source.padding_share == pytest.approx(1 - filled / (LENGTH * len(rows)))
    assert source.next_share is None
    separators = max(row.count(vocabulary.sep_id) for row in rows)
    assert separators == 1 if packing == "document" else separators > 1


def test_fewer_examples_than_a_batch(make_source):
    """Training is refused; evaluation pads the batch with rows of no weight."""
    source = make_source(batch_size=2048)
    assert source.examples_per_epoch < 2048
    with pytest.raises(UserError, match=rf"batch_size \(2048\).*Received: {source.examples_per_epoch}\."):
        _ = source.batches_per_epoch
    (batch,) = take(source.all_batches())
    assert batch["example_weights"].sum() == source.examples_per_epoch
    padding = batch["example_weights"] == 0
    assert not batch["masked_lm_weights"][padding].any()
    assert batch["masked_lm_weights"][~padding].any(axis=1).all()
    assert batch["input_mask"][padding].any(axis=1).all(), "attention over nothing is not a number"
    ids = [set(row) for row in batch["input_word_ids"][padding]]
    assert all(row == {0, 2} for row in ids)


def test_whole_words_are_those_that_the_shards_mark(tmp_path, vocabulary):
    """Here words are two tokens from each even place on, which nothing in the vocabulary shows."""
    with DocumentWriter(tmp_path / "shards", vocabulary) as writer:
        for first in range(5, 2000, 100):
            writer.add([range(first, first + 100)])
    shards = ShardSet.open(tmp_path / "shards", vocabulary)
    shards.meta["word_marks"] = True
    for name in shards.names:
        marks = np.arange(shards.read(name)[0].size, dtype=np.uint8) % 2
        marks.tofile(tmp_path / "shards" / f"{name}.continuations")
    objective = ObjectiveConfig(pair="none", packing="document")
    source = open_source(shards, vocabulary, tmp_path / "plans", objective=objective, unit="word")
    pairs = 0
    for batch in take(source.epoch(0)):
        for row, positions, ids, weights in zip(
            restored(batch), batch["masked_lm_positions"], batch["masked_lm_ids"], batch["masked_lm_weights"]
        ):
            chosen = set(positions[weights > 0].tolist())
            # Sentences are cut at an even number of tokens; heads are at odd ids because the first id is 5.
            for position, token in zip(positions[weights > 0], ids[weights > 0]):
                other = position + 1 if token % 2 else position - 1
                assert other in chosen and row[other] == token + (1 if token % 2 else -1)
                pairs += 1
    assert pairs > 100


def test_ids_of_more_than_16_bits(tmp_path):
    vocabulary = numbered_vocabulary(70_000)
    shards = write_shards(tmp_path / "shards", vocabulary, 20)
    assert shards.meta["token_dtype"] == "uint32"
    source = open_source(shards, vocabulary, tmp_path / "plans")
    rows = examples(source.all_batches())
    assert sorted(rows) == sorted(planned_examples(shards, vocabulary, tmp_path / "plans"))
    assert np.frombuffer(b"".join(rows), np.int32).max() > 2**16


def test_an_id_past_the_vocabulary_is_refused(tmp_path, vocabulary):
    """The file is changed after its checksums were verified, which happens when plans are made."""
    shards = write_shards(tmp_path / "shards", vocabulary, 20)
    source = open_source(shards, vocabulary, tmp_path / "plans")
    tokens = shards.read(shards.names[0])[0].copy()
    tokens[7] = len(vocabulary)
    tokens.tofile(shards.path(shards.names[0], "tokens"))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"needs ids below vocab_size \(3000\)"):
        take(source.epoch(0))


def test_another_vocabulary_is_refused(shards, tmp_path):
    with pytest.raises(UserError, match="needs the vocabulary it was made with"):
        open_source(shards, numbered_vocabulary(3001), tmp_path / "plans")


def test_one_document_needs_next_sentences_only(tmp_path, vocabulary):
    shards = write_shards(tmp_path / "shards", vocabulary, 1)
    with pytest.raises(UserError, match="two train documents.*Put blank lines.*objective.random_next_share=0"):
        open_source(shards, vocabulary, tmp_path / "plans")
    source = open_source(shards, vocabulary, tmp_path / "plans", objective=ObjectiveConfig(random_next_share=0.0))
    assert not any(batch["next_sentence_labels"].any() for batch in source.all_batches().as_numpy_iterator())


def test_documents_in_shards_of_their_own_need_larger_shards(tmp_path, vocabulary):
    """Advice to add text, or change its share, would only give more such shards."""
    shards = write_shards(tmp_path / "shards", vocabulary, 3, 1e-6)
    with pytest.raises(UserError, match="Received: 3 in 3 shards. Raise data.shard_megabytes, or set"):
        open_source(shards, vocabulary, tmp_path / "plans")


def test_no_pairs_are_refused(tmp_path, vocabulary):
    with DocumentWriter(tmp_path / "shards", vocabulary) as writer:
        writer.add([[5]])
        writer.add([[6]])
    shards = ShardSet.open(tmp_path / "shards")
    with pytest.raises(UserError, match="needs a document with at least two tokens"):
        open_source(shards, vocabulary, tmp_path / "plans")


def test_swapped_pairs_have_labels_and_segments(make_source):
    """Pairs come from one document, so one is enough; A, first in the row, is segment 0."""
    source = make_source(objective=ObjectiveConfig(pair="sop"))
    batches = take(source.epoch(0))
    labels = np.concatenate([batch["sentence_order_labels"] for batch in batches])
    assert labels.mean() == pytest.approx(0.5, abs=0.03) and source.next_share == pytest.approx(0.5, abs=0.03)
    assert all("next_sentence_labels" not in batch for batch in batches)
    assert all((batch["input_type_ids"].max(axis=1) == 1).all() for batch in batches)


def test_phrases_are_those_that_the_shards_mark(tmp_path, vocabulary):
    """Phrases of three tokens at every twentieth place use the whole budget, and only whole ones are masked."""
    with DocumentWriter(tmp_path / "shards", vocabulary, phrase_marks={"phrases": 1}) as writer:
        for first in range(5, 2000, 100):
            marks = np.zeros(100, np.uint8)
            marks[::20], marks[1::20], marks[2::20] = 1, 2, 2
            lengths = np.array([100], np.int32)
            tokens = np.arange(first, first + 100)
            writer.add_documents(TokenizedDocuments(tokens, lengths, np.array([1]), np.zeros(1), None, marks))
    shards = ShardSet.open(tmp_path / "shards", vocabulary)
    assert shards.meta["phrase_tokens"] == 20 * 15
    objective = ObjectiveConfig(pair="none", packing="document")
    source = open_source(shards, vocabulary, tmp_path / "plans", objective=objective, unit="phrase")
    whole = 0
    for batch in take(source.epoch(0)):
        for ids, weights in zip(batch["masked_lm_ids"], batch["masked_lm_weights"]):
            places = [(token - 5) % 20 for token in ids[weights > 0]]
            whole += sorted(places)[:3] == [0, 1, 2]
            assert {0, 1, 2} <= set(places) or not {0} & set(places), "a phrase that begins in the row is whole"
    assert whole > 10
    with pytest.raises(UserError, match="needs marks of phrases to mask phrases"):
        open_source(write_shards(tmp_path / "other", vocabulary, 5), vocabulary, tmp_path / "plans", unit="phrase")
