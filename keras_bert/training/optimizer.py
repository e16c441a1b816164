"""The optimizer that a recipe asks for."""

import difflib
import fnmatch
import importlib
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import keras
import tensorflow as tf

from keras_bert.config.training import OptimizerConfig
from keras_bert.core.errors import UserError
from keras_bert.training.optimizers.base import BertOptimizer
from keras_bert.training.schedules import TimedWarmupDecay, WarmupDecay
from keras_bert.training.variable_names import EMBEDDINGS, block_of, part_of, trainable_names

_NAMES_SHOWN = 3


def rate_factors(config: OptimizerConfig, names: Sequence[str]) -> list[float]:
    """The factor on the learning rate of each variable, by `optimizer.layer_decay` and `optimizer.rates`.

    With L blocks, block i (from 0) has the factor `layer_decay^(L - i)` and the embeddings have `layer_decay^(L + 1)`;
    pooler and heads have 1. A variable is multiplied by the factors of all patterns that match its name.

    Args:
        names: what `variable_names.trainable_names` returned.

    Raises:
        UserError: a pattern matches no name; the message gives the nearest ones.
    """
    factors = depth_factors(config.layer_decay, names)
    for pattern, factor in config.rates.items():
        matched = [matches(name, pattern) for name in names]
        if not any(matched):
            raise UserError(
                f"optimizer.rates: needs patterns that match trainable variables. Received: {pattern!r}, which "
                f"matches none. The nearest names are {', '.join(_nearest(pattern, names))}."
            )
        factors = [old * factor if is_matched else old for old, is_matched in zip(factors, matched)]
    return factors


def depth_factors(layer_decay: float, names: Sequence[str]) -> list[float]:
    """The factors of `layer_decay` alone; see `rate_factors`."""
    blocks = 1 + max((index for name in names if (index := block_of(name)) is not None), default=-1)

    def depth(name: str) -> int:
        """How many factors of `layer_decay` a variable has."""
        if part_of(name) == EMBEDDINGS:
            return blocks + 1
        index = block_of(name)
        return 0 if index is None else blocks - index

    return [layer_decay ** depth(name) for name in names]


def matches(name: str, pattern: str) -> bool:
    """Whether a pattern matches one or more whole steps of a dotted name; `*`, `?` and `[…]` work as in file names."""
    return fnmatch.fnmatchcase(f".{name}.", f"*.{pattern}.*")


def _nearest(pattern: str, names: Sequence[str]) -> list[str]:
    """Names similar to a misspelt pattern, or else the parts of the model."""
    known = dict.fromkeys(piece for name in names for piece in _pieces(name.split(".")))
    parts = dict.fromkeys(part_of(name) if block_of(name) is None else "blocks" for name in names)
    return difflib.get_close_matches(pattern, known, _NAMES_SHOWN) or list(parts)


def _pieces(steps: Sequence[str]) -> Iterator[str]:
    """Yields every run of contiguous `steps` of a name, joined."""
    for start, end in itertools.combinations(range(len(steps) + 1), 2):
        yield ".".join(steps[start:end])


# The fewest warm-up steps of a run limited by time. A share of the time may cover hardly any, because it includes
# compiling the first ones.
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
        share: the variable of a `training.budget.TimeBudget`.
        model: what will be trained; needed for learning rates that differ between its parts.
        steps_per_epoch: a warm-up by the clock takes at least its share of these, up to 100; by default `total_steps`.

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
    module = importlib.import_module(f"keras_bert.training.optimizers.{config.name}")
    return module.from_config(config, schedule, **shared)
