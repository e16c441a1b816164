"""How many static shapes a run's batches may have: each is traced or compiled, which takes as long as some steps."""

import tensorflow as tf

from keras_bert.config.finetuning import FinetuneConfig
from keras_bert.data.batches.length_batches import MANY_SHAPES
from keras_bert.data.batches.token_rows import TokenRows
from keras_bert.models.bert.config import BertConfig
from keras_bert.models.kind import kind_of_config
from keras_bert.training.strategy import on_cpus

_MOST_SHAPES = 8
# A step that is traced once takes any number of shapes. With fewer batches of each, shuffling would have little effect.
_BATCHES_OF_A_SHAPE = 30
_STEPS_OF_A_SHAPE = 60  # On a GPU or TPU, whose steps are short.
# On CPUs, as measured on one core: FLOPs a second; the other seconds of a step, in a small model most of them; and the
# seconds to trace or compile a block of the encoder.
_FLOPS_A_SECOND, _SECONDS_BESIDE = 5e10, 0.005
_SECONDS_TO_TRACE, _SECONDS_TO_COMPILE = 1.1, 2.2


def affordable_shapes(
    rows: TokenRows, config: FinetuneConfig, model: BertConfig, strategy: tf.distribute.Strategy
) -> int:
    """An estimate of the most shapes that take no longer to make than the run's steps.

    Without XLA, one CPU traces a step once for any shape (`Step.trace`), so it can have more shapes and less padding;
    several CPUs get the same batches.
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
    """How many steps take as long as making a shape."""
    if not on_cpus(strategy) or config.features.kind:  # Features are computed once, so steps are short.
        return _STEPS_OF_A_SHAPE
    count = len(rows.second_starts)
    predictions = round(len(rows.targets.ids) / count) if rows.targets else 0
    flops_of_a_row = kind_of_config(model).training_flops(model, round(len(rows.ids) / count), predictions)
    flops = config.training.batch_size * count / len(rows) * flops_of_a_row
    seconds = _SECONDS_TO_COMPILE if config.training.jit_compile else _SECONDS_TO_TRACE
    return seconds * model.num_blocks / (_SECONDS_BESIDE + flops / _FLOPS_A_SECOND)
