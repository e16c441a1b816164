"""From what a config says of a head to the model that has it."""

from keras_bert.models.multiple_choice import BertForMultipleChoice
from keras_bert.models.sequence_classification import BertForSequenceClassification
from keras_bert.models.span_extraction import BertForQuestionAnswering
from keras_bert.models.token_classification import BertForTokenClassification

_MODELS = {
    model.__name__: model
    for model in (
        BertForSequenceClassification,
        BertForTokenClassification,
        BertForMultipleChoice,
        BertForQuestionAnswering,
    )
}


def model_with_head(config, head, **settings):
    """A new model.

    Args:
        config: the `BertConfig` of its encoder.
        head: the head's config, one of `config.heads.TASK_HEADS` in its values.
        settings: Keras' own: `dtype`, `name`.
    """
    labels = {"num_labels": head.num_labels} if hasattr(head, "num_labels") else {}
    return _MODELS[head.architecture](config, **labels, **settings)
