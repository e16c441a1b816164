"""The reader against the plans and shards that it reads: content, order, restart, remainders and refusals."""

import os
import threading

import numpy as np
import pytest
import tensorflow as tf

from keras_bert.config.pretraining import MaskingConfig, ObjectiveConfig, PhaseConfig
from keras_bert.data.plans import Plans
from keras_bert.data.reader import ShardReader
from keras_bert.data.shards import ShardSet, ShardWriter
from keras_bert.errors import UserError
from keras_bert.text.vocabulary import Vocabulary

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LENGTH, PREDICTIONS = 32, 5


def _vocabulary(size):
    return Vocabulary(SPECIAL + [f"w{number}" for number in range(size - 5)])


def _write_shards(folder, vocabulary, documents, shard_megabytes=0.005):
    """Shards of unequal sizes; documents are of random tokens, so hardly any two rows are alike."""
    rng = np.random.default_rng(0)
    with ShardWriter(folder, vocabulary, True, shard_megabytes) as writer:
        for _ in range(documents):
            lengths = rng.integers(1, 20, rng.integers(1, 60))
            writer.add([rng.integers(5, len(vocabulary), length) for length in lengths])
    return ShardSet.open(folder, vocabulary)


@pytest.fixture(scope="module")
def vocabulary():
    return _vocabulary(3000)


@pytest.fixture(scope="module")
def shards(tmp_path_factory, vocabulary):
    shards = _write_shards(tmp_path_factory.mktemp("data") / "shards", vocabulary, 60)
    assert len(shards.names) > 6
    return shards


@pytest.fixture(scope="module")
def plans_folder(tmp_path_factory):
    return tmp_path_factory.mktemp("plans")


@pytest.fixture(scope="module")
def make_reader(shards, vocabulary, plans_folder):
    def make(**options):
        return _reader(shards, vocabulary, plans_folder, **options)

    return make


def _reader(
    shards, vocabulary, folder, batch_size=8, seed=3, shards_per_group=3, objective=ObjectiveConfig(), **masking
):
    phase = PhaseConfig(sequence_length=LENGTH, batch_size=batch_size, max_predictions_per_seq=PREDICTIONS)
    return ShardReader(shards, vocabulary, phase, objective, MaskingConfig(**masking), seed, folder, shards_per_group)


def _take(dataset):
    return list(dataset.as_numpy_iterator())


def _restored(batch):
    """The ids before masking."""
    ids = batch["input_word_ids"].copy()
    rows = np.arange(len(ids))[:, None]
    is_prediction = batch["masked_lm_weights"] > 0
    positions = np.where(is_prediction, batch["masked_lm_positions"], 0)
    ids[rows, positions] = np.where(is_prediction, batch["masked_lm_ids"], ids[:, :1])
    return ids


def _examples(batches, masked=False):
    """Every real row of the batches as bytes: ids, segments, mask and label, before or after masking."""
    rows = []
    for batch in _take(batches) if isinstance(batches, tf.data.Dataset) else batches:
        ids = batch["input_word_ids"] if masked else _restored(batch)
        columns = [ids, batch["input_type_ids"], batch["input_mask"], batch["next_sentence_labels"][:, None]]
        rows += [row.tobytes() for row in np.concatenate(columns, axis=1)[batch["example_weights"] > 0]]
    return rows


def _planned_examples(shards, vocabulary, plans_folder, epoch=0, seed=3):
    """The same rows, put together in plain Python from the plan files and the shards."""
    plans = Plans(plans_folder, shards, LENGTH, ObjectiveConfig(), seed)
    plans.prepare(epoch)
    rows = []
    for number, name in enumerate(shards.names):
        tokens, _, _ = shards.read(name)
        for a_start, a_end, b_start, b_end, label in np.load(plans.path(number, epoch), allow_pickle=False):
            a, b = tokens[a_start:a_end].tolist(), tokens[b_start:b_end].tolist()
            ids = [vocabulary.cls_id, *a, vocabulary.sep_id, *b, vocabulary.sep_id]
            types = [0] * (len(a) + 2) + [1] * (len(b) + 1)
            padding = [0] * (LENGTH - len(ids))
            row = [*ids, *padding, *types, *padding, *[1] * len(ids), *padding, label]
            rows.append(np.array(row, np.int32).tobytes())
    return rows


