"""How far a run has come, by steps or by the clock, and which phase that puts it in."""

from collections.abc import Callable, Sequence
from time import monotonic, process_time
from typing import NamedTuple

import tensorflow as tf

from keras_bert.config.training import phase_ends
from keras_bert.training.processes import agreement, process_count


def make_budget(
    minutes: float, steps: int, shares: Sequence[float], strategy: tf.distribute.Strategy
) -> "StepBudget | TimeBudget":
    """A `TimeBudget` if the run is limited by time, else a `StepBudget`.

    Args:
        minutes: length of the whole run; 0 for a run measured in steps.
        steps: length of the whole run; ignored if `minutes` is set.
        shares: each phase's share of the run, summing to 1.
        strategy: the run's strategy; call this inside its scope.
    """
    if not minutes:
        return StepBudget(steps, shares)
    return TimeBudget(minutes, shares, agreement(strategy), process_count(strategy))


# A step that takes longer than these seconds, with less than this share of a core, was halted meanwhile (Ctrl-Z).
_HALTED_SECONDS, _HALTED_SHARE = 60.0, 0.01
# How often figures are logged if the recipe does not say.
_STEPS_A_LINE, _LEAST_LINES = 100, 20


class PhaseSlice(NamedTuple):
    """`steps` steps of a phase, beginning with its step `first`, counted from 0 in the phase."""

    phase: int
    first: int
    steps: int


def _phase_slices(starts: Sequence[int], first: int, last: int) -> list[PhaseSlice]:
    """The steps `first` to `last` - 1, divided by phase; `starts` are the first steps of the phases."""
    spans = zip(starts, [*starts[1:], last])
    parts = [
        PhaseSlice(phase, max(first, start) - start, min(end, last) - max(first, start))
        for phase, (start, end) in enumerate(spans)
    ]
    return [part for part in parts if part.steps > 0]


