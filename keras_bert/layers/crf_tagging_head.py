"""A dense layer with a conditional random field on top: labels of words that depend on their neighbours."""

from typing import Any

import keras
import numpy as np
from keras import ops
from numpy.typing import ArrayLike

from keras_bert.layers.classification_head import ClassificationHead
from keras_bert.layers.linear_chain_crf import FORBIDDEN, Chain
from keras_bert.layers.tensors import Tensor


@keras.saving.register_keras_serializable(package="keras_bert")
class CrfTaggingHead(keras.layers.Layer):
    """Dropout, a dense layer for the emissions, and the scores of transitions, starts and ends, which begin at 0.

    Args:
        num_labels: the number of labels.
        hidden_size: the size of a state.
        forbidden: [labels + 1, labels + 1] bool, whether a label may not follow another; the last row is for the first
            label of a sentence, the last column for the last one. None forbids nothing.
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
        """The scores of rows of emissions; see `linear_chain_crf`.

        Args:
            emissions: [batch, seq, labels].
            mask: [batch, seq] bool, which positions are labelled.
            has_start, has_end: [batch], whether the first and the last position of a row are those of its sentence; by
                default they are.
        """
        rows = ops.zeros_like(emissions[:, 0])
        starts, transitions, ends = self.scores()
        if has_start is not None:
            starts = starts * ops.cast(has_start, "float32")[:, None]
        if has_end is not None:
            ends = ends * ops.cast(has_end, "float32")[:, None]
        return Chain(emissions, mask, rows + starts, transitions, rows + ends)

    def scores(self) -> tuple[Tensor, Tensor, Tensor]:
        """(starts [labels], transitions [labels, labels], ends [labels]), with what is forbidden."""
        penalty = np.where(self.forbidden, FORBIDDEN, 0.0).astype("float32")
        return self.starts + penalty[-1, :-1], self.transitions + penalty[:-1, :-1], self.ends + penalty[:-1, -1]

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "num_labels": self.num_labels,
            "hidden_size": self.hidden_size,
            "forbidden": self.forbidden.tolist(),
            "dropout_prob": self.dropout_prob,
            "initializer_range": self.initializer_range,
        }
