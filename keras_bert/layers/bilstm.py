"""A two-layer BiLSTM over states (paper, sections 5.1 and 5.3)."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from keras_bert.layers.tensors import PlainLayer, Tensor

_NUM_LAYERS = 2


def make_lstms(lstm_size: int, policy: keras.DTypePolicy) -> list[keras.layers.Bidirectional]:
    """The unbuilt layers of a BiLSTM, with `lstm_size` units in each direction."""
    return [bidirectional(keras.layers.LSTM, lstm_size, policy, f"lstm_{index}") for index in range(_NUM_LAYERS)]


def bidirectional(
    layer: type[keras.layers.LSTM | keras.layers.GRU], units: int, policy: keras.DTypePolicy, name: str
) -> keras.layers.Bidirectional:
    """An unbuilt bidirectional layer, with `units` in each direction."""
    # cuDNN rejects rows of nothing but padding, such as those that fill up a batch, and XLA rejects cuDNN.
    options = {"return_sequences": True, "use_cudnn": False, "dtype": policy}
    return keras.layers.Bidirectional(layer(units, **options), dtype=policy, name=name)


def build_lstms(lstms: Sequence[keras.layers.Bidirectional], width: int) -> None:
    """Build the layers for states of `width`."""
    for lstm in lstms:
        lstm.build((None, None, width))
        width = 2 * lstm.forward_layer.units


def run_lstms(
    lstms: Sequence[keras.layers.Bidirectional], states: Tensor, is_token: Tensor, training: bool = False
) -> Tensor:
    """Run the layers over states [batch, seq, width]; returns [batch, seq, 2 * lstm_size], 0 at padding.

    `is_token` is [batch, seq] bool; padding is at the end and does not affect other tokens.
    """
    for lstm in lstms:
        states = lstm(states, mask=is_token, training=training)
        # At padding, Keras repeats the last state.
        states = states * ops.cast(is_token, states.dtype)[..., None]
    return states


@keras.saving.register_keras_serializable(package="keras_bert")
class BiLstm(PlainLayer):
    """A two-layer BiLSTM between an encoder and a head.

    Call arguments: `states` [batch, seq, hidden], `is_token` [batch, seq] bool.
    Returns: (states [batch, seq, 2 * lstm_size]; for the whole sequence [batch, 2 * lstm_size], each direction's state
    after its last token).
    """

    def __init__(self, hidden_size: int, lstm_size: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.hidden_size = hidden_size
        self.lstm_size = lstm_size
        self.lstms = make_lstms(lstm_size, self.dtype_policy)

    def build(self, *input_shapes: tuple[int | None, ...]) -> None:
        build_lstms(self.lstms, self.hidden_size)

    def call(self, states: Tensor, is_token: Tensor, training: bool = False) -> tuple[Tensor, Tensor]:
        states = run_lstms(self.lstms, states, is_token, training)
        places = ops.arange(ops.shape(is_token)[1], dtype="int32")
        is_last = ops.equal(places, ops.max(places * ops.cast(is_token, "int32"), axis=1, keepdims=True))
        forward = ops.sum(states[..., : self.lstm_size] * ops.cast(is_last, states.dtype)[..., None], axis=1)
        return states, ops.concatenate([forward, states[:, 0, self.lstm_size :]], axis=-1)
