"""BERT in TensorFlow and Keras: from a pile of text to a pretrained encoder.

The names below are imported when they are first used, so that `import keras_bert` stays quick.
"""

import importlib

_PUBLIC = {
    "BertConfig": "keras_bert.config",
    "BertEncoder": "keras_bert.models.encoder",
    "BertForPreTraining": "keras_bert.models.pretraining",
    "load": "keras_bert.models.loading",
}

__all__ = list(_PUBLIC)
__version__ = "0.1.0"


def __getattr__(name):
    if name not in _PUBLIC:
        raise AttributeError(f"module 'keras_bert' has no attribute {name!r}")
    return getattr(importlib.import_module(_PUBLIC[name]), name)


def __dir__():
    return sorted([*globals(), *_PUBLIC])
