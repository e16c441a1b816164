"""The kinds of models, one record each, and the registry through which every room finds them.

The package's own records are in `models/KIND/kind.py`; `register_model_kind` adds one from anywhere. As with
`tasks/kind.py`, the registry is below all rooms that use it, so a record imports what it needs from them only when it
is used, and the base class types a kind's config as `Any`.

A config belongs to a kind by its class, a config.json by its `model_type`.
"""

import abc
import dataclasses
import functools
import importlib
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from keras_bert.core.errors import UserError
from keras_bert.core.imports import named_class
from keras_bert.core.settings import checked

if TYPE_CHECKING:
    import keras

    from keras_bert.models.bert.config import BertConfig
    from keras_bert.models.bert.encoder import ConfiguredEncoder
    from keras_bert.models.encoder_decoder import Decoder
    from keras_bert.models.sizes import Part
    from keras_bert.models.tensor_names import TensorName

# The rooms in `models/` whose `kind.py` holds records, `KINDS`.
# fmt: off
_ROOMS = (
    "bert", "albert", "roberta", "elmo", "recurrent", "xlnet", "bart", "t5", "electra", "roberta_prelayernorm",
    "prelayernorm_glu", "distilbert",
)
# fmt: on
# transformers' classes for tasks whose heads read the states of a decoder that is given the text again.
_READ_BY_DECODER = ("BertForSequenceClassification", "BertForQuestionAnswering")
_DEFAULT = "bert"  # The kind of a file without `model_type`: Google's files and model configs in YAML have none.


@dataclasses.dataclass(frozen=True)
class GoogleFiles:
    """The names of the files in Google's folders for a kind of model.

    Attributes:
        config: the architecture.
        checkpoint: the prefix of the checkpoint.
    """

    config: str
    checkpoint: str


