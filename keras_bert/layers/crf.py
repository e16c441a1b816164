"""The linear-chain conditional random field (Lafferty et al. 2001): partition function, marginals and best paths.

The score of a sequence of labels is the sum of their emissions, of the transitions between neighbours, and of a start
and an end score. Positions outside the mask are skipped: neighbours are consecutive positions in the mask.

Shapes: emissions [batch, seq, labels] and mask [batch, seq] bool; starts and ends [batch, labels], because a row that
is only a part of a sentence may lack either; transitions [labels, labels], from the row's label to the column's. All
scores are float32. A transition of `FORBIDDEN` or less has probability 0.
"""

from typing import Any, NamedTuple, TypeAlias

import keras
import numpy as np
from keras import ops
from numpy.typing import ArrayLike

from keras_bert.layers.heads import ClassificationHead
from keras_bert.layers.tensors import PlainLayer, Tensor

FORBIDDEN = -1e4  # Finite, so that no difference is NaN; exp of it is 0.
_Pair: TypeAlias = tuple[Tensor, Tensor]


class Chain(NamedTuple):
    """The scores of a batch; the module's docstring has the shapes."""

    emissions: Tensor
    mask: Tensor
    starts: Tensor
    transitions: Tensor
    ends: Tensor

    def by_position(self) -> "Position":
        """The batch by position: tensors [seq, batch, …]."""
        counts = ops.cumsum(ops.cast(self.mask, "int32"), axis=1)
        first = ops.logical_and(self.mask, counts == 1)
        last = ops.logical_and(self.mask, counts == counts[:, -1:])
        flags = (ops.transpose(flag)[..., None] for flag in (self.mask, first, last))
        return Position(ops.transpose(self.emissions, (1, 0, 2)), *flags)


class Position(NamedTuple):
    """One position of every row.

    Attributes:
        emissions: [batch, labels].
        in_mask: [batch, 1] bool, whether it is in the mask.
        is_first, is_last: [batch, 1] bool, whether it is the first or the last of its row in the mask.
    """

    emissions: Tensor
    in_mask: Tensor
    is_first: Tensor
    is_last: Tensor

    def packed(self) -> Tensor:
        """All fields in one tensor […, labels + 3], because Keras cannot scan over several of unknown length."""
        return ops.concatenate([self.emissions, *(ops.cast(flag, "float32") for flag in self[1:])], axis=-1)

    @classmethod
    def unpacked(cls, packed: Tensor) -> "Position":
        return cls(packed[..., :-3], *(packed[..., place, None] > 0 for place in (-3, -2, -1)))


def log_likelihood(chain: Chain, labels: Tensor) -> tuple[Tensor, Tensor]:
    """The log-probability of the labels, and the marginal probability of every label at every position.

    The gradient of the partition function is computed from the marginals, not through the loop over positions.

    Args:
        labels: [batch, seq] int32; those outside the mask are ignored.

    Returns: ([batch] float32, 0 for a row without any position in the mask; [batch, seq, labels] float32, without
        gradient).
    """
    partition, marginals, pairs = _expectations(Chain(*map(ops.stop_gradient, chain)))
    mask = ops.cast(chain.mask, "float32")
    gold = ops.one_hot(ops.maximum(labels, 0), chain.emissions.shape[-1]) * mask[..., None]
    first, last = (ops.transpose(flag, (1, 0, 2)) for flag in chain.by_position()[2:])
    from_label = _label_before(gold)
    score = _dot(chain, gold, ops.einsum("bsi,bsj->bij", from_label, gold), first, last)
    expected = _dot(chain, marginals, pairs, first, last)
    partition = expected + ops.stop_gradient(partition - expected)
    return ops.where(ops.any(chain.mask, axis=1), score - partition, 0.0), marginals


def marginals(chain: Chain) -> Tensor:
    """The probability of each label at each position, 0 outside the mask: float32 [batch, seq, labels]."""
    return _expectations(chain)[1]


