"""A BERT of GRUs or LSTMs: what attention is compared with."""

from collections.abc import Mapping
from typing import Any, ClassVar

from keras_bert.models.bert.kind import Bert
from keras_bert.models.recurrent.config import RecurrentConfig
from keras_bert.models.sizes import Part, training_flops
from keras_bert.models.tensor_names import ENCODER, TensorName, bidirectional, for_layers


class Recurrent(Bert):
    """BERT with recurrences in place of self-attention; a model config with a `block` is of this kind.

    Only this package has such models. What they share with BERT has BERT's names in files.
    """

    model_type, title, config = "recurrent", "recurrent BERT", RecurrentConfig
    class_prefix, google_files = "Recurrent", None
    in_transformers = attends = False
    values_here: ClassVar = {}

    def is_of(self, fields: Mapping[str, Any]) -> bool:
        return super().is_of(fields) or ("model_type" not in fields and "block" in fields)

    def make_encoder(self, config: Any, with_pooler: bool = True, **keras_options: Any) -> Any:
        from keras_bert.models.recurrent.encoder import RecurrentEncoder

        return RecurrentEncoder(config, with_pooler=with_pooler, **keras_options)

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

    def quoted_counts(self, config: Any, exact: int) -> list[tuple[str, int, str]]:
        return []

    def training_flops(self, config: Any, sequence_length: int, predictions_per_sequence: int) -> int:
        kernels, _ = config.recurrence_parameters
        recurrence = 2 * sequence_length * kernels
        return training_flops(config, sequence_length, predictions_per_sequence, recurrence)


KIND = Recurrent()
