"""The encoder for serving: it skips padding and uses few ops."""

from collections.abc import Callable, Mapping

import tensorflow as tf

from keras_bert.layers.attention import SelfAttention
from keras_bert.layers.embeddings import BertEmbeddings
from keras_bert.model_kinds import kind_of_config
from keras_bert.models.encoder import PADDING_BIAS, BertEncoder, last_state


def encode(
    encoder: BertEncoder,
    inputs: Mapping[str, tf.Tensor],
    keeps_padding: bool = False,
    look_up: Callable[[tf.Variable, tf.Tensor], tf.Tensor] = tf.gather,
) -> dict[str, tf.Tensor]:
    """The result of `encoder(inputs)`, computed by the encoder's own layers on matrices with one row per token.

    Only attention needs a padded batch; everything else is computed for real tokens only, so that a long text does not
    make the short ones in its batch as expensive. Matrices with one row per token also avoid the many small ops with
    which Keras multiplies [batch, seq, hidden], which take most of the time of one short text.

    Args:
        encoder: the encoder.
        inputs: its inputs, each [batch, seq] int32; seq is at least 1.
        keeps_padding: computes padding too, for XLA and LiteRT, which need shapes that do not depend on values.
        look_up: gets rows of an embedding table, such as one that is stored in fewer bits.

    Returns: `sequence_output` [batch, seq, hidden], 0 at padding, and, if there is a pooler, `pooled_output`
        [batch, hidden].
    """
    if not kind_of_config(encoder.config).attends:
        return _whole_rows(encoder, inputs)
    causal = encoder.config.is_causal
    tokens = _Tokens(inputs["input_mask"], keeps_padding, causal)
    ids, types = (tokens.taken(tf.reshape(inputs[name], [-1])) for name in ("input_word_ids", "input_type_ids"))
    states = _embed(encoder.embeddings, ids, tokens.positions, types, look_up)
    for block in encoder.blocks:
        states = block.after_attention(states, _attend(block.attention, states, tokens))
    sequence = tokens.padded(states)
    outputs = {"sequence_output": tf.where(tf.expand_dims(tokens.is_real, -1), sequence, 0.0)}
    if encoder.pooler is not None:
        pooled = last_state(sequence, inputs["input_mask"]) if encoder.config.pools_last else sequence[:, :1]
        outputs["pooled_output"] = encoder.pooler(pooled)
    return outputs


def _whole_rows(encoder: BertEncoder, inputs: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """The result of `encode` for an encoder that is not made of attention blocks, padding included."""
    outputs = encoder(dict(inputs))
    is_real = tf.not_equal(inputs["input_mask"], 0) | tf.equal(tf.range(tf.shape(inputs["input_mask"])[1]), 0)
    sequence = tf.where(tf.expand_dims(is_real, -1), outputs["sequence_output"], 0.0)
    pooled = {"pooled_output": outputs["pooled_output"]} if encoder.pooler is not None else {}
    return {"sequence_output": sequence, **pooled}


class _Tokens:
    """The tokens of a batch that are computed, and their positions.

    The first token of a row is always among them: a row of nothing but padding attends to it.

    Attributes:
        is_real: [batch, seq] bool.
        positions: int32 [tokens], the position of each in its row.
        attention_bias: [batch, 1, 1 or seq, seq].
    """

    def __init__(self, mask: tf.Tensor, keeps_padding: bool, causal: bool) -> None:
        self._shape = tf.shape(mask)
        places = tf.range(self._shape[1])
        self.is_real = tf.not_equal(mask, 0) | tf.equal(places, 0)
        is_seen = tf.expand_dims(tf.expand_dims(self.is_real, 1), 1)  # LiteRT has no op for several new axes at once.
        if causal:
            is_seen &= places <= tf.expand_dims(places, 1)
        self.attention_bias = tf.where(is_seen, 0.0, PADDING_BIAS)
        self._keeps_padding = keeps_padding
        positions = tf.reshape(tf.broadcast_to(places, self._shape), [-1])
        if not keeps_padding:
            is_real = tf.reshape(self.is_real, [-1])
            self._taken = tf.cast(tf.where(is_real)[:, 0], tf.int32)
            # The index of each token of the padded batch among the real ones; at padding, that of one before it.
            self._place = tf.cumsum(tf.cast(is_real, tf.int32)) - 1
        self.positions = self.taken(positions)

    def taken(self, values: tf.Tensor) -> tf.Tensor:
        """Selects the tokens from `[batch * seq, …]`."""
        return values if self._keeps_padding else tf.gather(values, self._taken)

    def padded(self, values: tf.Tensor, *shape: int) -> tf.Tensor:
        """`[tokens, hidden]` as `[batch, seq, *shape]`, by default with shape hidden. Values at padding are finite."""
        values = values if self._keeps_padding else tf.gather(values, self._place)
        return tf.reshape(values, tf.concat([self._shape, shape or values.shape[1:]], axis=0))


def _embed(
    embeddings: BertEmbeddings,
    ids: tf.Tensor,
    positions: tf.Tensor,
    types: tf.Tensor,
    look_up: Callable[[tf.Variable, tf.Tensor], tf.Tensor],
) -> tf.Tensor:
    words = look_up(embeddings.word_embeddings.value, ids)
    words += look_up(embeddings.position_embeddings.value, positions)
    words += look_up(embeddings.token_type_embeddings.value, embeddings.segments(types))
    return embeddings.mapped(embeddings.layer_norm(words))


def _attend(attention: SelfAttention, states: tf.Tensor, tokens: _Tokens) -> tf.Tensor:
    """Self-attention of `[tokens, hidden]`."""
    heads, head_size = attention.num_attention_heads, attention.head_size

    def split_heads(vectors: tf.Tensor) -> tf.Tensor:  # [tokens, hidden] -> [batch, heads, seq, head_size]
        return tf.transpose(tokens.padded(vectors, heads, head_size), [0, 2, 1, 3])

    query = split_heads(attention.query(states) * head_size**-0.5)
    key, value = split_heads(attention.key(states)), split_heads(attention.value(states))
    probabilities = tf.nn.softmax(tf.matmul(query, key, transpose_b=True) + tokens.attention_bias)
    context = tf.transpose(tf.matmul(probabilities, value), [0, 2, 1, 3])
    return attention.output_projection(tokens.taken(tf.reshape(context, [-1, heads * head_size])))
