"""Learning rates over the steps."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_bert")
class LinearWarmupLinearDecay(keras.optimizers.schedules.LearningRateSchedule):
    """Rises linearly to `peak` over `warmup_steps`, then falls linearly to 0 at `total_steps`.

    Step 0 already learns, at peak / warmup_steps; the original spent it at rate 0.
    """

    def __init__(self, peak, warmup_steps, total_steps):
        super().__init__()
        self.peak = peak
        self.warmup_steps = warmup_steps
        self.total_steps = total_steps

    def __call__(self, step):
        step = ops.cast(step, "float32")
        rising = (step + 1.0) / max(self.warmup_steps, 1)
        falling = (self.total_steps - step) / max(self.total_steps - self.warmup_steps, 1)
        return self.peak * ops.clip(ops.minimum(rising, falling), 0.0, 1.0)

    def get_config(self):
        return {"peak": self.peak, "warmup_steps": self.warmup_steps, "total_steps": self.total_steps}
