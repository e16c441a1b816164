"""The encoder on the tokens of a batch, without its padding, and with the fewest ops: for serving."""

import tensorflow as tf

from keras_bert.models.encoder import PADDING_BIAS


def encode(encoder, inputs, keeps_padding=False):
    """What `encoder(inputs)` gives, computed by the encoder's own layers on one row a token.

    Only attention needs texts side by side; everything else is computed for real tokens alone, so that a long text does
    not make the short ones beside it as costly. Matrices of one row a token also spare the many small ops by which
    Keras multiplies [batch, seq, hidden], which are most of the time of one short text.

    Args:
        encoder: a `BertEncoder`.
        inputs: its dict, each [batch, seq] int32; seq is 1 or more.
        keeps_padding: computes padding too, because XLA needs shapes that do not depend on values.

    Returns a dict: `sequence_output` [batch, seq, hidden], 0 at padding, and, where there is a pooler, `pooled_output`
        [batch, hidden].
    """
    tokens = _Tokens(inputs["input_mask"], keeps_padding)
    ids, types = (tokens.taken(tf.reshape(inputs[name], [-1])) for name in ("input_word_ids", "input_type_ids"))
    states = _embed(encoder.embeddings, ids, tokens.positions, types)
    for block in encoder.blocks:
        states = block.attention_layer_norm(states + _attend(block.attention, states, tokens))
        states = block.output_layer_norm(states + block.output_dense(block.activation(block.intermediate(states))))
    sequence = tokens.side_by_side(states)
    outputs = {"sequence_output": tf.where(tokens.is_real[..., tf.newaxis], sequence, 0.0)}
    if encoder.pooler is not None:
        outputs["pooled_output"] = encoder.pooler(sequence[:, :1])
    return outputs


class _Tokens:
    """Which tokens of a batch are computed, and how they stand in their texts.

    A text's first token is always among them: one that is padding alone attends to that.

    Attributes:
        is_real: [batch, seq] bool.
        positions: int32 [tokens], the place of each in its text.
        attention_bias: [batch, 1, 1, seq].
    """

    def __init__(self, mask, keeps_padding):
        self._shape = tf.shape(mask)
        places = tf.range(self._shape[1])
        self.is_real = tf.not_equal(mask, 0) | tf.equal(places, 0)
        self.attention_bias = tf.where(self.is_real, 0.0, PADDING_BIAS)[:, tf.newaxis, tf.newaxis]
        self._keeps_padding = keeps_padding
        positions = tf.reshape(tf.broadcast_to(places, self._shape), [-1])
        if not keeps_padding:
            is_real = tf.reshape(self.is_real, [-1])
            self._taken = tf.cast(tf.where(is_real)[:, 0], tf.int32)
            # Where a token of the padded batch stands among the real ones; at padding, one before it.
            self._place = tf.cumsum(tf.cast(is_real, tf.int32)) - 1
        self.positions = self.taken(positions)

    def taken(self, values):
        """The real tokens' of `[batch * seq, …]`."""
        return values if self._keeps_padding else tf.gather(values, self._taken)

    def side_by_side(self, values, *shape):
        """`[tokens, hidden]` as `[batch, seq, *shape]`; by default hidden. At padding stands something finite."""
        values = values if self._keeps_padding else tf.gather(values, self._place)
        return tf.reshape(values, tf.concat([self._shape, shape or values.shape[1:]], axis=0))


def _embed(embeddings, ids, positions, types):
    words = tf.gather(embeddings.word_embeddings.value, ids)
    words += tf.gather(embeddings.position_embeddings.value, positions)
    return embeddings.layer_norm(words + tf.gather(embeddings.token_type_embeddings.value, types))


def _attend(attention, states, tokens):
    """`SelfAttention` of `[tokens, hidden]`."""
    heads, head_size = attention.num_attention_heads, attention.head_size

    def split_heads(vectors):  # [tokens, hidden] -> [batch, heads, seq, head_size]
        return tf.transpose(tokens.side_by_side(vectors, heads, head_size), [0, 2, 1, 3])

    query = split_heads(attention.query(states) * head_size**-0.5)
    key, value = split_heads(attention.key(states)), split_heads(attention.value(states))
    probabilities = tf.nn.softmax(tf.matmul(query, key, transpose_b=True) + tokens.attention_bias)
    context = tf.transpose(tf.matmul(probabilities, value), [0, 2, 1, 3])
    return attention.output_projection(tokens.taken(tf.reshape(context, [-1, heads * head_size])))
