"""T5 (Raffel et al. 2020): an encoder-decoder with relative positions in buckets, for tasks from text to text."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from keras_bert.core import settings
from keras_bert.core.settings import Dropout, Positive, require
from keras_bert.models.bert.config import (
    BIDIRECTIONAL,
    DECODED,
    LEARNED,
    Activation,
    BertConfig,
    require_decoder_tokens,
)
from keras_bert.models.kind import ModelKind
from keras_bert.models.sizes import Part, text_to_text_flops
from keras_bert.models.tensor_names import DECODER, ENCODER, LM_HEAD, StoredName, TensorName, for_layers, with_slashes

if TYPE_CHECKING:
    import keras

# {field of config.json: our field}.
_NAMES = {
    "vocab_size": "vocab_size",
    "d_model": "hidden_size",
    "d_kv": "head_size",
    "d_ff": "intermediate_size",
    "num_layers": "num_hidden_layers",
    "num_decoder_layers": "num_decoder_layers",
    "num_heads": "num_attention_heads",
    "relative_attention_num_buckets": "relative_attention_num_buckets",
    "relative_attention_max_distance": "relative_attention_max_distance",
    "dropout_rate": "hidden_dropout_prob",
    "attention_dropout_rate": "attention_probs_dropout_prob",
    "classifier_dropout": "classifier_dropout",
    "layer_norm_epsilon": "layer_norm_eps",
    "initializer_factor": "initializer_factor",
    "initializer_range": "initializer_range",
    "tie_word_embeddings": "tie_word_embeddings",
    "decoder_start_token_id": "decoder_start_token_id",
    "forced_bos_token_id": "forced_bos_token_id",
    "forced_eos_token_id": "forced_eos_token_id",
    "n_positions": "max_position_embeddings",
}
# Fields that transformers lacks or leaves out are written only if they differ from its values.
_OWN_DEFAULTS = {
    "initializer_range": BertConfig.initializer_range,
    "forced_bos_token_id": None,
    "forced_eos_token_id": None,
}
_FEED_FORWARD, _GATED = "feed_forward_proj", "gated-"
# transformers 5 writes every config as tied; this field says whether the embeddings are.
_SCALES = "scale_decoder_outputs"
# transformers' name for gelu by tanh in a gated network, and ours.
_THEIR_GELU, _OUR_GELU = "gelu", "gelu_new"


@dataclass
class T5Config(BertConfig):
    """The architecture of a T5 (Raffel et al. 2020, section 2.1). The defaults are t5-small.

    `num_hidden_layers` are the encoder's. There are no position embeddings and no segments: `max_position_embeddings`
    only limits the tokens of a row here. `initializer_range` is only for the heads of tasks.

    Attributes:
        model_type: the kind of model.
        head_size: the width of an attention head, which may differ from `hidden_size` / `num_attention_heads`.
        num_decoder_layers: layers of the decoder; null for as many as the encoder has.
        relative_attention_num_buckets: buckets of distances, each with a bias for every head; a multiple of 4.
        relative_attention_max_distance: the distance from which on all distances share a bucket.
        is_gated: whether the feed-forward network is gated (Shazeer 2020), as in T5 1.1 with `gelu_new`.
        initializer_factor: the factor on the standard deviations of new weights, but not those of task heads.
        classifier_dropout: dropout before the output layer of a task.
        decoder_start_token_id: the token from which the decoder predicts a text's first token; T5's is the padding.
        forced_bos_token_id: the first token of every generated text; null for none.
        forced_eos_token_id: the last token of a generated text that reaches the maximum length; null for none.
        tie_word_embeddings: whether the output layer uses the word embeddings as its weights and divides the states
            by the square root of `hidden_size`; T5 1.1 has an output layer of its own.
    """

    vocab_size: Positive[int] = 32128
    hidden_size: Positive[int] = 512
    num_hidden_layers: Positive[int] = 6
    num_attention_heads: Positive[int] = 8
    intermediate_size: Positive[int] = 2048
    hidden_act: Activation = "relu"
    type_vocab_size: Positive[int] = 1
    layer_norm_eps: Positive[float] = 1e-6
    model_type: Literal["t5"] = "t5"
    head_size: Positive[int] = 64
    num_decoder_layers: Positive[int] | None = None
    relative_attention_num_buckets: Positive[int] = 32
    relative_attention_max_distance: Positive[int] = 128
    is_gated: bool = False
    initializer_factor: Positive[float] = 1.0
    classifier_dropout: Dropout = 0.0
    decoder_start_token_id: int = 0
    forced_bos_token_id: int | None = None
    forced_eos_token_id: int | None = None
    predicts = DECODED

    def __post_init__(self) -> None:
        super(BertConfig, self).__post_init__()  # Without BERT's check that heads divide the hidden size.
        buckets, longest = self.relative_attention_num_buckets, self.relative_attention_max_distance
        require(
            buckets % 4 == 0, "relative_attention_num_buckets", "a multiple of 4: half of them for either side", buckets
        )
        require(
            longest > buckets // 2,
            "relative_attention_max_distance",
            f"more than half of relative_attention_num_buckets ({buckets})",
            longest,
        )
        require(self.type_vocab_size == 1, "type_vocab_size", "1 for a T5, without segments", self.type_vocab_size)
        require(self.attention == BIDIRECTIONAL, "attention", "no value for a T5", self.attention)
        require(self.positions == LEARNED, "positions", "no value for a T5, which has none", self.positions)
        require(
            not (self.is_gated and self.hidden_act == "gelu"),
            "hidden_act",
            "gelu_new with is_gated, which transformers computes for gated-gelu",
            self.hidden_act,
        )
        require_decoder_tokens(self)

    @property
    def decoder_layers(self) -> int:
        """Layers of the decoder."""
        return self.num_decoder_layers or self.num_hidden_layers

    @property
    def head_dropout_prob(self) -> float:
        return self.classifier_dropout

    def to_fields(self) -> dict[str, Any]:
        fields = {theirs: getattr(self, ours) for theirs, ours in _NAMES.items()}
        if self.attention_probs_dropout_prob == self.hidden_dropout_prob:
            del fields["attention_dropout_rate"]  # transformers has one dropout.
        for name, default in _OWN_DEFAULTS.items():
            if fields[name] == default:
                del fields[name]
        function: str = self.hidden_act
        if self.is_gated:
            function = f"{_GATED}{_THEIR_GELU if function == _OUR_GELU else function}"
        fields["num_decoder_layers"] = self.decoder_layers
        return {"model_type": self.model_type, **fields, _FEED_FORWARD: function, "is_encoder_decoder": True}

    @classmethod
    def from_fields(cls, values: Mapping[str, Any], where: str) -> BertConfig:
        known = {ours: values[theirs] for theirs, ours in _NAMES.items() if values.get(theirs) is not None}
        if "dropout_rate" in values and "attention_dropout_rate" not in values:
            known["attention_probs_dropout_prob"] = values["dropout_rate"]
        function = str(values.get(_FEED_FORWARD) or cls.hidden_act)
        known["is_gated"] = function.startswith(_GATED)
        function = function.removeprefix(_GATED)
        known["hidden_act"] = _OUR_GELU if known["is_gated"] and function == _THEIR_GELU else function
        if values.get(_SCALES) is False:
            known["tie_word_embeddings"] = False
        if known.get("num_decoder_layers") == known.get("num_hidden_layers", cls.num_hidden_layers):
            del known["num_decoder_layers"]
        return settings.from_mapping(cls, {**known, "model_type": cls.model_type}, where)

    @classmethod
    def json_fields(cls) -> frozenset[str]:
        return frozenset({"model_type", "is_encoder_decoder", _FEED_FORWARD, _SCALES, *_NAMES})


# Within attention and the feed-forward network: the layer's attribute and its name in files.
_ATTENTION = (("query", "q"), ("key", "k"), ("value", "v"), ("output_projection", "o"))
_PLAIN_NETWORK = (("inner", "wi"), ("output_dense", "wo"))
_GATED_NETWORK = (("gate", "wi_0"), ("inner", "wi_1"), ("output_dense", "wo"))


def _named(attribute: str, name: str, transposed: bool = False, also: tuple[str, ...] = ()) -> TensorName:
    google = StoredName(with_slashes(name.removesuffix(".weight")))
    return TensorName(attribute, StoredName(name, transposed, also=also), google)


def _tensors(stack: str, layers: int, is_gated: bool) -> list[TensorName]:
    """The tensors of the encoder or the decoder."""
    block, stored = f"{stack}.blocks.{{i}}", f"{stack}.block.{{i}}.layer"
    attentions = [("attention", "SelfAttention")]
    if stack == DECODER:
        attentions.append(("cross_attention", "EncDecAttention"))
    rows = [
        _named(f"{stack}.relative_bias.bias", f"{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"),
        _named(f"{stack}.norm.scale", f"{stack}.final_layer_norm.weight"),
    ]
    for place, (attribute, name) in enumerate(attentions):
        rows += [
            _named(f"{block}.{attribute}.{ours}.kernel", f"{stored}.{place}.{name}.{theirs}.weight", transposed=True)
            for ours, theirs in _ATTENTION
        ]
        rows.append(_named(f"{block}.{attribute}_norm.scale", f"{stored}.{place}.layer_norm.weight"))
    feed_forward = f"{stored}.{len(attentions)}"
    rows += [
        _named(f"{block}.feed_forward.{ours}.kernel", f"{feed_forward}.DenseReluDense.{theirs}.weight", transposed=True)
        for ours, theirs in (_GATED_NETWORK if is_gated else _PLAIN_NETWORK)
    ]
    rows.append(_named(f"{block}.feed_forward_norm.scale", f"{feed_forward}.layer_norm.weight"))
    return for_layers(rows, layers)


class T5(ModelKind):
    """T5, as in transformers. Its encoder alone is a T5EncoderModel, whose pooled vector is the tokens' mean."""

    model_type, title, config = "t5", "T5", T5Config
    encoder = "keras_bert.models.t5.encoder:T5Encoder"
    decoder = "keras_bert.models.t5.decoder:T5Decoder"
    class_prefix, stored_prefix = "T5", ""
    classes = (
        "T5ForConditionalGeneration",
        "T5EncoderModel",
        "T5Model",
        "T5WithLMHeadModel",  # An old name of the first.
        "T5ForTokenClassification",
    )
    word_embeddings: ClassVar[str] = "shared.weight"
    also_word_embeddings: ClassVar = ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight")
    encoder_class: ClassVar[str] = "BertEncoderModel"
    pretrains_pooler = encoder_pools = attends = has_positions = False
    scores_kept = 1
    decodes = True
    objective: ClassVar = {"objective.packing": "document", "objective.corruption.kinds": ["sentinels"]}
    values_here: ClassVar = {"is_encoder_decoder": (True, False), "quantization_config": (), "auto_map": ()}

    def inner_kept(self, config: T5Config) -> int:
        return 2 if config.is_gated else 1

    def make_token_head(self, config: T5Config, **keras_options: Any) -> "keras.layers.Layer":
        from keras_bert.models.t5.decoder import T5TokenHead

        return T5TokenHead(
            config.vocab_size,
            config.hidden_size,
            config.tie_word_embeddings,
            config.initializer_factor,
            **keras_options,
        )

    def parts(self, config: T5Config) -> dict[str, list[TensorName]]:
        output = "lm_head.weight"
        tied = (output,) if config.tie_word_embeddings else ()
        words = _named("encoder.embeddings.word_embeddings", "shared.weight", also=(*self.also_word_embeddings, *tied))
        return {
            ENCODER: [words, *_tensors(ENCODER, config.num_hidden_layers, config.is_gated)],
            DECODER: _tensors(DECODER, config.decoder_layers, config.is_gated),
            **({} if tied else {LM_HEAD: [_named("lm_head.kernel", output)]}),
        }

    def encoder_table(self, config: T5Config) -> list[Part]:
        V, H = config.vocab_size, config.hidden_size
        return [Part("word embeddings", f"V·H = {V:,}·{H}", V * H), *_stack(config, config.num_hidden_layers, 1, "")]

    def heads_table(self, config: T5Config) -> list[Part]:
        V, H = config.vocab_size, config.hidden_size
        own = [] if config.tie_word_embeddings else [Part("output layer", f"V·H = {V:,}·{H}", V * H)]
        return [*_stack(config, config.decoder_layers, 2, "decoder "), *own]

    def training_flops(self, config: T5Config, sequence_length: int, predictions_per_sequence: int) -> int:
        width, matrices = config.num_attention_heads * config.head_size, 2 + config.is_gated
        sizes = width, matrices, config.intermediate_size
        return text_to_text_flops(config, sequence_length, predictions_per_sequence, *sizes)

    def class_in_transformers(self, parts: Collection[str], config: T5Config) -> str:
        return "BertForConditionalGeneration" if DECODER in parts else self.encoder_class


def _stack(config: T5Config, layers: int, attentions: int, name: str) -> list[Part]:
    """The parts of an encoder or a decoder without word embeddings, with one or two `attentions` in each layer."""
    H, F, heads = config.hidden_size, config.intermediate_size, config.num_attention_heads
    W, M, buckets = heads * config.head_size, 2 + config.is_gated, config.relative_attention_num_buckets
    twice = f"{attentions}·" if attentions > 1 else ""
    norms = layers * (attentions + 1) + 1
    return [
        Part(f"{name}relative positions", f"{buckets}·{heads} heads", buckets * heads),
        Part(f"{name}attention kernels", f"{layers} layers · {twice}4·H·{W:,}", layers * attentions * 4 * H * W),
        Part(f"{name}feed-forward kernels", f"{layers} layers · {M}·H·{F:,}", layers * M * H * F),
        Part(f"{name}norms", f"{norms} · H", norms * H),
    ]


KINDS = (T5(),)
