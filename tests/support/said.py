"""What the package says, for tests: the lines of its logger."""

import logging

from keras_bert.core.messages import LOGGER

LISTENERS = []  # tests/conftest.py takes them off after each test.


class _Listener(logging.Handler):
    def __init__(self, lines):
        super().__init__(logging.INFO)
        self._lines = lines

    def emit(self, record):
        self._lines.append(self.format(record))


def listen():
    """A list that grows by every message from now on, to the end of the test."""
    lines = []
    LISTENERS.append(_Listener(lines))
    LOGGER.addHandler(LISTENERS[-1])
    LOGGER.setLevel(logging.INFO)
    return lines


def silent(function):
    """What a function returns, which must not say anything."""
    lines = listen()
    result = function()
    assert not lines
    return result
