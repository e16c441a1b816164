"""A label for every word: by a fine-tuned BERT, or by a BiLSTM over the features of a frozen one."""

from typing import Any, ClassVar

from keras_bert.checkpoints.names import CLASSIFIER, FEATURE_TAGGER
from keras_bert.config.features import TAGGING_TASKS
from keras_bert.config.heads import FeatureTaggingConfig, TokenClassificationConfig
from keras_bert.config.reading import FIELD
from keras_bert.errors import UserError
from keras_bert.task_kinds import TaskKind


class Tagging(TaskKind):
    """A dense layer over the last states (paper, section 5.3)."""

    head: ClassVar[type[Any]] = TokenClassificationConfig
    part = CLASSIFIER
    tasks: ClassVar[tuple[str, ...]] = TAGGING_TASKS
    pipeline = "token-classification"
    noun, example_files = "words", ("words.txt", "tagged.txt")

    def make_model(self, config, head, **keras_options):
        from keras_bert.models.token_classification import BertForTokenClassification

        return BertForTokenClassification(config, head.num_labels, **keras_options)

    def signatures(self, bert, text_inputs, network, n_best):
        from keras_bert.export.tagging import tagging_signatures

        return tagging_signatures(bert.head, text_inputs, network)

    def open_problem(self, config, tokenizer, head, described, own):
        from keras_bert.tasks.examples.split_files import found_files
        from keras_bert.tasks.tagging.problem import TaggingProblem
        from keras_bert.tasks.tagging.tasks import TAGGING

        task, data, features = TAGGING[config.task], config.data, config.features if config.features.kind else None
        columns = {"word": _column(data.word), "label": _column(data.label)}
        given = {name: column for name, column in columns.items() if column is not None}
        if given and not task.in_columns:
            raise UserError(
                f"data.{next(iter(given))}: needs a task of columns (ner, tokens). Received: {task.name}, whose files "
                "have theirs at places of their own. Leave it out."
            )
        files_of = own or found_files(task, data.folder)
        return TaggingProblem(task, files_of, tokenizer, config.input.max_length, head, data.scheme, features, **given)


class FeatureTagging(Tagging):
    """Two BiLSTM layers over the states of a frozen encoder (paper, table 7), which transformers has no class for."""

    head, part, tasks = FeatureTaggingConfig, FEATURE_TAGGER, ()
    in_transformers = False

    def is_of(self, fields):
        # The first versions wrote no `architecture`.
        return super().is_of(fields) or "features" in (fields.get(FIELD) or {})

    def make_model(self, config, head, **keras_options):
        from keras_bert.models.feature_tagger import BertFeatureTagger

        return BertFeatureTagger(config, head.num_labels, head.features, head.lstm_size, **keras_options)


def _column(value):
    """A column's number or its name, as a recipe has it or, a number already, a model's folder."""
    return int(value) if value is not None and str(value).lstrip("-").isdigit() else value


KINDS = (Tagging(), FeatureTagging())
