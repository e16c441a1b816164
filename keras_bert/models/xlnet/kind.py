"""XLNet (Yang et al. 2019): relative positions, and a second stream that predicts a token without seeing it."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from keras_bert.core import settings
from keras_bert.core.errors import UserError
from keras_bert.core.settings import Dropout, Positive, require
from keras_bert.models.bert.config import BIDIRECTIONAL, LEARNED, PERMUTED, BertConfig
from keras_bert.models.kind import ModelKind
from keras_bert.models.sizes import Part, block_parts
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

if TYPE_CHECKING:
    import keras

# The segments of two texts, and that of <cls>.
_SEGMENTS = 3
# {field of config.json: our field}.
_NAMES = {
    "vocab_size": "vocab_size",
    "d_model": "hidden_size",
    "n_layer": "num_hidden_layers",
    "n_head": "num_attention_heads",
    "d_inner": "intermediate_size",
    "ff_activation": "hidden_act",
    "dropout": "hidden_dropout_prob",
    "dropatt": "attention_probs_dropout_prob",
    "initializer_range": "initializer_range",
    "layer_norm_eps": "layer_norm_eps",
    "clamp_len": "clamp_len",
    "mem_len": "mem_len",
    "reuse_len": "reuse_len",
    "summary_last_dropout": "summary_last_dropout",
    "longest_row": "max_position_embeddings",
}
# Names of older files.
_OLD_NAMES = {"n_token": "vocab_size"}
# Fields with the only values that are supported; those without effect here, such as same_length, are just kept.
_FIXED = {
    "attn_type": "bi",
    "bi_data": False,
    "summary_type": "last",
    "summary_use_proj": True,
    "summary_activation": "tanh",
}


@dataclass
class XlnetConfig(BertConfig):
    """The architecture of an XLNet (Yang et al. 2019). The defaults are xlnet-base-cased.

    There are no position embeddings: `max_position_embeddings` only limits the tokens of a row here; JSON files hold it
    as `longest_row`. A row has three segments: the first text's, the second's, and that of <cls>.

    Attributes:
        model_type: the kind of model.
        clamp_len: the largest distance between tokens, to which larger ones are clipped; -1 for no limit.
        mem_len: how many states the memory keeps for a later row; null or 0 for all.
        reuse_len: how many of a row's first states go into the memory; null or 0 for all.
        summary_last_dropout: the dropout before the output layer of a task.
    """

    vocab_size: Positive[int] = 32000
    type_vocab_size: Positive[int] = _SEGMENTS
    model_type: Literal["xlnet"] = "xlnet"
    clamp_len: int = -1
    mem_len: int | None = None
    reuse_len: int | None = None
    summary_last_dropout: Dropout = 0.1
    predicts, cls_is_last = PERMUTED, True

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.hidden_size % 2 == 0, "hidden_size", "an even number, of sines and cosines", self.hidden_size)
        require(self.type_vocab_size == _SEGMENTS, "type_vocab_size", f"{_SEGMENTS} for an XLNet", self.type_vocab_size)
        require(self.attention == BIDIRECTIONAL, "attention", "no value for an XLNet", self.attention)
        require(self.positions == LEARNED, "positions", "no value for an XLNet, which has none", self.positions)
        require(self.tie_word_embeddings, "tie_word_embeddings", "true for an XLNet", self.tie_word_embeddings)
        for name in ("mem_len", "reuse_len"):
            length = getattr(self, name)
            require(length is None or length >= 0, name, "0 or more, or null", length)

    @property
    def head_dropout_prob(self) -> float:
        return self.summary_last_dropout

    def to_fields(self) -> dict[str, Any]:
        fields = {theirs: getattr(self, ours) for theirs, ours in _NAMES.items()}
        if self.attention_probs_dropout_prob == self.hidden_dropout_prob:
            del fields["dropatt"]  # Google's name; transformers has one dropout.
        if self.max_position_embeddings == BertConfig.max_position_embeddings:
            del fields["longest_row"]
        head_size = self.hidden_size // self.num_attention_heads
        return {"model_type": self.model_type, **fields, **_FIXED, "d_head": head_size}

    @classmethod
    def from_fields(cls, values: Mapping[str, Any], where: str) -> BertConfig:
        known = {ours: values[theirs] for theirs, ours in {**_OLD_NAMES, **_NAMES}.items() if theirs in values}
        if "dropatt" not in values and "dropout" in values:
            known["attention_probs_dropout_prob"] = values["dropout"]
        config = settings.from_mapping(cls, {**known, "model_type": cls.model_type}, where)
        needed, received = config.hidden_size // config.num_attention_heads, values.get("d_head")
        if received not in (None, needed):
            raise UserError(f"{where}: d_head: needs d_model / n_head, {needed}. Received: {received}.")
        return config

    @classmethod
    def json_fields(cls) -> frozenset[str]:
        return frozenset({"model_type", "d_head", *_NAMES, *_OLD_NAMES, *_FIXED})


_LAYER, _ATTENTION = "transformer.layer.{i}", "transformer.layer.{i}.rel_attn"
_PARTS: dict[str, tuple[TensorName, ...]] = {
    ENCODER: (
        plain_tensor("encoder.embeddings.word_embeddings", "transformer.word_embedding.weight", ("lm_loss.weight",)),
        plain_tensor("encoder.mask_embedding", "transformer.mask_emb"),
        *(
            plain_tensor(f"encoder.blocks.{{i}}.attention.{weight}", f"{_ATTENTION}.{weight}")
            for weight in ("q", "k", "v", "o", "r", "r_r_bias", "r_s_bias", "r_w_bias", "seg_embed")
        ),
        *layer_norm("encoder.blocks.{i}.attention_layer_norm", f"{_ATTENTION}.layer_norm", f"{_ATTENTION}/LayerNorm"),
        *dense("encoder.blocks.{i}.intermediate", f"{_LAYER}.ff.layer_1", f"{_LAYER}/ff/layer_1"),
        *dense("encoder.blocks.{i}.output_dense", f"{_LAYER}.ff.layer_2", f"{_LAYER}/ff/layer_2"),
        *layer_norm("encoder.blocks.{i}.output_layer_norm", f"{_LAYER}.ff.layer_norm", f"{_LAYER}/ff/LayerNorm"),
    ),
    POOLER: dense("encoder.pooler.dense", "sequence_summary.summary"),
    MASKED_LM_HEAD: (plain_tensor("mlm_head.bias", "lm_loss.bias"),),
}

# Names of transformers' classes that differ from BERT's in more than the prefix.
_SPANS, _SIMPLE_SPANS, _BEAMS = (
    "BertForQuestionAnswering",
    "XLNetForQuestionAnsweringSimple",
    "XLNetForQuestionAnswering",
)


class Xlnet(ModelKind):
    """XLNet, as in transformers. Its pooler reads the last token, <cls>."""

    model_type, title, config = "xlnet", "XLNet", XlnetConfig
    encoder = "keras_bert.models.xlnet.encoder:XlnetEncoder"
    class_prefix, stored_prefix = "XLNet", "transformer."
    word_embeddings: ClassVar[str] = "word_embedding.weight"
    classification_names: ClassVar = {"classifier.": "logits_proj."}
    classifier_classes: ClassVar = ("BertForSequenceClassification", "BertForMultipleChoice")
    pretrains_pooler = encoder_pools = attends = has_positions = False
    scores_kept = 3  # Besides those of content: those by distance, twice as many, and by segment.
    vocabularies = ("xlnet",)  # Its rows end with <cls>.
    # xlnet-large's.
    json_defaults: ClassVar = {"d_model": 1024, "n_layer": 24, "n_head": 16, "d_inner": 4096, "mem_len": 512}
    values_here: ClassVar = {
        **{name: (value,) for name, value in _FIXED.items()},
        "untie_r": (True,),
        "tie_word_embeddings": (True,),
        "quantization_config": (),
        "pruned_heads": ({},),
        "auto_map": (),
    }

    def make_token_head(self, config: XlnetConfig, **keras_options: Any) -> "keras.layers.Layer":
        from keras_bert.layers.tied_decoder import TiedDecoder

        return TiedDecoder(config.vocab_size, **keras_options)

    def parts(self, config: XlnetConfig) -> dict[str, list[TensorName]]:
        return {part: for_layers(rows, config.num_hidden_layers) for part, rows in _PARTS.items()}

    def encoder_table(self, config: XlnetConfig) -> list[Part]:
        V, H, L = config.vocab_size, config.hidden_size, config.num_hidden_layers
        return [
            Part("word embeddings", f"V·H = {V:,}·{H}", V * H),
            Part("mask embedding", "H", H),
            Part("attention kernels", f"{L} layers · 5·H²", L * 5 * H * H),
            Part("attention biases", f"{L} layers · 3·H", L * 3 * H),
            Part("segment embeddings", f"{L} layers · 2·H", L * 2 * H),
            *block_parts(config)[2:],  # All but kernels and biases of attention.
        ]

    def heads_table(self, config: XlnetConfig) -> list[Part]:
        return [Part("LM output bias", "V", config.vocab_size)]

    def training_flops(self, config: XlnetConfig, sequence_length: int, predictions_per_sequence: int) -> int:
        """The FLOPs of the forward and backward pass of one example; see `models.sizes.training_flops`.

        With S tokens and P predictions, the forward pass is

            L · (8·S·H² + 8·S²·H + 4·S·H·F)    projections, scores of content, position (twice as many) and context,
                                               feed-forward: the content stream
            + L · (4·P·H² + 8·P·S·H + 4·P·H·F) the query stream, which attends to the content's keys and values
            + L · 4·S·H²                       projections of 2·S distances, counted for every row
            + P · 2·H·V                        the decoder

        The last block of the content stream, of which only keys and values are needed, is counted in full.
        """
        S, P, H = sequence_length, predictions_per_sequence, config.hidden_size
        L, F, V = config.num_hidden_layers, config.intermediate_size, config.vocab_size
        content, query = 12 * S * H**2 + 8 * S**2 * H + 4 * S * H * F, 4 * P * H**2 + 8 * P * S * H + 4 * P * H * F
        return 3 * (L * (content + query) + P * 2 * H * V)

    def class_in_transformers(self, parts: Collection[str], config: XlnetConfig) -> str:
        return "BertLMHeadModel" if MASKED_LM_HEAD in parts else "BertModel"

    def class_name(self, berts: str) -> str:
        return _SIMPLE_SPANS if berts == _SPANS else super().class_name(berts)

    def berts_name(self, own: str) -> str:
        return _SPANS if own == _SIMPLE_SPANS else super().berts_name(own)

    def from_fields(self, fields: Mapping[str, Any], path: str) -> BertConfig:
        if _BEAMS in (fields.get("architectures") or ()):
            raise UserError(
                f"{path}: needs a head with one start and one end for each answer, {_SIMPLE_SPANS}. Received: "
                f"{_BEAMS}, whose beam search is not supported."
            )
        return super().from_fields(fields, path)


KINDS = (Xlnet(),)
