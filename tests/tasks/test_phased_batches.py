"""`batch = f(step)` across epochs and phases."""

from keras_bert.tasks.phased_batches import PhasedBatches


class FakeReader:
    """Batches are (name, epoch, batch)."""

    def __init__(self, name, batches_per_epoch):
        self.name = name
        self.batches_per_epoch = batches_per_epoch
        self.removed = []

    def remove_epoch(self, epoch):
        self.removed.append(epoch)

    def epoch(self, epoch, first_batch=0):
        assert epoch not in self.removed
        return [(self.name, epoch, batch) for batch in range(first_batch, self.batches_per_epoch)]


def make_batches():
    return PhasedBatches([FakeReader("short", 4), FakeReader("long", 3)], [0.9, 0.1], 50, lambda dataset: dataset)


def test_all_steps_in_order():
    seen = list(make_batches()(0))
    assert seen[:45] == [("short", step // 4, step % 4) for step in range(45)]
    assert seen[45:] == [("long", 0, 0), ("long", 0, 1), ("long", 0, 2), ("long", 1, 0), ("long", 1, 1)]


def test_starting_anywhere_gives_the_rest_of_the_run():
    everything = list(make_batches()(0))
    for step in range(51):
        assert list(make_batches()(step)) == everything[step:]


def test_the_phase_of_each_step():
    assert [make_batches().phase(step) for step in (0, 44, 45, 49)] == [0, 0, 1, 1]


def test_plans_of_epochs_that_are_over_are_removed():
    batches = make_batches()
    list(batches(0))
    assert [reader.removed for reader in batches._readers] == [list(range(12)), [0, 1]]
