"""A worker whose peer is gone says so, and nothing else is taken for that."""

import pytest
import tensorflow as tf

from keras_bert.core.errors import WorkerLost
from keras_bert.training import cluster
from keras_bert.training.cluster import explained_lost_worker

ABORTED = "Collective ops is aborted by: recvmsg:Connection reset by peer\nAdditional GRPC error information\n"


@pytest.fixture
def several(monkeypatch):
    monkeypatch.setattr(cluster, "worker_addresses", lambda: ["a:1", "b:1"])


def test_the_message_names_the_reason_and_the_remedy(several):
    with pytest.raises(WorkerLost, match=r"gone \(recvmsg:Connection reset by peer\)") as stopped:
        with explained_lost_worker():
            raise tf.errors.UnavailableError(None, None, ABORTED)
    assert stopped.value.status == 75 and "same command" in str(stopped.value)


def test_other_errors_stay_what_they_are(several):
    for error in (tf.errors.UnavailableError(None, None, "bucket"), ValueError("no")):
        with pytest.raises(type(error)), explained_lost_worker():
            raise error


def test_a_single_process_has_no_peers():
    with pytest.raises(tf.errors.UnavailableError), explained_lost_worker():
        raise tf.errors.UnavailableError(None, None, ABORTED)
