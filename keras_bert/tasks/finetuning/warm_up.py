"""The optimizer of a fine-tuning run, whose warm-up is a share of its length."""

from __future__ import annotations

import dataclasses

import keras
import tensorflow as tf

from keras_bert.config.finetuning import FinetuneOptimizerConfig
from keras_bert.training.optimizer import make_optimizer
from keras_bert.training.optimizers.base import BertOptimizer

# The fewest warm-up steps of a run limited by time. Its share of the time may cover hardly any steps, because the
# first ones are compiled in it.
_STEPS_BY_THE_CLOCK = 100


def finetuning_optimizer(
    config: FinetuneOptimizerConfig, steps: int, steps_per_epoch: int, share: tf.Variable | None, model: keras.Model
) -> BertOptimizer:
    """The optimizer with `warmup_steps` or, if that is 0, `warmup_share` of the run as warm-up.

    Args:
        config: the recipe's `optimizer` section.
        steps: length of the run.
        steps_per_epoch: length of an epoch.
        share: the variable of a `TimeBudget`; None for a run measured in steps.
        model: what is trained.
    """
    if config.warmup_steps:
        return make_optimizer(config, steps, share, model=model)
    if share is None:
        warmup = config.warmup_share * steps
    else:
        warmup = min(config.warmup_share * steps_per_epoch, _STEPS_BY_THE_CLOCK)
    config = dataclasses.replace(config, warmup_steps=round(warmup))
    return make_optimizer(config, steps, share, config.warmup_share, model)
