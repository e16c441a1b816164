"""What is said when a batch does not fit."""

import pytest
import tensorflow as tf

from keras_bert.errors import UserError
from keras_bert.training.out_of_memory import advice, explained_out_of_memory


def batch():
    return "phases.1.batch_size", 32


@pytest.mark.parametrize("jit_compile", [False, True])
def test_the_setting_to_try_is_named(jit_compile):
    """A petabyte is asked for in earnest, of TensorFlow and of XLA."""
    huge = tf.function(lambda side: tf.linalg.matmul(tf.ones([side, 8]), tf.ones([8, side])), jit_compile=jit_compile)
    with pytest.raises(UserError, match=r"Out of memory with phases.1.batch_size 32 on 1 replica.*accumulation=2"):
        with explained_out_of_memory(batch, tf.distribute.OneDeviceStrategy("CPU:0"), 1):
            huge(2**24)


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
