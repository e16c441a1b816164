"""A bidirectional GRU or LSTM that takes the place of self-attention in a block."""

from typing import Any

import keras

from keras_bert.layers.bilstm import bidirectional, build_lstms, run_lstms
from keras_bert.layers.tensors import Tensor

_LAYERS = {"gru": keras.layers.GRU, "lstm": keras.layers.LSTM}


@keras.saving.register_keras_serializable(package="keras_bert")
class Recurrence(keras.layers.Layer):
    """One bidirectional layer with `hidden_size` / 2 units in each direction.

    Args:
        hidden_size: the size of a state, even.
        block: gru or lstm.

    Call arguments: `hidden` [batch, seq, hidden], `is_token` [batch, seq] bool, False at padding, which is at the end.
    Returns: ([batch, seq, hidden], 0 at padding; None in place of attention probabilities).
    """

    def __init__(self, hidden_size: int, block: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.hidden_size = hidden_size
        self.block = block
        self.both = bidirectional(_LAYERS[block], hidden_size // 2, self.dtype_policy, "both")

    def build(self, *input_shapes: tuple[int | None, ...]) -> None:
        build_lstms([self.both], self.hidden_size)

    def call(self, hidden: Tensor, is_token: Tensor, training: bool = False) -> tuple[Tensor, None]:
        return run_lstms([self.both], hidden, is_token, training), None

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "hidden_size": self.hidden_size, "block": self.block}
