"""How BERT's weights begin."""

import contextlib
import contextvars

import keras

_replacement = contextvars.ContextVar("replacement", default=None)


def truncated_normal(stddev):
    """Normal with `stddev`, cut at two standard deviations (modeling.py, `create_initializer`)."""
    return _replacement.get() or keras.initializers.TruncatedNormal(stddev=stddev)


@contextlib.contextmanager
def normal_replaced_by(initializer):
    """Inside it, and in this thread, models are built with `initializer` where they have `truncated_normal`."""
    token = _replacement.set(initializer)
    try:
        yield
    finally:
        _replacement.reset(token)