def test_batches_have_static_shapes(make_reader):
    spec = make_reader().epoch(0).element_spec
    assert {key: (tuple(value.shape), value.dtype.name) for key, value in spec.items()} == {
        "input_word_ids": ((8, LENGTH), "int32"),
        "input_mask": ((8, LENGTH), "int32"),
        "input_type_ids": ((8, LENGTH), "int32"),
        "masked_lm_positions": ((8, PREDICTIONS), "int32"),
        "masked_lm_ids": ((8, PREDICTIONS), "int32"),
        "masked_lm_weights": ((8, PREDICTIONS), "float32"),
        "next_sentence_labels": ((8,), "int32"),
        "example_weights": ((8,), "float32"),
    }


def test_rows_are_the_planned_pairs(make_reader, shards, vocabulary, plans_folder):
    reader = make_reader()
    planned = _planned_examples(shards, vocabulary, plans_folder)
    assert reader.examples_per_epoch == len(planned)
    assert sorted(_examples(reader.all_batches())) == sorted(planned)


@pytest.mark.parametrize("packing", ["document", "full"])
def test_packed_rows_are_the_planned_spans_each_with_its_separator(
    make_reader, shards, vocabulary, plans_folder, packing
):
    objective = ObjectiveConfig(pair="none", packing=packing)
    reader = make_reader(objective=objective)
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
    batches = _take(reader.all_batches())
    assert all("next_sentence_labels" not in batch and not batch["input_type_ids"].any() for batch in batches)
    rows = [
        tuple(row) for batch in batches for row in _restored(batch)[batch["example_weights"] > 0].tolist()
    ]  # fmt: skip
    assert sorted(rows) == sorted(planned)
    filled = sum(batch["input_mask"][batch["example_weights"] > 0].sum() for batch in batches)
    assert reader.padding_share == pytest.approx(1 - filled / (LENGTH * len(rows)))
    assert reader.next_share is None
    separators = max(row.count(vocabulary.sep_id) for row in rows)
    assert separators == 1 if packing == "document" else separators > 1


