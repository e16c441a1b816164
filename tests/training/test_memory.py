"""The peak of this process, the available memory, and what is said when a batch does not fit."""

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tensorflow as tf

from keras_bert.core.errors import UserError
from keras_bert.training.memory import advice, explained_out_of_memory, memory_limit, peak_memory, reset_peak

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


def batch():
    return "phases.1.batch_size", 32


@pytest.mark.slow
def test_the_setting_to_try_is_named():
    """TensorFlow and XLA are really asked for a petabyte; both wait ten seconds for it to come free."""

    def ask(jit_compile):
        huge = tf.function(lambda side: tf.ones([side, side]) + 1.0, jit_compile=jit_compile)
        with explained_out_of_memory(batch, tf.distribute.OneDeviceStrategy("CPU:0"), 1):
            # Outside XLA one side is unknown, or the sum would be asked for once more, ahead of time.
            huge(2**24 if jit_compile else tf.constant(2**24))

    with ThreadPoolExecutor() as threads:
        for asked in [threads.submit(ask, jit_compile) for jit_compile in (False, True)]:
            with pytest.raises(UserError, match=r"Out of memory with phases.1.batch_size 32 on 1 repl.*accumulation=2"):
                asked.result()


def test_other_errors_pass():
    with pytest.raises(tf.errors.InvalidArgumentError):
        with explained_out_of_memory(batch, tf.distribute.OneDeviceStrategy("CPU:0"), 1):
            tf.reshape(tf.ones([3]), [2])


@pytest.mark.parametrize(
    ("batch_size", "replicas", "accumulation", "said"),
    [
        (32, 1, 1, ["accumulation=2 ", "batch size of 16"]),
        (32, 2, 4, ["accumulation=8 ", "batch size of 16"]),
        (12, 2, 2, ["accumulation=6 ", "batch size of 4"]),
        (3, 1, 1, ["accumulation=3 ", "batch size of 1"]),
        (8, 2, 4, ["one example at a time"]),
    ],
)
def test_the_advice_divides_the_batch(batch_size, replicas, accumulation, said):
    for part in said:
        assert part in advice(batch_size, replicas, accumulation)
