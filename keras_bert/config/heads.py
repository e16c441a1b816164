"""The kinds of heads that a task may put on the encoder, by the names of their models' classes."""

from keras_bert.config.classification import ClassificationConfig
from keras_bert.config.feature_tagging import FeatureTaggingConfig
from keras_bert.config.multiple_choice import MultipleChoiceConfig
from keras_bert.config.span_extraction import SpanExtractionConfig
from keras_bert.config.token_classification import TokenClassificationConfig

TASK_HEADS = {
    head.architecture: head
    for head in (
        ClassificationConfig,
        TokenClassificationConfig,
        MultipleChoiceConfig,
        SpanExtractionConfig,
        FeatureTaggingConfig,
    )
}
