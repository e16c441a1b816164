"""What comes into a signature, strings or tokens, as the encoder's inputs."""

import tensorflow as tf

from keras_bert.config.reading import HEAD_TAIL, WINDOWS
from keras_bert.export.packing import (
    Rows,
    cut,
    cut_pairs,
    head_and_tail,
    pack,
    padded_length,
    padded_lengths,
    windows,
    windows_of_pairs,
)
from keras_bert.export.signature import Signature

FINEST = 8

TOKENS = tuple(
    tf.TensorSpec([None, None], tf.int32, name=name) for name in ("input_word_ids", "input_mask", "input_type_ids")
)


class Reader:
    """Texts, pairs of texts and tokens to what the encoder takes, any bytes and any numbers.

    Args:
        config: the model's `BertConfig`.
        tokenizer: its `WordPieceTokenizer`.
        reading: its `ReadingConfig`.

    Attributes:
        lengths: the lengths that batches are padded to.
    """

    def __init__(self, config, tokenizer, reading):
        self.config, self.tokenizer, self.reading = config, tokenizer, reading
        self.vocabulary = tokenizer.vocabulary
        self.lengths = padded_lengths(reading.max_length, FINEST)
        self._token_lengths = padded_lengths(config.max_position_embeddings, FINEST)

    def text(self, texts):
        """The encoder's dict of texts `[batch]`, what is too long cut at the end."""
        return self.pieces(Rows.of(self.tokenizer.tokenize(texts)))

    def rows(self, *columns):
        """Texts, or pairs of texts, `[batch]`, with long ones read as in training (`tasks.sequence_rows`).

        Returns: `(the encoder's dict, int32 [rows] the text that each row is of)`, None for the latter where every text
            is one row.
        """
        rows = [Rows.of(self.tokenizer.tokenize(texts)) for texts in columns]
        longest = self.reading.max_length - 1 - len(rows)
        if self.reading.long == WINDOWS:
            stride = self.reading.stride or max(longest // 2, 1)
            if len(rows) == 2:
                *segments, texts = windows_of_pairs(*rows, longest, stride)
            else:
                *segments, texts = windows(*rows, tf.fill(tf.shape(rows[0].lengths), longest), stride)
            return pack(segments, self.vocabulary, self.lengths), texts
        segments = list(cut_pairs(*rows, longest)) if len(rows) == 2 else [cut(*rows, longest)]
        if self.reading.long == HEAD_TAIL:
            segments = [head_and_tail(row, kept) for row, kept in zip(rows, segments, strict=True)]
        return pack(segments, self.vocabulary, self.lengths), None

    def pieces(self, rows):
        """The encoder's dict of `Rows` that stand for texts."""
        return pack([cut(rows, self.reading.max_length - 2)], self.vocabulary, self.lengths)

    def tokens(self, input_word_ids, input_mask, input_type_ids):
        """`(the encoder's dict, is_valid [batch] bool)` of tokens as a client gives them, each `[batch, seq]` int32.

        Columns that are padding in every row are left out. A row with a token that the model has no vector for (an id,
        a segment or a position out of range) is not valid; it is computed with others in their place, because an error
        would fail all requests that the server put into the same batch.
        """
        places = tf.range(tf.shape(input_word_ids)[1])
        is_real = tf.not_equal(input_mask, 0)
        needed = tf.reduce_max(tf.concat([tf.reshape(tf.where(is_real, places + 1, 0), [-1]), [1]], axis=0))
        seq = padded_length(self._token_lengths, needed)
        ids_fit = _is_within(input_word_ids, self.config.vocab_size)
        types_fit = _is_within(input_type_ids, self.config.type_vocab_size)
        fits = ids_fit & types_fit & (places < self.config.max_position_embeddings)
        columns = (
            tf.where(ids_fit, input_word_ids, self.vocabulary.pad_id),
            tf.cast(is_real, tf.int32),
            tf.where(types_fit, input_type_ids, 0),
        )
        columns = (tf.pad(column[:, :seq], [[0, 0], [0, tf.maximum(seq - tf.size(places), 0)]]) for column in columns)
        inputs = {spec.name: column for spec, column in zip(TOKENS, columns, strict=True)}
        return inputs, tf.reduce_all(fits | ~is_real, axis=1)


def token_signature(reader, answer):
    """The `Signature` on tokens as a client gives them: `answer`, a function of the encoder's dict, in rows that are
    valid."""

    def of_tokens(*tokens):
        inputs, is_valid = reader.tokens(*tokens)
        return without_invalid(answer(inputs), is_valid)

    return Signature(of_tokens, TOKENS)


def filled(strings):
    """`(is_there [batch, n] bool, counts [batch] int32)` of strings `[batch, n]` with "" behind each row's last."""
    number = tf.range(1, tf.shape(strings)[1] + 1)
    # The maximum of no columns at all is the least number that there is.
    counts = tf.maximum(tf.reduce_max(tf.where(tf.not_equal(strings, ""), number, 0), axis=1), 0)
    return number <= counts[:, tf.newaxis], counts


def without_invalid(outputs, is_valid):
    """Outputs with NaN, 0 or "" in the rows that are not valid; `is_valid` `[batch]` bool."""
    return {
        name: tf.where(_spread(is_valid, values), values, _nothing(values.dtype)) for name, values in outputs.items()
    }


def _is_within(values, size):
    return (values >= 0) & (values < size)


def _spread(is_valid, values):
    """`[batch]` as `[batch, 1, …]` of the rank of `values`."""
    return tf.reshape(is_valid, [-1, *[1] * (values.shape.rank - 1)])


def _nothing(dtype):
    return tf.constant("" if dtype == tf.string else float("nan") if dtype.is_floating else 0, dtype)
