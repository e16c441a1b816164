"""The interface of decoding: a model as a step, the cache of its rows, and their answers."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias, TypeVar

import tensorflow as tf

# A step's memory of earlier tokens: any nest of tensors, each [rows, …] and of constant shape.
Cache: TypeAlias = Any
# (token_ids int32 [rows], place int32 scalar, cache) → (logits [rows, vocab], cache). The start token of a row is at
# place 0; the logits are for the token at place + 1.
Step: TypeAlias = Callable[[tf.Tensor, tf.Tensor, Cache], tuple[tf.Tensor, Cache]]
_State = TypeVar("_State", bound=tuple)


class DecoderTokens(NamedTuple):
    """The ids of a decoder's start, end and padding tokens."""

    start: int
    end: int
    padding: int


class Decoded(NamedTuple):
    """The answers for a batch; a row's answers are adjacent, the best first.

    Attributes:
        ids: int32 [rows · n_best, max_tokens], without the start token; padding after the end.
        scores: float32 [rows · n_best]. One beam: the sum of the tokens' log-probabilities in the model's own
            distribution; tokens forced by the settings count 0. More beams: this sum divided by the length penalty,
            transformers' `sequences_scores`. Not finite where the logits were not.
    """

    ids: tf.Tensor
    scores: tf.Tensor


def row_count(cache: Cache) -> tf.Tensor:
    """The number of rows in a cache: int32 scalar."""
    return tf.shape(tf.nest.flatten(cache)[0])[0]


def apart(step: Step) -> Step:
    """Wraps a step in a function of its own in the graph. Cache tensors that `step` returns unchanged stay identical.

    If `step` is inlined in the loop, Grappler's optimization of BART's cross-attention yields no answers at all
    (TensorFlow 2.21).
    """
    if tf.executing_eagerly():
        return step
    is_new: list[bool] = []  # For each tensor of the cache; set when the function is traced.

    def changed(token_ids: tf.Tensor, place: tf.Tensor, cache: Cache) -> tuple[tf.Tensor, list[tf.Tensor]]:
        logits, after = step(token_ids, place, cache)
        pairs = list(zip(tf.nest.flatten(cache), tf.nest.flatten(after), strict=True))
        is_new[:] = [then is not now for then, now in pairs]
        return logits, [now for then, now in pairs if then is not now]

    whole = tf.function(changed, autograph=False, experimental_attributes={"_noinline": True})

    def stepped(token_ids: tf.Tensor, place: tf.Tensor, cache: Cache) -> tuple[tf.Tensor, Cache]:
        logits, new = whole(token_ids, place, cache)
        rest = iter(new)
        after = [next(rest) if changes else then for then, changes in zip(tf.nest.flatten(cache), is_new, strict=True)]
        return logits, tf.nest.pack_sequence_as(cache, after)

    return stepped


def loop(goes_on: Callable[[_State], tf.Tensor], body: Callable[[_State], _State], state: _State) -> _State:
    """The state after the last turn of a loop; every tensor keeps its static shape, known or not."""

    def turn(before: _State) -> list[_State]:
        return [tf.nest.map_structure(lambda now, then: tf.ensure_shape(now, then.shape), body(before), before)]

    (state,) = tf.while_loop(goes_on, turn, [state])
    return state
