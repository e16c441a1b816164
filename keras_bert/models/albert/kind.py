"""ALBERT (Lan et al. 2020): factorized embeddings, shared layers, sentence order prediction."""

import itertools
import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

from keras_bert.core.errors import UserError
from keras_bert.core.settings import Dropout, Positive, require
from keras_bert.models.bert.config import BIDIRECTIONAL, Activation, BertConfig
from keras_bert.models.bert.kind import Bert
from keras_bert.models.kind import GoogleFiles
from keras_bert.models.sizes import Part, embedding_parts
from keras_bert.models.tensor_names import (
    ENCODER,
    MASKED_LM_HEAD,
    POOLER,
    SENTENCE_ORDER_HEAD,
    TensorName,
    decoder,
    dense,
    embeddings,
    layer_norm,
    output_layer,
)

Sharing = Literal["all", "attention", "ffn", "none"]
ALL, ATTENTION, FFN, NONE = SHARINGS = get_args(Sharing)

# The field for the groups that share weights, in JSON files whose `num_hidden_groups` counts the stored groups.
_SHARED_GROUPS = "shared_groups"


@dataclass
class AlbertConfig(BertConfig):
    """The architecture of an ALBERT (Lan et al. 2020, section 3). The defaults are albert-base-v2.

    Attributes:
        model_type: the kind of model.
        embedding_size: width of the word embeddings, which are mapped to `hidden_size`.
        num_hidden_groups: groups of consecutive layers, at most `num_hidden_layers`; the layers of a group share their
            weights.
        inner_group_num: blocks in a layer, which do not share weights with each other.
        sharing: which weights a group shares: all, those of attention, those of the feed-forward network, or none (the
            paper's table 4).
        classifier_dropout_prob: dropout before the output layer of a task.
    """

    vocab_size: Positive[int] = 30000
    hidden_act: Activation = "gelu_new"
    hidden_dropout_prob: Dropout = 0.0
    attention_probs_dropout_prob: Dropout = 0.0
    model_type: Literal["albert"] = "albert"
    embedding_size: Positive[int] = 128
    num_hidden_groups: Positive[int] = 1
    inner_group_num: Positive[int] = 1
    sharing: Sharing = "all"
    classifier_dropout_prob: Dropout = 0.1
    maps_embeddings = True

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.num_hidden_groups <= self.num_hidden_layers,
            "num_hidden_groups",
            f"1 to num_hidden_layers ({self.num_hidden_layers})",
            self.num_hidden_groups,
        )
        require(
            self.attention == BIDIRECTIONAL,
            "attention",
            "bidirectional for an ALBERT; for a left-to-right model, use model_type: bert",
            self.attention,
        )

    @property
    def embedding_width(self) -> int:
        return self.embedding_size

    @property
    def num_blocks(self) -> int:
        return self.num_hidden_layers * self.inner_group_num

    @property
    def head_dropout_prob(self) -> float:
        return self.classifier_dropout_prob

    @property
    def attention_groups(self) -> int:
        """The number of groups of layers that share attention."""
        return self.num_hidden_groups if self.sharing in (ALL, ATTENTION) else self.num_hidden_layers

    @property
    def ffn_groups(self) -> int:
        """The number of groups of layers that share the feed-forward network."""
        return self.num_hidden_groups if self.sharing in (ALL, FFN) else self.num_hidden_layers

    @property
    def stored_groups(self) -> int:
        """The number of groups of layers in files, where a group shares all weights."""
        return max(self.attention_groups, self.ffn_groups)

    def group_of(self, layer: int, groups: int) -> int:
        """The group that a layer belongs to."""
        return int(layer / (self.num_hidden_layers / groups))  # As in transformers, rounding included.

    def to_fields(self) -> dict[str, Any]:
        """The fields for a JSON file, where `num_hidden_groups` counts the stored groups."""
        fields = super().to_fields()
        if self.sharing == ALL:
            del fields["sharing"]
            return fields
        return {**fields, "num_hidden_groups": self.stored_groups, _SHARED_GROUPS: self.num_hidden_groups}

    @classmethod
    def from_fields(cls, values: Mapping[str, Any], where: str) -> BertConfig:
        known = dict(values)
        if _SHARED_GROUPS in known:
            known["num_hidden_groups"] = known.pop(_SHARED_GROUPS)
        return super().from_fields(known, where)

    @classmethod
    def json_fields(cls) -> frozenset[str]:
        return super().json_fields() | {_SHARED_GROUPS}


# Within a block: the functions that make the rows, and the layer's attribute and names.
_ATTENTION = (
    (dense, "attention.query", "attention.query", "attention_1/self/query"),
    (dense, "attention.key", "attention.key", "attention_1/self/key"),
    (dense, "attention.value", "attention.value", "attention_1/self/value"),
    (dense, "attention.output_projection", "attention.dense", "attention_1/output/dense"),
    (layer_norm, "attention_layer_norm", "attention.LayerNorm", "LayerNorm"),
)
_FFN = (
    (dense, "intermediate", "ffn", "ffn_1/intermediate/dense"),
    (dense, "output_dense", "ffn_output", "ffn_1/intermediate/output/dense"),
    (layer_norm, "output_layer_norm", "full_layer_layer_norm", "LayerNorm_1"),
)

_HEAD, _GOOGLE_HEAD = "predictions", "cls/predictions/transform"


