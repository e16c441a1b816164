"""Which devices a run trains on."""

import contextlib
import functools
import os
from collections.abc import Iterator, Sequence

import tensorflow as tf

from keras_bert.core.errors import UserError, reason
from keras_bert.core.program import PROGRAM
from keras_bert.core.time_limits import within
from keras_bert.training.cluster import join_slurm_step, share_gpus, wait_for_workers, worker_addresses, worker_index

TPU_SECONDS = 120  # How long to wait for a TPU.
WORKER_SECONDS = 300  # How long a process waits for the other processes of its run.
# By strategy: how many devices can be named, and what else to do. `mirrored` takes any number.
_MOST_DEVICES = {
    "one": (1, "Use --strategy mirrored for several."),
    "multiworker": (0, "CUDA_VISIBLE_DEVICES chooses the GPUs of a process."),
    "tpu": (0, "--tpu chooses the TPU."),
}


def make_strategy(name: str, devices: Sequence[str] = (), tpu: str = "local") -> tf.distribute.Strategy:
    """The strategy for a recipe's `training.strategy`.

    Args:
        name: `one` device; `mirrored` over this machine's GPUs (its logical CPUs if it has none); `multiworker` over
            the processes in TF_CONFIG or of a SLURM step; `tpu`; or `auto`: multiworker if there are several processes,
            else the given devices, else the first of tpu, mirrored and one that is available.
        devices: names such as `GPU:1`, several for `mirrored` only; all GPUs, or else all CPUs, if empty.
        tpu: for `tpu`, its name or address; `local` on a TPU VM.

    Raises:
        UserError: the devices or the processes are not available, the strategy does not take these devices, or the
            scope of another strategy is open.
    """
    if tf.distribute.has_strategy():
        raise UserError(
            f"training.strategy: needs a run outside of a strategy's scope. Received: {name} within that of "
            f"{type(tf.distribute.get_strategy()).__name__}. Leave the scope out: the run makes its own strategy."
        )
    if name in ("auto", "multiworker"):
        join_slurm_step()
    if name == "auto":
        name = _found_here(devices)
    if tpu != "local" and name != "tpu":
        raise UserError(f"training.tpu: needs training.strategy tpu. Received: {tpu}, and {name}. Leave it out.")
    most, remedy = _MOST_DEVICES.get(name, (len(devices), ""))
    if len(devices) > most:
        raise UserError(
            f"training.devices: needs {'at most one device' if most else 'no value'} with training.strategy {name}. "
            f"Received: {', '.join(devices)}. {remedy}"
        )
    makers = {
        "one": lambda: _one(devices),
        "mirrored": lambda: _mirrored(devices),
        "multiworker": _multiworker,
        "tpu": lambda: _tpu(tpu),
    }
    return makers[name]()


def describe(strategy: tf.distribute.Strategy) -> str:
    """One line: the kind of strategy and its devices."""
    replicas = strategy.num_replicas_in_sync
    names = ", ".join(device.split("device:")[-1] for device in strategy.extended.worker_devices)
    if is_multiworker(strategy):
        place = f"process {strategy.cluster_resolver.task_id} of {len(worker_addresses())}"
        return f"Training in {place} ({names}), {replicas} replicas in all."
    return f"Training by {type(strategy).__name__} on {names}, {replicas} replica(s)."


def checkpoint_device(strategy: tf.distribute.Strategy) -> str | None:
    """The device whose host reads and writes checkpoints: this host's for a remote TPU, else None.

    By default TensorFlow has each variable written by the machine that holds it, but a remote TPU's host has neither
    this machine's paths nor its credentials. With several workers, each writes its own copy without this.
    """
    if not isinstance(strategy, tf.distribute.TPUStrategy):
        return None
    jobs = {tf.DeviceSpec.from_string(device).job for device in strategy.extended.worker_devices}
    return None if jobs <= {None, "localhost"} else "/job:localhost"


def check_divisible(batch_size: int, strategy: tf.distribute.Strategy, accumulation: int, key: str) -> None:
    """Raises `UserError`, naming `key`, unless all slices of all replicas get the same number of examples."""
    parts = strategy.num_replicas_in_sync * accumulation
    if batch_size % parts:
        raise UserError(
            f"{key}: needs a multiple of {parts} (replicas {strategy.num_replicas_in_sync} x training.accumulation "
            f"{accumulation}). Received: {batch_size}. The nearest are {batch_size // parts * parts or parts} and "
            f"{-(-batch_size // parts) * parts}."
        )


def _found_here(devices: Sequence[str]) -> str:
    if len(worker_addresses()) > 1:
        return "multiworker"
    if devices:
        return "mirrored" if len(devices) > 1 else "one"
    if os.environ.get("TPU_NAME") or tf.config.list_physical_devices("TPU"):
        return "tpu"
    return "mirrored" if len(tf.config.list_physical_devices("GPU")) > 1 else "one"


def _devices(wanted: Sequence[str]) -> list[str]:
    """The given devices, or else all GPUs, or else all CPUs, as `GPU:0`."""
    found = {
        kind: [f"{kind}:{index}" for index in range(len(tf.config.list_logical_devices(kind)))]
        for kind in ("GPU", "CPU")
    }
    for device in wanted:
        if device not in found["GPU"] + found["CPU"]:
            raise UserError(
                f"training.devices: {device or repr(device)} is not on this machine. "
                f"It has {', '.join(found['GPU'] + found['CPU'])}."
            )
    if len(set(wanted)) < len(wanted):
        raise UserError(f"training.devices: needs each device once. Received: {', '.join(wanted)}.")
    return list(wanted) or found["GPU"] or found["CPU"]


