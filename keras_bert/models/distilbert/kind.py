"""DistilBERT (Sanh et al. 2019): BERT with half the layers, and without segments and pooler."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from keras_bert.core import settings
from keras_bert.core.settings import Dropout, Positive, require
from keras_bert.models.bert.config import BIDIRECTIONAL, LEARNED, SINUSOIDAL, BertConfig
from keras_bert.models.bert.kind import Bert
from keras_bert.models.sizes import Part, block_parts, embedding_parts
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

# {field of config.json: our field}.
_NAMES = {
    "vocab_size": "vocab_size",
    "dim": "hidden_size",
    "n_layers": "num_hidden_layers",
    "n_heads": "num_attention_heads",
    "hidden_dim": "intermediate_size",
    "activation": "hidden_act",
    "dropout": "hidden_dropout_prob",
    "attention_dropout": "attention_probs_dropout_prob",
    "seq_classif_dropout": "seq_classif_dropout",
    "max_position_embeddings": "max_position_embeddings",
    "initializer_range": "initializer_range",
}
_SINUSOIDAL = "sinusoidal_pos_embds"


@dataclass
class DistilbertConfig(BertConfig):
    """The architecture of a DistilBERT (Sanh et al. 2019, section 3). The defaults are distilbert-base.

    There are no segments.

    Attributes:
        model_type: the kind of model.
        seq_classif_dropout: dropout before the output layer of a task.
    """

    num_hidden_layers: Positive[int] = 6
    type_vocab_size: Positive[int] = 1
    model_type: Literal["distilbert"] = "distilbert"
    seq_classif_dropout: Dropout = 0.2

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.type_vocab_size == 1, "type_vocab_size", "1 for a DistilBERT, without segments", self.type_vocab_size
        )
        require(self.layer_norm_eps == 1e-12, "layer_norm_eps", "1e-12 for a DistilBERT", self.layer_norm_eps)
        require(self.attention == BIDIRECTIONAL, "attention", "no value for a DistilBERT", self.attention)
        require(self.tie_word_embeddings, "tie_word_embeddings", "true for a DistilBERT", self.tie_word_embeddings)

    @property
    def head_dropout_prob(self) -> float:
        return self.seq_classif_dropout

    def to_fields(self) -> dict[str, Any]:
        fields = {theirs: getattr(self, ours) for theirs, ours in _NAMES.items()}
        return {"model_type": self.model_type, **fields, _SINUSOIDAL: self.positions == SINUSOIDAL}

    @classmethod
    def from_fields(cls, values: Mapping[str, Any], where: str) -> BertConfig:
        known = {ours: values[theirs] for theirs, ours in _NAMES.items() if theirs in values}
        positions = SINUSOIDAL if values.get(_SINUSOIDAL) else LEARNED
        return settings.from_mapping(cls, {**known, "model_type": cls.model_type, "positions": positions}, where)

    @classmethod
    def json_fields(cls) -> frozenset[str]:
        return frozenset({"model_type", _SINUSOIDAL, *_NAMES})


_LAYER = "distilbert.transformer.layer.{i}"
_BLOCK = {
    "attention.query": "attention.q_lin",
    "attention.key": "attention.k_lin",
    "attention.value": "attention.v_lin",
    "attention.output_projection": "attention.out_lin",
    "intermediate": "ffn.lin1",
    "output_dense": "ffn.lin2",
}
_LAYER_NORMS = {"attention_layer_norm": "sa_layer_norm", "output_layer_norm": "output_layer_norm"}
_TABLES = "distilbert.embeddings"
_PARTS: dict[str, tuple[TensorName, ...]] = {
    ENCODER: (
        plain_tensor(
            "encoder.embeddings.word_embeddings", f"{_TABLES}.word_embeddings.weight", ("vocab_projector.weight",)
        ),
        plain_tensor("encoder.embeddings.position_embeddings", f"{_TABLES}.position_embeddings.weight"),
        *layer_norm("encoder.embeddings.layer_norm", f"{_TABLES}.LayerNorm"),
        *(row for ours, name in _BLOCK.items() for row in dense(f"encoder.blocks.{{i}}.{ours}", f"{_LAYER}.{name}")),
        *(
            row
            for ours, name in _LAYER_NORMS.items()
            for row in layer_norm(f"encoder.blocks.{{i}}.{ours}", f"{_LAYER}.{name}")
        ),
    ),
    POOLER: dense("encoder.pooler.dense", "pre_classifier"),
    MASKED_LM_HEAD: (
        *dense("mlm_head.transform", "vocab_transform"),
        *layer_norm("mlm_head.layer_norm", "vocab_layer_norm"),
        plain_tensor("mlm_head.bias", "vocab_projector.bias"),
    ),
}


class Distilbert(Bert):
    """DistilBERT. The dense layer before a classifier, of which transformers' encoder knows nothing, is the pooler."""

    model_type, title = "distilbert", "DistilBERT"
    config: ClassVar[type[BertConfig]] = DistilbertConfig
    encoder = "keras_bert.models.distilbert.encoder:DistilbertEncoder"
    class_prefix, stored_prefix, google_files = "DistilBert", "distilbert.", None
    pretraining_heads = ()
    pretrains_pooler = encoder_pools = False
    values_here: ClassVar = {**Bert.values_here, "is_decoder": (False,), "tie_word_embeddings": (True,)}

    def parts(self, config: BertConfig) -> dict[str, list[TensorName]]:
        return {part: for_layers(rows, config.num_hidden_layers) for part, rows in _PARTS.items()}

    def encoder_table(self, config: BertConfig) -> list[Part]:
        return [*embedding_parts(config, has_segments=False), *block_parts(config)]


KINDS = (Distilbert(),)
