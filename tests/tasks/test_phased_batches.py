"""`batch = f(step)` across epochs and phases."""

import threading

import pytest

from keras_bert.tasks.phased_batches import PhasedBatches


class FakeReader:
    """Batches are (name, epoch, batch)."""

    def __init__(self, name, batches_per_epoch):
        self.name = name
        self.batches_per_epoch = batches_per_epoch
        self.planned = []
        self.lock = threading.Lock()

    def prepare_epoch(self, epoch):
        with self.lock:
            self.planned.append(epoch)

    def remove_epoch(self, epoch):
        pass

    def epoch(self, epoch, first_batch=0):
        assert epoch in self.planned
        return [(self.name, epoch, batch) for batch in range(first_batch, self.batches_per_epoch)]


@pytest.fixture
def batches():
    return PhasedBatches([FakeReader("short", 4), FakeReader("long", 3)], [0.9, 0.1], 50, lambda dataset: dataset)


def test_all_steps_in_order(batches):
    seen = list(batches(0))
    assert seen[:45] == [("short", step // 4, step % 4) for step in range(45)]
    assert seen[45:] == [("long", 0, 0), ("long", 0, 1), ("long", 0, 2), ("long", 1, 0), ("long", 1, 1)]


def test_starting_anywhere_gives_the_rest_of_the_run(batches):
    everything = list(batches(0))
    for step in range(51):
        assert list(batches(step)) == everything[step:]


def test_the_phase_of_each_step(batches):
    assert [batches.phase(step) for step in (0, 44, 45, 49)] == [0, 0, 1, 1]
