"""Starting TensorFlow for a command, without the pages that it logs on the way."""

import contextlib
import os
import sys
import tempfile

from keras_bert.allocator import keep_freed_memory


def import_tensorflow(debug=False):
    """Imports TensorFlow and finds the devices; what it writes to stderr meanwhile is shown only if it fails.

    Its C++ side logs before any logging setting is read, so the file descriptor itself is turned away.
    """
    if debug:
        import tensorflow as tf

        _settle(tf)
        return
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    with stderr_kept_back():
        import tensorflow as tf

        _settle(tf)
    # It warns of every static shape after the fifth, which batches by length have on purpose.
    tf.get_logger().setLevel("ERROR")


def _settle(tf):
    """Finds the devices, and sets the allocator up where all computing will be on the CPU."""
    # Physical ones: several workers must not start TensorFlow before their strategy is made.
    if all(device.device_type.endswith("CPU") for device in tf.config.list_physical_devices()):
        keep_freed_memory()


@contextlib.contextmanager
def stderr_kept_back():
    sys.stderr.flush()
    original = os.dup(2)
    with tempfile.TemporaryFile() as kept:
        os.dup2(kept.fileno(), 2)
        try:
            yield
        except BaseException:
            os.dup2(original, 2)
            kept.seek(0)
            sys.stderr.write(kept.read().decode("utf-8", "replace"))
            raise
        finally:
            sys.stderr.flush()
            os.dup2(original, 2)
            os.close(original)
