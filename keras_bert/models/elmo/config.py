"""The architecture of an ELMo-like model."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from keras_bert.core.settings import Positive, require
from keras_bert.models.bert.config import BIDIRECTIONAL, BOTH, LEARNED, BertConfig

# Fields of a BERT that this model has no use for.
_UNUSED = ("num_attention_heads", "intermediate_size", "attention_probs_dropout_prob", "type_vocab_size")


@dataclass
class ElmoConfig(BertConfig):
    """A left-to-right and a right-to-left LSTM language model over word pieces, after ELMo (Peters et al. 2018).

    Each direction has `hidden_size` / 2 units in each of `num_hidden_layers` layers; a state is both directions side by
    side. Both share the word embeddings and the output layer. ELMo itself has characters for input and larger cells
    with projections. Rows are at most `max_position_embeddings` tokens, as in other models, though none has a position.

    Attributes:
        model_type: the kind of model.
    """

    hidden_size: Positive[int] = 1024
    num_hidden_layers: Positive[int] = 2
    num_attention_heads: Positive[int] = 1
    model_type: Literal["elmo"] = "elmo"

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.hidden_size % 2 == 0, "hidden_size", "an even number, half for each direction", self.hidden_size)
        require(self.attention == BIDIRECTIONAL, "attention", "no value for an ELMo, which has none", self.attention)
        require(self.tie_word_embeddings, "tie_word_embeddings", "true for an ELMo", self.tie_word_embeddings)
        require(self.positions == LEARNED, "positions", "no value for an ELMo, which has none", self.positions)

    @property
    def embedding_width(self) -> int:
        return self.hidden_size // 2

    @property
    def lm_width(self) -> int:
        return self.hidden_size // 2

    @property
    def predicts(self) -> str:
        return BOTH

    def to_fields(self) -> dict[str, Any]:
        return {key: value for key, value in super().to_fields().items() if key not in _UNUSED}

    @classmethod
    def from_fields(cls, values: Mapping[str, Any], where: str) -> "BertConfig":
        names = {item.name for item in dataclasses.fields(cls)} - {"attention", *_UNUSED}
        return super().from_fields({key: value for key, value in values.items() if key in names}, where)
