"""What decoding takes and gives: a model as a step, the cache of its rows, and their answers."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias, TypeVar

import tensorflow as tf

# What a step keeps of the tokens before: any nest of tensors, each [rows, …] and of one shape throughout.
Cache: TypeAlias = Any
# (token_ids int32 [rows], place int32 scalar, cache) → (logits [rows, vocab], cache). The token that rows start with is
# at place 0; the logits are those of the token at place + 1.
Step: TypeAlias = Callable[[tf.Tensor, tf.Tensor, Cache], tuple[tf.Tensor, Cache]]
_State = TypeVar("_State", bound=tuple)


class DecoderTokens(NamedTuple):
    """The ids of the tokens that a decoder starts a row with, ends it with and fills it up with."""

    start: int
    end: int
    padding: int


class Decoded(NamedTuple):
    """The answers for a batch; those of one row are side by side, the best first.

    Attributes:
        ids: int32 [rows · n_best, max_tokens], without the token that rows start with; padding after the end.
        lengths: int32 [rows · n_best], how many of them are the answer's, the token that ends it included.
        scores: float32 [rows · n_best]. One beam: the sum of the tokens' log-probabilities in the model's own
            distribution, whatever the temperature; tokens that the settings force count 0. More beams: this sum divided
            by the penalty of the length, transformers' `sequences_scores`. Not finite where the logits were not.
    """

    ids: tf.Tensor
    lengths: tf.Tensor
    scores: tf.Tensor


def row_count(cache: Cache) -> tf.Tensor:
    """How many rows a cache is of: int32 scalar."""
    return tf.shape(tf.nest.flatten(cache)[0])[0]


def repeated(cache: Cache, times: int) -> Cache:
    """A cache with every row so many times, side by side."""
    return cache if times == 1 else tf.nest.map_structure(lambda kept: tf.repeat(kept, times, axis=0), cache)


def loop(goes_on: Callable[[_State], tf.Tensor], body: Callable[[_State], _State], state: _State) -> _State:
    """The state after the last turn of a loop; every tensor keeps its shape, known before or not."""

    def turn(before: _State) -> list[_State]:
        return [tf.nest.map_structure(lambda now, then: tf.ensure_shape(now, then.shape), body(before), before)]

    (state,) = tf.while_loop(goes_on, turn, [state])
    return state
