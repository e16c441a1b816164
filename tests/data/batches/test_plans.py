"""Plan files: kept, refused if damaged, remade, and what they say before the first batch."""

import os
import random

import numpy as np
import pytest
from random_shards import DocumentWriter

from keras_bert.config.objectives import ObjectiveConfig
from keras_bert.data.batches.plans import Plans
from keras_bert.data.shards.shard_files import ShardSet
from keras_bert.text.vocabulary import Vocabulary


@pytest.fixture
def shards(tmp_path):
    vocabulary = Vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefgh"])
    generator = random.Random(0)
    with DocumentWriter(tmp_path / "shards", vocabulary, 0.01) as writer:
        for _ in range(200):
            writer.add([generator.choices(range(5, 13), k=generator.randint(1, 30)) for _ in range(10)])
    return ShardSet.open(tmp_path / "shards", vocabulary)


def _plans(folder, shards, **objective):
    return Plans(folder, shards, 32, ObjectiveConfig(**objective), 7)


def test_every_epoch_has_as_many_examples_as_the_first(shards, tmp_path):
    plans = _plans(tmp_path / "plans", shards)
    assert len(plans.counts) > 1
    plans.prepare(3)
    files = [np.load(plans.path(shard, 3), allow_pickle=False) for shard in range(len(plans.counts))]
    assert [len(plan) for plan in files] == plans.counts
    first = np.load(plans.path(0, 0), allow_pickle=False)
    assert len(set(map(tuple, first)) & set(map(tuple, files[0]))) < len(first) / 5, "the epochs have the same pairs"


def test_a_plan_of_another_count_is_made_again(shards, tmp_path):
    plans = _plans(tmp_path / "plans", shards)
    plans.prepare(1)
    plan = np.load(plans.path(0, 1), allow_pickle=False)
    np.save(plans.path(0, 1), plan[:-1])
    plans.prepare(1)
    assert np.array_equal(np.load(plans.path(0, 1), allow_pickle=False), plan)


def test_plan_files_are_kept_and_damaged_ones_made_again(shards, tmp_path):
    plans = _plans(tmp_path / "plans", shards)
    kept, damaged = plans.path(0, 0), plans.path(1, 0)
    with open(damaged, "rb") as stream:
        content = stream.read()
    marked = np.load(kept, allow_pickle=False)
    marked[0, 4] ^= 1
    np.save(kept, marked)
    beyond_a, beyond_b, too_long, no_label = (np.load(damaged, allow_pickle=False) for _ in range(4))
    beyond_a[0, :2] += 10**6
    beyond_b[0, 2:4] += 10**6
    too_long[0, 1] = too_long[0, 0] + 29
    no_label[0, 4] = 2
    header = content[: -beyond_a.nbytes]
    refused = [header + plan.tobytes() for plan in (beyond_a, beyond_b, too_long, no_label)]
    garbled = content.replace(b":", b"(", 1)
    for damage in (b"", content[:-4], content[:50], b"not a plan", garbled, *refused):
        with open(damaged, "wb") as stream:
            stream.write(damage)
        assert _plans(tmp_path / "plans", shards).counts == plans.counts
        with open(damaged, "rb") as stream:
            assert stream.read() == content
    assert np.array_equal(np.load(kept, allow_pickle=False), marked), "a sound plan was made again"


def test_another_objective_has_other_files(shards, tmp_path):
    folder = tmp_path / "plans"
    paths = {
        _plans(folder, shards, **objective).path(0, 0)
        for objective in (
            {},
            {"random_next_share": 0.0},
            {"short_sequence_share": 0.0},
            {"pair": "none"},
            {"pair": "none", "packing": "document"},
        )
    }
    assert len(paths) == 5


def test_removed_plans_are_made_again_with_the_same_content(shards, tmp_path):
    plans = _plans(tmp_path / "plans", shards)
    plans.prepare(2)
    before = np.load(plans.path(0, 2), allow_pickle=False)
    plans.remove(2)
    assert not any(os.path.exists(plans.path(shard, 2)) for shard in range(len(plans.counts)))
    plans.remove(0)
    assert os.path.exists(plans.path(0, 0)), "every start needs the counts of epoch 0"
    plans.prepare(2)
    assert np.array_equal(np.load(plans.path(0, 2), allow_pickle=False), before)


@pytest.mark.parametrize("packing", ["document", "full", "filled"])
def test_packed_rows_are_planned_once_for_all_epochs(shards, tmp_path, packing):
    plans = _plans(tmp_path / "plans", shards, pair="none", packing=packing)
    assert plans.path(0, 0) == plans.path(0, 5)
    plans.prepare(5)
    plans.remove(5)
    assert len(os.listdir(tmp_path / "plans")) == len(plans.counts)


@pytest.mark.parametrize(
    "objective", [{}, {"pair": "none", "packing": "document"}, {"pair": "none", "packing": "full"}]
)
def test_shares_are_those_of_the_rows(shards, tmp_path, objective):
    plans = _plans(tmp_path / "plans", shards, **objective)
    filled = rows = random_next = 0
    for shard in range(len(plans.counts)):
        for *spans, label in np.load(plans.path(shard, 0), allow_pickle=False).tolist():
            lengths = [end - start for start, end in zip(spans[::2], spans[1::2]) if end > start]
            filled += 1 + sum(lengths) + len(lengths)
            rows += 1
            random_next += label
    assert plans.padding_share == pytest.approx(1 - filled / (32 * rows))
    assert plans.next_share == pytest.approx(1 - random_next / rows)
