"""LAMB (You et al. 2020, algorithm 2): Adam's update, scaled for each tensor to the norm of its weights."""

import math
from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from keras_bert.config.training import OptimizerConfig
from keras_bert.training.optimizers.base import BertOptimizer, Variable, value_of


@keras.saving.register_keras_serializable(package="keras_bert")
class LAMB(BertOptimizer):
    """LAMB for gradients that are already reduced and clipped.

    A tensor's update is Adam's with weight decay, times the learning rate and the trust ratio: the norm of the tensor's
    weights divided by that of Adam's update, or 1 if either is 0. Biases and LayerNorm have neither decay nor ratio.

    Args:
        learning_rate, decay: as in `BertOptimizer`.
        beta_1, beta_2, epsilon: as in Adam; epsilon is added to the root of the second moment.
        bias_correction: True is the paper's algorithm; False is what ALBERT was trained with.
        **kwargs: as in `BertOptimizer`.
    """

    def __init__(
        self,
        learning_rate: float | keras.optimizers.schedules.LearningRateSchedule,
        decay: float = 0.01,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-6,
        bias_correction: bool = True,
        name: str = "lamb",
        **kwargs: Any,
    ):
        super().__init__(learning_rate, decay, name=name, **kwargs)
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon
        self.bias_correction = bias_correction

    def build(self, variables: Sequence[keras.Variable]) -> None:
        if self.built:
            return
        super().build(variables)
        self.first_moments, self.second_moments = self.add_optimizer_variables(variables, ["momentum", "velocity"])

    def shared_by_variables(self, step: tf.Tensor) -> tuple[tf.Tensor, ...]:
        return tuple(_weight_so_far(beta, step) for beta in (self.beta_1, self.beta_2)) if self.bias_correction else ()

    def update_variable(
        self, index: int, gradient: tf.Tensor, variable: Variable, learning_rate: tf.Tensor, *shared: tf.Tensor
    ) -> None:
        first, second = self.first_moments[index], self.second_moments[index]
        self.assign_add(first, (gradient - value_of(first)) * (1.0 - self.beta_1))
        self.assign_add(second, (tf.square(gradient) - value_of(second)) * (1.0 - self.beta_2))
        mean, variance = value_of(first), value_of(second)
        if self.bias_correction:
            first_weight, second_weight = shared
            mean /= first_weight
            variance /= second_weight
        update = mean / (tf.sqrt(variance) + self.epsilon)
        if self._decayed[index]:
            weights = value_of(variable)
            update += self.decay * weights
            learning_rate *= trust_ratio(weights, update)
        self.assign_sub(variable, learning_rate * update)

    def get_config(self) -> dict[str, Any]:
        own = {name: getattr(self, name) for name in ("beta_1", "beta_2", "epsilon", "bias_correction")}
        return {**super().get_config(), **own}


def _weight_so_far(beta: float, step: tf.Tensor) -> tf.Tensor:
    """1 - beta^step, by `expm1`: in float32 the plain difference keeps few digits if beta is near 1."""
    return -tf.math.expm1(step * math.log(beta)) if beta else tf.ones_like(step)


def trust_ratio(weights: tf.Tensor, update: tf.Tensor) -> tf.Tensor:
    """Scalar: the norm of the weights divided by the norm of the update, or 1 if either is 0."""
    ratio = tf.math.divide_no_nan(tf.norm(weights), tf.norm(update))
    return tf.where(ratio > 0.0, ratio, tf.ones_like(ratio))


def from_config(
    config: OptimizerConfig, learning_rate: keras.optimizers.schedules.LearningRateSchedule, **shared: Any
) -> LAMB:
    """The optimizer of a recipe; `shared` are the arguments of every `BertOptimizer`."""
    shared |= {"beta_1": config.beta_1, "beta_2": config.beta_2, "epsilon": config.epsilon}
    return LAMB(learning_rate, bias_correction=config.bias_correction, **shared)
