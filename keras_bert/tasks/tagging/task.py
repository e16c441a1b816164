"""A label for every word, from a fine-tuned BERT or from a BiLSTM over the features of a frozen one."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from keras_bert.config.features import TAGGING_TASKS
from keras_bert.config.finetuning import FinetuneConfig
from keras_bert.config.reading import own_field
from keras_bert.models.tensor_names import TensorName, dense, lstms, own_tensor
from keras_bert.tasks.classification.head import CLASSIFIER, CLASSIFIER_TENSORS, CLASSIFIER_TITLES
from keras_bert.tasks.kind import TaskKind, transformers_pipeline
from keras_bert.tasks.shown_answers import shown
from keras_bert.tasks.tagging.head import CrfTaggingConfig, FeatureTaggingConfig, TokenClassificationConfig
from keras_bert.tasks.tagging.label_schemes import forbidden_transitions
from keras_bert.tasks.tagging.tagged_words import TaggedReader
from keras_bert.tasks.tagging.word_files import ConlluReader, words_reader
from keras_bert.tasks.task import PublishedScore, Split

FEATURE_TAGGER, SCALAR_MIX, CRF_TAGGER = "tagger", "tagger.mix", "crf"

_EXAMPLE = '"Mary Shelley wrote Frankenstein in Geneva."'


class Tagging(TaskKind):
    """A dense layer over the last states (paper, section 5.3)."""

    head: ClassVar[type[Any]] = TokenClassificationConfig
    model: ClassVar[str] = "keras_bert.tasks.tagging.network:BertForTokenClassification"
    part: ClassVar[str] = CLASSIFIER
    tensors: ClassVar[Mapping[str, tuple[TensorName, ...]]] = CLASSIFIER_TENSORS
    titles: ClassVar[Mapping[str, str]] = CLASSIFIER_TITLES
    tasks: ClassVar[tuple[str, ...]] = TAGGING_TASKS
    own_task: ClassVar[str | None] = "tokens"
    pipeline = "token-classification"
    takes_bilstm: ClassVar[bool] = True
    takes_teacher: ClassVar[bool] = True
    reads: ClassVar[tuple[str, ...] | None] = ("scheme", "learned_scheme", "rows", "texts", "word", "label")
    noun, example_files = "words", ("words.txt", "tagged.txt")

    def model_arguments(self, head: Any) -> dict[str, Any]:
        return {**super().model_arguments(head), "num_labels": head.num_labels}

    def signatures(self, bert: Any, text_inputs: Any, network: Any, n_best: int) -> dict[str, Any]:
        from keras_bert.tasks.tagging.serving import tagging_signatures

        return tagging_signatures(
            bert.head.labels, text_inputs, network, lambda inputs: self.logits(network, inputs), bert.head.has_crf
        )

    def logits(self, network: Any, inputs: Mapping[str, Any]) -> Any:
        """[batch, seq, labels] float32 in a `Network`'s graph, from the encoder's inputs [batch, seq]."""
        states = network.encoded(inputs)["sequence_output"]
        return network.run(lambda model: model.classifier(states))

    def open_problem(
        self, config: FinetuneConfig, tokenizer: Any, head: Any, task_record: Mapping[str, Any], own: Mapping[str, str]
    ) -> Any:
        from keras_bert.tasks.sources import find_split_files
        from keras_bert.tasks.tagging.problem import TaggingProblem

        task = TAGGING[config.task]
        source = own or find_split_files(task, config.data.folder)
        return TaggingProblem(task, source, tokenizer, config, head, task_record)

    def card_example(self, fields: Mapping[str, Any]) -> str:
        return f'print(keras_bert.serving_function(bert)([{_EXAMPLE}])["labels"])'

    def answer(self, bert: Any, examples: Sequence[Any]) -> list[Any]:
        from keras_bert.export.serving_function import signatures_of
        from keras_bert.tasks.tagging.in_python import tagged_texts

        return tagged_texts(signatures_of(bert), examples)

    def answers_shown(self, bert: Any, texts: list[str]) -> list[str]:
        lines = []
        for text, tagged in zip(texts, bert.predict(texts), strict=True):
            width = max(map(len, tagged.words), default=0)
            rows = zip(tagged.words, tagged.labels, tagged.scores)
            lines += shown([text], [f"{word:{width}}  {label} {score:.3f}" for word, label, score in rows])
        return lines

    def transformers_example(self, fields: Mapping[str, Any]) -> str:
        # transformers merges pieces into words, and words into entities, only for labels in BIO.
        is_bio = all(label[:2] in ("O", "B-", "I-") for label in map(str, (fields.get("id2label") or {}).values()))
        joined = ', aggregation_strategy="first"' if is_bio else ""
        return transformers_pipeline(str(self.pipeline), _EXAMPLE, joined)

    def data_fields(self, task: str) -> Collection[str] | None:
        return ("rows",) if task == POS.name else self.reads  # A treebank has its columns.

    def unnamed_labels(self, head: Any) -> tuple[str, ...]:
        return head.labels if head.is_unnamed else ()


class FeatureTagging(Tagging):
    """Two BiLSTM layers over the states of a frozen encoder (paper, table 7); transformers has no class for it."""

    head, part, tasks = FeatureTaggingConfig, FEATURE_TAGGER, ()
    model = "keras_bert.tasks.tagging.feature_network:BertFeatureTagger"
    tensors = {
        FEATURE_TAGGER: (
            *lstms("tagger.lstms", "tagger.lstm"),
            *dense("tagger.classifier.dense", "keras_bert.tagger.classifier"),
        ),
        # The features may be a mix of all layers.
        SCALAR_MIX: tuple(own_tensor(name, name) for name in ("tagger.mix.layer_weights", "tagger.mix.gamma")),
    }
    titles = {FEATURE_TAGGER: "tagger over frozen features", SCALAR_MIX: "layer weights of the features"}
    in_transformers = takes_teacher = False

    def is_of(self, fields: Mapping[str, Any]) -> bool:
        # The first versions did not write `architecture`.
        return super().is_of(fields) or "features" in own_field(fields)

    def model_arguments(self, head: FeatureTaggingConfig) -> dict[str, Any]:
        return {"num_labels": head.num_labels, "features": head.features, "lstm_size": head.lstm_size}

    def logits(self, network: Any, inputs: Mapping[str, Any]) -> Any:
        return network.run(lambda model: model(inputs)["logits"])


class CrfTagging(Tagging):
    """A conditional random field over the words; transformers has no class for it."""

    head: ClassVar[type[Any]] = CrfTaggingConfig
    model: ClassVar[str] = "keras_bert.tasks.tagging.network:BertCrfTagger"
    part = CRF_TAGGER
    tensors = {
        CRF_TAGGER: (
            *(own_tensor(name, name) for name in ("crf.transitions", "crf.starts", "crf.ends")),
            *dense("crf.classifier.dense", "keras_bert.crf.classifier"),
        )
    }
    titles = {CRF_TAGGER: "conditional random field"}
    not_portable = "a head without a CRF, because other runtimes lack what finding its best labels takes"
    tasks: ClassVar[tuple[str, ...]] = ()
    in_transformers = takes_teacher = False

    def model_arguments(self, head: CrfTaggingConfig) -> dict[str, Any]:
        return {**super().model_arguments(head), "forbidden": forbidden_transitions(head.labels, head.learned_scheme)}

    def logits(self, network: Any, inputs: Mapping[str, Any]) -> Any:
        states = network.encoded(inputs)["sequence_output"]
        return network.run(lambda model: model.crf(states))


KINDS = (Tagging(), FeatureTagging(), CrfTagging())


@dataclass(frozen=True)
class TaggingTask:
    """A tagging task, as data.

    Attributes:
        name: as in `--task NAME`.
        reader: function (path, options) -> the reader of a file; the options say where its labels are.
        in_columns: whether the columns of words and labels can be chosen.
        marks_entities: whether the labels mark entities; None if the labels themselves show it.
        splits: `{name: Split}`, whose files are found as in `sources.find_split_files`.
        published: published scores.
    """

    name: str
    reader: Callable[..., TaggedReader]
    in_columns: bool
    marks_entities: bool | None
    splits: Mapping[str, Split]
    published: tuple[PublishedScore, ...] = ()


_COLUMN_FILES = {
    "train": Split(("eng.train", "train.*", "*.train", "*-train.*")),
    "dev": Split(("eng.testa", "dev.*", "valid.*", "*.dev", "*.testa", "*-dev.*")),
    "test": Split(("eng.testb", "test.*", "*.test", "*.testb", "*-test.*")),
}
TREEBANK_FILES = {
    name: Split((f"*-ud-{name}.conllu", f"{name}.conllu", f"*{name}.conllu")) for name in ("train", "dev", "test")
}

# CoNLL-2003 by fine-tuning, from the paper's table 7.
_CONLL = tuple(
    PublishedScore(system, "f1", value, split)
    for split, base, large in (("dev", 96.4, 96.6), ("test", 92.4, 92.8))
    for system, value in (("BERT base", base), ("BERT large", large))
)

NER = TaggingTask("ner", words_reader, True, True, _COLUMN_FILES, _CONLL)
POS = TaggingTask("pos", ConlluReader, False, False, TREEBANK_FILES)
TOKENS = TaggingTask("tokens", words_reader, True, None, _COLUMN_FILES)
TAGGING = {task.name: task for task in (NER, POS, TOKENS)}
