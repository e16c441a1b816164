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
    """

    def __init__(self, peak, warmup_steps, total_steps, decay="linear", power=2.0):
        super().__init__()
        self.peak = peak
        self.warmup_steps = warmup_steps
        self.total_steps = total_steps
        self.decay = decay
        self.power = power

    def __call__(self, step):
        step = ops.cast(step, "float32")
        rising = ops.minimum((step + 1.0) / max(self.warmup_steps, 1), 1.0)
        return self.peak * rising * DECAYS[self.decay](self.share_done(step), self.power)

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
        }


class TimedWarmupDecay(WarmupDecay):
    """The same with a way down that follows the clock: the warm-up in steps, the decay over the time of the run.

    Args:
        share: float32 scalar variable, the share of the run's time that is over; see `training.budget.TimeBudget`.
        peak, warmup_steps, decay, power: as in `WarmupDecay`.
    """

    def __init__(self, share, peak, warmup_steps, decay="linear", power=2.0):
        super().__init__(peak, warmup_steps, 0, decay, power)
        self.share = share

    def share_done(self, step):
        return ops.convert_to_tensor(self.share)
