"""Adafactor (Shazeer and Stern 2018, algorithms 4 and 5): second moments in the memory of a row and a column."""

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from keras_bert.config.training import OptimizerConfig
from keras_bert.training.optimizers.base import BertOptimizer, Variable, value_of


@keras.saving.register_keras_serializable(package="keras_bert")
class Adafactor(BertOptimizer):
    """Adafactor for gradients that are already reduced and clipped; biases and LayerNorm are not decayed.

    The second moment of a matrix is the product of its rows' means and its columns' means, divided by the mean of all;
    a vector's is kept whole. Its decay in step t is `1 - t^-0.8`. An update whose root mean square is larger than
    `clip_threshold` is scaled down to it.

    Args:
        learning_rate, decay: as in `BertOptimizer`. Weights decay by the learning rate, as in torch.
        relative_step: the step is `min(learning_rate, 1 / √t)` times the root mean square of the tensor's weights, at
            least `epsilon_2`. A constant learning rate of 0.01 then gives the paper's algorithm 5. Without it, the
            learning rate is used as it is.
        beta_1: decay of the first moment, an average of the updates; 0 keeps none.
        beta_2_power: the exponent -0.8 above.
        epsilon_1: added to squared gradients.
        epsilon_2: see `relative_step`.
        clip_threshold: see above.
        **kwargs: as in `BertOptimizer`.
    """

    def __init__(
        self,
        learning_rate: float | keras.optimizers.schedules.LearningRateSchedule,
        decay: float = 0.01,
        relative_step: bool = False,
        beta_1: float = 0.0,
        beta_2_power: float = -0.8,
        epsilon_1: float = 1e-30,
        epsilon_2: float = 1e-3,
        clip_threshold: float = 1.0,
        name: str = "adafactor",
        **kwargs: Any,
    ):
        super().__init__(learning_rate, decay, name=name, **kwargs)
        self.relative_step = relative_step
        self.beta_1 = beta_1
        self.beta_2_power = beta_2_power
        self.epsilon_1 = epsilon_1
        self.epsilon_2 = epsilon_2
        self.clip_threshold = clip_threshold

    def build(self, variables: Sequence[keras.Variable]) -> None:
        if self.built:
            return
        super().build(variables)
        # For each variable [rows' moments, columns' moments] or [all moments].
        self.second_moments = [self._new_second_moments(variable) for variable in variables]
        if self.beta_1:
            self.first_moments = self.add_optimizer_variables(variables, "momentum")

    def _new_second_moments(self, variable: keras.Variable) -> list[keras.Variable]:
        shape = tuple(variable.shape)
        if len(shape) < 2:
            return [self.add_variable_from_reference(variable, "velocity")]
        shapes = {"rows": shape[:-1], "columns": (*shape[:-2], shape[-1])}
        return [self.add_variable(shape, dtype=variable.dtype, name=name) for name, shape in shapes.items()]

    def shared_by_variables(self, step: tf.Tensor) -> tuple[tf.Tensor, ...]:
        return tf.pow(step, self.beta_2_power), tf.math.rsqrt(step)

    def update_variable(
        self, index: int, gradient: tf.Tensor, variable: Variable, learning_rate: tf.Tensor, *shared: tf.Tensor
    ) -> None:
        share, root = shared
        update = gradient / self._root(self.second_moments[index], tf.square(gradient) + self.epsilon_1, share)
        update /= tf.maximum(1.0, root_mean_square(update) / self.clip_threshold)
        rate = learning_rate
        if self.relative_step:
            scale = tf.maximum(self.epsilon_2, root_mean_square(value_of(variable)))
            rate = tf.minimum(learning_rate, self.rate_factor(index) * root) * scale
        update *= rate
        if self.beta_1:
            first = self.first_moments[index]
            self.assign_add(first, (update - value_of(first)) * (1.0 - self.beta_1))
            update = value_of(first)
        self.decay_variable(index, variable, learning_rate)
        self.assign_sub(variable, update)

    def _root(self, moments: Sequence[keras.Variable], squares: tf.Tensor, share: tf.Tensor) -> tf.Tensor:
        """The root of a variable's second moments, of its shape, after `share` of each moment is replaced."""
        means = [squares] if len(moments) == 1 else [tf.reduce_mean(squares, axis) for axis in (-1, -2)]
        for moment, mean in zip(moments, means, strict=True):
            self.assign_add(moment, (mean - value_of(moment)) * share)
        if len(moments) == 1:
            return tf.sqrt(value_of(moments[0]))
        rows, columns = map(value_of, moments)
        rows /= tf.reduce_mean(rows, axis=-1, keepdims=True)
        # Roots before the product: it can be too small for float32.
        return tf.sqrt(rows)[..., tf.newaxis] * tf.sqrt(columns)[..., tf.newaxis, :]

    def get_config(self) -> dict[str, Any]:
        names = ("relative_step", "beta_1", "beta_2_power", "epsilon_1", "epsilon_2", "clip_threshold")
        return {**super().get_config(), **{name: getattr(self, name) for name in names}}


def root_mean_square(values: tf.Tensor) -> tf.Tensor:
    """The root mean square of a tensor, a scalar."""
    return tf.sqrt(tf.reduce_mean(tf.square(values)))


def from_config(
    config: OptimizerConfig, learning_rate: keras.optimizers.schedules.LearningRateSchedule, **shared: Any
) -> Adafactor:
    """The optimizer of a recipe; `shared` are the arguments of every `BertOptimizer`."""
    beta_1 = config.beta_1 if config.first_moment else 0.0
    return Adafactor(learning_rate, relative_step=config.relative_step, beta_1=beta_1, **shared)
