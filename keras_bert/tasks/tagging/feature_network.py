"""Token classification on top of a frozen encoder."""

from typing import Any

import keras
from keras import ops

from keras_bert.config.features import WEIGHTED, feature_layers
from keras_bert.layers.bilstm import build_lstms, make_lstms, run_lstms
from keras_bert.layers.heads import ClassificationHead
from keras_bert.layers.tensors import Batch, PlainLayer, Tensor
from keras_bert.models.bert.config import BertConfig
from keras_bert.models.encoder_with_heads import EncoderWithHeads


@keras.saving.register_keras_serializable(package="keras_bert")
class ScalarMix(PlainLayer):
    """gamma times the softmax-weighted sum of the layers (Peters et al. 2018, ELMo, equation 1).

    Initially the plain mean. Call argument: states [..., layers, hidden]. Returns: [..., hidden].
    """

    def __init__(self, num_layers: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.num_layers = num_layers

    def build(self, input_shape: tuple[int | None, ...] | None = None) -> None:
        self.layer_weights = self.add_weight(name="layer_weights", shape=(self.num_layers,), initializer="zeros")
        self.gamma = self.add_weight(name="gamma", shape=(1,), initializer="ones")

    def call(self, states: Tensor) -> Tensor:
        weights = ops.softmax(self.layer_weights) * self.gamma
        return ops.sum(states * ops.cast(weights, states.dtype)[:, None], axis=-2)


@keras.saving.register_keras_serializable(package="keras_bert")
class LstmTaggingHead(PlainLayer):
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


@keras.saving.register_keras_serializable(package="keras_bert")
class BertFeatureTagger(EncoderWithHeads):
    """A BiLSTM tagger over the hidden states of a frozen encoder (paper, section 5.3 and table 7).

    Args:
        num_labels: the number of logits per token.
        features: which hidden states to use, as `finetune --features` names them: `concat_last4`, say.
        lstm_size: the units per direction in each of the two LSTM layers.

    Call arguments:
        inputs: the encoder's inputs. If they include `features` [batch, seq, layers, hidden], as returned by
            `frozen_features`, the encoder does not run.

    Returns a dict: `logits` [batch, seq, labels] float32, for padding too.

    Raises:
        UserError: the model has too few layers for these features.
    """

    def __init__(
        self, config: BertConfig, num_labels: int, features: str = "concat_last4", lstm_size: int = 768, **kwargs: Any
    ) -> None:
        # The pooler is not used, but with it the encoder has the weights of a complete BertModel.
        super().__init__(config, **kwargs)
        self.num_labels = num_labels
        self.features = features
        self.lstm_size = lstm_size
        self.feature_layers = feature_layers(features, config.num_blocks)
        self.encoder.trainable = False
        self.tagger = LstmTaggingHead(
            num_labels,
            len(self.feature_layers),
            config.hidden_size,
            features in WEIGHTED,
            lstm_size,
            config.head_dropout_prob,
            config.initializer_range,
            dtype=self.dtype_policy,
            name="tagger",
        )
        self.build()

    def frozen_features(self, inputs: Batch) -> Tensor:
        """Runs the encoder without dropout and stacks the layers in use: [batch, seq, layers, hidden] float32."""
        states = self.encoder(inputs, training=False)["hidden_states"]
        return ops.stack([ops.cast(states[layer], "float32") for layer in self.feature_layers], axis=2)

    def call(self, inputs: Batch, training: bool = False) -> dict[str, Tensor]:
        states = inputs["features"] if "features" in inputs else self.frozen_features(inputs)
        return {"logits": self.tagger(states, inputs["input_mask"] > 0, training=training)}
