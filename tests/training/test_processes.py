"""What the processes of one run agree on, seen from each of two."""

import numpy as np
import pytest
import tensorflow as tf

from keras_bert.core.errors import UserError
from keras_bert.training import processes
from keras_bert.training.processes import by_chief, chief_decides, fail_together, require_same


@pytest.fixture
def strategy():
    return tf.distribute.OneDeviceStrategy("CPU:0")


@pytest.fixture
def other_failed(monkeypatch):
    """The other process says that it failed."""
    monkeypatch.setattr(processes, "agreement", lambda strategy: lambda own: own + 1.0)


def beside(other, monkeypatch):
    """This process is number 0 of two; number 1 gives `other`."""

    def gather(strategy, values):
        rows = [values]
        with monkeypatch.context() as patch:
            patch.setattr(processes, "gather", lambda strategy, values: rows.append(values) or np.float32([values]))
            require_same(strategy, "run", value=other)
        return np.float32(rows)

    monkeypatch.setattr(processes, "gather", gather)


@pytest.mark.parametrize("value", [0, 70_000, 2**40 + 1, b"", b"weights"])
def test_the_same_passes(value, strategy, monkeypatch):
    require_same(strategy, "run", step=value)
    beside(value, monkeypatch)
    require_same(strategy, "run", step=value)


@pytest.mark.parametrize(
    ("own", "other", "told"),
    [
        (6, 0, r"\(6 in process 0, 0 in process 1\)"),
        (2**24, 2**24 + 1, "16,777,217 in process 1"),
        (b"a", b"b", "ones\\."),
    ],
)
def test_what_differs_is_refused_by_name(own, other, told, strategy, monkeypatch):
    """Even numbers that float32 cannot tell apart."""
    beside(other, monkeypatch)
    with pytest.raises(UserError, match=rf"run: needs the same best step.*{told}.*same --output folder"):
        require_same(strategy, "run", best_step=own)


def test_where_another_fails_this_one_does_not_wait(strategy, other_failed):
    with pytest.raises(UserError, match="Another process of this run failed"):
        by_chief(strategy, lambda: "done")


def test_ones_own_error_is_told(strategy, other_failed):
    with pytest.raises(ValueError, match="mine"), fail_together(processes.agreement(strategy)):
        raise ValueError("mine")


def test_alone_one_is_the_chief(strategy):
    assert by_chief(strategy, lambda: "done") == "done"
    assert chief_decides(strategy, lambda: True) and not chief_decides(strategy, lambda: False)
