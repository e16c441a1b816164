"""Which devices a run trains on."""

import json
import os
import threading

import tensorflow as tf

from keras_bert.errors import UserError
from keras_bert.program import PROGRAM
from keras_bert.training.rendezvous import wait_for_workers

TPU_SECONDS = 120  # How long a TPU is waited for.
WORKER_SECONDS = 300  # How long a process of a run waits for the others.


def make_strategy(name, devices=(), tpu="local"):
    """The `tf.distribute.Strategy` of a recipe's `training.strategy`.

    Args:
        name: `one` device; `mirrored` over the GPUs of this machine (its logical CPUs where it has none);
            `multiworker` over the processes that TF_CONFIG names; `tpu`; or `auto`, the first of multiworker,
            tpu, mirrored and one that the machine has.
        devices: for `one` and `mirrored`, names such as `GPU:1`; all of a kind where empty.
        tpu: for `tpu`, its name or address; `local` on a TPU VM.

    Raises:
        UserError: what was looked for is not there.
    """
    if name == "auto":
        name = _found_here()
    makers = {
        "one": lambda: _one(devices),
        "mirrored": lambda: _mirrored(devices),
        "multiworker": _multiworker,
        "tpu": lambda: _tpu(tpu),
    }
    return makers[name]()


def describe(strategy):
    """One line: the kind of strategy and its devices."""
    replicas = strategy.num_replicas_in_sync
    names = ", ".join(device.split("device:")[-1] for device in strategy.extended.worker_devices)
    if is_multiworker(strategy):
        place = f"process {strategy.cluster_resolver.task_id} of {len(tf_config_workers())}"
        return f"Training in {place} ({names}), {replicas} replicas in all."
    return f"Training by {type(strategy).__name__} on {names}, {replicas} replica(s)."


def checkpoint_device(strategy: tf.distribute.Strategy) -> str | None:
    """The device whose host is to read and write checkpoints: this one for a TPU elsewhere, else None.

    By default TensorFlow has each variable written by the machine that holds it, and a remote TPU's host knows neither
    the paths of this machine nor its credentials. Among several workers each writes its own copy as it is.
    """
    if not isinstance(strategy, tf.distribute.TPUStrategy):
        return None
    jobs = {tf.DeviceSpec.from_string(device).job for device in strategy.extended.worker_devices}
    return None if jobs <= {None, "localhost"} else "/job:localhost"


def check_divisible(batch_size, strategy, accumulation, key):
    """Every replica, and every slice of its part, must get the same number of examples."""
    parts = strategy.num_replicas_in_sync * accumulation
    if batch_size % parts:
        raise UserError(
            f"{key}: needs a multiple of {parts} (replicas {strategy.num_replicas_in_sync} x training.accumulation "
            f"{accumulation}). Received: {batch_size}. The nearest are {batch_size // parts * parts or parts} and "
            f"{-(-batch_size // parts) * parts}."
        )


def tf_config_workers():
    """The addresses of the workers in TF_CONFIG; empty where it is not set. Raises `UserError` where it is wrong."""
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


def _found_here():
    if len(tf_config_workers()) > 1:
        return "multiworker"
    if os.environ.get("TPU_NAME") or tf.config.list_physical_devices("TPU"):
        return "tpu"
    return "mirrored" if len(tf.config.list_physical_devices("GPU")) > 1 else "one"


def _devices(wanted):
    """The devices asked for, or all GPUs, or all CPUs; as `GPU:0`."""
    found = {
        kind: [f"{kind}:{index}" for index in range(len(tf.config.list_logical_devices(kind)))]
        for kind in ("GPU", "CPU")
    }
    for device in wanted:
        if device not in found["GPU"] + found["CPU"]:
            raise UserError(
                f"training.devices: {device} is not on this machine. It has {', '.join(found['GPU'] + found['CPU'])}."
            )
    return list(wanted) or found["GPU"] or found["CPU"]


def _one(devices):
    return tf.distribute.OneDeviceStrategy(_devices(devices)[0])


def _mirrored(devices):
    return tf.distribute.MirroredStrategy(_devices(devices))


def _multiworker():
    if not tf_config_workers():
        raise UserError(
            "training.strategy multiworker: needs TF_CONFIG in the environment, and it is not set. On one machine: "
            f"{PROGRAM} launch --workers 2 -- pretrain …"
        )
    gpus = tf.config.list_physical_devices("GPU")
    kinds = tf.distribute.experimental.CommunicationImplementation
    options = tf.distribute.experimental.CommunicationOptions(implementation=kinds.AUTO if gpus else kinds.RING)
    wait_for_workers(tf_config_workers(), json.loads(os.environ["TF_CONFIG"])["task"]["index"], WORKER_SECONDS)
    return tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)


def _tpu(name):
    def connect():
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu=name)
        if name != "local":
            tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
        return tf.distribute.TPUStrategy(resolver)

    where = "on this machine (--tpu local)" if name == "local" else f"under the name or address {name!r} (--tpu)"
    found = _within(TPU_SECONDS, connect)
    if isinstance(found, tf.distribute.Strategy):
        return found
    # With no TPU: ValueError for '', NotFoundError for 'local', URLError (an OSError) or RuntimeError for a name.
    if found is not None and not isinstance(found, (ValueError, OSError, RuntimeError, tf.errors.OpError)):
        raise found
    reason = f"no answer within {TPU_SECONDS} seconds" if found is None else str(found) or type(found).__name__
    raise UserError(
        f"training.strategy tpu: no TPU was found {where}: {reason.splitlines()[0][:150]}. See docs/tpu.md; "
        "--strategy auto takes what is here."
    )


def _within(seconds, function):
    """What a function returns or raises, or None when it takes longer."""
    outcome = []

    def run():
        try:
            outcome.append(function())
        except Exception as error:
            outcome.append(error)

    # A daemon, because one that hangs must not keep the process from ending.
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    return outcome[0] if outcome else None


def is_multiworker(strategy: tf.distribute.Strategy) -> bool:
    """Whether the run has several processes; see `training.processes`."""
    return isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)