@pytest.mark.parametrize("epoch", [0, 1])
def test_an_epoch_is_every_planned_pair_once_but_for_remainders(make_reader, shards, vocabulary, plans_folder, epoch):
    reader = make_reader()
    batches = _take(reader.epoch(epoch))
    assert len(batches) == reader.batches_per_epoch == len(reader.epoch(epoch))
    left = _planned_examples(shards, vocabulary, plans_folder, epoch)
    groups = -(-len(shards.names) // 3)
    for row in _examples(batches):
        left.remove(row)
    assert 0 < len(left) <= groups * 7
    assert all(batch["example_weights"].all() for batch in batches)


def test_epochs_have_other_pairs_order_and_remainders(make_reader):
    reader = make_reader()
    first, second = (_examples(reader.epoch(epoch)) for epoch in (1, 2))
    assert len(first) == len(second)
    assert len(set(first) & set(second)) < len(first) / 4


@pytest.mark.parametrize("whole_word", [False, True])
def test_a_start_anywhere_gives_the_batches_of_the_whole_epoch(make_reader, whole_word):
    reader = make_reader(whole_word=whole_word)
    whole = _take(reader.epoch(1))
    for first in range(0, len(whole) + 1, 13):
        part = _take(reader.epoch(1, first_batch=first))
        assert len(part) == len(whole) - first
        for one, other in zip(part, whole[first:]):
            assert all(np.array_equal(one[key], other[key]) for key in one)


def test_groups_before_the_start_are_not_read(tmp_path, vocabulary):
    shards = _write_shards(tmp_path / "shards", vocabulary, 60)
    reader = _reader(shards, vocabulary, tmp_path / "plans", shards_per_group=1)
    last = reader.epoch(0, first_batch=reader.batches_per_epoch - 1)
    expected = _take(last)
    needed = []
    for name in shards.names:
        os.rename(shards.path(name, "tokens"), tmp_path / "aside")
        try:
            assert np.array_equal(_take(last)[0]["input_word_ids"], expected[0]["input_word_ids"])
        except tf.errors.NotFoundError:
            needed.append(name)
        os.rename(tmp_path / "aside", shards.path(name, "tokens"))
    assert len(needed) == 1


def test_content_and_masks_do_not_depend_on_batch_and_group_sizes(make_reader):
    expected = sorted(_examples(make_reader().all_batches(), masked=True))
    for sizes in ({"batch_size": 5}, {"batch_size": 64, "shards_per_group": 2}):
        assert sorted(_examples(make_reader(**sizes).all_batches(), masked=True)) == expected


def test_seeds_give_other_orders_pairs_and_masks(make_reader):
    first, second = (_examples(make_reader(seed=seed).epoch(0)) for seed in (3, 4))
    assert len(set(first) & set(second)) < len(first) / 4


def test_refresh_never_repeats_pairs_and_masks_in_another_order(make_reader):
    reader = make_reader(refresh="never", batch_size=1)
    first, second = (_examples(reader.epoch(epoch), masked=True) for epoch in (0, 1))
    assert sorted(first) == sorted(second)
    assert first != second


@pytest.mark.parametrize("refresh, mask_epoch", [("epoch", 2), ("never", 0)])
def test_masks_are_keyed_by_the_epoch_and_the_place_of_the_example(
    make_reader, shards, vocabulary, plans_folder, refresh, mask_epoch
):
    reader = make_reader(refresh=refresh)

    def keep_keys(input_word_ids, lengths, example_ids, epoch, continuation):
        return {
            "input_word_ids": input_word_ids,
            "example_ids": example_ids,
            "mask_epoch": tf.fill(tf.shape(lengths), epoch),
        }

    reader._masking = keep_keys
    planned = _planned_examples(shards, vocabulary, plans_folder, mask_epoch)
    for batch in _take(reader.epoch(2)):
        assert np.all(batch["mask_epoch"] == mask_epoch)
        for row, example_id in zip(batch["input_word_ids"], batch["example_ids"]):
            assert planned[example_id].startswith(row.tobytes())


def test_epochs_order_groups_and_the_rows_in_them_anew(make_reader, shards, vocabulary, plans_folder):
    planned = _planned_examples(shards, vocabulary, plans_folder)
    plans = Plans(plans_folder, shards, LENGTH, ObjectiveConfig(), 3)
    shard_of = dict(zip(planned, np.repeat(np.arange(len(plans.counts)), plans.counts)))
    reader = make_reader(refresh="never", batch_size=1, shards_per_group=1)
    orders = [_examples(reader.epoch(epoch)) for epoch in (0, 1)]
    shard_orders = [list(dict.fromkeys(shard_of[row] for row in order)) for order in orders]
    assert shard_orders[0] != shard_orders[1]
    rows_of_shard_0 = [[row for row in order if shard_of[row] == 0] for order in orders]
    assert rows_of_shard_0[0] != rows_of_shard_0[1]


def test_an_epoch_can_be_prepared_in_another_thread(make_reader):
    expected = _examples(make_reader(seed=5).epoch(4))
    reader = make_reader(seed=6)
    thread = threading.Thread(target=reader.prepare_epoch, args=[4])
    thread.start()
    prepared = _examples(reader.epoch(4))
    thread.join()
    assert prepared == _examples(make_reader(seed=6).epoch(4))
    assert prepared != expected


def test_rows_of_a_group_are_mixed(make_reader, shards, vocabulary, plans_folder):
    place = {row: number for number, row in enumerate(_planned_examples(shards, vocabulary, plans_folder))}
    places = np.array([place[row] for row in _examples(make_reader(shards_per_group=100).epoch(0))])
    assert abs(np.corrcoef(places[:-1], places[1:])[0, 1]) < 0.15


def test_labels_have_the_share(make_reader):
    labels = np.concatenate([batch["next_sentence_labels"] for batch in make_reader().epoch(0)])
    assert labels.mean() == pytest.approx(0.5, abs=0.03)


def test_groups_are_merged_until_each_fills_a_batch(make_reader):
    batch_size = make_reader().examples_per_epoch // 2 + 1
    reader = make_reader(batch_size=batch_size, shards_per_group=1)
    assert reader.batches_per_epoch == 1
    assert len(_take(reader.epoch(0))) == 1


def test_fewer_examples_than_a_batch(make_reader):
    """Training is refused, evaluation pads the batch with rows that weigh nothing."""
    reader = make_reader(batch_size=2048)
    assert reader.examples_per_epoch < 2048
    with pytest.raises(UserError, match=rf"batch_size \(2048\).*Received: {reader.examples_per_epoch}\."):
        reader.batches_per_epoch
    (batch,) = _take(reader.all_batches())
    assert batch["example_weights"].sum() == reader.examples_per_epoch
    padding = batch["example_weights"] == 0
    assert not batch["masked_lm_weights"][padding].any()
    assert batch["masked_lm_weights"][~padding].any(axis=1).all()
    assert batch["input_mask"][padding].any(axis=1).all(), "attention over nothing is not a number"
    ids = [set(row) for row in batch["input_word_ids"][padding]]
    assert all(row == {0, 2} for row in ids)


def test_whole_words_are_those_that_the_shards_mark(tmp_path, vocabulary):
    """Words of two tokens from each even place on, which nothing in the vocabulary tells."""
    with ShardWriter(tmp_path / "shards", vocabulary, True) as writer:
        for first in range(5, 2000, 100):
            writer.add([range(first, first + 100)])
    shards = ShardSet.open(tmp_path / "shards", vocabulary)
    shards.meta["word_marks"] = True
    for name in shards.names:
        marks = np.arange(shards.read(name)[0].size, dtype=np.uint8) % 2
        marks.tofile(tmp_path / "shards" / f"{name}.continuations")
    objective = ObjectiveConfig(pair="none", packing="document")
    reader = _reader(shards, vocabulary, tmp_path / "plans", objective=objective, whole_word=True)
    pairs = 0
    for batch in _take(reader.epoch(0)):
        for row, positions, ids, weights in zip(
            _restored(batch), batch["masked_lm_positions"], batch["masked_lm_ids"], batch["masked_lm_weights"]
        ):
            chosen = set(positions[weights > 0].tolist())
            # Sentences are cut at an even number of tokens; heads are at odd ids because the first id is 5.
            for position, token in zip(positions[weights > 0], ids[weights > 0]):
                other = position + 1 if token % 2 else position - 1
                assert other in chosen and row[other] == token + (1 if token % 2 else -1)
                pairs += 1
    assert pairs > 100


def test_ids_of_more_than_16_bits(tmp_path):
    vocabulary = _vocabulary(70_000)
    shards = _write_shards(tmp_path / "shards", vocabulary, 20)
    assert shards.meta["token_dtype"] == "uint32"
    reader = _reader(shards, vocabulary, tmp_path / "plans")
    examples = _examples(reader.all_batches())
    assert sorted(examples) == sorted(_planned_examples(shards, vocabulary, tmp_path / "plans"))
    assert np.frombuffer(b"".join(examples), np.int32).max() > 2**16


def test_an_id_past_the_vocabulary_is_refused(tmp_path, vocabulary):
    """The file is altered behind the checksums' back, which are looked at when plans are made."""
    shards = _write_shards(tmp_path / "shards", vocabulary, 20)
    reader = _reader(shards, vocabulary, tmp_path / "plans")
    tokens = shards.read(shards.names[0])[0].copy()
    tokens[7] = len(vocabulary)
    tokens.tofile(shards.path(shards.names[0], "tokens"))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"needs ids below vocab_size \(3000\)"):
        _take(reader.epoch(0))


