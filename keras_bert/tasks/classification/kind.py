"""Classification, with one label or several, and regression."""

import dataclasses

from keras_bert.checkpoints.names import CLASSIFIER
from keras_bert.config.heads import ClassificationConfig
from keras_bert.task_kinds import TaskKind
from keras_bert.tasks.classification.glue import GLUE

TEXT = "text"  # The user's own table.


class Classification(TaskKind):
    """A label, labels or a number for a text or a pair of texts."""

    head, part, tasks = ClassificationConfig, CLASSIFIER, (*GLUE, TEXT)
    in_google = True
    pipeline = "text-classification"

    def make_model(self, config, head, **keras_options):
        from keras_bert.models.sequence_classification import BertForSequenceClassification

        return BertForSequenceClassification(config, head.num_labels, **keras_options)

    def signatures(self, bert, text_inputs, network, n_best):
        from keras_bert.export.classification import classification_signatures

        return classification_signatures(bert.head, text_inputs, network)

    def open_problem(self, config, tokenizer, head, described, own):
        from keras_bert.tasks.classification.problem import SequenceProblem
        from keras_bert.tasks.classification.tabular import own_table
        from keras_bert.tasks.examples.sources import data_source
        from keras_bert.tasks.task import INPUT, with_own_files

        if config.task == TEXT:
            task = own_table(config.data, head)
            if INPUT in own:
                task = with_own_files(task, own, tuple(config.data.columns) or None)
            return SequenceProblem(task, "", tokenizer, config, head)
        task = GLUE[config.task]
        if own:
            task = dataclasses.replace(with_own_files(task, own), format=None)
        source = "" if own else data_source(task.tfds.name, config.data.folder)
        return SequenceProblem(task, source, tokenizer, config, head)

    def answer_texts(self, bert, texts):
        from keras_bert.inference.classify import classify

        return classify(bert.model, bert.tokenizer, bert.head, texts)


KINDS = (Classification(),)
