"""Batches from raw text: content, order, restart, masks and train/validation sides."""

import functools
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf
from random_shards import batch_spec, expected_spec, take
from raw_text import LENGTH, PREDICTIONS, TEXTS, equal, real_rows, text_source, text_tokenizer, write_texts

from keras_bert.core.errors import UserError
from keras_bert.training.strategy import distribute


@pytest.fixture(scope="module")
def make_source(tmp_path_factory):
    return functools.cache(functools.partial(text_source, (write_texts(tmp_path_factory.mktemp("text")),)))


def rows_of_an_epoch(source):
    return sum(int(batch["example_weights"].sum()) for batch in take(source.all_batches()))


@pytest.mark.slow
def test_batches_are_those_of_packed_shards(make_source):
    assert batch_spec(make_source().epoch(0)) == expected_spec(8, PREDICTIONS)


@pytest.mark.slow
@pytest.mark.parametrize("packing", ["document", "full", "filled"])
def test_every_token_of_both_sides_is_in_a_row_once(make_source, packing):
    tokenizer = text_tokenizer()
    special = {tokenizer.vocabulary.cls_id, tokenizer.vocabulary.sep_id, tokenizer.vocabulary.pad_id}
    rows = []
    for validation in (False, True):
        source = make_source(validation=validation, share=0.3, packing=packing)
        side = real_rows(take(source.all_batches()))
        filled = np.count_nonzero(np.array(side) != tokenizer.vocabulary.pad_id) / (LENGTH * len(side))
        assert source.padding_share == pytest.approx(1 - filled, abs=0.05)
        rows += side
    found = np.bincount([token for row in rows for token in row if token not in special], minlength=90)
    expected = tokenizer([text for file in TEXTS for text in file]).values.numpy()
    assert np.array_equal(found, np.bincount(expected, minlength=90))


@pytest.mark.slow
def test_a_start_anywhere_gives_the_batches_of_the_whole_stream(make_source):
    source = make_source(batch_size=64, unit="word")
    whole = take(source.epoch(0).take(60))
    assert 60 * 64 > 1.2 * rows_of_an_epoch(source), "the stream goes on in a second epoch"
    for first in (1, 58):
        part = take(source.epoch(0, first).take(60 - first))
        for one, other in zip(part, whole[first:], strict=True):
            assert equal(one, other)


@pytest.mark.slow
def test_tensorflow_logs_nothing_while_batches_are_made(make_source, capfd):
    """Runs on raw text would log an error for every batch, a line for each of its parts."""
    for first in (0, 1):
        take(make_source().epoch(0, first).take(100))
    take(make_source().all_batches())
    assert "RefCount" not in capfd.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("refresh", ["epoch", "never"])
def test_an_epoch_has_every_row_once_in_another_order_with_other_masks(make_source, refresh):
    in_order = real_rows(take(make_source(batch_size=64).all_batches()))
    # With so many rows per batch, batches end with the epoch.
    batch_size = max(size for size in range(1, 200) if len(in_order) % size == 0)
    source = make_source(batch_size=batch_size, refresh=refresh)
    batches = len(in_order) // batch_size
    both = take(source.epoch(0).take(2 * batches))
    epochs = both[:batches], both[batches:]
    rows = [real_rows(epoch) for epoch in epochs]
    in_order.sort()
    assert sorted(rows[0]) == sorted(rows[1]) == in_order
    assert rows[0] != rows[1]
    assert np.mean([one == other for one, other in zip(rows[0], in_order)]) < 0.1
    masked = [sorted(real_rows(epoch, masked=True)) for epoch in epochs]
    assert (masked[0] == masked[1]) == (refresh == "never")


@pytest.mark.slow
def test_a_mask_does_not_depend_on_the_batch_size(make_source):
    expected = sorted(real_rows(take(make_source(batch_size=16, refresh="never").all_batches()), masked=True))
    assert sorted(real_rows(take(make_source(batch_size=7, refresh="never").all_batches()), masked=True)) == expected


@pytest.mark.slow
def test_workers_divide_each_batch_and_not_the_epochs(make_source):
    """By TensorFlow's default, one of two workers would read epochs 0, 2, 4, … and skip twice the batches to resume."""
    two = SimpleNamespace(num_replicas_in_sync=2, experimental_distribute_dataset=lambda dataset: dataset)
    for batches in (make_source().epoch(0), make_source(validation=True).all_batches()):
        options = distribute(two, batches).options()
        assert options.experimental_distribute.auto_shard_policy == tf.data.experimental.AutoShardPolicy.DATA
        assert options.deterministic


@pytest.mark.slow
@pytest.mark.parametrize("replicas", [1, 2])
def test_replicas_get_the_whole_batch_between_them(make_source, mirrored_strategy, replicas):
    """Divided as if for several, a single replica's batch would be the 512 rows that are masked together."""
    strategy = mirrored_strategy if replicas == 2 else tf.distribute.OneDeviceStrategy("CPU:0")
    batches = make_source().epoch(0)
    parts = next(iter(distribute(strategy, batches)))["input_word_ids"]
    assert len(strategy.experimental_local_results(parts)) == replicas
    np.testing.assert_array_equal(strategy.gather(parts, axis=0), next(iter(batches))["input_word_ids"])


@pytest.mark.slow
def test_seeds_give_other_orders(make_source):
    assert real_rows(take(make_source(seed=4).epoch(0).take(5))) != real_rows(take(make_source().epoch(0).take(5)))


def test_the_last_batch_of_a_pass_is_filled_with_rows_that_weigh_nothing(make_source):
    batches = take(make_source(batch_size=50, validation=True).all_batches())
    last = batches[-1]
    empty = last["example_weights"] == 0
    assert empty.any() and not empty.all() and all(batch["example_weights"].all() for batch in batches[:-1])
    assert not last["masked_lm_weights"][empty].any()
    assert {tuple(row[:2]) for row in last["input_word_ids"][empty].tolist()} == {
        (text_tokenizer().vocabulary.cls_id, 0)
    }


def test_a_side_without_text_is_refused(make_source):
    with pytest.raises(UserError, match=r"needs text for validation. Received: none.*or raise data.validation_share"):
        make_source(validation=True, share=0.0)
