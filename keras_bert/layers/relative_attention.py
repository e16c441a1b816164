"""Attention by relative positions (Dai et al. 2019, Transformer-XL), with XLNet's segments and second stream."""

from typing import Any, NamedTuple

import keras
import numpy as np
from keras import ops

from keras_bert.layers.dropout import Dropout
from keras_bert.layers.embeddings import LONGEST_WAVE
from keras_bert.layers.tensors import PlainLayer, Tensor, truncated_normal


def relative_sinusoids(queries: int | Tensor, keys: int | Tensor, width: int, clamp: int = -1) -> Tensor:
    """The sinusoids of all distances from a query back to a key, from `keys` down to 1 - `queries`.

    Args:
        queries, keys: how many there are; the last key is the last query's own token.
        width: even.
        clamp: the largest distance, to which larger ones are clipped; 0 or less for no limit.

    Returns: [keys + queries, width] float32, sines in the first half of a row, cosines in the second.
    """
    distances = ops.cast(ops.arange(keys, -queries, -1, dtype="int32"), "float32")
    if clamp > 0:
        distances = ops.clip(distances, -clamp, clamp)
    waves = (1.0 / LONGEST_WAVE ** (np.arange(0, width, 2, dtype=np.float32) / width)).astype(np.float32)
    angles = distances[:, None] * waves
    return ops.concatenate([ops.sin(angles), ops.cos(angles)], axis=-1)


def shifted(scores: Tensor, keys: int | Tensor) -> Tensor:
    """Turn scores by distance, [batch, heads, queries, keys + queries] like `relative_sinusoids`, into scores by key.

    Returns: [batch, heads, queries, keys].
    """
    batch, heads, queries, distances = ops.shape(scores)
    scores = ops.reshape(scores, (batch, heads, distances, queries))[:, :, 1:]
    return ops.reshape(scores, (batch, heads, queries, distances - 1))[..., :keys]


def shifted_at(scores: Tensor, keys: int | Tensor, places: Tensor) -> Tensor:
    """Like `shifted`, but for queries at the given places of the row, [batch, queries] int32."""
    first = ops.shape(scores)[3] - keys - places
    numbers = ops.cast(first, "int32")[:, None, :, None] + ops.arange(keys, dtype="int32")
    return ops.take_along_axis(scores, numbers, axis=-1)


def hidden_by_order(ranks: Tensor) -> Tensor:
    """The tokens hidden from each token under a permuted order of prediction (Yang et al. 2019, section 2.2).

    A token of rank -1 sees the others of rank -1; one with a rank also sees those of lower ranks, but not itself.

    Args:
        ranks: [batch, seq] int32.

    Returns: [batch, seq, seq] bool, whether token i does not see token j at [b, i, j].
    """
    of_queries, of_keys = ranks[:, :, None], ranks[:, None, :]
    return ops.logical_and(of_keys >= 0, of_queries <= of_keys)


class Attended(NamedTuple):
    """The keys, values and distances that queries attend to, computed once for both streams.

    Attributes:
        keys, values: [batch, heads, keys, head_size].
        distances: [heads, keys + queries, head_size], the projected embeddings of relative positions.
    """

    keys: Tensor
    values: Tensor
    distances: Tensor


@keras.saving.register_keras_serializable(package="keras_bert")
class RelativeAttention(PlainLayer):
    """Attention whose scores sum up content, relative position and whether both tokens are of the same segment.

    Its weights have transformers' shapes: `q`, `k`, `v`, `o` and `r` are [hidden, heads, head_size].

    Call arguments:
        queried: [batch, queries, hidden], the states that attend.
        attended: the output of `attended`.
        attention_bias: [batch, 1, queries, keys], 0 for the keys that a query attends to, a large negative number for
            the others.
        is_other_segment: [batch, queries, keys] bool.
        places: [batch, queries] int32, where in the row the queries are; None for one query at every place.
    Returns: (output as `queried`, probabilities [batch, heads, queries, keys] before dropout).

    Example:
        attend = RelativeAttention(hidden_size=16, num_attention_heads=2)
        states = np.ones((2, 8, 16), "float32")
        attend.build()
        attended = attend.attended(states, relative_sinusoids(8, 8, 16))
        attend(states, attended, np.zeros((2, 1, 8, 8), "float32"), np.zeros((2, 8, 8), bool))
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

    def attended(self, states: Tensor, distances: Tensor) -> Attended:
        """The keys, values and projected distances for queries to attend to.

        Args:
            states: [batch, keys, hidden], the memory's, then the row's.
            distances: [keys + queries, hidden], the embeddings of relative positions.
        """
        keys, values = (ops.einsum("bjh,hnd->bnjd", states, self._cast(weight)) for weight in (self.k, self.v))
        return Attended(keys, values, ops.einsum("ph,hnd->npd", self._cast(distances), self._cast(self.r)))

    def _cast(self, value: Tensor) -> Tensor:
        return ops.cast(value, self.compute_dtype)

    def call(
        self,
        queried: Tensor,
        attended: Attended,
        attention_bias: Tensor,
        is_other_segment: Tensor,
        places: Tensor | None = None,
        training: bool = False,
    ) -> tuple[Tensor, Tensor]:
        query = ops.einsum("bih,hnd->bnid", queried, self.q)
        scores = self._scores(query, attended, is_other_segment, places) * self.head_size**-0.5
        # In float32 even under bfloat16, whose 8 bits of precision are too few to sum 512 probabilities.
        scores = ops.cast(scores, "float32") + ops.cast(attention_bias, "float32")
        probabilities = ops.cast(ops.softmax(scores, axis=-1), self.compute_dtype)
        context = ops.matmul(self.dropout(probabilities, training=training), attended.values)
        return ops.einsum("bnid,hnd->bih", context, self.o), probabilities

    def _scores(self, query: Tensor, attended: Attended, is_other_segment: Tensor, places: Tensor | None) -> Tensor:
        """[batch, heads, queries, keys], not yet scaled."""
        keys = ops.shape(attended.keys)[2]
        # Each gradient of the query sums only two terms: TensorFlow adds three in the order in which memory is freed,
        # so that equal runs would differ in their last bits.
        of_content = query + self.r_w_bias[:, None]
        of_position = of_content + (self.r_r_bias - self.r_w_bias)[:, None]
        content = ops.matmul(of_content, ops.transpose(attended.keys, (0, 1, 3, 2)))
        by_distance = ops.einsum("bnid,npd->bnip", of_position, attended.distances)
        position = shifted(by_distance, keys) if places is None else shifted_at(by_distance, keys, places)
        # One score for keys of the query's segment, one for the others.
        of_segments = ops.einsum("bnid,snd->bnis", query, self.seg_embed)
        of_segments += ops.einsum("nd,snd->ns", self.r_s_bias, self.seg_embed)[:, None]
        segment = ops.where(is_other_segment[:, None], of_segments[..., 1:], of_segments[..., :1])
        return content + position + segment
