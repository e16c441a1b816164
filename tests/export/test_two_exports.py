"""Two exports into one folder."""

import contextlib
import os
import threading
import time

import tensorflow as tf
from said import listen

from keras_bert.core import locks
from keras_bert.export import saved_model
from keras_bert.export.saved_model import write_version


def test_two_exports_at_the_same_time_take_two_numbers(tmp_path, monkeypatch):
    """Both took the next one, and wrote into the same unfinished folder."""
    monkeypatch.setattr(locks, "_ASKED_EVERY", 0.01)
    output, said, written = str(tmp_path), listen(), []
    (tmp_path / "1").mkdir()

    class Function:
        inputs, text_inputs, signatures = {}, None, None

        @contextlib.contextmanager
        def tracked(self):
            if not written:  # The second one begins while the first one writes.
                written.append(threading.Thread(target=lambda: written.append(write_version(output, self))))
                written[0].start()
                while not said:
                    time.sleep(0.01)
            yield tf.Module()

    monkeypatch.setattr(saved_model, "write_warm_up", lambda *_: None)
    assert write_version(output, Function()).endswith("/2")
    written[0].join()
    assert written[1].endswith("/3") and "in use by process" in said[0]
    assert sorted(os.listdir(tmp_path)) == ["1", "2", "3", "batching.config", "models.config"]
