"""An ELMo-like model: LSTM language models in both directions over word pieces (Peters et al. 2018)."""

import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from keras_bert.core.settings import Positive, require
from keras_bert.models.bert.config import BIDIRECTIONAL, BOTH, LEARNED, BertConfig
from keras_bert.models.kind import ModelKind
from keras_bert.models.sizes import Part
from keras_bert.models.tensor_names import (
    ENCODER,
    MASKED_LM_HEAD,
    POOLER,
    TensorName,
    dense,
    for_layers,
    layer_norm,
    plain_tensor,
)

# BERT's fields that this model does not use.
_UNUSED = ("num_attention_heads", "intermediate_size", "attention_probs_dropout_prob", "type_vocab_size")


@dataclass
class ElmoConfig(BertConfig):
    """A left-to-right and a right-to-left LSTM language model over word pieces, after ELMo (Peters et al. 2018).

    Each direction has `hidden_size` / 2 units in each of `num_hidden_layers` layers; a state is both directions side by
    side. Both share the word embeddings and the output layer. ELMo itself reads characters and has larger cells
    with projections. There are no positions, but `max_position_embeddings` limits a row as in other models.

    Attributes:
        model_type: the kind of model.
    """

    hidden_size: Positive[int] = 1024
    num_hidden_layers: Positive[int] = 2
    num_attention_heads: Positive[int] = 1
    model_type: Literal["elmo"] = "elmo"
    predicts = BOTH

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

    def to_fields(self) -> dict[str, Any]:
        return {key: value for key, value in super().to_fields().items() if key not in _UNUSED}

    @classmethod
    def from_fields(cls, values: Mapping[str, Any], where: str) -> "BertConfig":
        names = {item.name for item in dataclasses.fields(cls)} - {"attention", *_UNUSED}
        return super().from_fields({key: value for key, value in values.items() if key in names}, where)


_PARTS: dict[str, tuple[TensorName, ...]] = {
    ENCODER: (
        plain_tensor("encoder.embeddings.word_embeddings", "elmo.embeddings.word_embeddings.weight"),
        *(
            plain_tensor(f"encoder.blocks.{{i}}.{way}.cell.{weight}", f"elmo.encoder.layer.{{i}}.{way}.{weight}")
            for way in ("forward", "backward")
            for weight in ("kernel", "recurrent_kernel", "bias")
        ),
    ),
    POOLER: dense("encoder.pooler.dense", "elmo.pooler.dense"),
    # Of both language models, with the word embeddings as the decoder's kernel.
    MASKED_LM_HEAD: (
        *dense("mlm_head.transform", "lm_head.transform.dense"),
        *layer_norm("mlm_head.layer_norm", "lm_head.transform.LayerNorm"),
        plain_tensor("mlm_head.bias", "lm_head.bias"),
    ),
}


class Elmo(ModelKind):
    """ELMo over word pieces. Only this package has such models: transformers and Google's BERT do not."""

    model_type, title, config = "elmo", "ELMo", ElmoConfig
    encoder = "keras_bert.models.elmo.encoder:ElmoEncoder"
    class_prefix, stored_prefix = "Elmo", "elmo."
    in_transformers = attends = has_positions = False

    def parts(self, config: ElmoConfig) -> dict[str, list[TensorName]]:
        return {part: for_layers(rows, config.num_hidden_layers) for part, rows in _PARTS.items()}

    def encoder_table(self, config: ElmoConfig) -> list[Part]:
        # W is the width of a direction, H / 2.
        V, W, L, H = config.vocab_size, config.embedding_width, config.num_hidden_layers, config.hidden_size
        return [
            Part("word embeddings", f"V·W = {V:,}·{W}", V * W),
            Part("LSTM kernels", f"{L} layers · 2 directions · 8·W²", L * 2 * 8 * W * W),
            Part("LSTM biases", f"{L} layers · 2 directions · 4·W", L * 2 * 4 * W),
            Part("pooler", "H² + H", H * H + H),
        ]

    def heads_table(self, config: ElmoConfig) -> list[Part]:
        # Both directions share the output layer, whose decoder is the word embeddings.
        V, W = config.vocab_size, config.embedding_width
        return [
            Part("LM transform", "W² + W", W * W + W),
            Part("LM LayerNorm", "2·W", 2 * W),
            Part("LM output bias", "V", V),
        ]

    def training_flops(self, config: ElmoConfig, sequence_length: int, predictions_per_sequence: int) -> int:
        """The FLOPs of the forward and backward pass of one example in pretraining; see `models.sizes.training_flops`.

        With S tokens, the forward pass is, for each of the two directions,

            S · L · 16·W²              the four gates, from the input and from the state before
            + S · (2·W² + 2·W·V)       the LM's transform and decoder, at every position
        """
        S, L, W, V = sequence_length, config.num_hidden_layers, config.embedding_width, config.vocab_size
        return 3 * 2 * S * (L * 16 * W**2 + 2 * W**2 + 2 * W * V)

    def class_in_transformers(self, parts: Collection[str], config: ElmoConfig) -> str:
        return "BertForPreTraining" if MASKED_LM_HEAD in parts else "BertModel"


KINDS = (Elmo(),)
