"""Weights of the vocabulary's tokens in masked LM, by how well each is predicted (Edman and Fraser 2025, AMLM)."""

import tensorflow as tf

# The share of the old weights that an update keeps, as in the paper.
_KEPT = 0.2
# The least weight, for what is always predicted right: in the authors' code, a probability of 0.005 for a mean of 0.15.
_LEAST = 0.005 / 0.15


class TokenWeights(tf.Module):
    """A weight for each token of the vocabulary: that of its predictions in the training loss.

    All begin at 1. Every `steps` steps, w becomes 0.2 w + 0.8 (1 − score), at least 1/30, and all are divided by their
    mean; score is (right + 0.5) / (predictions + 1), counted since the last update (the paper's "hard" score). The
    paper uses these weights as the probability of being masked; here masks stay as they are, functions of the example
    alone. In expectation, a token's part in the loss is the same.

    Every replica has the same weights and counts, so that a run has the same numbers on any number of replicas. Create
    it in the strategy's scope. Its variables belong in the checkpoint.

    Args:
        steps: steps between two updates.

    Attributes:
        weights: float32 variable [vocab].
        right, predictions: float32 variables [vocab], since the last update.
        seen: int64 variable, the steps since the last update.
    """

    def __init__(self, vocab_size: int, steps: int):
        super().__init__(name="token_weights")
        self._vocab_size, self._steps = vocab_size, steps
        self.weights = tf.Variable(tf.ones([vocab_size]), trainable=False, name="weights")
        self.right = tf.Variable(tf.zeros([vocab_size]), trainable=False, name="right")
        self.predictions = tf.Variable(tf.zeros([vocab_size]), trainable=False, name="predictions")
        self.seen = tf.Variable(0, trainable=False, dtype=tf.int64, name="seen")

    def with_memory(self, batch: dict[str, tf.Tensor], replica: int | tf.Tensor) -> dict[str, tf.Tensor]:
        """A replica's batch with its predictions weighted; the loss is divided by the sum of these weights."""
        weights = batch["masked_lm_weights"] * tf.gather(self.weights, batch["masked_lm_ids"])
        return {**batch, "masked_lm_weights": weights}

    def of_rows(
        self, outputs: dict[str, tf.Tensor], batch: dict[str, tf.Tensor], part: int | tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """How often each token was predicted in some rows, and how often correctly: float32 [vocab] each.

        Args:
            outputs: the model's, with `mlm_logits` [part's rows, predictions, vocab].
            batch: these rows, as `with_memory` returned them.
            part: which part of the global batch they are.
        """
        ids = batch["masked_lm_ids"]
        is_prediction = tf.cast(batch["masked_lm_weights"] > 0, tf.float32)
        is_right = tf.cast(tf.argmax(outputs["mlm_logits"], axis=-1, output_type=ids.dtype) == ids, tf.float32)

        def by_token(values: tf.Tensor) -> tf.Tensor:
            return tf.math.unsorted_segment_sum(values, ids, self._vocab_size)

        return {"right": by_token(is_prediction * is_right), "predictions": by_token(is_prediction)}

    def remember(self, rows: dict[str, tf.Tensor], batch: dict[str, tf.Tensor]) -> None:
        """Adds the sum of what `of_rows` returned for all parts, and updates the weights every `steps` steps."""
        right, predictions = self.right + rows["right"], self.predictions + rows["predictions"]
        seen = self.seen + 1
        is_due = seen >= self._steps
        score = (right + 0.5) / (predictions + 1.0)
        updated = tf.maximum(_KEPT * self.weights + (1.0 - _KEPT) * (1.0 - score), _LEAST)
        self.weights.assign(tf.where(is_due, updated / tf.reduce_mean(updated), self.weights))
        self.right.assign(tf.where(is_due, 0.0, right))
        self.predictions.assign(tf.where(is_due, 0.0, predictions))
        self.seen.assign(tf.where(is_due, tf.constant(0, tf.int64), seen))
