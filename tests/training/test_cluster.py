"""The workers of TF_CONFIG or of a SLURM step: found, waited for, and told if one is lost."""

import concurrent.futures
import json
import socket
import time

import pytest
import tensorflow as tf

from keras_bert.core.errors import UserError, WorkerLost
from keras_bert.training import cluster, strategy
from keras_bert.training.cluster import (
    explained_lost_worker,
    join_slurm_step,
    wait_for_workers,
    worker_addresses,
    worker_index,
)

STEP = {
    "SLURM_JOB_ID": "1234567",
    "SLURM_PROCID": "2",
    "SLURM_STEP_NUM_TASKS": "4",
    "SLURM_STEP_NODELIST": "node[07-08]",
    "SLURM_STEP_TASKS_PER_NODE": "2(x2)",
}
GPUS = ["GPU:0", "GPU:1", "GPU:2", "GPU:3"]


@pytest.fixture
def step(monkeypatch):
    """Function (variables) that sets the environment of a task; TF_CONFIG is restored afterwards."""
    monkeypatch.setenv("TF_CONFIG", "")
    for name in ("SLURM_GPUS_PER_TASK", "SLURM_TRES_PER_TASK"):
        monkeypatch.delenv(name, raising=False)

    def set_all(**variables):
        for name, value in {**STEP, **variables}.items():
            monkeypatch.setenv(name, value)

    return set_all


@pytest.fixture
def visible(monkeypatch):
    """The GPUs that are made visible, of four."""
    chosen = []
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: GPUS)
    monkeypatch.setattr(tf.config, "set_visible_devices", lambda devices, kind: chosen.extend(devices))
    return chosen


def test_the_tasks_of_a_step_are_the_workers_in_their_order(step, visible):
    step()
    join_slurm_step()
    addresses = worker_addresses()
    assert [address.split(":")[0] for address in addresses] == ["node07", "node07", "node08", "node08"]
    assert len(set(addresses)) == 4 and worker_index() == 2
    assert visible == ["GPU:0", "GPU:2"], "the first task of its node takes every second GPU"


def test_gpus_that_slurm_has_bound_stay(step, visible):
    step(SLURM_GPUS_PER_TASK="2")
    join_slurm_step()
    assert not visible and worker_addresses()


def test_workers_of_tf_config_share_the_gpus_of_their_machine(visible, monkeypatch):
    """Each worker of `launch` used to take all GPUs of the machine, and the second ran out of memory."""
    hosts = ["127.0.0.1:1", "a:1", "127.0.0.1:2", "[::1]:1"]
    monkeypatch.setattr(strategy, "wait_for_workers", lambda *arguments: None)
    monkeypatch.setattr(tf.distribute, "MultiWorkerMirroredStrategy", lambda **options: None)

    def share_of(index, gpus=None):
        visible.clear()
        task = {"type": "worker", "index": index}
        monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": {"worker": hosts}, "task": task}))
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        if gpus is not None:
            monkeypatch.setenv("CUDA_VISIBLE_DEVICES", gpus)
        strategy.make_strategy("multiworker")
        return list(visible)

    assert (share_of(0), share_of(2)) == (["GPU:0", "GPU:2"], ["GPU:1", "GPU:3"])
    assert share_of(1) == share_of(3) == [], "alone on their machines, they keep all GPUs"
    assert share_of(0, gpus="0,1") == [], "somebody has shared them out"
    hosts += [f"127.0.0.1:{port}" for port in (3, 4, 5)]
    with pytest.raises(UserError, match=r"127.0.0.1: needs a GPU for each of its 5 workers. Received: 4\."):
        share_of(0)
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [])
    assert share_of(0) == [], "without GPUs, any number trains on CPUs"


def test_all_runs_of_a_worker_have_one_strategy(monkeypatch):
    """Otherwise `finetune --pretrain-on-task` ends after pretraining, as the worker finds its own port taken."""
    waited = []
    monkeypatch.setattr(strategy, "wait_for_workers", lambda *arguments: waited.append(arguments))
    monkeypatch.setattr(tf.distribute, "MultiWorkerMirroredStrategy", lambda **options: object())
    task = {"type": "worker", "index": 0}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": {"worker": ["a:2", "b:2"]}, "task": task}))
    assert strategy.make_strategy("multiworker") is strategy.make_strategy("auto")
    assert len(waited) == 1