def best_paths(chain: Chain) -> Tensor:
    """The most probable labels of each row (Viterbi), arbitrary outside the mask: int32 [batch, seq].

    A tie goes to the sequence with the smaller label at the last position where they differ.
    """
    labels = chain.emissions.shape[-1]
    same = ops.broadcast_to(ops.arange(labels, dtype="int32"), ops.shape(chain.starts))

    def extend(carry: _Pair, position: Tensor) -> tuple[_Pair, _Pair]:
        score, _ = carry
        emissions, in_mask, is_first, _ = Position.unpacked(position)
        reached = score[:, :, None] + chain.transitions[None]
        before = ops.cast(ops.argmax(reached, axis=1), "int32")
        best = ops.where(is_first, chain.starts, ops.max(reached, axis=1)) + emissions
        extended = ops.where(in_mask, best, score), ops.where(ops.logical_xor(in_mask, is_first), before, same)
        return extended, extended

    (score, _), (_, before) = ops.scan(extend, (ops.zeros_like(chain.starts), same), chain.by_position().packed())
    end = ops.cast(ops.argmax(score + chain.ends, axis=1), "int32")

    def follow(label: Tensor, before: Tensor) -> tuple[Tensor, Tensor]:
        previous = ops.take_along_axis(before, label[:, None], axis=1)[:, 0]
        return previous, label

    _, path = ops.scan(follow, end, before, reverse=True)
    return ops.transpose(path)


def _expectations(chain: Chain) -> tuple[Tensor, Tensor, Tensor]:
    """Run the forward-backward algorithm.

    Returns: (log of the partition function [batch], marginals [batch, seq, labels], expected transitions
        [batch, from, to]).
    """
    positions = chain.by_position()
    emissions, in_mask, is_first, _ = positions

    def forward(score: Tensor, position: Tensor) -> tuple[Tensor, Tensor]:
        emissions, in_mask, is_first, _ = Position.unpacked(position)
        reached = ops.logsumexp(score[:, :, None] + chain.transitions[None], axis=1)
        score = ops.where(in_mask, ops.where(is_first, chain.starts, reached) + emissions, score)
        return score, score

    def backward(carry: _Pair, position: Tensor) -> tuple[_Pair, _Pair]:
        ahead, _ = carry
        emissions, in_mask, _, is_last = Position.unpacked(position)
        rest = ops.where(is_last, chain.ends, ahead)
        reached = ops.logsumexp((emissions + rest)[:, None, :] + chain.transitions[None], axis=2)
        result = ops.where(in_mask, reached, ahead), rest
        return result, result

    nothing = ops.zeros_like(chain.starts)
    end, alphas = ops.scan(forward, nothing, positions.packed())
    _, (_, betas) = ops.scan(backward, (nothing, nothing), positions.packed(), reverse=True)
    partition = ops.logsumexp(end + chain.ends, axis=1)
    found = ops.where(in_mask, ops.exp(alphas + betas - partition[None, :, None]), 0.0)
    before = ops.concatenate([nothing[None], alphas[:-1]], axis=0)
    joint = before[..., None] + chain.transitions + (emissions + betas)[:, :, None, :] - partition[None, :, None, None]
    follows = ops.logical_xor(in_mask, is_first)[..., None]
    pairs = ops.sum(ops.where(follows, ops.exp(ops.where(follows, joint, 0.0)), 0.0), axis=0)
    return partition, ops.transpose(found, (1, 0, 2)), pairs


def _label_before(gold: Tensor) -> Tensor:
    """For each position, the one-hot label of the one before it in the mask, 0 at the first: [batch, seq, labels]."""

    def forward(label: Tensor, here: Tensor) -> tuple[Tensor, Tensor]:
        # Outside the mask, no label is 1.
        return ops.where(ops.any(here > 0, axis=1, keepdims=True), here, label), label

    _, before = ops.scan(forward, ops.zeros_like(gold[:, 0]), ops.transpose(gold, (1, 0, 2)))
    return ops.transpose(before, (1, 0, 2))


