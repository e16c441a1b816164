"""Starts TensorFlow for a command, without the pages that it logs on import."""

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from types import ModuleType

from keras_bert.allocator import keep_freed_memory


def import_tensorflow(debug: bool = False) -> None:
    """Imports TensorFlow and finds the devices. Its stderr is shown only if that fails, or with `debug`.

    Its C++ side logs before it reads any logging setting, so the file descriptor itself is redirected.
    """
    if debug:
        import tensorflow as tf

        _settle(tf)
        return
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    with stderr_kept_back():
        import tensorflow as tf

        _settle(tf)
    # It warns about every retracing after the fifth, which batches of different lengths cause on purpose.
    tf.get_logger().setLevel("ERROR")


def _settle(tf: ModuleType) -> None:
    """Finds the devices, and sets up the allocator if all computation will be on the CPU."""
    # Physical devices: several workers must not initialize TensorFlow before their strategy is made.
    if all(device.device_type.endswith("CPU") for device in tf.config.list_physical_devices()):
        keep_freed_memory()


@contextlib.contextmanager
def stderr_kept_back() -> Iterator[None]:
    """Withholds what the block writes to file descriptor 2; shows it if the block raises."""
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
