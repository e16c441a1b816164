"""The architecture of a BERT whose blocks have a GRU or an LSTM in place of self-attention."""

from dataclasses import dataclass
from typing import Annotated

from keras_bert.core.settings import OneOf, Positive, require
from keras_bert.models.bert.config import BIDIRECTIONAL, BertConfig

GRU, LSTM = BLOCKS = ("gru", "lstm")


@dataclass
class RecurrentConfig(BertConfig):
    """A BERT in which each block has a bidirectional GRU or LSTM in place of self-attention.

    Each direction has `hidden_size` / 2 units. All else is BERT's. `num_attention_heads` and
    `attention_probs_dropout_prob` are not used.

    Attributes:
        model_type: the kind of model.
        block: what a block has in place of self-attention.
    """

    num_attention_heads: Positive[int] = 1
    model_type: Annotated[str, OneOf(lambda: ("recurrent",), "recurrent for gru and lstm blocks")] = "recurrent"
    block: Annotated[str, OneOf(lambda: BLOCKS, "gru or lstm; leave it out for attention")] = GRU

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.hidden_size % 2 == 0, "hidden_size", "an even number, half for each direction", self.hidden_size)
        require(self.attention == BIDIRECTIONAL, "attention", f"no value if block is {self.block}", self.attention)

    @property
    def recurrence_parameters(self) -> tuple[int, int]:
        """The parameters of a block's recurrence: those of the kernels, and the biases.

        With W = H / 2 units a direction, a gate has kernels [H, W] and [W, W]. An LSTM has four gates; a GRU three, and
        each of them a bias on the input and one on the state.
        """
        gates, biases = (4, 1) if self.block == LSTM else (3, 2)
        width = self.hidden_size // 2
        return 2 * gates * width * (self.hidden_size + width), 2 * gates * biases * width