def _dot(chain: Chain, labels: Tensor, pairs: Tensor, first: Tensor, last: Tensor) -> Tensor:
    """The score [batch] of (expected) labels [batch, seq, labels] and transitions [batch, from, to]."""
    first, last = ops.cast(first, "float32"), ops.cast(last, "float32")
    emitted = chain.emissions + first * chain.starts[:, None] + last * chain.ends[:, None]
    return ops.sum(labels * emitted, axis=(1, 2)) + ops.sum(pairs * chain.transitions, axis=(1, 2))


@keras.saving.register_keras_serializable(package="keras_bert")
class CrfTaggingHead(PlainLayer):
    """Dropout, a dense layer for the emissions, and scores of transitions, starts and ends, initialized to 0.

    Args:
        forbidden: [labels + 1, labels + 1] bool, whether the column's label must not follow the row's; the last row is
            for a sentence's first label, the last column for its last. None forbids nothing.
        dropout_prob, initializer_range: for the dense layer.

    Call arguments:
        states: [batch, seq, hidden].

    Returns: [batch, seq, labels] float32, the emissions.
    """

    def __init__(
        self,
        num_labels: int,
        hidden_size: int,
        forbidden: ArrayLike | None = None,
        dropout_prob: float = 0.1,
        initializer_range: float = 0.02,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.num_labels = num_labels
        self.hidden_size = hidden_size
        size = num_labels + 1
        self.forbidden = np.zeros((size, size), bool) if forbidden is None else np.asarray(forbidden, bool)
        if self.forbidden.shape != (size, size):
            raise ValueError(f"forbidden: needs [{size}, {size}]. Received: {list(self.forbidden.shape)}.")
        self.dropout_prob = dropout_prob
        self.initializer_range = initializer_range
        self.classifier = ClassificationHead(
            num_labels, hidden_size, dropout_prob, initializer_range, dtype=self.dtype_policy, name="classifier"
        )

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        self.classifier.build(input_shape)
        options = {"initializer": "zeros", "dtype": "float32", "autocast": False}
        self.transitions = self.add_weight(shape=(self.num_labels, self.num_labels), name="transitions", **options)
        self.starts = self.add_weight(shape=(self.num_labels,), name="starts", **options)
        self.ends = self.add_weight(shape=(self.num_labels,), name="ends", **options)

    def call(self, states: Tensor, training: bool = False) -> Tensor:
        return self.classifier(states, training=training)

    def chain(
        self, emissions: Tensor, mask: Tensor, has_start: Tensor | None = None, has_end: Tensor | None = None
    ) -> Chain:
        """The `Chain` of rows of emissions.

        Args:
            emissions: [batch, seq, labels].
            mask: [batch, seq] bool, which positions are labelled.
            has_start, has_end: [batch], whether a row holds the first and the last position of its sentence; by default
                it does.
        """
        rows = ops.zeros_like(emissions[:, 0])
        starts, transitions, ends = self.scores()
        if has_start is not None:
            starts = starts * ops.cast(has_start, "float32")[:, None]
        if has_end is not None:
            ends = ends * ops.cast(has_end, "float32")[:, None]
        return Chain(emissions, mask, rows + starts, transitions, rows + ends)

    def scores(self) -> tuple[Tensor, Tensor, Tensor]:
        """The starts [labels], transitions [labels, labels] and ends [labels], with the penalties of forbidden ones."""
        penalty = np.where(self.forbidden, FORBIDDEN, 0.0).astype("float32")
        return self.starts + penalty[-1, :-1], self.transitions + penalty[:-1, :-1], self.ends + penalty[:-1, -1]

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "forbidden": self.forbidden.tolist()}
