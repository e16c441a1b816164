"""tools/request_batches.py merges requests as TensorFlow Serving does, and gives each its own rows back."""

import importlib.util
import os
import sys
import threading
from concurrent import futures

import numpy as np
import pytest
import tensorflow as tf
from pages import ROOT

from keras_bert.export.saved_model import write_serving_files

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("tensorflow_serving") is None, reason="tensorflow-serving-api is not installed"
)
SETTINGS = {"max_batch_size": 4, "batch_timeout_micros": 50_000, "max_enqueued_batches": 2, "num_batch_threads": 1}


@pytest.fixture(scope="module")
def batches():
    """The module, which finds its neighbours as it does in `python tools/serve.py`."""
    sys.path.insert(0, os.path.join(ROOT, "tools"))
    try:
        import request_batches

        yield request_batches
    finally:
        sys.path.remove(os.path.join(ROOT, "tools"))


class Doubles:
    """A version that answers with twice its input, once `let` is set."""

    def __init__(self):
        self.sizes, self.let = [], threading.Event()

    def predict(self, signature, inputs):
        assert self.let.wait(30)
        self.sizes.append(int(inputs["x"].shape[0]))
        if signature == "broken":
            raise ValueError("cannot")
        return {"y": 2 * inputs["x"].numpy()}


def ask(waiting, version, values, signature="serving_default"):
    return waiting.predict(version, signature, {"x": tf.constant(values)})


def test_requests_of_one_shape_are_answered_together_and_get_their_own_rows(batches):
    """Six rows come in as 1, 2, 1 and 2; no batch has more than four, and nobody gets another's rows."""
    version, waiting = Doubles(), batches.RequestBatches(SETTINGS)
    values = [[[1.0]], [[2.0], [3.0]], [[4.0]], [[5.0], [6.0]], [[7.0, 8.0]]]
    with futures.ThreadPoolExecutor(8) as pool:
        answers = [pool.submit(ask, waiting, version, value) for value in values]
        version.let.set()
        for value, answer in zip(values, answers):
            np.testing.assert_array_equal(answer.result(30)["y"], 2 * np.array(value))
    assert sum(version.sizes) == 7 and max(version.sizes) <= 4 and len(version.sizes) < 5


def test_what_cannot_be_merged_is_refused_and_an_error_reaches_all(batches):
    """A request that waited for an answer for ever would hang its client."""
    version, waiting = Doubles(), batches.RequestBatches(SETTINGS)
    with pytest.raises(batches.Refused, match="Task size 5 is larger than maximum input batch size 4"):
        ask(waiting, version, [[1.0]] * 5)
    with pytest.raises(batches.Refused, match="0th-dimension"):
        ask(waiting, version, 1.0)
    with futures.ThreadPoolExecutor(8) as pool:
        answers = [pool.submit(ask, waiting, version, [[1.0]], "broken") for _ in range(3)]
        version.let.set()
        for answer in answers:
            with pytest.raises(ValueError, match="cannot"):
                answer.result(30)


def test_a_full_queue_refuses(batches):
    """Two batches of four rows may wait; the first is at work."""
    version, waiting = Doubles(), batches.RequestBatches({**SETTINGS, "batch_timeout_micros": 0})
    with futures.ThreadPoolExecutor(16) as pool:
        answers = [pool.submit(ask, waiting, version, [[1.0]] * 4) for _ in range(6)]
        done, _ = futures.wait(answers, timeout=10, return_when=futures.FIRST_EXCEPTION)
        assert {answer.exception().status.name for answer in done} == {"UNAVAILABLE"}
        version.let.set()


def test_settings_are_those_of_the_exported_file(batches, tmp_path):
    write_serving_files(tmp_path)
    exported = {"max_batch_size": 32, "batch_timeout_micros": 1000, "max_enqueued_batches": 100, "num_batch_threads": 4}
    assert batches.read_settings(tmp_path / "batching.config") == exported
    other = tmp_path / "other.config"
    other.write_text("max_batch { value: 3 }")
    with pytest.raises(SystemExit, match=r"other.config: needs some of max_batch_size.*Received: max_batch\."):
        batches.read_settings(other)
