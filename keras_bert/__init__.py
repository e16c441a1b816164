"""BERT in TensorFlow and Keras: from a pile of text to a pretrained encoder."""

from keras_bert.lazy import lazy_names

__version__ = "0.1.0"
__all__ = ["BertConfig", "BertEncoder", "BertForPreTraining", "BertForSequenceClassification", "load"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "BertConfig": "keras_bert.config.bert",
        "BertEncoder": "keras_bert.models.encoder",
        "BertForPreTraining": "keras_bert.models.pretraining",
        "BertForSequenceClassification": "keras_bert.models.sequence_classification",
        "load": "keras_bert.models.loading",
    },
)
