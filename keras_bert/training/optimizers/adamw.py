"""Adam with bias correction and decoupled weight decay (Loshchilov and Hutter 2019), as BERT uses it."""

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

# Private names of Keras' optimisers, the reason for the upper bound of keras in requirements/core.txt. Check them in
# each new version before raising it:
#   _get_variable_index        a variable's index in the two lists below
#   _momentums, _velocities    the first and second moments, in the order of the variables
#   _all_reduce_sum_gradients  hook that sums gradients over replicas in `apply`; overridden to do nothing. Were it
#                              renamed, they would be summed twice and no error raised; tests/training/test_step.py
#                              compares several replicas with one.


@keras.saving.register_keras_serializable(package="keras_bert")
class AdamW(keras.optimizers.Adam):
    """AdamW for gradients that are already reduced and clipped; biases and LayerNorm are not decayed.

    It differs from Keras' own in two ways. Epsilon is added to the root of the bias-corrected second moment, as in the
    paper and in torch; Keras adds it before the correction, which makes it some 30 times larger in the first step. And
    nothing is reduced over replicas here, because gradients are clipped between the reduction and the update.
    """

    not_decayed: frozenset[str] = frozenset({"bias", "gamma", "beta"})

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
        super().__init__(
            learning_rate=learning_rate, beta_1=beta_1, beta_2=beta_2, epsilon=epsilon, name=name, **kwargs
        )
        self.decay = decay

    def build(self, variables: Sequence[keras.Variable]) -> None:
        if self.built:
            return
        super().build(variables)
        self._decayed = [variable.name not in self.not_decayed for variable in variables]

    def update_step(
        self, gradient: tf.Tensor, variable: keras.Variable | tf.Variable, learning_rate: tf.Tensor
    ) -> None:
        index = self._get_variable_index(variable)
        step = tf.cast(self.iterations + 1, tf.float32)
        beta1_power, beta2_power = tf.pow(self.beta_1, step), tf.pow(self.beta_2, step)
        if self._decayed[index]:
            self.assign_sub(variable, variable * (learning_rate * self.decay))
        # One kernel and one pass over memory instead of ten. The kernel adds epsilon to the uncorrected root, so
        # epsilon is multiplied by the correction by which the paper divides that root.
        tf.raw_ops.ResourceApplyAdam(
            var=_handle(variable),
            m=_handle(self._momentums[index]),
            v=_handle(self._velocities[index]),
            beta1_power=beta1_power,
            beta2_power=beta2_power,
            lr=learning_rate,
            beta1=self.beta_1,
            beta2=self.beta_2,
            epsilon=self.epsilon * tf.sqrt(1.0 - beta2_power),
            grad=gradient,
        )

    def _all_reduce_sum_gradients(self, grads_and_vars: Any) -> Any:
        # Keras' hook for the reduction over replicas, which `Step` has already done.
        return grads_and_vars

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "decay": self.decay}


def _handle(variable: keras.Variable | tf.Variable) -> tf.Tensor:
    """The resource handle of a Keras variable, or of a strategy's copy of it on this device."""
    return (variable.value if isinstance(variable, keras.Variable) else variable).handle
