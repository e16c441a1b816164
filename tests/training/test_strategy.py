"""What a strategy's devices are, and what follows from that."""

from types import SimpleNamespace

import pytest
import tensorflow as tf

from keras_bert.training.strategy import graphs_as_traced


@pytest.mark.usefixtures("rewritten_graphs")
@pytest.mark.parametrize(("devices", "as_traced"), [(("CPU:0", "CPU:1"), True), (("CPU:0", "GPU:0"), False)])
def test_cpus_run_graphs_as_traced_for_the_length_of_a_run(devices, as_traced):
    """A program that trains goes on with its own setting, even if training fails."""
    strategy = SimpleNamespace(extended=SimpleNamespace(worker_devices=devices))
    options = tf.config.optimizer.get_experimental_options
    with pytest.raises(KeyboardInterrupt), graphs_as_traced(strategy):
        assert options()["disable_meta_optimizer"] is as_traced
        raise KeyboardInterrupt
    assert options()["disable_meta_optimizer"] is False
