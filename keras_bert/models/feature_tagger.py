"""The model for a label of each token whose encoder stays as it is."""

import keras
from keras import ops

from keras_bert.config.features import WEIGHTED, feature_layers
from keras_bert.layers.lstm_tagging_head import LstmTaggingHead
from keras_bert.models.encoder_with_heads import EncoderWithHeads


@keras.saving.register_keras_serializable(package="keras_bert")
class BertFeatureTagger(EncoderWithHeads):
    """A BiLSTM tagger over the states of a frozen encoder (paper, section 5.3 and table 7).

    Args:
        config: a `BertConfig`.
        num_labels: how many logits a token.
        features: which states, one of `config.features.FEATURES`.
        lstm_size: units of each direction of both LSTM layers.

    Call arguments:
        inputs: the encoder's dict; with `features`, [batch, seq, layers, hidden] as `frozen_features` gives them,
            the encoder is not run.

    Returns a dict: `logits` [batch, seq, labels], float32, of padding too.

    Raises:
        UserError: the model has too few layers for such features.
    """

    def __init__(self, config, num_labels, features="concat_last4", lstm_size=768, **kwargs):
        # The pooler takes no part; with it the encoder's weights are those of a whole BertModel.
        super().__init__(config, **kwargs)
        self.num_labels = num_labels
        self.features = features
        self.lstm_size = lstm_size
        self.feature_layers = feature_layers(features, config.num_hidden_layers)
        self.encoder.trainable = False
        self.tagger = LstmTaggingHead(
            num_labels,
            len(self.feature_layers),
            config.hidden_size,
            features in WEIGHTED,
            lstm_size,
            config.hidden_dropout_prob,
            config.initializer_range,
            dtype=self.dtype_policy,
            name="tagger",
        )
        self.build()

    def frozen_features(self, inputs):
        """What is kept of an encoder's dict: [batch, seq, layers, hidden] float32, dropout off, of padding too."""
        states = self.encoder(inputs, training=False)["hidden_states"]
        return ops.stack([ops.cast(states[layer], "float32") for layer in self.feature_layers], axis=2)

    def call(self, inputs, training=False):
        states = inputs["features"] if "features" in inputs else self.frozen_features(inputs)
        return {"logits": self.tagger(states, inputs["input_mask"] > 0, training=training)}

    def get_config(self):
        return {
            **super().get_config(),
            "num_labels": self.num_labels,
            "features": self.features,
            "lstm_size": self.lstm_size,
        }
