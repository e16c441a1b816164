"""The order in which the source gives rows, epoch after epoch and from any starting point."""

import os
import threading

import numpy as np
import pytest
import tensorflow as tf
from random_shards import LENGTH, examples, open_source, planned_examples, take, write_shards

from keras_bert.config.objectives import ObjectiveConfig
from keras_bert.data.batches.plans import Plans


@pytest.mark.parametrize("epoch", [0, 1])
def test_an_epoch_is_every_planned_pair_once_but_for_remainders(make_source, shards, vocabulary, plans_folder, epoch):
    source = make_source()
    batches = take(source.epoch(epoch))
    assert len(batches) == source.batches_per_epoch == len(source.epoch(epoch))
    left = planned_examples(shards, vocabulary, plans_folder, epoch)
    groups = -(-len(shards.names) // 3)
    for row in examples(batches):
        left.remove(row)
    assert 0 < len(left) <= groups * 7
    assert all(batch["example_weights"].all() for batch in batches)


def test_epochs_have_other_pairs_order_and_remainders(make_source):
    source = make_source()
    first, second = (examples(source.epoch(epoch)) for epoch in (1, 2))
    assert len(first) == len(second)
    assert len(set(first) & set(second)) < len(first) / 4


@pytest.mark.parametrize(
    "unit", ["token", *(pytest.param(unit, marks=pytest.mark.slow) for unit in ("word", "ngram")), "span"]
)
def test_a_start_anywhere_gives_the_batches_of_the_whole_epoch(make_source, unit):
    source = make_source(unit=unit)
    whole = take(source.epoch(1))
    for first in (1, len(whole) // 2, len(whole)):
        part = take(source.epoch(1, first_batch=first))
        assert len(part) == len(whole) - first
        for one, other in zip(part, whole[first:]):
            assert all(np.array_equal(one[key], other[key]) for key in one)


def test_groups_before_the_start_are_not_read(tmp_path, vocabulary):
    shards = write_shards(tmp_path / "shards", vocabulary, 60)
    source = open_source(shards, vocabulary, tmp_path / "plans", shards_per_group=1)
    last = source.epoch(0, first_batch=source.batches_per_epoch - 1)
    expected = take(last)
    needed = []
    for name in shards.names:
        os.rename(shards.path(name, "tokens"), tmp_path / "aside")
        try:
            assert np.array_equal(take(last)[0]["input_word_ids"], expected[0]["input_word_ids"])
        except tf.errors.NotFoundError:
            needed.append(name)
        os.rename(tmp_path / "aside", shards.path(name, "tokens"))
    assert len(needed) == 1


def test_content_and_masks_do_not_depend_on_batch_and_group_sizes(make_source):
    expected = sorted(examples(make_source().all_batches(), masked=True))
    for sizes in ({"batch_size": 5}, {"batch_size": 64, "shards_per_group": 2}):
        assert sorted(examples(make_source(**sizes).all_batches(), masked=True)) == expected


def test_seeds_give_other_orders_pairs_and_masks(make_source):
    first, second = (examples(make_source(seed=seed).epoch(0)) for seed in (3, 4))
    assert len(set(first) & set(second)) < len(first) / 4


def test_refresh_never_repeats_pairs_and_masks_in_another_order(make_source):
    source = make_source(refresh="never", batch_size=1)
    first, second = (examples(source.epoch(epoch), masked=True) for epoch in (0, 1))
    assert sorted(first) == sorted(second)
    assert first != second


@pytest.mark.parametrize("refresh, mask_epoch", [("epoch", 2), ("never", 0)])
def test_masks_are_keyed_by_the_epoch_and_the_place_of_the_example(
    make_source, shards, vocabulary, plans_folder, refresh, mask_epoch
):
    source = make_source(refresh=refresh)

    def keep_keys(input_word_ids, lengths, example_ids, epoch, continuation, phrases):
        return {
            "input_word_ids": input_word_ids,
            "example_ids": example_ids,
            "mask_epoch": tf.fill(tf.shape(lengths), epoch),
        }

    source._predict = keep_keys
    planned = planned_examples(shards, vocabulary, plans_folder, mask_epoch)
    for batch in take(source.epoch(2)):
        assert np.all(batch["mask_epoch"] == mask_epoch)
        for row, example_id in zip(batch["input_word_ids"], batch["example_ids"]):
            assert planned[example_id].startswith(row.tobytes())


def test_epochs_order_groups_and_the_rows_in_them_anew(make_source, shards, vocabulary, plans_folder):
    planned = planned_examples(shards, vocabulary, plans_folder)
    plans = Plans(plans_folder, shards, LENGTH, ObjectiveConfig(), 3)
    shard_of = dict(zip(planned, np.repeat(np.arange(len(plans.counts)), plans.counts)))
    source = make_source(refresh="never", batch_size=1, shards_per_group=1)
    orders = [examples(source.epoch(epoch)) for epoch in (0, 1)]
    shard_orders = [list(dict.fromkeys(shard_of[row] for row in order)) for order in orders]
    assert shard_orders[0] != shard_orders[1]
    rows_of_shard_0 = [[row for row in order if shard_of[row] == 0] for order in orders]
    assert rows_of_shard_0[0] != rows_of_shard_0[1]


def test_an_epoch_can_be_prepared_in_another_thread(make_source):
    expected = examples(make_source(seed=5).epoch(4))
    source = make_source(seed=6)
    thread = threading.Thread(target=source.prepare_epoch, args=[4])
    thread.start()
    prepared = examples(source.epoch(4))
    thread.join()
    assert prepared == examples(make_source(seed=6).epoch(4))
    assert prepared != expected


def test_rows_of_a_group_are_mixed(make_source, shards, vocabulary, plans_folder):
    place = {row: number for number, row in enumerate(planned_examples(shards, vocabulary, plans_folder))}
    places = np.array([place[row] for row in examples(make_source(shards_per_group=100).epoch(0))])
    assert abs(np.corrcoef(places[:-1], places[1:])[0, 1]) < 0.15


def test_groups_are_merged_until_each_fills_a_batch(make_source):
    batch_size = make_source().examples_per_epoch // 2 + 1
    source = make_source(batch_size=batch_size, shards_per_group=1)
    assert source.batches_per_epoch == 1
    assert len(take(source.epoch(0))) == 1


def test_first_batch_past_the_epoch_is_refused(make_source):
    source = make_source()
    with pytest.raises(ValueError, match="first_batch"):
        source.epoch(0, first_batch=source.batches_per_epoch + 1)


def test_with_a_memory_row_i_goes_on_from_row_i_of_the_batch_before(make_source, shards, vocabulary):
    """By its text: each row begins where the row before ended, or at the start of a document."""
    objective = ObjectiveConfig(tokens="permuted", pair="none", packing="filled", memory_length=8)
    source, corpus = make_source(objective=objective), "|"
    for name in shards.names:
        tokens, sentences, documents = shards.read(name)
        edges = sentences[documents]
        corpus += "".join(f" {_text(tokens[begin:end])} |" for begin, end in zip(edges, edges[1:]))
    for epoch in (0, 1):
        batches, before = take(source.epoch(epoch)), []
        assert len({row.tobytes() for batch in batches for row in batch["input_word_ids"]}) == 8 * len(batches)
        for number, batch in enumerate(batches):
            assert (batch["batch_numbers"] == epoch * len(batches) + number).all()
            texts = [_texts(row, vocabulary) for row in batch["input_word_ids"]]
            for row, goes_on in enumerate(batch["goes_on"]):
                if goes_on:
                    assert f" {before[row][-1]} {texts[row][0]} " in corpus
                elif batch["goes_on"].any():  # Otherwise a group begins.
                    assert f"| {texts[row][0]} " in corpus
            before = texts
        assert np.mean([batch["goes_on"] for batch in batches]) > 0.7
    for one, other in zip(take(source.epoch(1, first_batch=5)), batches[5:], strict=True):
        assert all(np.array_equal(one[key], other[key]) for key in one)


def _text(tokens):
    return " ".join(map(str, tokens.tolist()))


def _texts(row, vocabulary):
    """The text of each document in a row."""
    ends = np.flatnonzero(row == vocabulary.sep_id)
    return [_text(row[begin + 1 : end]) for begin, end in zip([0, *ends], ends)]
