"""The segment of each token of a row."""

import tensorflow as tf


def segment_ids(is_token: tf.Tensor, second_starts: tf.Tensor, last_segment: int | None) -> tf.Tensor:
    """The segments of rows that are padded at the end: int32 [..., seq], 0 at padding.

    Args:
        is_token: bool [..., seq], False at padding.
        second_starts: int [...], the position where the second segment starts; the row's length if none.
        last_segment: the segment of each row's last token, as in `RowPattern`.
    """
    place = tf.range(tf.shape(is_token)[-1])
    segments = tf.cast(is_token & (place >= second_starts[..., tf.newaxis]), tf.int32)
    if last_segment is None:
        return segments
    lengths = tf.reduce_sum(tf.cast(is_token, tf.int32), axis=-1, keepdims=True)
    return tf.where(is_token & tf.equal(place, lengths - 1), last_segment, segments)
