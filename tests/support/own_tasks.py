"""Tasks on a user's own files, from the settings that differ from a recipe's."""

from keras_bert.config.finetuning import REGRESSION, TaskDataConfig
from keras_bert.tasks.classification.data import own_table
from keras_bert.tasks.classification.head import ClassificationConfig
from keras_bert.tasks.question_answering.task import own_questions


def text_task(texts, label=None, labels=None, **data):
    """`own_table`; `labels` are those of a trained model."""
    data = TaskDataConfig(texts=texts, label=label, **data)
    assert not labels or data.kind != REGRESSION
    return own_table(data, ClassificationConfig(labels, data.kind) if labels else None)


def qa_task(unanswerable=None, **data):
    """`own_questions`."""
    return own_questions(TaskDataConfig(**data), unanswerable)
