"""What every test shares: quiet TensorFlow, two logical CPUs, and one strategy over both."""

import importlib.util
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import pytest
import tensorflow as tf

# Must come before anything touches a device; the two stand in for two GPUs.
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
)


@pytest.fixture(scope="session")
def mirrored_strategy():
    # One for the whole session: a second in the same process can break with a shape mismatch.
    return tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


def pytest_collection_modifyitems(items):
    """Skips a parity test whose package is not installed; one that is installed and broken must fail."""
    for item in items:
        for marker in item.iter_markers("parity"):
            missing = [name for name in marker.args if importlib.util.find_spec(name) is None]
            if missing:
                item.add_marker(pytest.mark.skip(reason=f"parity: {', '.join(missing)} not installed"))
