"""Where bars are seen."""

import io

import pytest

from keras_bert.core import terminal_bar as module
from keras_bert.core.terminal_bar import terminal_bar


class Screen(io.StringIO):
    def __init__(self, is_terminal):
        super().__init__()
        self.is_terminal = is_terminal

    def isatty(self):
        return self.is_terminal


@pytest.mark.parametrize(
    ("is_terminal", "seconds_unseen", "is_seen"), [(True, 0.0, True), (True, 60.0, False), (False, 0.0, False)]
)
def test_what_takes_long_is_seen_on_a_terminal_alone(monkeypatch, is_terminal, seconds_unseen, is_seen):
    """A log file must not fill with bars, nor a terminal with those of short work."""
    screen = Screen(is_terminal)
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setattr(module, "_SECONDS_UNSEEN", seconds_unseen)
    assert list(terminal_bar("Evaluating", "batches", over=range(3), leave=False)) == [0, 1, 2]
    assert ("Evaluating" in screen.getvalue()) == is_seen
