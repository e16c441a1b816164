"""The workers that a run finds in the environment of TF_CONFIG or of a SLURM step."""

import json

import pytest
import tensorflow as tf

from keras_bert.core.errors import UserError
from keras_bert.training import strategy
from keras_bert.training.cluster import join_slurm_step, worker_addresses, worker_index

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
    """The GPUs made visible, of four."""
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
    """Those of `launch` each took all GPUs of the machine, and the second ran out of memory."""
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


def test_variables_that_contradict_each_other_are_one_line(step):
    step(SLURM_STEP_NODELIST="node[07")
    with pytest.raises(UserError, match="SLURM: needs the environment of a step"):
        join_slurm_step()
