"""BERT's encoder with a bidirectional GRU or LSTM instead of self-attention."""

from typing import Any

import keras
from keras import ops

from keras_bert.layers.bilstm import bidirectional, build_lstms, run_lstms
from keras_bert.layers.encoder_block import EncoderBlock
from keras_bert.layers.tensors import Batch, PlainLayer, Tensor
from keras_bert.models.bert.encoder import BertEncoder
from keras_bert.models.recurrent.kind import RecurrentConfig

_LAYERS = {"gru": keras.layers.GRU, "lstm": keras.layers.LSTM}


@keras.saving.register_keras_serializable(package="keras_bert")
class Recurrence(PlainLayer):
    """One bidirectional layer with `hidden_size` / 2 units in each direction.

    Args:
        hidden_size: the size of a state, even.
        block: gru or lstm.

    Call arguments: `hidden` [batch, seq, hidden], `is_token` [batch, seq] bool, False at padding, which is at the end.
    Returns: ([batch, seq, hidden], 0 at padding; None instead of attention probabilities).
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


@keras.saving.register_keras_serializable(package="keras_bert")
class RecurrentEncoder(BertEncoder):
    """`BertEncoder` with a `RecurrentConfig`. It has no attentions, and `recompute_every` must be 0."""

    recomputes = False
    config: RecurrentConfig

    def make_block(self, index: int, **options: Any) -> EncoderBlock:
        config = self.config
        recurrence = Recurrence(config.hidden_size, config.block, dtype=self.dtype_policy, name="recurrence")
        return super().make_block(index, attention=recurrence, **options)

    def call(
        self,
        inputs: Batch,
        training: bool = False,
        return_attentions: bool = False,
        causal: bool | None = None,
        positions: Tensor | None = None,
    ) -> dict[str, Any]:
        for option, is_set in (
            ("return_attentions", return_attentions),
            ("causal", causal),
            ("positions", positions is not None),
        ):
            if is_set:
                raise ValueError(
                    f"{option}: needs a model with attention. Received: one of {self.config.block} blocks."
                )
        return super().call(inputs, training=training)

    def visibility(self, input_mask: Tensor, causal: bool) -> Tensor:
        return ops.not_equal(input_mask, 0)
