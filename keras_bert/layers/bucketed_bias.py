"""T5's relative positions: a learned bias on the attention scores for each bucket of distances."""

from typing import Any

import keras
import numpy as np
import numpy.typing as npt
from keras import ops

from keras_bert.layers.relative_attention import shifted
from keras_bert.layers.tensors import PlainLayer, Tensor, normal


def distance_buckets(buckets: int, longest: int) -> npt.NDArray[np.int32]:
    """The bucket of each distance, int32 [longest + 1]; distances from `longest` on share the last one.

    The first half of the buckets hold one distance each, the others grow by a constant factor (Raffel et al. 2020,
    section 2.1). A table, because another device's logarithm may round across the edge of a bucket.
    """
    exact = buckets // 2
    distances = np.arange(longest + 1, dtype=np.int32)
    ratios = np.log(np.maximum(distances, 1).astype(np.float32) / np.float32(exact))
    growing = exact + (ratios / np.float32(np.log(longest / exact)) * np.float32(buckets - exact)).astype(np.int32)
    return np.where(distances < exact, distances, np.minimum(growing, buckets - 1)).astype(np.int32)


@keras.saving.register_keras_serializable(package="keras_bert")
class BucketedBias(PlainLayer):
    """A bias on each head's attention scores that depends on the distance between the two tokens.

    Args:
        num_attention_heads: the number of heads, each with its own biases.
        buckets: the number of buckets; with `both_sides`, an even number.
        longest: the distance from which on all distances share a bucket.
        both_sides: whether half of the buckets are for keys after the query; if not, such keys share the bucket
            of distance 0.
        stddev: the standard deviation of new weights.
    """

    def __init__(
        self,
        num_attention_heads: int,
        buckets: int = 32,
        longest: int = 128,
        both_sides: bool = True,
        stddev: float = 0.02,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.num_attention_heads = num_attention_heads
        self.buckets = buckets
        self.longest = longest
        self.both_sides = both_sides
        self.stddev = stddev
        self._bucket_of_distance = distance_buckets(buckets // 2 if both_sides else buckets, longest)

    def build(self, *input_shapes: tuple[int | None, ...]) -> None:
        # autocast=False: under bfloat16, biases and scores are added in float32.
        self.bias = self.add_weight(
            name="bias", shape=(self.buckets, self.num_attention_heads), initializer=normal(self.stddev), autocast=False
        )

    def of_distances(self, distances: Tensor) -> Tensor:
        """The biases [heads, n] for int32 distances [n] from a query back to a key, below 0 for a key after it."""
        back = ops.abs(distances) if self.both_sides else ops.maximum(distances, 0)
        found = ops.take(self._bucket_of_distance, ops.minimum(back, self.longest))
        if self.both_sides:
            found = found + ops.cast(distances < 0, "int32") * (self.buckets // 2)
        # With so few rows, a product with one-hot vectors is faster than a gather, above all in the backward pass.
        return ops.transpose(ops.matmul(ops.one_hot(found, self.buckets, dtype="float32"), self.bias))

    def between(self, queries: int | Tensor, keys: int | Tensor) -> Tensor:
        """The biases of all queries for all keys, [1, heads, queries, keys]; both begin at the same token."""
        # `shifted` aligns the last key with the last query; here the first ones are aligned.
        by_distance = self.of_distances(ops.arange(queries, -keys, -1, dtype="int32"))
        rows = ops.broadcast_to(by_distance[None, :, None], (1, self.num_attention_heads, queries, queries + keys))
        return shifted(rows, keys)
