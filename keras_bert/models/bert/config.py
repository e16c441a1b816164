"""The architecture of a BERT, in the field names of Google's bert_config.json and Hugging Face's config.json."""

import dataclasses
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from keras_bert.core import settings
from keras_bert.core.errors import UserError
from keras_bert.core.settings import Checked, Dropout, Positive, require
from keras_bert.core.whole_files import write_file
from keras_bert.core.yaml_and_json import read_json, read_yaml
from keras_bert.models.kind import kind_of_model_fields

# The names of transformers, several for one function. Google's code knows gelu, relu, tanh and linear.
# fmt: off
Activation = Literal[
    "gelu", "gelu_python", "gelu_10",
    "gelu_new", "gelu_pytorch_tanh", "gelu_python_tanh", "gelu_fast", "gelu_accurate",
    "quick_gelu", "relu", "relu2", "relu6", "leaky_relu", "silu", "swish", "mish", "hardswish",
    "sigmoid", "tanh", "linear",
]
# fmt: on
Attention = Literal["bidirectional", "causal"]
BIDIRECTIONAL, CAUSAL = get_args(Attention)
Positions = Literal["learned", "sinusoidal"]
LEARNED, SINUSOIDAL = get_args(Positions)
IS_DECODER = "is_decoder"
# The fields of a model with a decoder that name tokens; null for none.
DECODER_TOKENS = ("decoder_start_token_id", "forced_bos_token_id", "forced_eos_token_id")
# What a model learns to predict: masked tokens; the next token; the next and, right to left, the previous one; the next
# token of a text other than the one it reads; tokens in a random order, each from those before it in that order; which
# tokens were replaced.
Tokens = Literal["masked", "next", "both", "decoded", "permuted", "replaced"]
MASKED, NEXT, BOTH, DECODED, PERMUTED, REPLACED = TOKENS = get_args(Tokens)


