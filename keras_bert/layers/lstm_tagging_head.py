"""The tagger over the states of a frozen encoder (paper, section 5.3)."""

from typing import Any

import keras
from keras import ops

from keras_bert.layers.bilstm import build_lstms, make_lstms, run_lstms
from keras_bert.layers.classification_head import ClassificationHead
from keras_bert.layers.scalar_mix import ScalarMix
from keras_bert.layers.tensors import Tensor


@keras.saving.register_keras_serializable(package="keras_bert")
class LstmTaggingHead(keras.layers.Layer):
    """A two-layer BiLSTM over one or several layers of states, then dropout and a dense layer.

    Args:
        num_labels: the number of logits per token.
        num_layers: the number of layers of states.
        hidden_size: the size of a state.
        is_weighted: whether the layers are summed with learned weights (`ScalarMix`); otherwise they are concatenated.
        lstm_size: the number of units in each direction.
        dropout_prob, initializer_range: for the output layer.

    Call arguments:
        states: [batch, seq, layers, hidden].
        is_token: [batch, seq] bool, False at padding, which is at the end and does not affect other tokens.

    Returns: [batch, seq, labels] float32; at padding, the output for zeros.
    """

    def __init__(
        self,
        num_labels: int,
        num_layers: int,
        hidden_size: int,
        is_weighted: bool = False,
        lstm_size: int = 768,
        dropout_prob: float = 0.1,
        initializer_range: float = 0.02,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.num_labels = num_labels
        self.num_layers = num_layers
        self.hidden_size = hidden_size
        self.is_weighted = is_weighted
        self.lstm_size = lstm_size
        self.dropout_prob = dropout_prob
        self.initializer_range = initializer_range
        policy = self.dtype_policy
        self.mix = ScalarMix(num_layers, dtype=policy, name="mix") if is_weighted else None
        self.lstms = make_lstms(lstm_size, policy)
        self.classifier = ClassificationHead(
            num_labels, 2 * lstm_size, dropout_prob, initializer_range, dtype=policy, name="classifier"
        )

    def build(self, *input_shapes: tuple[int | None, ...]) -> None:
        if self.mix is not None:
            self.mix.build()
        width = self.hidden_size * (1 if self.is_weighted else self.num_layers)
        build_lstms(self.lstms, width)
        self.classifier.build((None, None, 2 * self.lstm_size))

    def call(self, states: Tensor, is_token: Tensor, training: bool = False) -> Tensor:
        if self.mix is not None:
            states = self.mix(states)
        else:
            batch, seq, *_ = ops.shape(states)
            states = ops.reshape(states, (batch, seq, self.num_layers * self.hidden_size))
        return self.classifier(run_lstms(self.lstms, states, is_token, training), training=training)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "num_labels": self.num_labels,
            "num_layers": self.num_layers,
            "hidden_size": self.hidden_size,
            "is_weighted": self.is_weighted,
            "lstm_size": self.lstm_size,
            "dropout_prob": self.dropout_prob,
            "initializer_range": self.initializer_range,
        }
