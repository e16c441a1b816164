"""Token classification on top of a frozen encoder."""

from typing import Any

import keras
from keras import ops

from keras_bert.config.bert import BertConfig
from keras_bert.config.features import WEIGHTED, feature_layers
from keras_bert.layers.lstm_tagging_head import LstmTaggingHead
from keras_bert.models.encoder_with_heads import EncoderWithHeads
from keras_bert.models.tensors import Batch, Tensor


@keras.saving.register_keras_serializable(package="keras_bert")
class BertFeatureTagger(EncoderWithHeads):
    """A BiLSTM tagger over the hidden states of a frozen encoder (paper, section 5.3 and table 7).

    Args:
        config: the architecture of the encoder.
        num_labels: the number of logits per token.
        features: which hidden states to use, one of `config.features.FEATURES`.
        lstm_size: the units per direction in each of the two LSTM layers.

    Call arguments:
        inputs: the encoder's inputs. If they include `features` [batch, seq, layers, hidden], as returned by
            `frozen_features`, the encoder does not run.

    Returns a dict: `logits` [batch, seq, labels] float32, for padding too.

    Raises:
        UserError: the model has too few layers for these features.
    """

    def __init__(
        self,
        config: BertConfig,
        num_labels: int,
        features: str = "concat_last4",
        lstm_size: int = 768,
        **kwargs: Any,
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

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "num_labels": self.num_labels,
            "features": self.features,
            "lstm_size": self.lstm_size,
        }
