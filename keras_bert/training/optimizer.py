"""Adam with bias correction and decoupled weight decay (Loshchilov and Hutter 2019), as BERT uses it."""

import keras
import tensorflow as tf

from keras_bert.training.schedules import TimedWarmupDecay, WarmupDecay


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
        step = tf.cast(self.iterations + 1, tf.float32)
        beta1_power, beta2_power = tf.pow(self.beta_1, step), tf.pow(self.beta_2, step)
        if self._decayed[index]:
            self.assign_sub(variable, variable * (learning_rate * self.decay))
        # One kernel and one pass over memory in place of ten. It adds epsilon to the root of the moment as it is,
        # so the correction that the paper divides that root by goes into epsilon as a factor.
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

    def _all_reduce_sum_gradients(self, grads_and_vars):
        # Keras' hook for the reduction over replicas: the step has done it already.
        return grads_and_vars

    def get_config(self):
        return {**super().get_config(), "decay": self.decay}


def _handle(variable):
    """The resource of a Keras variable, or of a strategy's copy of it on this device."""
    return (variable.value if isinstance(variable, keras.Variable) else variable).handle


def make_optimizer(settings, total_steps, share=None, warmup_share=0.0):
    """The optimiser of an `OptimizerConfig` for a run of `total_steps`; with `share` its rate follows the clock.

    `share` is the variable of a `training.budget.TimeBudget`, `warmup_share` as in `TimedWarmupDecay`.
    """
    shape = settings.schedule, settings.polynomial_power, settings.decay_share
    if share is None:
        schedule = WarmupDecay(settings.learning_rate, settings.warmup_steps, total_steps, *shape)
    else:
        schedule = TimedWarmupDecay(share, settings.learning_rate, settings.warmup_steps, warmup_share, *shape)
    return AdamW(schedule, settings.weight_decay, settings.beta_1, settings.beta_2, settings.epsilon)