class ModelKind(abc.ABC):
    """A kind of model: its config, its encoder, and the names of its tensors in files.

    Class attributes:
        model_type: the name in config.json and in a recipe's `model`.
        title: its name in messages and model cards.
        config: the class of its config, `BertConfig` or one that extends it.
        encoder: the class of its encoder, as `module:class`: `BertEncoder` or one with the same inputs, outputs and
            attributes.
        decoder: the class of its decoder, in the same form, for a kind that `decodes`; None for an encoder alone.
        class_prefix: the prefix of its class names in transformers, where BERT's is "Bert".
        classes: the supported classes of transformers, the usual ones first; empty for all with the prefix.
        stored_prefix: the prefix of the encoder's tensor names in Hugging Face's files.
        google_files: the names of the files in Google's folders; None if there are no such folders.
        pretraining_heads: the terms of the loss (`models/objectives.py`) besides the masked LM for which a model for
            pretraining always has a head, one of two classes.
        pretrains_pooler: whether a model for pretraining has a pooler even if no term of the loss needs it.
        encoder_class: transformers' class of the encoder alone, under BERT's name for it.
        decodes: whether it has a decoder, so that the whole model is an `EncoderDecoder`.
        objective: settings of pretraining, by key, that go with the tokens it predicts.
        vocabularies: the values of `vocabulary.kind` that a new model may learn; empty for any.
        word_embeddings: the name of the word embeddings, after `stored_prefix`.
        also_word_embeddings: other names for them, one of which a file may use instead.
        encoder_pools: whether transformers' encoder alone has a pooler.
        token_head_act: the activation in the masked LM's head, if transformers has one whatever `hidden_act` is.
        classification_names: prefixes of tensor names here that differ in transformers' class for sequence
            classification, each with its counterpart there.
        classifier_classes: the classes of transformers with `classification_names`, under BERT's names for them.
        in_transformers: whether transformers has such models.
        in_sentence_transformers: whether sentence-transformers then opens the encoder alone.
        attends: whether the encoder consists of BERT's attention blocks, which serving computes for real tokens only.
        has_positions: whether the embeddings are the sum of word, position and segment embeddings.
        json_defaults: transformers' values of fields that a config.json leaves out, where `config` has others.
        values_here: fields of config.json that change the computation, with the values that are supported.
    """

    model_type: ClassVar[str]
    title: ClassVar[str]
    config: ClassVar["type[BertConfig]"]
    encoder: ClassVar[str]
    decoder: ClassVar[str | None] = None
    class_prefix: ClassVar[str]
    classes: ClassVar[tuple[str, ...]] = ()
    stored_prefix: ClassVar[str]
    google_files: ClassVar[GoogleFiles | None] = None
    pretraining_heads: ClassVar[tuple[str, ...]] = ()
    pretrains_pooler: ClassVar[bool] = True
    encoder_pools: ClassVar[bool] = True
    token_head_act: ClassVar[str | None] = None
    encoder_class: ClassVar[str] = "BertModel"
    decodes: ClassVar[bool] = False
    objective: ClassVar[Mapping[str, Any]] = {}
    vocabularies: ClassVar[tuple[str, ...]] = ()
    word_embeddings: ClassVar[str] = "embeddings.word_embeddings.weight"
    also_word_embeddings: ClassVar[tuple[str, ...]] = ()
    classification_names: ClassVar[Mapping[str, str]] = {}
    classifier_classes: ClassVar[tuple[str, ...]] = ("BertForSequenceClassification",)
    in_transformers: ClassVar[bool] = True
    in_sentence_transformers: ClassVar[bool] = True
    attends: ClassVar[bool] = True
    has_positions: ClassVar[bool] = True
    json_defaults: ClassVar[Mapping[str, Any]] = {}
    values_here: ClassVar[Mapping[str, tuple[Any, ...]]] = {}

    @property
    def scores_kept(self) -> int:
        """The attention scores that a block keeps in training, as a multiple of BERT's, to estimate memory."""
        return int(self.attends)

    def inner_kept(self, config: Any) -> float:
        """Like `scores_kept`, for the inner activations of the feed-forward network."""
        return 1

    def is_of(self, fields: Mapping[str, Any]) -> bool:
        """Whether the fields of a model config or a config.json describe this kind."""
        return fields.get("model_type") == self.model_type

    def make_encoder(self, config: Any, with_pooler: bool = True, **keras_options: Any) -> "ConfiguredEncoder":
        """A new `encoder`."""
        return named_class(self.encoder)(config, with_pooler=with_pooler, **keras_options)

    def make_token_head(self, config: Any, **keras_options: Any) -> "keras.layers.Layer | None":
        """A new layer that predicts tokens instead of a `MaskedLMHead`, called like one; None to use that head."""
        return None

    def make_decoder(self, config: Any, **keras_options: Any) -> "Decoder | None":
        """A new `decoder`; None for an encoder alone."""
        return named_class(self.decoder)(config, **keras_options) if self.decoder else None

    @abc.abstractmethod
    def parts(self, config: Any) -> "dict[str, list[TensorName]]":
        """The `TensorName`s, by part, of the encoder, the pooler and the pretraining heads of a model.

        Other heads have the same names in every kind; see `models.tensor_names.parts`.
        """

    @abc.abstractmethod
    def encoder_table(self, config: Any) -> "list[Part]":
        """The `models.sizes.Part`s of the encoder, pooler included."""

    @abc.abstractmethod
    def heads_table(self, config: Any) -> "list[Part]":
        """The `models.sizes.Part`s of the masked LM head."""

    def quoted_counts(self, config: Any, exact: int) -> list[tuple[str, int, str]]:
        """Commonly quoted formulas for the encoder's size: `[(formula, its result, how it differs)]`."""
        return []

    @abc.abstractmethod
    def training_flops(self, config: Any, sequence_length: int, predictions_per_sequence: int) -> int:
        """The FLOPs of an example in pretraining; see `models.sizes.training_flops`."""

    @abc.abstractmethod
    def class_in_transformers(self, parts: Collection[str], config: Any) -> str:
        """transformers' class, under BERT's name for it, for these parts, none of which is a task's head."""

    def to_google_fields(self, config: Any) -> dict[str, Any]:
        """The architecture as fields of Google's config."""
        return config.to_fields()

    def from_fields(self, fields: Mapping[str, Any], path: str) -> "BertConfig":
        """The config that a config.json or Google's config describes; other fields are ignored.

        Args:
            fields: the content of the file.
            path: the file, for messages and to recognize Google's by its name.

        Raises:
            UserError: a field has a value that is not supported.
        """
        named = fields.get("architectures") or ()
        if self.classes and named and not {*self.classes} & {*named}:
            why = ", which is not supported"
            if self.berts_name(named[0]) in _READ_BY_DECODER:
                why = ", whose head reads the decoder's states; here a task's head is on the encoder"
            raise UserError(f"{path}: needs {' or '.join(self.classes[:2])}. Received: {named[0]}{why}.")
        for architecture in named:
            if not str(architecture).startswith(self.class_prefix):
                raise UserError(
                    f"{path}: the architecture {architecture!r} is not supported; {with_article(self.title)} is needed."
                )
        for key, values in self.values_here.items():
            if fields.get(key) is not None and fields[key] not in values:
                own = values[0] if values else "none"
                raise UserError(f"{path}: {key} {fields[key]!r} is not supported; {self.title} has {own}.")
        return self.config.from_fields({**self.json_defaults, **fields}, path)

    def other_fields(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of a config.json that do not belong to the architecture."""
        return {key: value for key, value in fields.items() if key not in self.config.json_fields()}

    def class_name(self, berts: str) -> str:
        """The name in transformers of this kind's counterpart to a class of BERT's."""
        return self.class_prefix + berts.removeprefix("Bert")

    def berts_name(self, own: str) -> str:
        """The name of BERT's counterpart to a class of this kind."""
        return "Bert" + own.removeprefix(self.class_prefix)


@functools.cache
def _by_type() -> dict[str, ModelKind]:
    """Every kind by its `model_type`; starts with the package's own."""
    own = [kind for room in _ROOMS for kind in importlib.import_module(f"keras_bert.models.{room}.kind").KINDS]
    return {kind.model_type: kind for kind in own}


@checked
def register_model_kind(kind: ModelKind) -> ModelKind:
    """Register a kind. Raises `ValueError` if its `model_type` or the class of its config is taken."""
    for other in model_kinds():
        if kind.model_type == other.model_type or kind.config is other.config:
            raise ValueError(f"{kind.model_type}: already registered.")
    _by_type()[kind.model_type] = kind
    return kind


def unregister_model_kind(kind: ModelKind) -> None:
    """Remove a kind from the registry."""
    del _by_type()[kind.model_type]


def model_kinds() -> list[ModelKind]:
    """Every kind, in the order of registration."""
    return list(_by_type().values())


def kind_of_config(config: "BertConfig") -> ModelKind:
    """The kind of a model's config. Raises `ValueError` for anything else."""
    kind = next((kind for kind in model_kinds() if kind.config is type(config)), None)
    if kind is None:
        raise ValueError(f"config: needs a model's config, such as a BertConfig. Received: {type(config).__name__!r}.")
    return kind


def kind_of_model_fields(fields: Mapping[str, Any], where: str) -> ModelKind:
    """The kind that the fields of a model config or a config.json describe.

    `where` names their file or section in messages. Raises `UserError` for an unknown `model_type`.
    """
    named = fields.get("model_type")
    found = next((kind for kind in model_kinds() if kind.is_of(fields)), None)
    if found is None and named is not None:
        known = " or ".join(with_article(kind.title) for kind in model_kinds())
        raise UserError(f"{where}: model_type {named!r} is not supported; {known} is needed.")
    return found or _by_type()[_DEFAULT]


def config_from_mapping(values: Mapping[str, Any]) -> "BertConfig":
    """The config from its `dataclasses.asdict`."""
    kind = kind_of_model_fields(values, "config")
    return kind.config(**values)


def bert_counterpart(architecture: str) -> str:
    """The name of BERT's counterpart to a class of transformers, such as `AlbertModel`."""
    kinds = [kind for kind in model_kinds() if architecture.startswith(kind.class_prefix)]
    kind = max(kinds, key=lambda kind: len(kind.class_prefix), default=None)  # RobertaPreLayerNorm, not Roberta.
    return kind.berts_name(architecture) if kind else architecture


def google_configs() -> list[str]:
    """The possible file names of the config in a Google folder."""
    return [kind.google_files.config for kind in model_kinds() if kind.google_files]


def with_article(title: str) -> str:
    """The title of a kind, or of an architecture, with its article: "a BERT", "an ALBERT", "an XLMRobertaModel"."""
    return f"{'an' if title[0] in 'AEIOUX' else 'a'} {title}"
