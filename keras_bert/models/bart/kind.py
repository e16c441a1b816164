"""BART (Lewis et al. 2020): an encoder that reads a text, and a decoder that writes another."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from keras_bert.core import settings
from keras_bert.core.settings import Dropout, Positive, require
from keras_bert.models.bert.config import BIDIRECTIONAL, DECODED, LEARNED, BertConfig, require_decoder_tokens
from keras_bert.models.kind import ModelKind
from keras_bert.models.sizes import Part, block_parts, embedding_parts, text_to_text_flops
from keras_bert.models.tensor_names import (
    DECODER,
    ENCODER,
    LM_HEAD,
    POOLER,
    TensorName,
    dense,
    for_layers,
    layer_norm,
    plain_tensor,
)

if TYPE_CHECKING:
    import keras

# {field of config.json: our field}.
_NAMES = {
    "vocab_size": "vocab_size",
    "d_model": "hidden_size",
    "encoder_layers": "num_hidden_layers",
    "decoder_layers": "decoder_layers",
    "encoder_attention_heads": "num_attention_heads",
    "decoder_attention_heads": "decoder_attention_heads",
    "encoder_ffn_dim": "intermediate_size",
    "decoder_ffn_dim": "decoder_ffn_dim",
    "activation_function": "hidden_act",
    "dropout": "hidden_dropout_prob",
    "attention_dropout": "attention_probs_dropout_prob",
    "activation_dropout": "activation_dropout",
    "classifier_dropout": "classifier_dropout",
    "max_position_embeddings": "max_position_embeddings",
    "init_std": "initializer_range",
    "scale_embedding": "scale_embedding",
    "decoder_start_token_id": "decoder_start_token_id",
    "forced_bos_token_id": "forced_bos_token_id",
    "forced_eos_token_id": "forced_eos_token_id",
}
# transformers' other name for encoder_layers, and an old name for classifier_dropout.
_OTHER_NAMES = ("num_hidden_layers", "classif_dropout")
# Fields of older files, with the only values that are supported.
_FIXED = {
    "is_encoder_decoder": True,
    "normalize_before": False,
    "normalize_embedding": True,
    "add_final_layer_norm": False,
    "static_position_embeddings": False,
    "add_bias_logits": False,
}


@dataclass
class BartConfig(BertConfig):
    """The architecture of a BART (Lewis et al. 2020, section 2). The defaults are bart-base.

    `num_hidden_layers`, `num_attention_heads` and `intermediate_size` are the encoder's. There are no segments.

    Attributes:
        model_type: the kind of model.
        decoder_layers: layers of the decoder.
        decoder_attention_heads: heads in each decoder layer; a divisor of `hidden_size`.
        decoder_ffn_dim: width of the decoder's feed-forward networks.
        activation_dropout: dropout within the feed-forward networks.
        classifier_dropout: dropout before the output layer of a task.
        scale_embedding: whether word embeddings are multiplied by the square root of `hidden_size`.
        decoder_start_token_id: the token from which the decoder predicts a text's first token.
        forced_bos_token_id: the first token of every generated text; null for none.
        forced_eos_token_id: the last token of a generated text that reaches the maximum length; null for none.
    """

    vocab_size: Positive[int] = 50265
    num_hidden_layers: Positive[int] = 6
    max_position_embeddings: Positive[int] = 1024
    type_vocab_size: Positive[int] = 1
    layer_norm_eps: Positive[float] = 1e-5
    model_type: Literal["bart"] = "bart"
    decoder_layers: Positive[int] = 6
    decoder_attention_heads: Positive[int] = 12
    decoder_ffn_dim: Positive[int] = 3072
    activation_dropout: Dropout = 0.1
    classifier_dropout: Dropout = 0.0
    scale_embedding: bool = False
    decoder_start_token_id: int = 2
    forced_bos_token_id: int | None = None
    forced_eos_token_id: int | None = 2
    predicts, first_position = DECODED, 2

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.hidden_size % self.decoder_attention_heads == 0,
            "hidden_size",
            f"a multiple of decoder_attention_heads ({self.decoder_attention_heads})",
            self.hidden_size,
        )
        require(self.type_vocab_size == 1, "type_vocab_size", "1 for a BART, without segments", self.type_vocab_size)
        require(self.layer_norm_eps == 1e-5, "layer_norm_eps", "1e-05 for a BART", self.layer_norm_eps)
        require(self.attention == BIDIRECTIONAL, "attention", "no value for a BART", self.attention)
        require(self.positions == LEARNED, "positions", "learned for a BART", self.positions)
        require(self.tie_word_embeddings, "tie_word_embeddings", "true for a BART", self.tie_word_embeddings)
        require_decoder_tokens(self)

    @property
    def head_dropout_prob(self) -> float:
        return self.classifier_dropout

    def to_fields(self) -> dict[str, Any]:
        fields = {theirs: getattr(self, ours) for theirs, ours in _NAMES.items()}
        if self.forced_bos_token_id is None:
            del fields["forced_bos_token_id"]  # Like transformers, which uses none without the field.
        return {"model_type": self.model_type, **fields, "is_encoder_decoder": True}

    @classmethod
    def from_fields(cls, values: Mapping[str, Any], where: str) -> BertConfig:
        known = {ours: values[theirs] for theirs, ours in _NAMES.items() if theirs in values}
        return settings.from_mapping(cls, {**known, "model_type": cls.model_type}, where)

    @classmethod
    def json_fields(cls) -> frozenset[str]:
        return frozenset({"model_type", "is_encoder_decoder", *_NAMES, *_OTHER_NAMES})


# Other names under which files may hold the word embeddings.
_TIED = ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight")


def _attention(attribute: str, name: str) -> tuple[TensorName, ...]:
    parts = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output_projection": "out_proj"}
    return tuple(row for ours, theirs in parts.items() for row in dense(f"{attribute}.{ours}", f"{name}.{theirs}"))


def _block(side: str) -> tuple[TensorName, ...]:
    """The tensors that layers of the encoder and of the decoder have."""
    block, layer = f"{side}.blocks.{{i}}", f"model.{side}.layers.{{i}}"
    return (
        *_attention(f"{block}.attention", f"{layer}.self_attn"),
        *layer_norm(f"{block}.attention_layer_norm", f"{layer}.self_attn_layer_norm"),
        *dense(f"{block}.intermediate", f"{layer}.fc1"),
        *dense(f"{block}.output_dense", f"{layer}.fc2"),
        *layer_norm(f"{block}.output_layer_norm", f"{layer}.final_layer_norm"),
    )


def _positioned(embeddings: str, side: str) -> tuple[TensorName, ...]:
    return (
        plain_tensor(f"{embeddings}.position_embeddings", f"model.{side}.embed_positions.weight"),
        *layer_norm(f"{embeddings}.layer_norm", f"model.{side}.layernorm_embedding"),
    )


_PARTS: dict[str, tuple[TensorName, ...]] = {
    ENCODER: (
        plain_tensor("encoder.embeddings.word_embeddings", "model.shared.weight", _TIED),
        *_positioned("encoder.embeddings.positioned", "encoder"),
        *_block("encoder"),
    ),
    POOLER: dense("encoder.pooler.dense", "model.encoder.pooler.dense"),
    DECODER: (
        *_positioned("decoder.embeddings", "decoder"),
        *_block("decoder"),
        *_attention("decoder.blocks.{i}.cross_attention", "model.decoder.layers.{i}.encoder_attn"),
        *layer_norm(
            "decoder.blocks.{i}.cross_attention_layer_norm", "model.decoder.layers.{i}.encoder_attn_layer_norm"
        ),
    ),
    LM_HEAD: (plain_tensor("lm_head.bias", "final_logits_bias"),),
}


class Bart(ModelKind):
    """BART, as in transformers. Only this package has its encoder alone with a task's head."""

    model_type, title, config = "bart", "BART", BartConfig
    encoder = "keras_bert.models.bart.encoder:BartEncoder"
    decoder = "keras_bert.models.bart.decoder:BartDecoder"
    class_prefix, stored_prefix = "Bart", "model."
    classes = ("BartForConditionalGeneration", "BartModel", "BartEncoder")
    word_embeddings: ClassVar[str] = "shared.weight"
    also_word_embeddings: ClassVar = ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight")
    encoder_class: ClassVar[str] = "BertEncoder"
    pretrains_pooler = encoder_pools = has_positions = False
    in_sentence_transformers = False  # It adds a new decoder and takes that one's states.
    decodes = True
    objective: ClassVar = {"objective.packing": "document"}
    vocabularies = ("bytes", "xlm-roberta")  # Positions are counted from the padding's id, 1.
    # bart-large's.
    json_defaults: ClassVar = {
        "d_model": 1024,
        **dict.fromkeys(("encoder_layers", "decoder_layers"), 12),
        **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), 16),
        **dict.fromkeys(("encoder_ffn_dim", "decoder_ffn_dim"), 4096),
        **dict.fromkeys(("attention_dropout", "activation_dropout"), 0.0),
    }
    values_here: ClassVar = {
        **{name: (value,) for name, value in _FIXED.items()},
        "tie_word_embeddings": (True,),
        "quantization_config": (),
        "auto_map": (),
    }

    def make_token_head(self, config: BartConfig, **keras_options: Any) -> "keras.layers.Layer":
        from keras_bert.models.bart.decoder import BartTokenHead

        return BartTokenHead(config.vocab_size, **keras_options)

    def parts(self, config: BartConfig) -> dict[str, list[TensorName]]:
        layers = {DECODER: config.decoder_layers}
        return {part: for_layers(rows, layers.get(part, config.num_hidden_layers)) for part, rows in _PARTS.items()}

    def encoder_table(self, config: BartConfig) -> list[Part]:
        return [*embedding_parts(config, has_segments=False), *block_parts(config)]

    def heads_table(self, config: BartConfig) -> list[Part]:
        H, L, F = config.hidden_size, config.decoder_layers, config.decoder_ffn_dim
        P = config.first_position + config.max_position_embeddings
        return [
            Part("decoder position embeddings", f"{P}·H", P * H),
            Part("decoder embedding LayerNorm", "2·H", 2 * H),
            Part("decoder attention kernels", f"{L} layers · 2·4·H²", L * 8 * H * H),
            Part("decoder attention biases", f"{L} layers · 2·4·H", L * 8 * H),
            Part("decoder attention LayerNorm", f"{L} layers · 2·2·H", L * 4 * H),
            Part("decoder FFN kernels", f"{L} layers · 2·H·{F:,}", L * 2 * H * F),
            Part("decoder FFN biases", f"{L} layers · (H + {F:,})", L * (H + F)),
            Part("decoder FFN LayerNorm", f"{L} layers · 2·H", L * 2 * H),
            Part("LM output bias", "V", config.vocab_size),
        ]

    def training_flops(self, config: BartConfig, sequence_length: int, predictions_per_sequence: int) -> int:
        width, inner = config.hidden_size, config.decoder_ffn_dim
        return text_to_text_flops(config, sequence_length, predictions_per_sequence, width, 2, inner)

    def class_in_transformers(self, parts: Collection[str], config: BartConfig) -> str:
        if LM_HEAD in parts:
            return "BertForConditionalGeneration"
        return "BertModel" if DECODER in parts else self.encoder_class


KINDS = (Bart(),)
