"""The names of the tensors of a BERT of GRUs or LSTMs: BERT's own, and those of the recurrences."""

from keras_bert.checkpoints.names import ENCODER, TensorName, bidirectional, for_layers
from keras_bert.config.recurrent import RecurrentConfig
from keras_bert.models.kinds.bert_names import bert_parts


def recurrent_parts(config: RecurrentConfig) -> dict[str, list[TensorName]]:
    """`ModelKind.parts` of a BERT of GRUs or LSTMs."""
    of_bert = bert_parts(config)
    kept = [name for name in of_bert[ENCODER] if ".attention." not in name.attribute]
    recurrences = for_layers(bidirectional("encoder.blocks.{i}.attention.both", "recurrence.{i}"), config.num_blocks)
    return {**of_bert, ENCODER: [*kept, *recurrences]}
