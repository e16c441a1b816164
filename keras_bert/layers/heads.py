"""The layers on top of the encoder: the pooler, and the heads of pretraining and tasks with their cross-entropies."""

from typing import Any, NamedTuple

import keras
from keras import ops

from keras_bert.core.settings import Positive, checked
from keras_bert.layers.dropout import Dropout
from keras_bert.layers.encoder_block import activation
from keras_bert.layers.tensors import (
    PlainLayer,
    Tensor,
    gather_positions,
    new_dense,
    new_layer_norm,
    new_table,
    truncated_normal,
)


@keras.saving.register_keras_serializable(package="keras_bert")
class Pooler(PlainLayer):
    """A dense layer with an activation on the first state: [batch, seq, hidden] -> [batch, hidden].

    Example:
        keras_bert.Pooler(16)(np.ones((2, 8, 16), "float32"))      # [2, 16]
    """

    @checked
    def __init__(
        self, hidden_size: Positive[int], initializer_range: float = 0.02, hidden_act: str = "tanh", **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.hidden_size = hidden_size
        self.initializer_range = initializer_range
        self.hidden_act = hidden_act
        self.dense = new_dense(hidden_size, initializer_range, self.dtype_policy, "dense", activation(hidden_act))

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        self.dense.build((None, self.hidden_size))

    def call(self, sequence_output: Tensor) -> Tensor:
        return self.dense(sequence_output[:, 0])


@keras.saving.register_keras_serializable(package="keras_bert")
class ClassificationHead(PlainLayer):
    """Dropout, then dense: [..., hidden] -> [..., labels] float32 logits, for a sequence or for each token.

    Example:
        keras_bert.ClassificationHead(num_labels=3, hidden_size=16)(np.ones((2, 16), "float32"))      # [2, 3]
    """

    @checked
    def __init__(
        self,
        num_labels: Positive[int],
        hidden_size: Positive[int],
        dropout_prob: float = 0.1,
        initializer_range: float = 0.02,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.num_labels = num_labels
        self.hidden_size = hidden_size
        self.dropout_prob = dropout_prob
        self.initializer_range = initializer_range
        self.dropout = Dropout(dropout_prob, dtype=self.dtype_policy, name="dropout")
        self.dense = new_dense(num_labels, initializer_range, self.dtype_policy, "dense")

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        self.dense.build((None, self.hidden_size))

    def call(self, states: Tensor, training: bool = False) -> Tensor:
        return ops.cast(self.dense(self.dropout(states, training=training)), "float32")


def cross_entropy(logits: Tensor, labels: Tensor) -> dict[str, Tensor]:
    """Compute `loss` (nats) and `accuracy` (0 or 1) for each label, both [...] float32.

    Args:
        logits: [..., classes].
        labels: [...] int32.
    """
    # One op, which keeps its gradient instead of the exponentials; the gradient of a gather is a scatter into zeros.
    loss = ops.sparse_categorical_crossentropy(labels, logits, from_logits=True)
    logits = ops.stop_gradient(logits)
    picked = ops.take_along_axis(logits, labels[..., None], axis=-1)[..., 0]
    largest = ops.max(logits, axis=-1)
    # The predicted class is the first of the largest logits, as in `ops.argmax`. XLA on a CPU writes to memory what it
    # reduces, and booleans take a quarter of the logits' size.
    is_earlier = ops.less(ops.arange(ops.shape(logits)[-1], dtype="int32"), labels[..., None])
    is_tied = ops.any(ops.equal(logits, largest[..., None]) & is_earlier, axis=-1)
    return {"loss": loss, "accuracy": ops.cast(ops.equal(picked, largest) & ops.logical_not(is_tied), "float32")}


@keras.saving.register_keras_serializable(package="keras_bert")
class MaskedLMHead(PlainLayer):
    """Dense, gelu, LayerNorm, then a decoder tied to the word embeddings, with its own bias.

    `embedding_size` is the width of the word embeddings if it is not `hidden_size` (ALBERT). If not `tied`, the head
    has a `decoder` of its own instead of the word embeddings.

    Call arguments:
        sequence_output: [batch, seq, hidden].
        word_embeddings: [vocab, embedding], the encoder's table.
        positions: [batch, predictions] int32, where to predict; None for all positions. With 15% masked, this shrinks
            the largest matrix product of the step to less than a sixth.
    Returns: logits [batch, predictions or seq, vocab], float32.
    """

    @checked
    def __init__(
        self,
        vocab_size: Positive[int],
        hidden_size: Positive[int],
        hidden_act: str = "gelu",
        initializer_range: float = 0.02,
        layer_norm_eps: float = 1e-12,
        embedding_size: int | None = None,
        tied: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.vocab_size = vocab_size
        self.hidden_size = hidden_size
        self.embedding_size = embedding_size or hidden_size
        self.tied = tied
        self.decoder = None
        self.hidden_act = hidden_act
        self.initializer_range = initializer_range
        self.layer_norm_eps = layer_norm_eps
        self.transform = new_dense(self.embedding_size, initializer_range, self.dtype_policy, "transform")
        self.activation = activation(hidden_act)
        self.layer_norm = new_layer_norm(layer_norm_eps, self.dtype_policy, "layer_norm")

    def build(self, *input_shapes: tuple[int | None, ...]) -> None:
        self.transform.build((None, None, self.hidden_size))
        self.layer_norm.build((None, None, self.embedding_size))
        if not self.tied:
            initializer = truncated_normal(self.initializer_range)
            self.decoder = new_table(self, "decoder", self.vocab_size, self.embedding_size, initializer)
        self.bias = self.add_weight(name="bias", shape=(self.vocab_size,), initializer="zeros", autocast=False)

    def call(self, sequence_output: Tensor, word_embeddings: Tensor, positions: Tensor | None = None) -> Tensor:
        if positions is not None:
            sequence_output = gather_positions(sequence_output, positions)
        transformed = self.layer_norm(self.activation(self.transform(sequence_output)))
        table = ops.cast(word_embeddings if self.decoder is None else self.decoder, self.compute_dtype)
        logits = ops.matmul(transformed, ops.transpose(table))
        return ops.cast(logits, "float32") + self.bias


@keras.saving.register_keras_serializable(package="keras_bert")
class NextSentenceHead(PlainLayer):
    """Pooled output [batch, hidden] -> logits [batch, 2] float32; class 0: "B follows A", 1: "B is random".

    Example:
        keras_bert.NextSentenceHead(16)(np.ones((2, 16), "float32"))      # [2, 2]
    """

    @checked
    def __init__(self, hidden_size: Positive[int], initializer_range: float = 0.02, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.hidden_size = hidden_size
        self.initializer_range = initializer_range
        self.classifier = new_dense(2, initializer_range, self.dtype_policy, "classifier")

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        self.classifier.build((None, self.hidden_size))

    def call(self, pooled_output: Tensor) -> Tensor:
        return ops.cast(self.classifier(pooled_output), "float32")


@keras.saving.register_keras_serializable(package="keras_bert")
class ReplacedTokenHead(PlainLayer):
    """Dense, activation, dense: [batch, seq, hidden] -> logits [batch, seq] float32, above 0 for a replaced token."""

    def __init__(
        self, hidden_size: int, hidden_act: str = "gelu", initializer_range: float = 0.02, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.hidden_size = hidden_size
        self.hidden_act = hidden_act
        self.initializer_range = initializer_range
        self.dense = new_dense(hidden_size, initializer_range, self.dtype_policy, "dense", activation(hidden_act))
        self.output_dense = new_dense(1, initializer_range, self.dtype_policy, "output_dense")

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        for layer in (self.dense, self.output_dense):
            layer.build((None, None, self.hidden_size))

    def call(self, sequence_output: Tensor) -> Tensor:
        return ops.cast(self.output_dense(self.dense(sequence_output))[..., 0], "float32")


def binary_cross_entropy(logits: Tensor, labels: Tensor) -> dict[str, Tensor]:
    """Compute each label's `loss` (nats), `accuracy` (0 or 1) and `majority`, the accuracy of answering 0, all [...].

    Args:
        logits: [...] float32.
        labels: [...] int32, 0 or 1.
    """
    is_one = ops.cast(labels, "float32")
    return {
        "loss": ops.relu(logits) - logits * is_one + ops.log1p(ops.exp(-ops.abs(logits))),
        "accuracy": ops.cast(ops.equal(logits > 0, labels > 0), "float32"),
        "majority": 1.0 - is_one,
    }


MOST_PLACES, PLACE_SIZE = 20, 200  # As in SpanBERT's code: max_pair_targets and the size of the position embeddings.


class SpanPlaces(NamedTuple):
    """The places of predictions in their spans, each int32 [batch, predictions].

    Attributes:
        left, right: the positions next to the span, outside of it.
        place: the place in the span, from 0.
    """

    left: Tensor
    right: Tensor
    place: Tensor


def span_places(positions: Tensor) -> SpanPlaces:
    """The `SpanPlaces` of positions int32 [batch, predictions], which ascend and are then filled up with 0.

    A span is a run of consecutive positions, so the tokens next to it are never masked. Two of SpanBERT's spans that
    touch count as one, as in its code.
    """
    index = ops.arange(ops.shape(positions)[1], dtype="int32")
    # Constant within a run and larger in the next; the filled-up zeros get values that all differ and are smaller.
    runs = positions - index
    in_same_run = ops.equal(runs[:, :, None], runs[:, None, :])
    comes_before = index[None, :] < index[:, None]
    place = ops.sum(ops.cast(in_same_run & comes_before, "int32"), axis=2)
    following = ops.sum(ops.cast(in_same_run & ops.transpose(comes_before), "int32"), axis=2)
    return SpanPlaces(ops.maximum(positions - place - 1, 0), positions + following + 1, place)


@keras.saving.register_keras_serializable(package="keras_bert")
class SpanBoundaryHead(PlainLayer):
    """Predicts each token of a span from its place there and the two tokens next to the span.

    [left; right; position embedding] go twice through dense, gelu and LayerNorm, then through a decoder tied to the
    word embeddings, with its own bias. Places after the 20th share its embedding; the objective leaves them out.
    `embedding_size` is the width of the word embeddings if it is not `hidden_size`.

    Call arguments:
        sequence_output: [batch, seq, hidden].
        word_embeddings: [vocab, embedding], the encoder's table.
        positions: [batch, predictions] int32, the masked positions, ascending.
    Returns: logits [batch, predictions, vocab], float32.
    """

    def __init__(
        self,
        vocab_size: int,
        hidden_size: int,
        hidden_act: str = "gelu",
        initializer_range: float = 0.02,
        layer_norm_eps: float = 1e-12,
        embedding_size: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.vocab_size = vocab_size
        self.hidden_size = hidden_size
        self.embedding_size = embedding_size or hidden_size
        self.hidden_act = hidden_act
        self.initializer_range = initializer_range
        self.layer_norm_eps = layer_norm_eps
        self.denses, self.layer_norms = [], []
        for number, size in enumerate((hidden_size, self.embedding_size)):
            self.denses.append(new_dense(size, initializer_range, self.dtype_policy, f"dense_{number}"))
            self.layer_norms.append(new_layer_norm(layer_norm_eps, self.dtype_policy, f"layer_norm_{number}"))
        self.activation = activation(hidden_act)

    def build(self, *input_shapes: tuple[int | None, ...]) -> None:
        size = 2 * self.hidden_size + PLACE_SIZE
        for dense, norm in zip(self.denses, self.layer_norms):
            dense.build((None, None, size))
            size = dense.units
            norm.build((None, None, size))
        self.position_embeddings = self.add_weight(
            name="position_embeddings",
            shape=(MOST_PLACES, PLACE_SIZE),
            initializer=truncated_normal(self.initializer_range),
        )
        self.bias = self.add_weight(name="bias", shape=(self.vocab_size,), initializer="zeros", autocast=False)

    def call(self, sequence_output: Tensor, word_embeddings: Tensor, positions: Tensor) -> Tensor:
        left, right, place = span_places(positions)
        last = ops.shape(sequence_output)[1] - 1
        inside = ops.take(self.position_embeddings, ops.minimum(place, MOST_PLACES - 1), axis=0)
        hidden = ops.concatenate(
            [
                gather_positions(sequence_output, left),
                gather_positions(sequence_output, ops.minimum(right, last)),
                ops.cast(inside, self.compute_dtype),
            ],
            axis=-1,
        )
        for dense, norm in zip(self.denses, self.layer_norms):
            hidden = norm(self.activation(dense(hidden)))
        table = ops.cast(word_embeddings, self.compute_dtype)
        return ops.cast(ops.matmul(hidden, ops.transpose(table)), "float32") + self.bias
