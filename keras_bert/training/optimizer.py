"""Adam with bias correction and decoupled weight decay (Loshchilov and Hutter 2019), as BERT uses it."""

import keras
from keras import ops

from keras_bert.training.schedules import WarmupDecay


@keras.saving.register_keras_serializable(package="keras_bert")
class AdamW(keras.optimizers.Adam):
    """AdamW whose gradients come reduced and clipped; biases and LayerNorm are not decayed.

    Differs from Keras' own: epsilon is added to the root of the bias-corrected second moment, as in the
    paper and in torch (Keras adds it before the correction, some 30 times more in the first step); and
    nothing is reduced over replicas here, because clipping must stand between the reduction and the update.
    """

    not_decayed = frozenset({"bias", "gamma", "beta"})

    def __init__(self, learning_rate, decay=0.01, beta_1=0.9, beta_2=0.999, epsilon=1e-6, name="adamw", **kwargs):
        super().__init__(
            learning_rate=learning_rate, beta_1=beta_1, beta_2=beta_2, epsilon=epsilon, name=name, **kwargs
        )
        self.decay = decay

    def build(self, variables):
        if self.built:
            return
        super().build(variables)
        self._decayed = [variable.name not in self.not_decayed for variable in variables]

    def update_step(self, gradient, variable, learning_rate):
        index = self._get_variable_index(variable)
        first, second = self._momentums[index], self._velocities[index]
        step = ops.cast(self.iterations + 1, "float32")
        correction_1 = 1.0 - ops.power(self.beta_1, step)
        correction_2 = 1.0 - ops.power(self.beta_2, step)

        self.assign_add(first, (gradient - first) * (1.0 - self.beta_1))
        self.assign_add(second, (ops.square(gradient) - second) * (1.0 - self.beta_2))
        update = (first / correction_1) / (ops.sqrt(second / correction_2) + self.epsilon)
        if self._decayed[index]:
            update = update + variable * self.decay
        self.assign_sub(variable, update * learning_rate)

    def _all_reduce_sum_gradients(self, grads_and_vars):
        # Keras' hook for the reduction over replicas: the step has done it already.
        return grads_and_vars

    def get_config(self):
        return {**super().get_config(), "decay": self.decay}


def make_optimizer(settings, total_steps):
    """The optimiser of an `OptimizerConfig` for a run of `total_steps`."""
    schedule = WarmupDecay(
        settings.learning_rate, settings.warmup_steps, total_steps, settings.schedule, settings.polynomial_power
    )
    return AdamW(schedule, settings.weight_decay, settings.beta_1, settings.beta_2, settings.epsilon)
