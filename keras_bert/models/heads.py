"""From what a config says of a head to the model that has it."""

from keras_bert.models.feature_tagger import BertFeatureTagger
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
        BertFeatureTagger,
    )
}
# What a model is made with beside its `BertConfig`, where its head's config says it.
_HEAD_SETTINGS = ("num_labels", "features", "lstm_size")


def model_with_head(config, head, **settings):
    """A new model.

    Args:
        config: the `BertConfig` of its encoder.
        head: the head's config, one of `config.heads.TASK_HEADS` in its values.
        settings: Keras' own: `dtype`, `name`.
    """
    of_head = {name: getattr(head, name) for name in _HEAD_SETTINGS if hasattr(head, name)}
    return _MODELS[head.architecture](config, **of_head, **settings)
