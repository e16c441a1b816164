"""What a left-to-right model predicts, the token after each token of a row, and what a right-to-left one does."""

import tensorflow as tf

from keras_bert.config.bert import BOTH, NEXT
from keras_bert.text.vocabulary import Vocabulary


def next_tokens(word_ids: tf.Tensor, lengths: tf.Tensor, vocabulary: Vocabulary) -> dict[str, tf.Tensor]:
    """The predictions of a batch of packed rows.

    Every token but the first is predicted, [SEP] included, with one exception: the first token after a [SEP]. It begins
    another document, and nothing in the row says which one follows.

    Args:
        word_ids: int32 [batch, seq]; rows hold [CLS], tokens, [SEP], tokens, [SEP], … and padding.
        lengths: int32 [batch], tokens of each row that are not padding.
        vocabulary: for the id of [SEP].

    Returns:
        `input_word_ids` as given; `next_token_ids` int32 [batch, seq], the token after each position, 0 after the last;
        `next_token_weights` float32 [batch, seq], 1 where it is predicted.
    """
    following = tf.concat([word_ids[:, 1:], tf.zeros_like(word_ids[:, :1])], axis=1)
    has_next = tf.range(1, word_ids.shape[1] + 1) < lengths[:, None]
    return {
        "input_word_ids": word_ids,
        "next_token_ids": following,
        "next_token_weights": tf.cast(has_next & (word_ids != vocabulary.sep_id), tf.float32),
    }


def next_and_previous_tokens(word_ids: tf.Tensor, lengths: tf.Tensor, vocabulary: Vocabulary) -> dict[str, tf.Tensor]:
    """As `next_tokens`, and the same from right to left.

    Every token but the last is predicted from those after it, [CLS] included, with one exception: the token before a
    [SEP] that another document follows.

    Returns: as `next_tokens`; and `previous_token_ids` int32 [batch, seq], the token before each position, 0 before the
        first; `previous_token_weights` float32 [batch, seq], 1 where it is predicted.
    """
    before = tf.concat([tf.zeros_like(word_ids[:, :1]), word_ids[:, :-1]], axis=1)
    places = tf.range(word_ids.shape[1])
    is_between = (word_ids == vocabulary.sep_id) & (places < lengths[:, None] - 1)
    has_previous = (places > 0) & (places < lengths[:, None])
    return {
        **next_tokens(word_ids, lengths, vocabulary),
        "previous_token_ids": before,
        "previous_token_weights": tf.cast(has_previous & ~is_between, tf.float32),
    }


# By `objective.tokens`.
PREDICTIONS = {NEXT: next_tokens, BOTH: next_and_previous_tokens}
