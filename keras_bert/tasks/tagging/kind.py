"""A label for every word, from a fine-tuned BERT or from a BiLSTM over the features of a frozen one."""

from collections.abc import Collection, Mapping
from typing import Any, ClassVar

from keras_bert.checkpoints.names import CLASSIFIER, CRF_TAGGER, FEATURE_TAGGER
from keras_bert.config.bert import BertConfig
from keras_bert.config.features import TAGGING_TASKS
from keras_bert.config.finetuning import FinetuneConfig
from keras_bert.config.heads import CrfTaggingConfig, FeatureTaggingConfig, TokenClassificationConfig
from keras_bert.config.reading import FIELD
from keras_bert.task_kinds import TaskKind, transformers_pipeline

_EXAMPLE = '"Mary Shelley wrote Frankenstein in Geneva."'


class Tagging(TaskKind):
    """A dense layer over the last states (paper, section 5.3)."""

    head: ClassVar[type[Any]] = TokenClassificationConfig
    part = CLASSIFIER
    tasks: ClassVar[tuple[str, ...]] = TAGGING_TASKS
    own_task: ClassVar[str | None] = "tokens"
    pipeline = "token-classification"
    noun, example_files = "words", ("words.txt", "tagged.txt")

    def make_model(self, config: BertConfig, head: Any, **keras_options: Any) -> Any:
        from keras_bert.models.token_classification import BertForTokenClassification

        return BertForTokenClassification(config, head.num_labels, bilstm_size=head.bilstm_size, **keras_options)

    def signatures(self, bert: Any, text_inputs: Any, network: Any, n_best: int) -> dict[str, Any]:
        from keras_bert.export.tagging import tagging_signatures

        return tagging_signatures(bert.head, text_inputs, network)

    def open_problem(
        self,
        config: FinetuneConfig,
        tokenizer: Any,
        head: Any,
        described: Mapping[str, Any],
        own: Mapping[str, str],
    ) -> Any:
        from keras_bert.tasks.examples.split_files import find_split_files
        from keras_bert.tasks.tagging.problem import TaggingProblem
        from keras_bert.tasks.tagging.tasks import TAGGING

        task = TAGGING[config.task]
        source = own or find_split_files(task, config.data.folder)
        return TaggingProblem(
            task=task, source=source, tokenizer=tokenizer, config=config, head=head, described=described
        )

    def card_example(self, fields: Mapping[str, Any]) -> str:
        return f'print(keras_bert.serving_function(bert)([{_EXAMPLE}])["labels"])'

    def transformers_example(self, fields: Mapping[str, Any]) -> str:
        # transformers joins the pieces of words, and words to entities, of labels in BIO alone.
        is_bio = all(label[:2] in ("O", "B-", "I-") for label in map(str, (fields.get("id2label") or {}).values()))
        joined = ', aggregation_strategy="first"' if is_bio else ""
        return transformers_pipeline(str(self.pipeline), _EXAMPLE, joined)

    def data_fields(self, task: str) -> Collection[str]:
        from keras_bert.tasks.tagging.tasks import TAGGING

        return ("scheme", "learned_scheme", *(("texts", "word", "label") if TAGGING[task].in_columns else ()))


class FeatureTagging(Tagging):
    """Two BiLSTM layers over the states of a frozen encoder (paper, table 7); transformers has no class for it."""

    head, part, tasks = FeatureTaggingConfig, FEATURE_TAGGER, ()
    in_transformers = False

    def is_of(self, fields: Mapping[str, Any]) -> bool:
        # The first versions did not write `architecture`.
        return super().is_of(fields) or "features" in (fields.get(FIELD) or {})

    def make_model(self, config: BertConfig, head: FeatureTaggingConfig, **keras_options: Any) -> Any:
        from keras_bert.models.feature_tagger import BertFeatureTagger

        return BertFeatureTagger(config, head.num_labels, head.features, head.lstm_size, **keras_options)


class CrfTagging(Tagging):
    """A conditional random field over the words; transformers has no class for it."""

    head: ClassVar[type[Any]] = CrfTaggingConfig
    part = CRF_TAGGER
    tasks: ClassVar[tuple[str, ...]] = ()
    in_transformers = False

    def make_model(self, config: BertConfig, head: CrfTaggingConfig, **keras_options: Any) -> Any:
        from keras_bert.models.crf_tagger import BertCrfTagger
        from keras_bert.tasks.tagging.transitions import forbidden_transitions

        forbidden = forbidden_transitions(head.labels, head.learned_scheme)
        return BertCrfTagger(config, head.num_labels, forbidden, bilstm_size=head.bilstm_size, **keras_options)


KINDS = (Tagging(), FeatureTagging(), CrfTagging())
