"""Batches by length: every row once an epoch, little padding, any start found by arithmetic."""

import dataclasses
from itertools import combinations

import numpy as np
import pytest

from keras_bert.data.batches.length_batches import LengthBatches, choose_shapes, choose_widths
from keras_bert.data.batches.token_rows import TargetRows, TokenRows, joined_rows


def make_rows(count=100, seed=0, longest=60):
    random = np.random.default_rng(seed)
    lengths = np.minimum(random.geometric(0.08, count) + 2, longest)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    return TokenRows(
        random.integers(5, 99, starts[-1]).astype("int32"),
        starts,
        random.integers(1, lengths + 1).astype("int32"),
        {"labels": random.integers(0, 3, count).astype("int32"), "row": np.arange(count)},
    )


def make_batches(rows, **changes):
    settings = {"batch_size": 8, "seed": 1, "pad_id": 0, "widths": choose_widths(rows.lengths)}
    return LengthBatches(rows, **{**settings, **changes})


def as_numpy(dataset):
    return list(dataset.as_numpy_iterator())


@pytest.mark.parametrize("shuffle", [True, False])
def test_every_row_comes_once_and_whole(shuffle):
    rows = make_rows()
    seen = []
    for batch in as_numpy(make_batches(rows, shuffle=shuffle).epoch(3)):
        for index in np.flatnonzero(batch["example_weights"]):
            number = batch["row"][index]
            length = rows.lengths[number]
            expected = rows.ids[rows.starts[number] : rows.starts[number + 1]]
            np.testing.assert_array_equal(batch["input_word_ids"][index, :length], expected)
            assert not batch["input_word_ids"][index, length:].any() and batch["input_mask"][index].sum() == length
            assert batch["input_type_ids"][index].sum() == length - rows.second_starts[number]
            assert batch["labels"][index] == rows.extra["labels"][number]
            seen.append(number)
    assert sorted(seen) == list(range(len(rows)))


def test_at_most_so_many_shapes_and_one_batch_that_is_not_full():
    rows = make_rows(1003)
    batches = as_numpy(make_batches(rows).epoch(0))
    assert len({batch["input_word_ids"].shape for batch in batches}) <= 8
    assert sum(batch["example_weights"].min() == 0 for batch in batches) == 1
    assert all(batch["input_mask"].sum(axis=1).min() > 0 for batch in batches)


def test_starting_anywhere_gives_the_rest_of_the_epoch():
    batches = make_batches(make_rows())
    rest = as_numpy(batches.epoch(1, 4))
    for one, other in zip(as_numpy(batches.epoch(1))[4:], rest, strict=True):
        assert all(np.array_equal(one[name], other[name]) for name in one)
    assert batches.batches_per_epoch == 4 + len(rest)


def test_epochs_and_seeds_differ_in_order_alone():
    rows = make_rows()
    orders = [
        np.concatenate([batch["row"][batch["example_weights"] > 0] for batch in as_numpy(batches.epoch(epoch))])
        for batches, epoch in ((make_batches(rows), 0), (make_batches(rows), 1), (make_batches(rows, seed=2), 0))
    ]
    assert not any(np.array_equal(orders[0], other) for other in orders[1:])


def test_the_widths_are_the_best_there_are():
    """Compared with every choice of three widths on a small case, and with one width on a large one."""
    lengths = np.array([3, 4, 4, 9, 10, 17, 18, 30, 30, 31])
    options = [4, 10, 18, 30, 32]

    def padded(widths):
        return sum(min(width for width in widths if width >= length) for length in lengths)

    best = min(padded(choice) for choice in combinations(options, 3) if choice[-1] == 32)
    assert padded(choose_widths(lengths, most=3)) == best
    rows = make_rows(2000)
    assert make_batches(rows).padding_share < 0.15
    assert make_batches(rows, widths=[60]).padding_share > 0.5


def test_a_row_longer_than_every_width_is_a_fault():
    with pytest.raises(ValueError, match="widths: need one of"):
        make_batches(make_rows(), widths=[8])


def test_what_belongs_to_tokens_comes_with_them():
    """Each row has its own values at its tokens, and -1 at padding and in rows that fill up a batch."""
    rows = make_rows(21)
    rows.token_extra = {"tags": np.arange(len(rows.ids), dtype="int32")}
    for batch in as_numpy(make_batches(rows).epoch(0)):
        for index, number in enumerate(batch["row"]):
            length = rows.lengths[number] if batch["example_weights"][index] else 0
            expected = np.arange(rows.starts[number], rows.starts[number] + length)
            np.testing.assert_array_equal(batch["tags"][index, :length], expected)
            assert (batch["tags"][index, length:] == -1).all()


def test_an_example_of_several_rows_stays_together():
    """Rows that an example lacks are fully masked; every example comes once, with all its rows."""
    rows = make_rows(60)
    counts = np.random.default_rng(3).integers(1, 5, 40)
    counts = counts[: np.searchsorted(np.cumsum(counts), 60)]
    rows.group_starts = np.concatenate([[0], np.cumsum(counts), [60]])
    rows.extra = {"example": np.arange(len(rows))}
    most = np.diff(rows.group_starts).max()
    batches, seen = make_batches(rows), []
    for batch in as_numpy(batches.epoch(2)):
        assert batch["input_word_ids"].shape[:2] == batch["input_mask"].shape[:2] == (8, most)
        for index, example in enumerate(batch["example"]):
            numbers = range(*rows.group_starts[example : example + 2])
            assert not batch["input_mask"][index, len(numbers) :].any()
            if not batch["example_weights"][index]:
                assert (batch["input_mask"][index, : len(numbers)].sum(axis=-1) == 1).all()
                continue
            seen.append(example)
            for place, number in enumerate(numbers):
                row = rows.ids[rows.starts[number] : rows.starts[number + 1]]
                np.testing.assert_array_equal(batch["input_word_ids"][index, place, : len(row)], row)
                assert batch["input_mask"][index, place].sum() == len(row)
                assert batch["input_type_ids"][index, place].sum() == len(row) - rows.second_starts[number]
    assert sorted(seen) == list(range(len(rows))) and batches.examples_per_epoch == len(rows)
    computed = sum(batch["input_mask"].size for batch in as_numpy(batches.epoch(0)))
    assert batches.padding_share == pytest.approx(1 - len(rows.ids) / computed)


