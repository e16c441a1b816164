"""What all optimizers share: what weight decay spares, factors on the learning rate, and averaged weights."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import keras
import tensorflow as tf

# Private names of Keras' optimizers, the reason for the upper bound of keras in requirements/core.txt. Check them in
# each new version before raising it:
#   _get_variable_index        a variable's index in the lists of moments, here and in Keras
#   _momentums, _velocities    Adam's first and second moments, in the order of the variables (adamw.py only)
#   _backend_update_step       calls `update_step` with its last argument for each variable, after `merge_call`, which
#                              gives each replica its own; overridden to add what all variables share
#   _all_reduce_sum_gradients  hook that sums gradients over replicas in `apply`; overridden to do nothing. Were it
#                              renamed, they would be summed twice and no error raised; tests/training/test_step.py
#                              compares several replicas with one.

Variable: TypeAlias = keras.Variable | tf.Variable  # While it is updated, a strategy's copy on this device.


class BertOptimizer(keras.optimizers.Optimizer):
    """An optimizer for gradients that are already reduced over replicas and clipped.

    Args:
        learning_rate: a float or a schedule.
        decay: decoupled weight decay, applied to all variables except biases and LayerNorm.
        rate_factors: a factor on the learning rate for each variable, in the order of `build`; all 1 if empty.
        weight_average: decay of the exponential moving average of the weights, from 0 (none is kept) to less than 1.
        **kwargs: as in `keras.optimizers.Optimizer`.

    Attributes:
        averages: the averages of the variables, in the order of `build`; empty if none are kept. Each starts as its
            variable's value at `build` and then moves by `1 - weight_average` of the difference after every step.
    """

    not_decayed: frozenset[str] = frozenset({"bias", "gamma", "beta", "scale"})
    averages: Sequence[keras.Variable] = ()

    def __init__(
        self,
        learning_rate: float | keras.optimizers.schedules.LearningRateSchedule,
        decay: float = 0.01,
        rate_factors: Sequence[float] = (),
        weight_average: float = 0.0,
        **kwargs: Any,
    ):
        if kwargs.get("weight_decay"):  # Keras would decay all variables, in addition.
            raise ValueError(
                "weight_decay: needs to be given as decay, which spares biases and LayerNorm. "
                f"Received: {kwargs['weight_decay']}. Give decay={kwargs['weight_decay']}."
            )
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.decay = decay
        self.rate_factors = tuple(rate_factors)
        self.weight_average = weight_average

    def build(self, variables: Sequence[keras.Variable]) -> None:
        if self.built:
            return
        super().build(variables)
        if self.rate_factors and len(self.rate_factors) != len(variables):
            raise ValueError(
                f"rate_factors: needs one for each of {len(variables)} variables. Received: {len(self.rate_factors)}."
            )
        # The last word counts: an XLNet has an `r_w_bias`.
        self._decayed = [variable.name.rpartition("_")[2] not in self.not_decayed for variable in variables]
        if self.weight_average:
            self.averages = [
                self.add_variable_from_reference(variable, "average", _initially(variable)) for variable in variables
            ]

    def update_step(
        self, gradient: tf.Tensor, variable: Variable, learning_rate: tuple[tf.Tensor, tuple[tf.Tensor, ...]]
    ) -> None:
        rate, shared = learning_rate
        index = self._get_variable_index(variable)
        factor = self.rate_factor(index)
        self.update_variable(index, gradient, variable, rate if factor == 1.0 else rate * factor, *shared)
        if self.weight_average:
            difference = value_of(variable) - value_of(self.averages[index])
            self.assign_add(self.averages[index], difference * (1.0 - self.weight_average))

    def rate_factor(self, index: int) -> float:
        """The factor on the learning rate of the variable numbered `index` in `build`."""
        return self.rate_factors[index] if self.rate_factors else 1.0

    def shared_by_variables(self, step: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """What all variables of step `step`, counted from 1 (float32), share: computed once, not for each."""
        return ()

    def update_variable(
        self, index: int, gradient: tf.Tensor, variable: Variable, learning_rate: tf.Tensor, *shared: tf.Tensor
    ) -> None:
        """Updates the variable numbered `index` in `build`.

        `learning_rate` includes its factor; `shared` is what `shared_by_variables` returned.
        """
        raise NotImplementedError

    def decay_variable(self, index: int, variable: Variable, learning_rate: tf.Tensor) -> None:
        """Multiplies a variable by `1 - learning_rate * decay` unless it is spared."""
        if self._decayed[index]:
            self.assign_sub(variable, variable * (learning_rate * self.decay))

    def _backend_update_step(self, grads: Any, trainable_variables: Any, learning_rate: tf.Tensor) -> None:
        shared = self.shared_by_variables(tf.cast(self.iterations + 1, tf.float32))
        super()._backend_update_step(grads, trainable_variables, (learning_rate, shared))

    def _all_reduce_sum_gradients(self, grads_and_vars: Any) -> Any:
        # Keras' hook for the reduction over replicas, which `Step` has already done.
        return grads_and_vars

    def get_config(self) -> dict[str, Any]:
        own = {"decay": self.decay, "rate_factors": list(self.rate_factors), "weight_average": self.weight_average}
        return {**super().get_config(), **own}


def value_of(variable: Variable) -> tf.Tensor:
    """The value of a variable or, while it is updated, of its copy on this device."""
    return tf.convert_to_tensor(variable)


def _initially(variable: keras.Variable) -> Any:
    """An initializer that copies a variable."""
    return lambda shape, dtype=None: tf.identity(value_of(variable))
