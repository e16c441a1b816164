"""Weights that a file's values replace at once."""


def unwritten(shape, dtype=None):
    """A Keras initializer: memory that nothing has written.

    Drawing BERT-base's first values takes seconds, and pages that nothing touches take no memory.
    """
    import tensorflow as tf

    return tf.raw_ops.Empty(shape=shape, dtype=dtype or "float32", init=False)