class StepBudget:
    """A run of a fixed number of steps; everything follows from the step number.

    Args:
        shares: each phase's share of it, summing to 1.

    Attributes:
        share: None; see `TimeBudget`.
        steps: as given.
    """

    share: None = None

    def __init__(self, steps: int, shares: Sequence[float]):
        self.steps = steps
        self._ends = phase_ends(steps, shares)

    def phase(self, step: int) -> int | None:
        """The index of the phase that step `step` (counted from 0) belongs to; None after the last phase."""
        return next((index for index, end in enumerate(self._ends) if step < end), None)

    def bounds(self, phase: int) -> tuple[int, int]:
        """(first step of a phase, first step after it)."""
        return self._ends[phase - 1] if phase else 0, self._ends[phase]

    def phase_slices(self, first: int, last: int) -> list[PhaseSlice]:
        """The steps `first` to `last` - 1, divided by phase."""
        return _phase_slices([0, *self._ends[:-1]], first, last)

    def start(self) -> None:
        """Call after a checkpoint was restored, and before the first step of this process."""

    def share_done(self, done: int) -> float:
        """The share of the run covered by `done` steps."""
        return done / self._ends[-1]

    def is_line(self, done: int, steps: int = 1) -> bool:
        """Whether a line of figures is due in the last `steps` of `done` steps: every 100, and at least 20 a run."""
        every = max(min(_STEPS_A_LINE, self._ends[-1] // _LEAST_LINES), 1)
        return done // every > (done - steps) // every

    def seconds_left(self, done: int, step_seconds: float) -> float:
        """The seconds left after `done` steps, at `step_seconds` per step."""
        return (self._ends[-1] - done) * step_seconds

    def advance(self, done: int) -> bool:
        """Call after every step: returns whether the run is over after `done` steps."""
        return done >= self._ends[-1]


class TimeBudget(tf.Module):
    """A run of a fixed number of minutes: learning rate and phases follow the clock, summed over restarts.

    What the run learns depends on the machine's speed, so a stopped run resumes where it was, but not bit for bit.
    Validation and checkpoints count towards the time; start-up does not, nor does time in which the process was halted.

    Args:
        shares: each phase's share of it, summing to 1.
        agree: sums a number over all processes; see `processes.agreement`.
        processes: how many processes there are. All follow their mean time.

    Attributes:
        share: float32 variable, the share of the time that has passed, read by the learning-rate schedule.
        steps: None; see `StepBudget`.
    """

    steps: None = None

    def __init__(
        self, minutes: float, shares: Sequence[float], agree: Callable[[float], float] = float, processes: int = 1
    ):
        super().__init__(name="time_budget")
        self._total = 60.0 * minutes
        self._ends = [sum(shares[: index + 1]) for index in range(len(shares))]
        self._mean = lambda seconds: agree(seconds) / processes
        self.share = tf.Variable(0.0, trainable=False)
        # For checkpoints. The loop itself reads plain numbers, because reading a variable waits for the device.
        self._kept_seconds = tf.Variable(0.0, dtype=tf.float64, trainable=False)
        self._kept_starts = [tf.Variable(0 if index == 0 else -1, trainable=False) for index in range(len(shares))]
        self.start()

    def start(self) -> None:
        """Starts the clock at the time in the variables, restored or new.

        In a run that was given more time, a phase that would not have begun by now counts as not begun.
        """
        self._last, self._last_cpu = monotonic(), process_time()
        # By `numpy`: a variable with a copy on each replica is not a number.
        self._seconds = float(self._kept_seconds.numpy())
        self._share = share = self.share_done(0)
        self.share.assign(share)
        for kept, begins in zip(self._kept_starts[1:], self._ends):
            if share < begins:
                kept.assign(-1)
        self._starts = [int(start.numpy()) for start in self._kept_starts]

    def phase(self, step: int) -> int | None:
        """The index of the phase of step `step` (counted from 0): for a future step, the current phase.

        None once the time is up.
        """
        if self._seconds >= self._total:
            return None
        return max(index for index, start in enumerate(self._starts) if 0 <= start <= step)

    def bounds(self, phase: int) -> tuple[int, None]:
        """(first step of a phase, None, because its last step is not known in advance)."""
        return self._starts[phase], None

    def phase_slices(self, first: int, last: int) -> list[PhaseSlice]:
        """The steps `first` to `last` - 1, which must be done, divided by phase."""
        return _phase_slices([start for start in self._starts if start >= 0], first, last)

    def share_done(self, done: int) -> float:
        """The share of the time that has passed; `done` is not used."""
        return min(self._seconds / self._total, 1.0)

    def is_line(self, done: int, steps: int = 1) -> bool:
        """Whether a line of figures is due in the last `steps` of `done` steps: every 100, and at least 20 a run."""
        is_new_part = int(_LEAST_LINES * self._share) > int(_LEAST_LINES * self._share_before)
        return is_new_part or done // _STEPS_A_LINE > (done - steps) // _STEPS_A_LINE

    def seconds_left(self, done: int, step_seconds: float) -> float:
        """The seconds that are left; `done` and `step_seconds` are not used."""
        return self._total - self._seconds

    def advance(self, done: int) -> bool:
        """Call after every step, in every process: returns whether the time is up after `done` steps."""
        now, now_cpu = monotonic(), process_time()
        passed, worked = now - self._last, now_cpu - self._last_cpu
        is_halted = passed > _HALTED_SECONDS and worked < _HALTED_SHARE * passed
        self._seconds += self._mean(0.0 if is_halted else passed)
        self._last, self._last_cpu = now, now_cpu
        self._share_before, self._share = self._share, self.share_done(done)
        share = self._share
        for phase, begins in enumerate(self._ends[:-1], start=1):
            if share >= begins and self._starts[phase] < 0:
                self._starts[phase] = done
                self._kept_starts[phase].assign(done)
        self._kept_seconds.assign(self._seconds)
        self.share.assign(share)
        return share >= 1.0
