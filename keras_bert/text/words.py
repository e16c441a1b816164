"""Which pieces of a text belong to one word."""

import tensorflow as tf

from keras_bert.text.vocabulary import Vocabulary


def continues_word(vocabulary: Vocabulary, ids: tf.Tensor) -> tf.Tensor:
    """Whether tokens continue the word of the token before them on the last axis: bool, of the shape of `ids`.

    A piece with "##" always does. SentencePiece has no such mark: a piece without "▁" may follow a word or punctuation.
    It continues a word after a piece with letters or digits, and after a "▁" alone, which joins what follows. The first
    of a row is judged as if it followed itself.
    """
    continues = tf.gather(tf.constant(vocabulary.is_continuation), ids)
    if vocabulary.is_continued.all():
        return continues
    before = tf.concat([ids[..., :1], ids[..., :-1]], axis=-1)
    is_joined = tf.equal(before, vocabulary.word_start_id) & tf.not_equal(ids, vocabulary.word_start_id)
    return continues & tf.gather(tf.constant(vocabulary.is_continued), before) | is_joined
