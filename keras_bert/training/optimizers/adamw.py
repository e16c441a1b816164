"""Adam with decoupled weight decay (Loshchilov and Hutter 2019) and, unlike Google's code for BERT, bias correction."""

from typing import Any

import keras
import tensorflow as tf

from keras_bert.config.training import OptimizerConfig
from keras_bert.training.optimizers.base import BertOptimizer, Variable


@keras.saving.register_keras_serializable(package="keras_bert")
class AdamW(BertOptimizer, keras.optimizers.Adam):
    """AdamW for gradients that are already reduced and clipped; biases and LayerNorm are not decayed.

    It differs from Keras' own in two ways. Epsilon is added to the root of the bias-corrected second moment, as in the
    paper and in torch; Keras adds it before the correction, which makes it some 30 times larger in the first step. And
    nothing is reduced over replicas here, because gradients are clipped between the reduction and the update.

    Example:
        model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
        model.compile(keras_bert.AdamW(2e-5), "mse")
    """

    def __init__(
        self,
        learning_rate: float | keras.optimizers.schedules.LearningRateSchedule,
        decay: float = 0.01,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-6,
        name: str = "adamw",
        **kwargs: Any,
    ):
        if kwargs.get("amsgrad"):  # The kernel knows nothing of it.
            raise ValueError(
                "amsgrad: is not supported by keras_bert.AdamW. Received: True. Use keras.optimizers.AdamW."
            )
        super().__init__(learning_rate, decay, beta_1=beta_1, beta_2=beta_2, epsilon=epsilon, name=name, **kwargs)

    def shared_by_variables(self, step: tf.Tensor) -> tuple[tf.Tensor, ...]:
        beta_1, beta_2 = tf.constant(self.beta_1), tf.constant(self.beta_2)
        beta1_power, beta2_power = tf.pow(beta_1, step), tf.pow(beta_2, step)
        # The kernel adds epsilon to the uncorrected root, so epsilon is multiplied by the correction that the paper
        # divides that root by.
        return beta_1, beta_2, beta1_power, beta2_power, self.epsilon * tf.sqrt(1.0 - beta2_power)

    def update_variable(
        self, index: int, gradient: tf.Tensor, variable: Variable, learning_rate: tf.Tensor, *shared: tf.Tensor
    ) -> None:
        beta_1, beta_2, beta1_power, beta2_power, epsilon = shared
        self.decay_variable(index, variable, learning_rate)
        # One kernel and one pass over memory instead of ten.
        tf.raw_ops.ResourceApplyAdam(
            var=_handle(variable),
            m=_handle(self._momentums[index]),
            v=_handle(self._velocities[index]),
            beta1_power=beta1_power,
            beta2_power=beta2_power,
            lr=learning_rate,
            beta1=beta_1,
            beta2=beta_2,
            epsilon=epsilon,
            grad=gradient,
        )


def _handle(variable: Variable) -> tf.Tensor:
    """The resource handle of a Keras variable, or of a strategy's copy of it on this device."""
    return (variable.value if isinstance(variable, keras.Variable) else variable).handle


def from_config(
    config: OptimizerConfig, learning_rate: keras.optimizers.schedules.LearningRateSchedule, **shared: Any
) -> AdamW:
    """The optimizer of a recipe; `shared` are the arguments of every `BertOptimizer`."""
    return AdamW(learning_rate, beta_1=config.beta_1, beta_2=config.beta_2, epsilon=config.epsilon, **shared)
