"""The learning rate over a run: warm-up, then a decay or a constant rate."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import keras
from keras import ops

from keras_bert.core.settings import NotNegative, OneOf, PositiveShare, checked

if TYPE_CHECKING:
    import tensorflow as tf

# The factor on the peak, given how far (0 to 1) the run is from the end of the warm-up to its own end.
DECAYS: dict[str, Callable[[tf.Tensor, float], tf.Tensor]] = {
    "linear": lambda done, power: 1.0 - done,
    "cosine": lambda done, power: 0.5 * (1.0 + ops.cos(math.pi * done)),
    "polynomial": lambda done, power: ops.power(1.0 - done, power),
    "constant": lambda done, power: ops.ones_like(done),
}
Decay = Annotated[str, OneOf(lambda: list(DECAYS))]


@keras.saving.register_keras_serializable(package="keras_bert")
class WarmupDecay(keras.optimizers.schedules.LearningRateSchedule):
    """Rises linearly to `peak` over `warmup_steps`, then decays to 0 at `total_steps`, or stays if `constant`.

    Step 0 already trains, at peak / warmup_steps; in the original code its rate is 0.

    Args:
        peak: the highest learning rate.
        warmup_steps: length of the warm-up.
        total_steps: length of the run.
        decay: `linear` (the paper's), `cosine`, `polynomial` or `constant`.
        power: exponent of the polynomial.
        decay_share: the rate decays over this last share of the steps after the warm-up; more than 0, at most 1.

    Example:
        rate = keras_bert.WarmupDecay(peak=5e-5, warmup_steps=100, total_steps=1000)
        float(rate(99))      # 5e-05
        keras_bert.AdamW(rate)
    """

    @checked
    def __init__(
        self,
        peak: float,
        warmup_steps: NotNegative[int],
        total_steps: NotNegative[int],
        decay: Decay = "linear",
        power: float = 2.0,
        decay_share: PositiveShare = 1.0,
    ):
        super().__init__()
        self.peak = peak
        self.warmup_steps = warmup_steps
        self.total_steps = total_steps
        self.decay = decay
        self.power = power
        self.decay_share = decay_share

    def __call__(self, step: tf.Tensor | int) -> tf.Tensor:
        """The learning rate of step `step`, counted from 0: scalar float32."""
        step = ops.cast(step, "float32")
        fallen = self.share_done(step)
        if self.decay_share < 1.0:
            fallen = ops.maximum(1.0 - (1.0 - fallen) / self.decay_share, 0.0)
        return self.peak * self.share_risen(step) * DECAYS[self.decay](fallen, self.power)

    def share_risen(self, step: tf.Tensor) -> tf.Tensor:
        """How far `step` (float32) is through the warm-up, more than 0 and at most 1."""
        return ops.minimum((step + 1.0) / max(self.warmup_steps, 1), 1.0)

    def share_done(self, step: tf.Tensor) -> tf.Tensor:
        """How far `step` (float32) is from the end of the warm-up to the end of the run, 0 to 1."""
        return ops.clip((step - self.warmup_steps) / max(self.total_steps - self.warmup_steps, 1), 0.0, 1.0)

    def get_config(self) -> dict[str, Any]:
        names = ("peak", "warmup_steps", "total_steps", "decay", "power", "decay_share")
        return {name: getattr(self, name) for name in names}


class TimedWarmupDecay(WarmupDecay):
    """`WarmupDecay` by the clock, for a run limited by time, whose number of steps is not known in advance.

    The warm-up lasts for `warmup_steps` or for `warmup_share` of the time, whichever takes longer, because compiling
    the first steps may take minutes. The decay runs from `warmup_share` of the time to its end, so it may begin while a
    slow start is still warming up.

    Args:
        share: float32 scalar, the share of the run's time that has passed; see `training.budget.TimeBudget`.
        peak, warmup_steps, decay, power, decay_share: as in `WarmupDecay`.
        warmup_share: share of the run's time, at least 0 and less than 1.
    """

    def __init__(
        self,
        share: tf.Variable,
        peak: float,
        warmup_steps: int,
        warmup_share: float = 0.0,
        decay: str = "linear",
        power: float = 2.0,
        decay_share: float = 1.0,
    ):
        super().__init__(peak, warmup_steps, 0, decay, power, decay_share)
        self.share = share
        self.warmup_share = warmup_share

    def share_risen(self, step: tf.Tensor) -> tf.Tensor:
        risen = super().share_risen(step)
        return ops.minimum(risen, self.share / self.warmup_share) if self.warmup_share else risen

    def share_done(self, step: tf.Tensor) -> tf.Tensor:
        return ops.clip((self.share - self.warmup_share) / (1.0 - self.warmup_share), 0.0, 1.0)