def _blocks(config: AlbertConfig, rows: tuple, groups: int) -> Iterator[TensorName]:
    """The names of the layers in `rows`, which each of `groups` groups has in its first block.

    Where files hold more groups, each of those within a group holds a copy.
    """
    layers = range(config.num_hidden_layers)
    for _, of_group in itertools.groupby(layers, lambda layer: config.group_of(layer, groups)):
        members = list(of_group)
        stored = list(dict.fromkeys(config.group_of(layer, config.stored_groups) for layer in members))
        for inner in range(config.inner_group_num):
            block = f"encoder.blocks.{members[0] * config.inner_group_num + inner}"
            for make, attribute, huggingface, google in rows:
                # One list of names for each stored group: the first is the name, the others are copies.
                columns = (
                    make(
                        f"{block}.{attribute}",
                        f"albert.encoder.albert_layer_groups.{group}.albert_layers.{inner}.{huggingface}",
                        f"bert/encoder/transformer/group_{group}/inner_group_{inner}/{google}",
                    )
                    for group in stored
                )
                for first, *copies in zip(*columns):
                    yield first.with_copies(copies)


class Albert(Bert):
    """ALBERT. Google's files do not name the kind; `num_hidden_groups` identifies it.

    Files hold groups that share all weights. A model whose layers share only some weights, or none, is stored with a
    group for each layer, each with a copy of the shared weights: transformers opens it with equal outputs. Fields of
    our own (`sharing`, `shared_groups`) say what to share again.
    """

    model_type, title, config = "albert", "ALBERT", AlbertConfig
    encoder = "keras_bert.models.albert.encoder:AlbertEncoder"
    class_prefix, stored_prefix = "Albert", "albert."
    google_files = GoogleFiles("albert_config.json", "model.ckpt-best")
    pretraining_heads = ("sop",)
    # albert-xxlarge's, which are Google's defaults too.
    json_defaults: ClassVar = {"hidden_size": 4096, "num_attention_heads": 64, "intermediate_size": 16384}
    values_here: ClassVar = {
        **Bert.values_here,
        "is_decoder": (False,),
        "net_structure_type": (0,),
        "down_scale_factor": (1,),
        "num_memory_blocks": (0,),
        "gap_size": (0,),
    }

    def is_of(self, fields: Mapping[str, Any]) -> bool:
        return super().is_of(fields) or ("model_type" not in fields and "num_hidden_groups" in fields)

    def parts(self, config: Any) -> dict[str, list[TensorName]]:
        return {
            ENCODER: [
                *embeddings("albert", config, _HEAD),
                *dense(
                    "encoder.embeddings.mapping",
                    "albert.encoder.embedding_hidden_mapping_in",
                    "bert/encoder/embedding_hidden_mapping_in",
                ),
                *_blocks(config, _ATTENTION, config.attention_groups),
                *_blocks(config, _FFN, config.ffn_groups),
            ],
            POOLER: [*dense("encoder.pooler.dense", "albert.pooler", "bert/pooler/dense")],
            MASKED_LM_HEAD: [
                *dense("mlm_head.transform", f"{_HEAD}.dense", f"{_GOOGLE_HEAD}/dense"),
                *layer_norm("mlm_head.layer_norm", f"{_HEAD}.LayerNorm", f"{_GOOGLE_HEAD}/LayerNorm"),
                *decoder(config, _HEAD),
            ],
            # Google's code still names it after the head that it replaced.
            SENTENCE_ORDER_HEAD: [
                *output_layer("sop_head.dense", "sop_classifier.classifier", "cls/seq_relationship/")
            ],
        }

    def encoder_table(self, config: Any) -> list[Part]:
        H, F = config.hidden_size, config.intermediate_size
        attentions, ffns = (groups * config.inner_group_num for groups in (config.attention_groups, config.ffn_groups))
        return [
            *embedding_parts(config),
            Part("attention kernels", f"{attentions} of {config.num_blocks} · 4·H²", attentions * 4 * H * H),
            Part("attention biases", f"{attentions} · 4·H", attentions * 4 * H),
            Part("attention LayerNorm", f"{attentions} · 2·H", attentions * 2 * H),
            Part("feed-forward kernels", f"{ffns} of {config.num_blocks} · 2·H·{F:,}", ffns * 2 * H * F),
            Part("feed-forward biases", f"{ffns} · (H + {F:,})", ffns * (H + F)),
            Part("feed-forward LayerNorm", f"{ffns} · 2·H", ffns * 2 * H),
            Part("pooler", "H² + H", H * H + H),
        ]

    def class_in_transformers(self, parts: Collection[str], config: Any) -> str:
        if MASKED_LM_HEAD not in parts:
            return "BertModel"
        return "BertForPreTraining" if SENTENCE_ORDER_HEAD in parts else "BertForMaskedLM"

    def to_google_fields(self, config: Any) -> dict[str, Any]:
        if config.hidden_act == "gelu":
            raise UserError(
                "hidden_act: needs gelu_new for Google's format, whose ALBERT computes gelu by tanh. Received: gelu, "
                "the exact form. If Google's code trained the model, write gelu_new into its config.json."
            )
        fields = {key: value for key, value in config.to_fields().items() if key != "model_type"}
        return {**fields, "hidden_act": config.hidden_act.removesuffix("_new")}

    def from_fields(self, fields: Mapping[str, Any], path: str) -> BertConfig:
        if os.path.basename(path) == self.google_files.config and fields.get("hidden_act") == "gelu":
            fields = {**fields, "hidden_act": "gelu_new"}  # modeling.py of google-research/albert, `gelu`.
        return super().from_fields(fields, path)


KINDS = (Albert(),)