def _one(devices: Sequence[str]) -> tf.distribute.Strategy:
    return tf.distribute.OneDeviceStrategy(_devices(devices)[0])


def _mirrored(devices: Sequence[str]) -> tf.distribute.Strategy:
    return _mirrored_over(tuple(_devices(devices)))


@functools.cache
def _mirrored_over(devices: Sequence[str]) -> tf.distribute.Strategy:
    """The strategy of all runs of this process: the reductions of a second one would get the same numbers again."""
    return tf.distribute.MirroredStrategy(devices)


def _multiworker() -> tf.distribute.Strategy:
    if not worker_addresses():
        raise UserError(
            "training.strategy multiworker: needs TF_CONFIG in the environment, or several tasks of `srun`. Received: "
            f"neither. On one machine: {PROGRAM} launch --workers 2 -- pretrain …"
        )
    return _multiworker_of(os.environ["TF_CONFIG"])


@functools.cache
def _multiworker_of(tf_config: str) -> tf.distribute.Strategy:
    """The strategy of all runs of this process, such as the one before fine-tuning: its server holds the port."""
    share_gpus()
    gpus = tf.config.list_physical_devices("GPU")
    kinds = tf.distribute.experimental.CommunicationImplementation
    options = tf.distribute.experimental.CommunicationOptions(implementation=kinds.AUTO if gpus else kinds.RING)
    wait_for_workers(worker_addresses(), worker_index(), WORKER_SECONDS)
    return tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)


@functools.cache  # A TPU is initialized once.
def _tpu(name: str) -> tf.distribute.Strategy:
    def connect() -> tf.distribute.Strategy:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu=name)
        if name != "local":
            tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
        return tf.distribute.TPUStrategy(resolver)

    where = "on this machine (--tpu local" if name == "local" else f"under the name or address {name!r} (--tpu"
    found = within(TPU_SECONDS, connect)
    if isinstance(found, tf.distribute.Strategy):
        return found
    # Without a TPU: ValueError for '', NotFoundError for 'local', URLError (an OSError) or RuntimeError for a name.
    if found is not None and not isinstance(found, (ValueError, OSError, RuntimeError, tf.errors.OpError)):
        raise found
    if name == "local" and found is not None:
        listed = [device.name.removeprefix("/physical_device:") for device in tf.config.list_physical_devices()]
        said = f"TensorFlow lists {', '.join(listed)}"
    else:
        said = f"no answer within {TPU_SECONDS} seconds" if found is None else reason(found, 150)
    gpus = tf.config.list_physical_devices("GPU")
    raise UserError(
        f"training.strategy tpu: no TPU was found {where}; {said}); --strategy auto would train on "
        f"{', '.join(_devices(()) if len(gpus) > 1 else _devices(())[:1])} here. See docs/tpu.md."
    )


def on_gpus(strategy: tf.distribute.Strategy) -> bool:
    """Whether a strategy computes on GPUs; TensorFlow's default one does if there are any."""
    try:
        return any("GPU" in device for device in strategy.extended.worker_devices)
    except RuntimeError:  # The default strategy has no list.
        return bool(tf.config.list_physical_devices("GPU"))


def is_multiworker(strategy: tf.distribute.Strategy) -> bool:
    """Whether the run may have several processes; see `training.processes`."""
    return isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)


_Policy = tf.data.experimental.AutoShardPolicy


def is_one_cpu(strategy: tf.distribute.Strategy) -> bool:
    """Whether a strategy computes on one CPU, and so takes the batches of a data set as they are."""
    return isinstance(strategy, tf.distribute.OneDeviceStrategy) and "CPU" in strategy.extended.worker_devices[0]


def distribute(
    strategy: tf.distribute.Strategy, dataset: tf.data.Dataset
) -> tf.distribute.DistributedDataset | tf.data.Dataset:
    """The batches of a data set in order, each divided among the replicas of all workers.

    Every worker makes all batches and keeps its part of each. TensorFlow's default would give each worker files of its
    own if it finds files being read in the graph, and for streamed text it takes the epochs for files. The rows of a
    step would then depend on the number of workers.

    Args:
        dataset: global batches, the same in every worker.
    """
    options = tf.data.Options()
    if is_one_cpu(strategy):
        # Batches are made where they are needed. The strategy's own iterator copies them to the device with functions
        # that it traces for each data set, which takes longer than a short data set itself.
        options.experimental_warm_start = True  # It begins as it is opened, as the strategy's does.
        options.autotune.enabled = False  # Each op has all cores; see `LengthBatches.epoch`.
        return dataset.prefetch(2).with_options(options)
    # A single replica has nothing to divide, and DATA would mistake the data set's own `rebatch` for the division.
    policy = _Policy.DATA if strategy.num_replicas_in_sync > 1 else _Policy.OFF
    options.experimental_distribute.auto_shard_policy = policy
    return strategy.experimental_distribute_dataset(dataset.with_options(options))


def on_cpus(strategy: tf.distribute.Strategy) -> bool:
    """Whether all devices that this process knows are CPUs."""
    return all("CPU" in device for device in strategy.extended.worker_devices)


@contextlib.contextmanager
def graphs_as_traced(strategy: tf.distribute.Strategy) -> Iterator[None]:
    """A block in which CPUs run graphs as they were traced, without TensorFlow's optimizer of graphs (Grappler).

    Grappler took 1.5 seconds for the training step of six layers, which ran no faster (docs/performance.md).
    """
    name, options = "disable_meta_optimizer", tf.config.optimizer
    before = options.get_experimental_options().get(name, False)
    options.set_experimental_options({name: before or on_cpus(strategy)})
    try:
        yield
    finally:
        options.set_experimental_options({name: before})
