"""T5's decoder (Raffel et al. 2020, section 2.1), and the output layer from its states to the next token."""

from typing import Any

import keras
from keras import ops

from keras_bert.layers.decoder_block import DecodingBlock, KeysAndValues
from keras_bert.layers.dropout import Dropout
from keras_bert.layers.tensors import PlainLayer, Tensor, gather_positions, normal
from keras_bert.models.encoder_decoder import Decoder
from keras_bert.models.t5.blocks import T5Block, t5_norm
from keras_bert.models.t5.encoder import make_bias
from keras_bert.models.t5.kind import T5Config


class T5DecoderBlock(DecodingBlock, T5Block):  # type: ignore[misc]
    """A `T5Block` with attention to the encoder's states between its two parts."""

    def __init__(self, config: T5Config, **kwargs: Any) -> None:
        super().__init__(config, **kwargs)
        self.cross_attention_norm = t5_norm(config, self.dtype_policy, "cross_attention_norm")
        self.cross_attention = self.make_attention("cross_attention")

    def after_self_attention(
        self, hidden: Tensor, attended: Tensor, remembered: KeysAndValues, memory_bias: Tensor, training: bool = False
    ) -> Tensor:
        hidden = self.added(hidden, attended, training)
        crossed, _ = self.cross_attention(self.cross_attention_norm(hidden), remembered, memory_bias, training=training)
        return self.fed_forward(self.added(hidden, crossed, training), training)


class T5Decoder(Decoder):
    """Turns words into states, each of which sees the words up to its own and the encoder's states."""

    def __init__(self, config: T5Config, **kwargs: Any) -> None:
        super().__init__(config.num_attention_heads, config.head_size, **kwargs)
        self.config = config
        policy = self.dtype_policy
        self.embedding_dropout = Dropout(config.hidden_dropout_prob, dtype=policy, name="embedding_dropout")
        self.relative_bias = make_bias(config, both_sides=False, policy=policy)
        self.blocks = [
            T5DecoderBlock(config, dtype=policy, name=f"block_{index}") for index in range(config.decoder_layers)
        ]
        self.norm = t5_norm(config, policy, "norm")
        self.dropout = Dropout(config.hidden_dropout_prob, dtype=policy, name="dropout")

    def build(self, *input_shapes: tuple[int | None, ...]) -> None:
        for layer in (self.relative_bias, *self.blocks, self.norm):
            layer.build((None, None, self.config.hidden_size))

    def embedded(self, words: Tensor, first_place: Tensor | int, training: bool = False) -> Tensor:
        # The first word's place does not affect distances.
        return self.embedding_dropout(ops.cast(words, self.compute_dtype), training=training)

    def with_distances(self, attention_bias: Tensor, place: Tensor | None = None) -> Tensor:
        width = ops.shape(attention_bias)[-1]
        if place is None:
            return attention_bias + self.relative_bias.between(width, width)
        columns = ops.arange(width, dtype="int32")
        return attention_bias + self.relative_bias.of_distances(place - columns)[None, :, None]

    def finished(self, hidden: Tensor, training: bool = False) -> Tensor:
        return self.dropout(self.norm(hidden), training=training)


@keras.saving.register_keras_serializable(package="keras_bert")
class T5TokenHead(PlainLayer):
    """From states to logits, without biases.

    Args:
        tied: whether it uses the word embeddings as its weights and divides the states by the square root of their
            width. If not, it has a `kernel` [vocab, hidden] of its own (T5 1.1).

    Call arguments:
        states: [batch, seq, hidden].
        word_embeddings: [vocab, hidden], the encoder's table.
        positions: [batch, predictions] int32, where to predict; None for all positions.
    Returns: logits [batch, predictions or seq, vocab], float32.
    """

    def __init__(
        self, vocab_size: int, hidden_size: int, tied: bool = True, initializer_factor: float = 1.0, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.vocab_size = vocab_size
        self.hidden_size = hidden_size
        self.tied = tied
        self.initializer_factor = initializer_factor
        self.kernel = None

    def build(self, *input_shapes: tuple[int | None, ...]) -> None:
        if not self.tied:
            shape = (self.vocab_size, self.hidden_size)
            self.kernel = self.add_weight(name="kernel", shape=shape, initializer=normal(self.initializer_factor))

    def call(self, states: Tensor, word_embeddings: Tensor, positions: Tensor | None = None) -> Tensor:
        if positions is not None:
            states = gather_positions(states, positions)
        if self.tied:
            states, table = states * self.hidden_size**-0.5, word_embeddings
        else:
            table = self.kernel
        table = ops.cast(table, self.compute_dtype)
        return ops.cast(ops.matmul(states, ops.transpose(table)), "float32")
