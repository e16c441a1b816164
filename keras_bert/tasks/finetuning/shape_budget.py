"""How many static shapes a run's batches may have: each is traced or compiled, which takes as long as some steps."""

import tensorflow as tf

from keras_bert.config.finetuning import FinetuneConfig
from keras_bert.data.batches.length_batches import MANY_SHAPES
from keras_bert.data.batches.token_rows import TokenRows
from keras_bert.models.bert.config import BertConfig
from keras_bert.models.kind import kind_of_config
from keras_bert.training.strategy import on_cpus

_MOST_SHAPES = 8
# What is traced once has any number of shapes. With fewer batches of each, an epoch would leave little to chance.
_BATCHES_OF_A_SHAPE = 30
_STEPS_OF_A_SHAPE = 60  # On a GPU or TPU, whose steps are short.
# On CPUs, as measured on one core: FLOPs a second, what a step takes beside them, which in a small model is most of it,
# and what tracing or compiling a block of the encoder takes.
_FLOPS_A_SECOND, _SECONDS_BESIDE = 5e10, 0.005
_SECONDS_TO_TRACE, _SECONDS_TO_COMPILE = 1.1, 2.2


def affordable_shapes(
    rows: TokenRows, config: FinetuneConfig, model: BertConfig, strategy: tf.distribute.Strategy
) -> int:
    """The most shapes with which making them takes no longer than the run's steps, by estimate.

    Without XLA one CPU makes none (`Step.trace`), so that it has less padding; several have the same batches.

    Args:
        rows: the training rows.
        config: the recipe.
        model: the architecture.
        strategy: the run's strategy.
    """
    training, batches = config.training, len(rows) / config.training.batch_size
    traced_once = 0
    if on_cpus(strategy) and training.jit_compile is not True:
        traced_once = min(int(batches / _BATCHES_OF_A_SHAPE), MANY_SHAPES)
    if training.minutes:
        return max(traced_once, _MOST_SHAPES)
    steps = training.steps or training.epochs * batches
    affordable = min(int(steps / _steps_of_a_shape(rows, config, model, strategy)), _MOST_SHAPES)
    return max(traced_once, affordable, 1)


def _steps_of_a_shape(
    rows: TokenRows, config: FinetuneConfig, model: BertConfig, strategy: tf.distribute.Strategy
) -> float:
    """How many steps take as long as it takes to make a shape."""
    if not on_cpus(strategy) or config.features.kind:  # Features are computed once, so that steps are short.
        return _STEPS_OF_A_SHAPE
    count = len(rows.second_starts)
    predictions = round(len(rows.targets.ids) / count) if rows.targets else 0
    flops_of_a_row = kind_of_config(model).training_flops(model, round(len(rows.ids) / count), predictions)
    flops = config.training.batch_size * count / len(rows) * flops_of_a_row
    seconds = _SECONDS_TO_COMPILE if config.training.jit_compile else _SECONDS_TO_TRACE
    return seconds * model.num_blocks / (_SECONDS_BESIDE + flops / _FLOPS_A_SECOND)
