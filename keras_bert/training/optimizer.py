"""The optimizer that a recipe asks for."""

from typing import Any

import keras
import tensorflow as tf

from keras_bert.config.training import OptimizerConfig
from keras_bert.training.optimizers.adafactor import Adafactor
from keras_bert.training.optimizers.adamw import AdamW
from keras_bert.training.optimizers.base import BertOptimizer
from keras_bert.training.optimizers.lamb import LAMB
from keras_bert.training.rate_factors import rate_factors
from keras_bert.training.schedules import TimedWarmupDecay, WarmupDecay
from keras_bert.training.variable_names import trainable_names

# The fewest warm-up steps of a run limited by time. Its share of the time may cover hardly any steps, because the
# first ones are compiled in it.
_STEPS_BY_THE_CLOCK = 100


def make_optimizer(
    config: OptimizerConfig,
    total_steps: int,
    share: tf.Variable | None = None,
    model: keras.Model | None = None,
    steps_per_epoch: int | None = None,
) -> BertOptimizer:
    """The optimizer for a run of `total_steps` or, given `share`, for one whose learning rate follows the clock.

    Args:
        config: the recipe's `optimizer` section.
        total_steps: length of the run.
        share: the variable of a `training.budget.TimeBudget`.
        model: what will be trained; needed for learning rates that differ between its parts.
        steps_per_epoch: steps that a warm-up by the clock is a share of, at least; by default `total_steps`.

    Raises:
        UserError: a pattern in `optimizer.rates` matches none of the model's trainable variables.
    """
    shape = config.schedule, config.polynomial_power, config.decay_share
    warmup_share = 0.0 if config.warmup_steps else config.warmup_share
    schedule: WarmupDecay
    if share is None:
        warmup = config.warmup_steps or round(warmup_share * total_steps)
        schedule = WarmupDecay(config.learning_rate, warmup, total_steps, *shape)
    else:
        least = round(min(warmup_share * (steps_per_epoch or total_steps), _STEPS_BY_THE_CLOCK))
        warmup = config.warmup_steps or least
        schedule = TimedWarmupDecay(share, config.learning_rate, warmup, warmup_share, *shape)
    shared: dict[str, Any] = {"decay": config.weight_decay, "weight_average": config.weight_average}
    if config.rates or config.layer_decay != 1.0:
        if model is None:
            raise ValueError("optimizer.rates and optimizer.layer_decay need the model.")
        shared["rate_factors"] = rate_factors(config, trainable_names(model))
    if config.name == "adafactor":
        beta_1 = config.beta_1 if config.first_moment else 0.0
        return Adafactor(schedule, relative_step=config.relative_step, beta_1=beta_1, **shared)
    shared |= {
        "beta_1": config.beta_1,
        "beta_2": config.beta_2,
        "epsilon": config.epsilon,
    }
    if config.name == "lamb":
        return LAMB(schedule, bias_correction=config.bias_correction, **shared)
    return AdamW(schedule, **shared)
