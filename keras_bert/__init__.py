"""BERT in TensorFlow and Keras: from raw text to a pretrained encoder."""

from keras_bert.lazy import lazy_names

__version__ = "0.2.0"
__all__ = [
    "BertConfig",
    "BertEncoder",
    "BertForMultipleChoice",
    "BertForPreTraining",
    "BertForQuestionAnswering",
    "BertForSequenceClassification",
    "BertForTokenClassification",
    "load",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "BertConfig": "keras_bert.config.bert",
        "BertEncoder": "keras_bert.models.encoder",
        "BertForMultipleChoice": "keras_bert.models.multiple_choice",
        "BertForPreTraining": "keras_bert.models.pretraining",
        "BertForQuestionAnswering": "keras_bert.models.span_extraction",
        "BertForSequenceClassification": "keras_bert.models.sequence_classification",
        "BertForTokenClassification": "keras_bert.models.token_classification",
        "load": "keras_bert.inference.loading",
    },
)
