"""RoBERTa: BERT without segments and next sentences, whose positions begin after the padding's id; and its kin."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from keras_bert.core.errors import UserError
from keras_bert.core.settings import Positive, require
from keras_bert.models.bert.config import BIDIRECTIONAL, BertConfig
from keras_bert.models.bert.kind import Bert, blocks
from keras_bert.models.tensor_names import (
    ENCODER,
    MASKED_LM_HEAD,
    POOLER,
    TensorName,
    decoder,
    dense,
    embeddings,
    layer_norm,
)

_PAD = "pad_token_id"
_POSITIONS = "max_position_embeddings"


@dataclass
class RobertaConfig(BertConfig):
    """The architecture of a RoBERTa (Liu et al. 2019, section 3). The defaults are roberta-base.

    Attributes:
        model_type: the kind of model.
        pad_token_id: the id of <pad>. The first token's position is `pad_token_id` + 1, as in fairseq, so the position
            embeddings have that many rows before the first token's; JSON files include these in
            `max_position_embeddings`.
    """

    vocab_size: Positive[int] = 50265
    type_vocab_size: Positive[int] = 1
    layer_norm_eps: Positive[float] = 1e-5
    model_type: Literal["roberta"] = "roberta"
    pad_token_id: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.pad_token_id >= 0, _PAD, "0 or more", self.pad_token_id)
        require(
            self.attention == BIDIRECTIONAL,
            "attention",
            "bidirectional for a RoBERTa; for a left-to-right model, use model_type: bert",
            self.attention,
        )

    @property
    def first_position(self) -> int:
        return self.pad_token_id + 1

    def to_fields(self) -> dict[str, Any]:
        """The fields for a JSON file, which counts all rows of the position embeddings."""
        fields = super().to_fields()
        return {**fields, _POSITIONS: fields[_POSITIONS] + self.first_position}

    @classmethod
    def from_fields(cls, values: Mapping[str, Any], where: str) -> BertConfig:
        known = dict(values)
        if known.get(_PAD) is None:
            known[_PAD] = cls.pad_token_id
        rows = known.get(_POSITIONS)
        if isinstance(rows, int) and isinstance(known[_PAD], int):
            known[_POSITIONS] = rows - known[_PAD] - 1
            if known[_POSITIONS] < 1:
                raise UserError(
                    f"{where}: {_POSITIONS}: needs more than {known[_PAD] + 1}, the rows before the first token's. "
                    f"Received: {rows}."
                )
        return super().from_fields(known, where)


_HEAD = "lm_head"


class Roberta(Bert):
    """RoBERTa, and models of its architecture with the same `model_type` whose tokenizer is supported."""

    model_type, title = "roberta", "RoBERTa"
    config: ClassVar[type[BertConfig]] = RobertaConfig
    class_prefix, stored_prefix, google_files = "Roberta", "roberta.", None
    pretraining_heads = ()
    pretrains_pooler = False
    token_head_act: ClassVar[str | None] = "gelu"
    # The classifier's dense layer equals the pooler: tanh over the first token's state.
    classification_names: ClassVar = {
        "roberta.pooler.dense.": "classifier.dense.",
        "classifier.": "classifier.out_proj.",
    }
    # BERT's.
    json_defaults: ClassVar = {_POSITIONS: 512, "type_vocab_size": 2, "layer_norm_eps": 1e-12}
    values_here: ClassVar = {**Bert.values_here, "is_decoder": (False,)}

    def parts(self, config: BertConfig) -> dict[str, list[TensorName]]:
        stored, head = self.stored_prefix.removesuffix("."), "cls/predictions/transform"
        return {
            ENCODER: [*embeddings(stored, config, _HEAD), *blocks(stored, config)],
            POOLER: [*dense("encoder.pooler.dense", f"{stored}.pooler.dense", "bert/pooler/dense")],
            MASKED_LM_HEAD: [
                *dense("mlm_head.transform", f"{_HEAD}.dense", f"{head}/dense"),
                *layer_norm("mlm_head.layer_norm", f"{_HEAD}.layer_norm", f"{head}/LayerNorm"),
                *decoder(config, _HEAD),
            ],
        }


@dataclass
class XlmRobertaConfig(RobertaConfig):
    """The architecture of an XLM-RoBERTa (Conneau et al. 2020): RoBERTa's, with the sizes of xlm-roberta-base."""

    vocab_size: Positive[int] = 250002
    model_type: Literal["xlm-roberta"] = "xlm-roberta"  # type: ignore[assignment]


class XlmRoberta(Roberta):
    """RoBERTa for a hundred languages, over a SentencePiece vocabulary. Its tensors have RoBERTa's names."""

    model_type, title = "xlm-roberta", "XLM-RoBERTa"
    config: ClassVar[type[BertConfig]] = XlmRobertaConfig
    class_prefix = "XLMRoberta"
    json_defaults: ClassVar = {**Roberta.json_defaults, "vocab_size": 30522}


@dataclass
class CamembertConfig(RobertaConfig):
    """The architecture of a CamemBERT (Martin et al. 2020): RoBERTa's, with the sizes of camembert-base."""

    vocab_size: Positive[int] = 32005
    model_type: Literal["camembert"] = "camembert"  # type: ignore[assignment]


class Camembert(XlmRoberta):
    """RoBERTa for French, over a SentencePiece vocabulary. Its tensors have RoBERTa's names."""

    model_type, title, config = "camembert", "CamemBERT", CamembertConfig
    class_prefix = "Camembert"


KINDS = (Roberta(), XlmRoberta(), Camembert())