def test_another_vocabulary_is_refused(shards, tmp_path):
    with pytest.raises(UserError, match="needs the vocabulary of fingerprint"):
        _reader(shards, _vocabulary(3001), tmp_path / "plans")


def test_one_document_needs_next_sentences_only(tmp_path, vocabulary):
    shards = _write_shards(tmp_path / "shards", vocabulary, 1)
    with pytest.raises(UserError, match="two documents.*objective.random_next_share=0"):
        _reader(shards, vocabulary, tmp_path / "plans")
    reader = _reader(shards, vocabulary, tmp_path / "plans", objective=ObjectiveConfig(random_next_share=0.0))
    assert not any(batch["next_sentence_labels"].any() for batch in reader.all_batches().as_numpy_iterator())


def test_no_pairs_are_refused(tmp_path, vocabulary):
    with ShardWriter(tmp_path / "shards", vocabulary, True) as writer:
        writer.add([[5]])
        writer.add([[6]])
    shards = ShardSet.open(tmp_path / "shards")
    with pytest.raises(UserError, match="needs a document of two tokens"):
        _reader(shards, vocabulary, tmp_path / "plans")


def test_first_batch_past_the_epoch_is_refused(make_reader):
    reader = make_reader()
    with pytest.raises(ValueError, match="first_batch"):
        reader.epoch(0, first_batch=reader.batches_per_epoch + 1)
