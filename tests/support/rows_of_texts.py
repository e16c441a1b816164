"""The rows of one or two lists of texts, laid out as a task lays out its examples."""

from keras_bert.tasks.sequence_rows import SequenceRows


def sequence_rows(texts, tokenizer, input_config):
    """`(rows, examples)`; see `SequenceRows`."""
    found = SequenceRows(tokenizer, input_config)
    found.add(texts)
    return found.rows(), found.examples()