def test_one_example_of_many_rows_does_not_make_all_others_as_costly():
    """Every example comes once and whole, in a batch with little room left over, and only one batch is not full."""
    counts = np.random.default_rng(4).integers(2, 5, 100)
    counts[17] = 50
    rows = make_rows(counts.sum())
    rows.group_starts, rows.extra = np.concatenate([[0], np.cumsum(counts)]), {"example": np.arange(100)}
    widths, group_sizes = choose_shapes(rows, 8)
    assert len(widths) * len(group_sizes) <= 8 and 2 <= len(group_sizes) and group_sizes[-1] == 50
    batches = make_batches(rows, widths=widths, sizes=group_sizes)
    seen, not_full, computed = [], 0, 0
    for batch in as_numpy(batches.epoch(1)):
        ids, mask = batch["input_word_ids"], batch["input_mask"]
        assert (ids.shape[1:]) in batches.widths
        is_real = batch["example_weights"] > 0
        not_full += not is_real.all()
        computed += mask.size
        for example, of_example, is_there in zip(batch["example"][is_real], ids[is_real], mask[is_real]):
            first, end = rows.group_starts[example : example + 2]
            assert of_example[is_there > 0].tolist() == rows.ids[rows.starts[first] : rows.starts[end]].tolist()
            seen.append(example)
        assert batch["example"][~is_real].tolist() == [batch["example"][0]] * int((~is_real).sum())
    assert sorted(seen) == list(range(100)) and not_full == 1
    assert batches.padding_share == pytest.approx(1 - len(rows.ids) / computed)
    together = make_batches(rows, widths=choose_widths(rows.lengths))
    assert 1 - together.padding_share < (1 - batches.padding_share) / 3


def test_with_one_group_size_the_order_is_that_of_rows_alone():
    """Earlier runs then go on with the batches that they would have had."""
    rows = make_rows(203)
    widths, group_sizes = choose_shapes(rows, 5)
    assert (widths, group_sizes) == (choose_widths(rows.lengths, 5), [1])
    ours, theirs = make_batches(rows, widths=widths, sizes=group_sizes), make_batches(rows, widths=widths)
    for one, other in zip(as_numpy(ours.epoch(1)), as_numpy(theirs.epoch(1)), strict=True):
        assert one["row"].tolist() == other["row"].tolist()


def test_the_typical_batch_is_of_median_width():
    """`jit_compile: auto` times it; the first batch may be several times as wide as most."""
    source = make_batches(make_rows(400))
    widths = sorted(batch["input_word_ids"].shape[1] for batch in as_numpy(source.epoch(0)))
    typical = next(source.epoch(0, source.typical_batch).as_numpy_iterator())
    assert typical["input_word_ids"].shape[1] == widths[len(widths) // 2] < widths[-1]


def with_targets(rows, lengths):
    """The rows with targets of the given lengths."""
    starts = np.concatenate([[0], np.cumsum(lengths)])
    targets = TargetRows(np.arange(starts[-1], dtype="uint16") % 50 + 10, starts)
    return dataclasses.replace(rows, targets=targets)


def test_every_row_comes_with_its_target():
    rows = with_targets(make_rows(50), np.random.default_rng(0).integers(1, 40, 50))
    widths, sizes = choose_shapes(rows, 8)
    assert 2 <= len(sizes) and len(widths) * len(sizes) <= 8
    batches, seen = make_batches(rows, widths=widths, sizes=sizes), []
    for batch in as_numpy(batches.epoch(0)):
        assert batch["target_ids"].shape[1] in sizes
        assert (batch["target_ids"][batch["example_weights"] == 0] == -1).all()
        for index in np.flatnonzero(batch["example_weights"]):
            number = batch["row"][index]
            expected = rows.targets.ids[rows.targets.starts[number] : rows.targets.starts[number + 1]]
            found = batch["target_ids"][index]
            np.testing.assert_array_equal(found[: len(expected)], expected)
            assert (found[len(expected) :] == -1).all()
            seen.append(number)
    assert sorted(seen) == list(range(50))
    assert 0 < batches.padding_share < make_batches(rows, widths=widths).padding_share


def test_targets_stay_with_their_rows_when_parts_are_joined():
    parts = [with_targets(make_rows(3), [2, 1, 3]), with_targets(make_rows(2), [4, 1])]
    targets = joined_rows(parts).targets
    assert targets.lengths.tolist() == [2, 1, 3, 4, 1] and len(targets.ids) == 11


def test_no_thread_tunes_what_is_fixed():
    """Dropping an iterator would wait for that thread to wake up: up to a minute at the end of each run."""
    assert make_batches(make_rows()).epoch(0).options().autotune.enabled is False
