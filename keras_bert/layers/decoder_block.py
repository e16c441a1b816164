"""One layer of the Transformer decoder, LayerNorm after each residual (Vaswani et al. 2017, section 3.1)."""

import abc
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import keras
from keras import ops

from keras_bert.layers.dropout import Dropout
from keras_bert.layers.encoder_block import EncoderBlock, SelfAttention
from keras_bert.layers.tensors import Tensor

# Keys and values of attention, each [batch, heads, width, head_size].
KeysAndValues: TypeAlias = tuple[Tensor, Tensor]


def written(before: Sequence[Tensor], new: Sequence[Tensor], is_new: Tensor) -> KeysAndValues:
    """The keys and values, with those of one place overwritten.

    Args:
        before: keys and values [batch, heads, width, head_size].
        new: the key and value of the place, [batch, heads, 1, head_size].
        is_new: [width] bool, true at the place.
    """
    is_new = is_new[None, None, :, None]
    key, value = (ops.where(is_new, *both) for both in zip(new, before, strict=True))
    return key, value


@keras.saving.register_keras_serializable(package="keras_bert")
class CrossAttention(SelfAttention):
    """Attention of every decoder position to the encoder positions that `attention_bias` does not mask.

    Call arguments:
        hidden: [batch, targets, hidden], the decoder's states.
        remembered: the `keys_and_values` of the encoder's states [batch, seq, hidden].
        attention_bias: [batch, 1, 1, seq].
    Returns: (output [batch, targets, hidden], probabilities [batch, heads, targets, seq] before dropout).
    """

    def call(  # type: ignore[override]  # Keys and values come from another text.
        self, hidden: Tensor, remembered: KeysAndValues, attention_bias: Tensor, training: bool = False
    ) -> tuple[Tensor, Tensor]:
        return self.attend(self.queries(hidden), *remembered, attention_bias, training)


class DecodingBlock(keras.layers.Layer, abc.ABC):
    """A block of a decoder: self-attention, attention to the encoder's states, then the feed-forward network.

    Call arguments:
        hidden: [batch, targets, hidden].
        attention_bias: [1 or batch, 1 or heads, targets, targets], which masks the targets that a target does not see.
        remembered: keys and values of the encoder's states, from `remember`.
        memory_bias: [batch, 1, 1, seq], which masks the encoder's padding.
    Returns: the output [batch, targets, hidden].
    """

    attention: Any  # `SelfAttention`, or a layer with its `project` and `attend`; so is that to the encoder's states.
    cross_attention: Any
    attention_input: Callable[[Tensor], Tensor]  # From the block's input to that of self-attention.

    @abc.abstractmethod
    def after_self_attention(
        self, hidden: Tensor, attended: Tensor, remembered: KeysAndValues, memory_bias: Tensor, training: bool = False
    ) -> Tensor:
        """The block's output, from its input and the output of self-attention."""

    def remember(self, memory: Tensor) -> KeysAndValues:
        """Keys and values of the encoder's states [batch, seq, hidden], the same for every target."""
        return self.cross_attention.keys_and_values(memory)

    def call(
        self,
        hidden: Tensor,
        attention_bias: Tensor,
        remembered: KeysAndValues,
        memory_bias: Tensor,
        training: bool = False,
    ) -> Tensor:
        projected = self.attention.project(self.attention_input(hidden))
        attended, _ = self.attention.attend(*projected, attention_bias, training)
        return self.after_self_attention(hidden, attended, remembered, memory_bias, training)

    def step(
        self,
        hidden: Tensor,
        attention_bias: Tensor,
        is_new: Tensor,
        before: KeysAndValues,
        remembered: KeysAndValues,
        memory_bias: Tensor,
    ) -> tuple[Tensor, KeysAndValues]:
        """Compute `call` for one target of each row, from the keys and values of the targets before it.

        Args:
            hidden: [batch, 1, hidden].
            attention_bias: [1, 1 or heads, 1, width], which masks the places after the target's.
            is_new: [width] bool, true at the target's place.
            before: keys and values of the targets, valid before the target's place.

        Returns: (output [batch, 1, hidden], keys and values, now with the target's).
        """
        query, *new = self.attention.project(self.attention_input(hidden))
        read = written(before, new, is_new)
        attended, _ = self.attention.attend(query, *read, attention_bias)
        return self.after_self_attention(hidden, attended, remembered, memory_bias), read


@keras.saving.register_keras_serializable(package="keras_bert")
class DecoderBlock(DecodingBlock, EncoderBlock):  # type: ignore[misc]
    """A `DecodingBlock` with the arguments of an `EncoderBlock`, whose parts each have a residual and LayerNorm."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        policy = self.dtype_policy
        sizes = self.hidden_size, self.num_attention_heads, self.initializer_range, self.attention_dropout_rate
        self.cross_attention = CrossAttention(*sizes, dtype=policy, name="cross_attention")
        self.cross_attention_dropout = Dropout(self.hidden_dropout_rate, dtype=policy, name="cross_attention_dropout")
        self.cross_attention_layer_norm = self._layer_norm("cross_attention_layer_norm")

    def build(self, *input_shapes: tuple[int | None, ...]) -> None:
        super().build(*input_shapes)
        self.cross_attention.build()
        self.cross_attention_layer_norm.build((None, None, self.hidden_size))

    def after_self_attention(
        self, hidden: Tensor, attended: Tensor, remembered: KeysAndValues, memory_bias: Tensor, training: bool = False
    ) -> Tensor:
        hidden = self.with_attended(hidden, attended, training)
        crossed, _ = self.cross_attention(hidden, remembered, memory_bias, training=training)
        crossed = self.cross_attention_dropout(crossed, training=training)
        return self.fed_forward(self.cross_attention_layer_norm(hidden + crossed), training)
