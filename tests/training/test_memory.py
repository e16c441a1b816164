"""The peak of this process, and the memory there is."""

import sys

import numpy as np
import pytest

from keras_bert.training.memory import memory_limit, peak_memory, reset_peak

MIB = 2**20


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is reset on Linux alone")
def test_the_peak_counts_from_its_reset():
    np.ones(300 * MIB, np.uint8)
    reset_peak()
    before = peak_memory()
    np.ones(100 * MIB, np.uint8)
    assert 80 * MIB < peak_memory() - before < 200 * MIB


def test_there_is_more_memory_than_this_process_has():
    assert memory_limit() > 100 * MIB


def test_a_containers_limit_counts(tmp_path, monkeypatch):
    limit = tmp_path / "memory.max"
    monkeypatch.setattr("keras_bert.training.memory._CGROUP_LIMITS", (str(limit),))
    limit.write_text("1048576\n", encoding="ascii")
    assert memory_limit() == MIB
    limit.write_text("max\n", encoding="ascii")
    assert memory_limit() > 100 * MIB
