"""How BERT's weights begin."""

import keras


def truncated_normal(stddev):
    """Normal with `stddev`, cut at two standard deviations (modeling.py, `create_initializer`)."""
    return keras.initializers.TruncatedNormal(stddev=stddev)
