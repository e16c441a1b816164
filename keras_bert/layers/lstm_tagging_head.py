"""The tagger over the states of a frozen encoder (paper, section 5.3)."""

import keras
from keras import ops

from keras_bert.layers.classification_head import ClassificationHead
from keras_bert.layers.scalar_mix import ScalarMix

_NUM_LSTM_LAYERS = 2


@keras.saving.register_keras_serializable(package="keras_bert")
class LstmTaggingHead(keras.layers.Layer):
    """A two-layer BiLSTM over one or several layers of states, then dropout and a dense layer.

    Args:
        num_labels: how many logits a token.
        num_layers: how many layers of states there are.
        hidden_size: of a state.
        is_weighted: whether the layers are summed by learned weights (`ScalarMix`); else they are concatenated.
        lstm_size: units of each direction.
        dropout_prob, initializer_range: of the last layer.

    Call arguments:
        states: [batch, seq, layers, hidden].
        is_token: [batch, seq] bool, False at padding, which stands at the end and changes nothing.

    Returns: [batch, seq, labels] float32; at padding what the last layer gives for zeros.
    """

    def __init__(
        self,
        num_labels,
        num_layers,
        hidden_size,
        is_weighted=False,
        lstm_size=768,
        dropout_prob=0.1,
        initializer_range=0.02,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.num_labels = num_labels
        self.num_layers = num_layers
        self.hidden_size = hidden_size
        self.is_weighted = is_weighted
        self.lstm_size = lstm_size
        self.dropout_prob = dropout_prob
        self.initializer_range = initializer_range
        policy = self.dtype_policy
        # cuDNN refuses rows of nothing but padding, as those that fill a batch are, and XLA refuses cuDNN.
        options = {"return_sequences": True, "use_cudnn": False, "dtype": policy}
        self.mix = ScalarMix(num_layers, dtype=policy, name="mix") if is_weighted else None
        self.lstms = [
            keras.layers.Bidirectional(keras.layers.LSTM(lstm_size, **options), dtype=policy, name=f"lstm_{index}")
            for index in range(_NUM_LSTM_LAYERS)
        ]
        self.classifier = ClassificationHead(
            num_labels, 2 * lstm_size, dropout_prob, initializer_range, dtype=policy, name="classifier"
        )

    def build(self, *input_shapes):
        if self.mix is not None:
            self.mix.build()
        width = self.hidden_size * (1 if self.is_weighted else self.num_layers)
        for lstm in self.lstms:
            lstm.build((None, None, width))
            width = 2 * self.lstm_size
        self.classifier.build((None, None, width))

    def call(self, states, is_token, training=False):
        if self.mix is not None:
            states = self.mix(states)
        else:
            batch, seq, *_ = ops.shape(states)
            states = ops.reshape(states, (batch, seq, self.num_layers * self.hidden_size))
        for lstm in self.lstms:
            states = lstm(states, mask=is_token, training=training)
            # What an LSTM gives at padding is its last state again.
            states = states * ops.cast(is_token, states.dtype)[..., None]
        return self.classifier(states, training=training)

    def get_config(self):
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
