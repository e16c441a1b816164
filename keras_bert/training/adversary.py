"""The change of a row's embeddings that raises the loss most (Miyato et al. 2017, "Adversarial training methods")."""

import tensorflow as tf


def adversarial_change(embeddings: tf.Tensor, gradient: tf.Tensor, size: float) -> tf.Tensor:
    """What to add to each row's embeddings: a step of a certain length along the gradient of the loss.

    Args:
        embeddings: [batch, seq, hidden].
        gradient: of the loss, with respect to `embeddings`.
        size: the length of a row's change, as a share of the mean length of its tokens' embeddings. Unlike the paper's
            constant, it suits every width, and embeddings that are not normalized.

    Returns: [batch, seq, hidden] of the embeddings' type; zeros where the loss does not depend on a token.
    """
    gradient = tf.cast(gradient, tf.float32)
    # Normalized twice, because the square of a small number underflows.
    gradient = tf.math.divide_no_nan(gradient, tf.reduce_max(tf.abs(gradient), axis=(1, 2), keepdims=True))
    length = tf.norm(gradient, axis=(1, 2), keepdims=True)
    matters = tf.cast(tf.reduce_any(gradient != 0, axis=-1, keepdims=True), tf.float32)  # Padding does not.
    of_tokens = tf.norm(tf.cast(embeddings, tf.float32), axis=-1, keepdims=True) * matters
    mean = tf.math.divide_no_nan(
        tf.reduce_sum(of_tokens, axis=1, keepdims=True), tf.reduce_sum(matters, axis=1, keepdims=True)
    )
    return tf.cast(size * mean * tf.math.divide_no_nan(gradient, length), embeddings.dtype)
