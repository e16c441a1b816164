"""A BERT of GRUs or LSTMs, to compare attention with."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from keras_bert.core.settings import OneOf, Positive, require
from keras_bert.models.bert.config import BIDIRECTIONAL, BertConfig
from keras_bert.models.bert.kind import Bert
from keras_bert.models.sizes import Part, training_flops
from keras_bert.models.tensor_names import ENCODER, TensorName, bidirectional, for_layers

GRU, LSTM = BLOCKS = ("gru", "lstm")


@dataclass
class RecurrentConfig(BertConfig):
    """A BERT in which each block has a bidirectional GRU or LSTM instead of self-attention.

    Each direction has `hidden_size` / 2 units. All else is BERT's. `num_attention_heads` and
    `attention_probs_dropout_prob` are not used.

    Attributes:
        model_type: the kind of model.
        block: the layer that replaces self-attention.
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
        """The numbers of parameters of a block's recurrence: in kernels, and in biases.

        With W = H / 2 units a direction, a gate has kernels [H, W] and [W, W]. An LSTM has four gates with one
        bias each, a GRU three with a bias on the input and one on the state.
        """
        gates, biases = (4, 1) if self.block == LSTM else (3, 2)
        width = self.hidden_size // 2
        return 2 * gates * width * (self.hidden_size + width), 2 * gates * biases * width


class Recurrent(Bert):
    """BERT with recurrences instead of self-attention; a model config with a `block` is of this kind.

    Only this package has such models. What they share with BERT has BERT's names in files.
    """

    model_type, title, config = "recurrent", "recurrent BERT", RecurrentConfig
    encoder = "keras_bert.models.recurrent.encoder:RecurrentEncoder"
    class_prefix, google_files = "Recurrent", None
    in_transformers = attends = False
    values_here: ClassVar = {}

    def is_of(self, fields: Mapping[str, Any]) -> bool:
        return super().is_of(fields) or ("model_type" not in fields and "block" in fields)

    def parts(self, config: Any) -> dict[str, list[TensorName]]:
        of_bert = super().parts(config)
        kept = [name for name in of_bert[ENCODER] if ".attention." not in name.attribute]
        recurrence = bidirectional("encoder.blocks.{i}.attention.both", "recurrence.{i}")
        return {**of_bert, ENCODER: [*kept, *for_layers(recurrence, config.num_blocks)]}

    def encoder_table(self, config: Any) -> list[Part]:
        kernels, biases = config.recurrence_parameters
        layers, name = config.num_hidden_layers, config.block.upper()
        recurrences = {
            "attention kernels": Part(f"{name} kernels", f"{layers} layers · {kernels:,}", layers * kernels),
            "attention biases": Part(f"{name} biases", f"{layers} layers · {biases:,}", layers * biases),
            "attention LayerNorm": Part(f"{name} LayerNorm", f"{layers} layers · 2·H", layers * 2 * config.hidden_size),
        }
        return [recurrences.get(part.name, part) for part in super().encoder_table(config)]

    def training_flops(self, config: Any, sequence_length: int, predictions_per_sequence: int) -> int:
        kernels, _ = config.recurrence_parameters
        recurrence = 2 * sequence_length * kernels
        return training_flops(config, sequence_length, predictions_per_sequence, recurrence)


KINDS = (Recurrent(),)
