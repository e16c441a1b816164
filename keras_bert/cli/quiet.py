"""TensorFlow without its log, for the commands."""

from keras_bert.quiet import import_tensorflow  # noqa: F401
