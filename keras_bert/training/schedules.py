"""The learning rate over a run: warm-up, then one of four ways down."""

import math

import keras
from keras import ops

# What is left of the peak after a share `done` (0 to 1) of the way from the end of the warm-up to the end of the run.
DECAYS = {
    "linear": lambda done, power: 1.0 - done,
    "cosine": lambda done, power: 0.5 * (1.0 + ops.cos(math.pi * done)),
    "polynomial": lambda done, power: ops.power(1.0 - done, power),
    "constant": lambda done, power: ops.ones_like(done),
}


@keras.saving.register_keras_serializable(package="keras_bert")
class WarmupDecay(keras.optimizers.schedules.LearningRateSchedule):
    """Rises linearly to `peak` over `warmup_steps`, then falls to 0 at `total_steps` (or, constant, stays).

    Step 0 already learns, at peak / warmup_steps; the original spent it at rate 0.

    Args:
        peak: the highest rate.
        warmup_steps: steps of the rise.
        total_steps: steps of the run.
        decay: `linear` (the paper's), `cosine`, `polynomial` or `constant`.
        power: of the polynomial.
        decay_share: share of the steps after the warm-up, the last ones, over which the rate falls; above 0, to 1.
    """

    def __init__(self, peak, warmup_steps, total_steps, decay="linear", power=2.0, decay_share=1.0):
        super().__init__()
        self.peak = peak
        self.warmup_steps = warmup_steps
        self.total_steps = total_steps
        self.decay = decay
        self.power = power
        self.decay_share = decay_share

    def __call__(self, step):
        step = ops.cast(step, "float32")
        fallen = self.share_done(step)
        if self.decay_share < 1.0:
            fallen = ops.maximum(1.0 - (1.0 - fallen) / self.decay_share, 0.0)
        return self.peak * self.share_risen(step) * DECAYS[self.decay](fallen, self.power)

    def share_risen(self, step):
        """How far `step` (float32) is on the way up, above 0 to 1."""
        return ops.minimum((step + 1.0) / max(self.warmup_steps, 1), 1.0)

    def share_done(self, step):
        """How far `step` (float32) is on the way from the end of the warm-up to the end of the run, 0 to 1."""
        return ops.clip((step - self.warmup_steps) / max(self.total_steps - self.warmup_steps, 1), 0.0, 1.0)

    def get_config(self):
        return {
            "peak": self.peak,
            "warmup_steps": self.warmup_steps,
            "total_steps": self.total_steps,
            "decay": self.decay,
            "power": self.power,
            "decay_share": self.decay_share,
        }


class TimedWarmupDecay(WarmupDecay):
    """The same by the clock: a rise over so many steps and over a share of the run's time, then a fall over the rest.

    Whichever of the two takes longer is what the rise follows: minutes may go by before the first steps, while they are
    compiled, and nobody knows beforehand how many steps there will be.

    Args:
        share: float32 scalar variable, the share of the run's time that is over; see `training.budget.TimeBudget`.
        peak, warmup_steps, decay, power, decay_share: as in `WarmupDecay`.
        warmup_share: of the run's time, 0 to below 1.
    """

    def __init__(self, share, peak, warmup_steps, warmup_share=0.0, decay="linear", power=2.0, decay_share=1.0):
        super().__init__(peak, warmup_steps, 0, decay, power, decay_share)
        self.share = share
        self.warmup_share = warmup_share

    def share_risen(self, step):
        risen = super().share_risen(step)
        return ops.minimum(risen, self.share / self.warmup_share) if self.warmup_share else risen

    def share_done(self, step):
        return ops.clip((self.share - self.warmup_share) / (1.0 - self.warmup_share), 0.0, 1.0)
