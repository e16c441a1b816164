"""The optimizer that a recipe asks for."""

import tensorflow as tf

from keras_bert.config.training import OptimizerConfig
from keras_bert.training.optimizers.adamw import AdamW
from keras_bert.training.schedules import TimedWarmupDecay, WarmupDecay


def make_optimizer(
    settings: OptimizerConfig, total_steps: int, share: tf.Variable | None = None, warmup_share: float = 0.0
) -> AdamW:
    """The optimiser for a run of `total_steps`, or, given `share`, for one whose learning rate follows the clock.

    `share` is the variable of a `training.budget.TimeBudget`; `warmup_share` is as in `TimedWarmupDecay`.
    """
    shape = settings.schedule, settings.polynomial_power, settings.decay_share
    schedule: WarmupDecay
    if share is None:
        schedule = WarmupDecay(settings.learning_rate, settings.warmup_steps, total_steps, *shape)
    else:
        schedule = TimedWarmupDecay(share, settings.learning_rate, settings.warmup_steps, warmup_share, *shape)
    return AdamW(schedule, settings.weight_decay, settings.beta_1, settings.beta_2, settings.epsilon)
