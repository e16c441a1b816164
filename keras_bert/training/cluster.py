"""The worker processes of a run: from TF_CONFIG, which `launch` and Kubernetes set, or from a SLURM step."""

import json
import os

import tensorflow as tf

from keras_bert.errors import UserError
from keras_bert.program import PROGRAM

# Ports of the workers of a SLURM job: jobs on the same node get separate ranges, below the system's ephemeral ports.
_FIRST_PORT, _JOBS, _PORTS_PER_JOB = 10_000, 1_000, 16


def worker_addresses() -> list[str]:
    """The addresses of the workers in TF_CONFIG; empty if it is not set. Raises `UserError` if it is malformed."""
    text = os.environ.get("TF_CONFIG", "")
    if not text:
        return []
    try:
        config = json.loads(text)
        workers, task = config["cluster"]["worker"], config["task"]
        if task["type"] != "worker" or not 0 <= task["index"] < len(workers):
            raise ValueError("task")
    except (ValueError, KeyError, TypeError):
        raise UserError(
            'TF_CONFIG: needs {"cluster": {"worker": [addresses]}, "task": {"type": "worker", "index": number}}. '
            f"Received: {text[:200]}. `{PROGRAM} launch` sets it on one machine."
        ) from None
    return workers


def worker_index() -> int:
    """Which of `worker_addresses` this process is."""
    return json.loads(os.environ["TF_CONFIG"])["task"]["index"]


def join_slurm_step() -> None:
    """Sets TF_CONFIG if this process is one of several tasks that `srun` started, and divides a node's GPUs.

    Does nothing if TF_CONFIG is set or there is no such step.

    Raises:
        UserError: SLURM's variables contradict each other, or a node has fewer GPUs than tasks.
    """
    if os.environ.get("TF_CONFIG") or int(os.environ.get("SLURM_STEP_NUM_TASKS") or 1) < 2:
        return
    job = int(os.environ.get("SLURM_JOB_ID") or 0)
    try:
        resolver = tf.distribute.cluster_resolver.SlurmClusterResolver(
            port_base=_FIRST_PORT + job % _JOBS * _PORTS_PER_JOB,
            # The resolver counts GPUs by nvidia-smi and stops where there are none; `_share_gpus` divides them.
            gpus_per_node=_PORTS_PER_JOB,
            gpus_per_task=1,
            auto_set_gpu=False,
        )
        addresses = resolver.cluster_spec().as_dict()["worker"]
    except (RuntimeError, ValueError, KeyError) as error:
        raise UserError(f"SLURM: needs the environment of a step that `srun` started. Received: {error}.") from None
    index = resolver.task_id
    task = {"type": "worker", "index": index}
    os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": addresses}, "task": task})
    _share_gpus(addresses, index)


def share_gpus() -> None:
    """Gives this process its share of the machine's GPUs if TF_CONFIG has several workers on it, as `launch` does.

    Otherwise each of them would take all. Does nothing if CUDA_VISIBLE_DEVICES has chosen this process's GPUs.

    Raises:
        UserError: the machine has fewer GPUs than workers.
    """
    if "CUDA_VISIBLE_DEVICES" not in os.environ:
        _share_gpus(worker_addresses(), worker_index())


def _share_gpus(addresses: list[str], index: int) -> None:
    """Gives each task on a node its share of the node's GPUs, unless SLURM has bound them to tasks already."""
    hosts = [address.rsplit(":", 1)[0] for address in addresses]
    on_node = [number for number, host in enumerate(hosts) if host == hosts[index]]
    gpus = tf.config.list_physical_devices("GPU")
    is_bound = any(os.environ.get(f"SLURM_{name}_PER_TASK") for name in ("GPUS", "TRES"))
    if len(on_node) == 1 or not gpus or is_bound:
        return
    if len(gpus) < len(on_node):
        raise UserError(
            f"{hosts[index]}: needs a GPU for each of its {len(on_node)} workers. Received: {len(gpus)}. Start at most "
            "that many workers there, or set CUDA_VISIBLE_DEVICES=-1 to train on CPUs."
        )
    tf.config.set_visible_devices(gpus[on_node.index(index) :: len(on_node)], "GPU")
