"""`batch = f(step)` across epochs and phases."""

import itertools
import types

import numpy as np

from keras_bert.tasks.phased_batches import PhasedBatches
from keras_bert.training.budget import PhaseSlice, StepBudget, TimeBudget
from keras_bert.training.rollbacks import SkippedBatches


class FakeReader:
    """Batches are (name, epoch, batch)."""

    widths = (8,)

    def __init__(self, name, batches_per_epoch):
        self.name = name
        self.batches_per_epoch = batches_per_epoch
        self.removed = []

    def remove_epoch(self, epoch):
        self.removed.append(epoch)

    def epoch(self, epoch, first_batch=0):
        assert epoch not in self.removed
        return Batches((self.name, epoch, batch) for batch in range(first_batch, self.batches_per_epoch))


class Batches(list):
    """Stands for a data set."""

    element_spec = types.MappingProxyType({})


def make_batches(steps_per_loop=1):
    budget = StepBudget(50, [0.9, 0.1])
    sources = [FakeReader("short", 4), FakeReader("long", 3)]
    return PhasedBatches(sources, budget, lambda dataset: dataset, steps_per_loop)


def test_all_steps_in_order():
    seen = list(make_batches()(0))
    assert seen[:45] == [("short", step // 4, step % 4) for step in range(45)]
    assert seen[45:] == [("long", 0, 0), ("long", 0, 1), ("long", 0, 2), ("long", 1, 0), ("long", 1, 1)]


def test_starting_anywhere_gives_the_rest_of_the_run():
    everything = list(make_batches()(0))
    for step in range(51):
        assert list(make_batches()(step)) == everything[step:]


def test_loops_end_at_multiples_and_where_an_epoch_or_a_phase_does():
    """Otherwise a resumed run's figures, checkpoints and batches would not fall on the same steps."""
    everything = list(make_batches()(0))
    for first in (0, 3, 44):
        seen, ends, step = [], set(), first
        for loop in make_batches(steps_per_loop=6)(first):
            seen += itertools.islice(loop.iterator, loop.count)
            step += loop.count
            ends.add(step)
        assert seen == everything[first:]
        epochs_end = {*range(4, 45, 4), 45, 48, 50}
        assert ends == {end for end in range(first + 1, 51) if end % 6 == 0 or end in epochs_end}


def test_plans_of_epochs_that_are_over_are_removed():
    batches = make_batches()
    list(batches(0))
    assert [source.removed for source in batches.sources] == [list(range(12)), [0, 1]]


def clocked_batches(monkeypatch, seconds_a_step, minutes=1.0):
    now = [0.0]
    monkeypatch.setattr("keras_bert.training.budget.monotonic", lambda: now[0])
    budget = TimeBudget(minutes, [0.5, 0.5])
    batches = PhasedBatches([FakeReader("short", 4), FakeReader("long", 3)], budget, lambda dataset: dataset)
    budget.start()

    def run(first_step, steps, skipped=()):
        seen = []
        for done, batch in enumerate(batches(first_step, skipped), start=first_step + 1):
            seen.append(batch)
            now[0] += seconds_a_step
            if budget.advance(done) or len(seen) == steps:
                break
        return seen

    return budget, batches, run


def test_by_the_clock_a_phase_ends_when_its_time_is_over(monkeypatch):
    budget, batches, run = clocked_batches(monkeypatch, 6.0)
    seen = run(0, 100)
    assert seen[:5] == [("short", step // 4, step % 4) for step in range(5)]
    assert seen[5:] == [("long", step // 3, step % 3) for step in range(5)]
    assert budget.phase(10) is None and budget.share_done(10) == 1.0
    # The interrupted epoch and the one made ready after it are removed too.
    assert batches.sources[0].removed == [0, 1, 2]


def test_a_run_by_the_clock_goes_on_where_its_checkpoint_left_it(monkeypatch):
    budget, _, run = clocked_batches(monkeypatch, 6.0)
    first = run(0, 7)
    again, _, go_on = clocked_batches(monkeypatch, 6.0)
    for variable, kept in zip(again.variables, budget.variables):
        variable.assign(kept)
    again.start()
    assert first + go_on(7, 100) == clocked_batches(monkeypatch, 6.0)[2](0, 100)


def test_a_finished_run_with_more_time_goes_on_in_the_phase_of_its_share(monkeypatch):
    """Otherwise its last phase would get all of the new time. What is left out still counts from the start of a phase,
    which is a new one for the last."""
    budget, _, run = clocked_batches(monkeypatch, 6.0)
    assert run(0, 100)[-1] == ("long", 1, 1)
    longer, _, go_on = clocked_batches(monkeypatch, 6.0, minutes=3.0)
    for variable, kept in zip(longer.variables, budget.variables):
        variable.assign(kept)
    longer.start()
    assert float(longer.share) == np.float32(1 / 3)  # For the learning rate of the first step.
    seen = go_on(10, 100, [SkippedBatches(0, 12, 2), SkippedBatches(1, 2, 1)])
    assert seen[:5] == [("short", *divmod(number, 4)) for number in (10, 11, 14, 15, 16)]
    assert seen[5:] == [("long", *divmod(number, 3)) for number in (0, 1, *range(3, 16))]
    assert longer.phase_slices(8, 17) == [PhaseSlice(0, 8, 7), PhaseSlice(1, 0, 2)]


def test_what_is_left_out_is_a_function_of_the_step():
    """Across epochs and phases, started anywhere; an epoch that resumes after a gap keeps its plans."""
    skipped = [SkippedBatches(0, 5, 2), SkippedBatches(0, 10, 7), SkippedBatches(1, 0, 3)]
    seen = list(make_batches()(0, skipped))
    numbers = [*range(5), *range(7, 12), *range(19, 54)]
    assert seen[:45] == [("short", *divmod(number, 4)) for number in numbers]
    assert seen[45:] == [("long", *divmod(number, 3)) for number in range(3, 8)]
    for step in range(51):
        assert list(make_batches(steps_per_loop=1)(step, skipped)) == seen[step:]
    looped, ends = [], {0}
    for loop in make_batches(6)(0, skipped):
        looped += itertools.islice(loop.iterator, loop.count)
        ends.add(len(looped))
    assert looped == seen
    assert ends >= {*range(0, 45, 4)}, "where fine-tuning validates by default; it went on without after a rollback"