def test_jobs_on_the_same_node_have_ports_of_their_own(step, visible, monkeypatch):
    ports = []
    for job in ("7", "8"):
        monkeypatch.setenv("TF_CONFIG", "")
        step(SLURM_JOB_ID=job)
        join_slurm_step()
        ports += [address.split(":")[1] for address in worker_addresses() if address.startswith("node07")]
    assert len(set(ports)) == 4


def test_tf_config_comes_first_and_a_single_task_is_no_step(step, monkeypatch):
    step(SLURM_STEP_NUM_TASKS="1")
    join_slurm_step()
    assert worker_addresses() == []
    config = '{"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 1}}'
    step()
    monkeypatch.setenv("TF_CONFIG", config)
    join_slurm_step()
    assert worker_addresses() == ["a:1", "b:1"] and worker_index() == 1


@pytest.mark.parametrize(
    ("workers", "index"), [(["a:1", "b:1"], 0.5), (["a:1", "b:1"], 1.0), (["a:1"], False), ("a:1", 0), ([1], 0)]
)
def test_a_tf_config_of_another_form_is_one_line(monkeypatch, workers, index):
    """A worker's number is not a fraction, and a text of addresses is not a list of its letters."""
    task = {"type": "worker", "index": index}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": {"worker": workers}, "task": task}))
    with pytest.raises(UserError, match='TF_CONFIG: needs .*"index": whole number'):
        worker_addresses()


def test_variables_that_contradict_each_other_are_one_line(step):
    step(SLURM_STEP_NODELIST="node[07")
    with pytest.raises(UserError, match="SLURM: needs the environment of a step"):
        join_slurm_step()


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


@pytest.fixture
def addresses():
    with socket.socket() as one, socket.socket() as other, socket.socket() as third:
        for free in (one, other, third):
            free.bind(("localhost", 0))
        return [f"localhost:{free.getsockname()[1]}" for free in (one, other, third)]


def test_a_worker_that_never_comes_is_named(addresses):
    with pytest.raises(UserError, match=f"of the 2 processes in TF_CONFIG, {addresses[1]} did not answer"):
        wait_for_workers(addresses[:2], 0, 0.5)


def test_late_ones_are_waited_for(addresses):
    """As in TensorFlow, the first to have seen all goes on, with its port open again."""

    def worker(index):
        time.sleep(0.5 * index)
        wait_for_workers(addresses, index, 20)
        with socket.create_server(("", int(addresses[index].rpartition(":")[2]))):
            time.sleep(3)
        return index

    with concurrent.futures.ThreadPoolExecutor(3) as threads:
        assert list(threads.map(worker, range(3))) == [0, 1, 2]


def test_a_port_that_is_taken_and_an_address_without_one_are_refused(addresses):
    with socket.create_server(("", int(addresses[0].rpartition(":")[2]))):
        with pytest.raises(UserError, match=f"cannot listen at {addresses[0]}, .*Free the port"):
            wait_for_workers(addresses, 0, 1)
    with pytest.raises(UserError, match="form host:port.* Received: 'localhost'"):
        wait_for_workers(["localhost", addresses[1]], 0, 1)
    with pytest.raises(UserError, match=r"\[host\]:port for IPv6. Received: '::1:2222'"):
        wait_for_workers([addresses[0], "::1:2222"], 0, 1)
    with pytest.raises(UserError, match=r"form host:port.* Received: 'worker-1\.\.svc:2222'"):
        wait_for_workers([addresses[0], "worker-1..svc:2222"], 0, 1)


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="no IPv6 here")
def test_workers_known_by_ipv6_addresses_find_each_other(addresses):
    """The addresses are in brackets, as in TF_CONFIG; another worker may still be known by IPv4."""
    ports = [address.rpartition(":")[2] for address in addresses[:2]]
    named = [f"[::1]:{ports[0]}", f"127.0.0.1:{ports[1]}"]

    def worker(index):
        wait_for_workers(named, index, 10)
        with socket.create_server(("", int(ports[index])), family=socket.AF_INET6, dualstack_ipv6=True):
            time.sleep(2)

    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        list(threads.map(worker, range(2)))