@dataclass
class BertConfig(Checked):
    """The architecture of a BERT (paper, section 3). The defaults are BERT-base, uncased.

    The configs of other kinds of models extend it; a config's class determines its kind of model (`models/kind.py`).

    Attributes:
        vocab_size: rows of the word embeddings, at least one for each piece of the vocabulary.
        hidden_size: width of the hidden states, the paper's H.
        num_hidden_layers: encoder layers, the paper's L.
        num_attention_heads: heads in each layer, the paper's A; a divisor of `hidden_size`.
        intermediate_size: width of the feed-forward network.
        hidden_act: activation of the feed-forward network, by transformers' names.
        hidden_dropout_prob: dropout after embeddings, attention and feed-forward network.
        attention_probs_dropout_prob: dropout of the attention probabilities.
        max_position_embeddings: maximum tokens in a row.
        type_vocab_size: the number of segment types.
        initializer_range: standard deviation of new weights; 0.02 is for a width of 768.
        layer_norm_eps: epsilon of LayerNorm.
        attention: `causal` makes a left-to-right model, in which a token sees itself and those before it. JSON files
            hold it as `is_decoder`, like transformers.
        positions: `learned` embeddings, or `sinusoidal`: fixed sines and cosines (Vaswani et al. 2017, section 3.5),
            which files hold as position embeddings, so that transformers computes the same.
        pools_cls: whether a causal model's pooler reads [CLS], as in models that transformers trained, instead of the
            last token, the only one that has seen the whole row.
        tie_word_embeddings: whether the masked LM's decoder uses the word embeddings as its weights instead of weights
            of its own.

    Example:
        config = keras_bert.BertConfig(vocab_size=4096, hidden_size=128, num_hidden_layers=2, num_attention_heads=2)
        config.intermediate_size      # 3072, as in BERT-base
    """

    vocab_size: Positive[int] = 30522
    hidden_size: Positive[int] = 768
    num_hidden_layers: Positive[int] = 12
    num_attention_heads: Positive[int] = 12
    intermediate_size: Positive[int] = 3072
    hidden_act: Activation = "gelu"
    hidden_dropout_prob: Dropout = 0.1
    attention_probs_dropout_prob: Dropout = 0.1
    max_position_embeddings: Positive[int] = 512
    type_vocab_size: Positive[int] = 2
    initializer_range: Positive[float] = 0.02
    layer_norm_eps: Positive[float] = 1e-12
    attention: Attention = "bidirectional"
    positions: Positions = "learned"
    pools_cls: bool = False
    tie_word_embeddings: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.hidden_size % self.num_attention_heads == 0,
            "hidden_size",
            f"a multiple of num_attention_heads ({self.num_attention_heads})",
            self.hidden_size,
        )

    @property
    def is_causal(self) -> bool:
        return self.attention == CAUSAL

    @property
    def pools_last(self) -> bool:
        """Whether the pooler of a causal model reads the last token, not [CLS]."""
        return self.is_causal and not self.pools_cls

    def for_training(self) -> "BertConfig":
        """The architecture for training here: a causal model pools the last token, which has seen the whole row."""
        return dataclasses.replace(self, pools_cls=False)

    @property
    def cls_is_last(self) -> bool:
        """Whether [CLS] is the last token of a row and not the first."""
        return False

    @property
    def predicts(self) -> str:
        """What the model predicts in pretraining, as `objective.tokens` names it."""
        return NEXT if self.is_causal else MASKED

    @property
    def lm_width(self) -> int:
        """The width of the states from which a token is predicted."""
        return self.hidden_size

    @property
    def embedding_width(self) -> int:
        """The width of the embeddings, and of the vectors that the masked LM's decoder multiplies by them."""
        return self.hidden_size

    @property
    def maps_embeddings(self) -> bool:
        """Whether a dense layer maps the embeddings to the width of the hidden states."""
        return False

    @property
    def feed_forward_width(self) -> int:
        """The inner width of the feed-forward networks."""
        return self.intermediate_size

    @property
    def first_position(self) -> int:
        """The first token's row of the position embeddings; no token uses the rows before it."""
        return 0

    @property
    def num_blocks(self) -> int:
        """How many blocks a token passes through."""
        return self.num_hidden_layers

    @property
    def head_dropout_prob(self) -> float:
        """The dropout before the output layer of a task."""
        return self.hidden_dropout_prob

    @classmethod
    def choose(cls, values: Mapping[str, Any], where: str) -> tuple[type["BertConfig"], dict[str, Any]]:
        """The class for these values, by their `model_type`, and the values of its fields; see `settings.chosen`."""
        kind, values = kind_of_model_fields(values, where), dict(values)
        if "model_type" not in {field.name for field in dataclasses.fields(kind.config)}:
            values.pop("model_type", None)
        return kind.config, values

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any], where: str = "") -> "BertConfig":
        """Build the config from a mapping; `where` names its section in messages. Raises `UserError`."""
        return settings.from_mapping(cls, dict(values), where)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> "BertConfig":
        """Read a YAML model config, Google's bert_config.json or Hugging Face's config.json.

        Its `model_type` is the kind of model; without one it is a BERT. Fields of a JSON file that do not belong to the
        architecture are ignored. In YAML, which is written by hand, unknown fields raise an error.

        Raises:
            UserError: the file cannot be read, is not a config, or describes a kind of model or a variant that is not
                supported.
        """
        if not os.fspath(path).endswith(".json"):
            return cls.from_mapping(read_yaml(path), os.fspath(path))
        values = read_json(path)
        require_class_names(values, os.fspath(path))
        return kind_of_model_fields(values, os.fspath(path)).from_fields(values, os.fspath(path))

    def to_file(self, path: str | os.PathLike[str]) -> None:
        """Write the config as JSON if the path ends in .json, else as YAML."""
        is_json = os.fspath(path).endswith(".json")
        write_file(path, json.dumps(self.to_fields(), indent=2) + "\n" if is_json else settings.to_yaml(self))

    def to_fields(self) -> dict[str, Any]:
        """The fields for a JSON file, with `is_decoder` for causal attention."""
        fields = dataclasses.asdict(self)
        if self.positions == LEARNED:
            del fields["positions"]
        if self.tie_word_embeddings:
            del fields["tie_word_embeddings"]
        if fields.pop("attention") == CAUSAL:
            return {**fields, IS_DECODER: True}
        del fields["pools_cls"]
        return fields

    @classmethod
    def from_fields(cls, values: Mapping[str, Any], where: str) -> "BertConfig":
        """The config that the fields of a JSON file describe; other fields are ignored."""
        names = cls.json_fields()
        known = {key: value for key, value in values.items() if key in names}
        if known.pop(IS_DECODER, False):
            # transformers' files do not say; its BertLMHeadModel has no pooler.
            has_pooler = "BertLMHeadModel" not in (values.get("architectures") or ())
            known = {"pools_cls": has_pooler, **known, "attention": CAUSAL}
        return settings.from_mapping(cls, known, where)

    @classmethod
    def json_fields(cls) -> frozenset[str]:
        """The fields of a JSON file that describe the config."""
        return frozenset({item.name for item in dataclasses.fields(cls)} - {"attention"} | {IS_DECODER})


def require_class_names(fields: Mapping[str, Any], path: str) -> None:
    """Raises `UserError`, naming the file, if `architectures` in a config.json is anything but a list of names."""
    named = fields.get("architectures")
    if named is not None and not (isinstance(named, list) and all(isinstance(name, str) for name in named)):
        raise UserError(
            f"{path}: architectures: needs a list of names of classes. Received: {named!r}. Correct it, or leave it "
            "out."
        )


def require_decoder_tokens(config: BertConfig) -> None:
    """Raises `ValueError` if one of `DECODER_TOKENS` is no row of the vocabulary."""
    for name in DECODER_TOKENS:
        token = getattr(config, name)
        is_row = token is None or 0 <= token < config.vocab_size
        require(is_row, name, f"an id from 0 to vocab_size - 1 ({config.vocab_size - 1})", token)
