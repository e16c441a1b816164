"""Attention by relative positions (Dai et al. 2019, Transformer-XL), with XLNet's segments and second stream."""

from typing import Any

import keras
import numpy as np
from keras import ops

from keras_bert.layers.dropout import Dropout
from keras_bert.layers.tensors import PlainLayer, Tensor, truncated_normal

_LONGEST_WAVE = 10_000.0


def relative_sinusoids(queries: int | Tensor, keys: int | Tensor, width: int, clamp: int = -1) -> Tensor:
    """The sinusoids of all distances from a query back to a key, from `keys` down to 1 - `queries`.

    Args:
        queries, keys: how many there are; the last key is the last query's own token.
        width: even.
        clamp: the largest distance told from larger ones; 0 or less for no limit.

    Returns: [keys + queries, width] float32, sines in the first half of a row, cosines in the second.
    """
    distances = ops.cast(ops.arange(keys, -queries, -1, dtype="int32"), "float32")
    if clamp > 0:
        distances = ops.clip(distances, -clamp, clamp)
    waves = (1.0 / _LONGEST_WAVE ** (np.arange(0, width, 2, dtype=np.float32) / width)).astype(np.float32)
    angles = distances[:, None] * waves
    return ops.concatenate([ops.sin(angles), ops.cos(angles)], axis=-1)


def shifted(scores: Tensor, keys: int | Tensor) -> Tensor:
    """Scores by distance, [batch, heads, queries, keys + queries] as `relative_sinusoids`, as scores by key.

    Returns: [batch, heads, queries, keys].
    """
    batch, heads, queries, distances = ops.shape(scores)
    scores = ops.reshape(scores, (batch, heads, distances, queries))[:, :, 1:]
    return ops.reshape(scores, (batch, heads, queries, distances - 1))[..., :keys]


@keras.saving.register_keras_serializable(package="keras_bert")
class RelativeAttention(PlainLayer):
    """Attention whose scores add up content, relative position and whether both tokens are of the same segment.

    Its weights have transformers' shapes: `q`, `k`, `v`, `o` and `r` are [hidden, heads, head_size].

    Call arguments:
        queried: [batch, queries, hidden], the states that attend.
        attended: [batch, keys, hidden], those of the memory, then those of the row; `queried` itself without memory.
        attention_bias: [batch, 1, queries, keys], 0 for the keys that a query attends to, a large negative number for
            the others.
        distances: [keys + queries, hidden], the embeddings of relative positions.
        is_other_segment: [batch, queries, keys] bool.
        target_mapping: [batch, predictions, queries], for the query stream: one-hot, the place of each prediction. Then
            `queried` and the output are [batch, predictions, hidden].
    Returns: (output as `queried`, probabilities [batch, heads, queries, keys] before dropout).

    Example:
        attend = RelativeAttention(hidden_size=16, num_attention_heads=2)
        states, distances = np.ones((2, 8, 16), "float32"), relative_sinusoids(8, 8, 16)
        attend(states, states, np.zeros((2, 1, 8, 8), "float32"), distances, np.zeros((2, 8, 8), bool))
    """

    def __init__(
        self,
        hidden_size: int,
        num_attention_heads: int,
        initializer_range: float = 0.02,
        dropout_rate: float = 0.1,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.hidden_size = hidden_size
        self.num_attention_heads = num_attention_heads
        self.initializer_range = initializer_range
        self.dropout_rate = dropout_rate
        self.head_size = hidden_size // num_attention_heads
        self.dropout = Dropout(dropout_rate, dtype=self.dtype_policy, name="dropout")

    def build(self, *input_shapes: tuple[int | None, ...]) -> None:
        of_heads = (self.num_attention_heads, self.head_size)
        self.q, self.k, self.v, self.o, self.r = (self._weight(name, (self.hidden_size, *of_heads)) for name in "qkvor")
        self.r_r_bias, self.r_s_bias, self.r_w_bias = (
            self._weight(name, of_heads) for name in ("r_r_bias", "r_s_bias", "r_w_bias")
        )
        self.seg_embed = self._weight("seg_embed", (2, *of_heads))

    def _weight(self, name: str, shape: tuple[int, ...]) -> keras.Variable:
        return self.add_weight(name=name, shape=shape, initializer=truncated_normal(self.initializer_range))

    def call(
        self,
        queried: Tensor,
        attended: Tensor,
        attention_bias: Tensor,
        distances: Tensor,
        is_other_segment: Tensor,
        target_mapping: Tensor | None = None,
        training: bool = False,
    ) -> tuple[Tensor, Tensor]:
        query = ops.einsum("bih,hnd->bnid", queried, self.q)
        if target_mapping is not None:
            target_mapping = ops.cast(target_mapping, self.compute_dtype)
            query = ops.einsum("bnmd,bml->bnld", query, target_mapping)
        key, value = (ops.einsum("bjh,hnd->bnjd", attended, weight) for weight in (self.k, self.v))
        scores = self._scores(query, key, distances, is_other_segment) * self.head_size**-0.5
        # In float32 even under bfloat16, whose 8 bits of precision are too few to sum 512 probabilities.
        scores = ops.cast(scores, "float32") + ops.cast(attention_bias, "float32")
        probabilities = ops.cast(ops.softmax(scores, axis=-1), self.compute_dtype)
        context = ops.matmul(self.dropout(probabilities, training=training), value)
        if target_mapping is not None:
            context = ops.einsum("bnld,bml->bnmd", context, target_mapping)
        return ops.einsum("bnid,hnd->bih", context, self.o), probabilities

    def _scores(self, query: Tensor, key: Tensor, distances: Tensor, is_other_segment: Tensor) -> Tensor:
        """[batch, heads, queries, keys], not yet scaled."""

        def with_bias(bias: Tensor) -> Tensor:
            return query + bias[:, None]

        keys = ops.shape(key)[2]
        content = ops.matmul(with_bias(self.r_w_bias), ops.transpose(key, (0, 1, 3, 2)))
        of_distances = ops.einsum("ph,hnd->npd", ops.cast(distances, self.compute_dtype), self.r)
        position = shifted(ops.einsum("bnid,npd->bnip", with_bias(self.r_r_bias), of_distances), keys)
        # One score for keys of the query's segment, one for the others.
        of_segments = ops.einsum("bnid,snd->bnis", with_bias(self.r_s_bias), self.seg_embed)
        segment = ops.where(is_other_segment[:, None], of_segments[..., 1:], of_segments[..., :1])
        return content + position + segment
