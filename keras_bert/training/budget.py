"""How far a run has come, by its steps or by the clock, and which of its phases that is."""

from time import monotonic

import tensorflow as tf

from keras_bert.config.training import phase_ends
from keras_bert.training.processes import agreement, process_count


def make_budget(minutes, steps, shares, strategy):
    """The `TimeBudget` of a run by the clock, or the `StepBudget` of another.

    Args:
        minutes: 0 for a run by steps.
        steps: of the whole run.
        shares: each phase's share of it, summing to 1.
        strategy: the run's `tf.distribute.Strategy`, in whose scope this is called.
    """
    if not minutes:
        return StepBudget(steps, shares)
    return TimeBudget(minutes, shares, agreement(strategy), process_count(strategy))


class StepBudget:
    """A run of so many steps; everything follows from the number of a step.

    Args:
        steps: of the whole run.
        shares: each phase's share of it, summing to 1.

    Attributes:
        share: None; see `TimeBudget`.
    """

    share = None

    def __init__(self, steps, shares):
        self._ends = phase_ends(steps, shares)

    def phase(self, step):
        """The index of the phase in which the step numbered `step` (from 0) falls; None after the last."""
        return next((index for index, end in enumerate(self._ends) if step < end), None)

    def bounds(self, phase):
        """(number of a phase's first step, number of the first step after it)."""
        return self._ends[phase - 1] if phase else 0, self._ends[phase]

    def start(self):
        """To be called before the first step of this process."""

    def share_done(self, done):
        """The share of the run that `done` steps are."""
        return done / self._ends[-1]

    def advance(self, done):
        """To be called after every step; whether the run is over after `done` steps."""
        return done >= self._ends[-1]


class TimeBudget(tf.Module):
    """A run of so many minutes: learning rate and phases follow the clock, over all starts of the run together.

    What a run learns then depends on how fast its machine was, so a stopped run goes on where it was but not bit for
    bit. Validation and checkpoints count as time; starting up does not.

    Args:
        minutes: of the whole run.
        shares: each phase's share of it, summing to 1.
        agree: function (number) -> its sum over all processes (see `processes.agreement`), and `processes` their
            number: all go by their mean time.

    Attributes:
        share: float32 variable, the share of the time that is over: what a schedule by time reads.
    """

    def __init__(self, minutes, shares, agree=float, processes=1):
        super().__init__(name="time_budget")
        self._total = 60.0 * minutes
        self._ends = [sum(shares[: index + 1]) for index in range(len(shares))]
        self._mean = lambda seconds: agree(seconds) / processes
        self.share = tf.Variable(0.0, trainable=False)
        # What a checkpoint keeps; the loop itself reads plain numbers, because reading a variable waits for the device.
        self._kept_seconds = tf.Variable(0.0, dtype=tf.float64, trainable=False)
        self._kept_starts = [tf.Variable(0 if index == 0 else -1, trainable=False) for index in range(len(shares))]
        self.start()

    def start(self):
        """Starts the clock, from where the variables, restored or not, leave it."""
        self._last = monotonic()
        self._seconds = float(self._kept_seconds)
        self._starts = [int(start) for start in self._kept_starts]

    def phase(self, step):
        """The index of the phase that the step numbered `step` (from 0) fell in or, if it is to come, falls in now.

        None once the time is over.
        """
        if self._seconds >= self._total:
            return None
        return max(index for index, start in enumerate(self._starts) if 0 <= start <= step)

    def bounds(self, phase):
        """(number of a phase's first step, None: nobody knows yet where it ends)."""
        return self._starts[phase], None

    def share_done(self, done):
        """The share of the run that is over."""
        return min(self._seconds / self._total, 1.0)

    def advance(self, done):
        """To be called after every step; whether the run is over after `done` steps."""
        now = monotonic()
        self._seconds += self._mean(now - self._last)
        self._last = now
        share = self.share_done(done)
        for phase, begins in enumerate(self._ends[:-1], start=1):
            if share >= begins and self._starts[phase] < 0:
                self._starts[phase] = done
                self._kept_starts[phase].assign(done)
        self._kept_seconds.assign(self._seconds)
        self.share.assign(share)
        return share >= 1.0
