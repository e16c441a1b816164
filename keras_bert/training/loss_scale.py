"""Dynamic loss scaling, which keeps float16 gradients out of underflow and overflow (Micikevicius et al. 2018)."""

from collections.abc import Sequence

import keras
import tensorflow as tf

# PyTorch, Keras and Apex start at 2^15 or 2^16 and double after 2,000 steps. Apex stops at 2^24 too.
INITIAL, FLOOR, CEILING = 2.0**15, 1.0, 2.0**24
GROWTH_STEPS = 2_000


class LossScale(tf.Module):
    """The factor by which a loss is multiplied before its gradients are computed in float16.

    It is doubled after `growth_steps` finite steps in a row. A step whose gradients overflow halves it and is skipped:
    weights, moments and the optimizer's own step count stay as they are, so that Adam's bias correction counts the
    updates of its moments and the warm-up loses no step. PyTorch, Keras and Apex do the same. The step of the run does
    advance: its batch is not read again. At the floor the scale cannot be halved any more, and a gradient that is not
    finite is an error; it changes no weight either.

    Create it in the strategy's scope. Its variables belong in the checkpoint.

    Args:
        growth_steps: how many finite steps in a row double it.

    Attributes:
        scale: float32 variable, a power of two, so that scaling loses no precision.
        finite_steps: int32 variable, finite steps since the scale last changed.
        skipped_steps: int32 variable, steps skipped in the whole run.
    """

    def __init__(self, initial: float = INITIAL, growth_steps: int = GROWTH_STEPS):
        super().__init__(name="loss_scale")
        self._growth_steps = growth_steps
        # Every replica assigns the same values to its own copy, because all of them see the reduced gradients.
        self.scale = tf.Variable(initial, trainable=False, name="scale")
        self.finite_steps = tf.Variable(0, trainable=False, name="finite_steps")
        self.skipped_steps = tf.Variable(0, trainable=False, name="skipped_steps")

    def unscaled(self, gradients: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """The gradients of the loss itself, from those of the scaled loss."""
        factor = 1.0 / self.scale
        return [gradient * factor for gradient in gradients]

    def apply(
        self,
        optimizer: keras.optimizers.Optimizer,
        gradients: Sequence[tf.Tensor],
        variables: Sequence[keras.Variable],
        is_finite: tf.Tensor,
    ) -> dict[str, tf.Tensor]:
        """Applies the gradients if they are finite and updates the scale; call in a replica context.

        Args:
            gradients: the gradients, reduced over replicas and unscaled.
            is_finite: bool scalar, the same in all replicas.

        Returns float32 scalars: `loss_scale` of this step; `was_skipped`, 1 if this step was skipped, else 0 (also at
        the floor, where a gradient that is not finite is an error); `skipped_steps`, how many were skipped so far.
        """
        scale = tf.convert_to_tensor(self.scale)
        _apply_if(is_finite, optimizer, gradients, variables)
        was_skipped = ~is_finite & (scale > FLOOR)
        finite_steps = tf.where(is_finite, self.finite_steps + 1, 0)
        grows = finite_steps >= self._growth_steps
        lower, higher = tf.maximum(scale / 2.0, FLOOR), tf.minimum(scale * 2.0, CEILING)
        self.scale.assign(tf.where(is_finite, tf.where(grows, higher, scale), lower))
        self.finite_steps.assign(tf.where(grows, 0, finite_steps))
        skipped_steps = self.skipped_steps + tf.cast(was_skipped, tf.int32)
        self.skipped_steps.assign(skipped_steps)
        return {
            "loss_scale": scale,
            "was_skipped": tf.cast(was_skipped, tf.float32),
            "skipped_steps": tf.cast(skipped_steps, tf.float32),
        }


def _apply_if(
    condition: tf.Tensor,
    optimizer: keras.optimizers.Optimizer,
    gradients: Sequence[tf.Tensor],
    variables: Sequence[keras.Variable],
) -> None:
    def apply(gradients: Sequence[tf.Tensor]) -> None:
        optimizer.apply(gradients, variables)

    strategy = tf.distribute.get_strategy()
    if strategy.num_replicas_in_sync == 1 or tf.__internal__.distribute.strategy_supports_no_merge_call():
        tf.cond(condition, lambda: apply(gradients), lambda: None)
        return

    # The optimizer merges the replicas, which a `tf.cond` of a replica does not allow. Keras' LossScaleOptimizer does
    # this too: merge the replicas, then branch, then call the optimizer in every replica again.
    def apply_everywhere(
        strategy: tf.distribute.Strategy, condition: tf.Tensor, gradients: Sequence[tf.Tensor]
    ) -> None:
        condition = strategy.experimental_local_results(condition)[0]
        call = strategy.extended.call_for_each_replica
        tf.cond(condition, lambda: call(apply, args=(gradients,)), lambda: None)

    tf.distribute.get_replica_context().merge_call(apply_everywhere, args=(condition, gradients))
