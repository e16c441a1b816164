"""Spreads a data set over the replicas of a run."""

import tensorflow as tf

_Policy = tf.data.experimental.AutoShardPolicy


def distribute(strategy: tf.distribute.Strategy, dataset: tf.data.Dataset) -> tf.distribute.DistributedDataset:
    """The batches of a data set in order, each divided among the replicas of all workers.

    Every worker makes all batches and keeps its part of each. TensorFlow's default would give each worker files of its
    own if it finds the reading of files in the graph; in streamed text it takes the epochs for the files. The rows of a
    step would then depend on the number of workers.

    Args:
        strategy: the run's strategy.
        dataset: global batches, the same in every worker.
    """
    options = tf.data.Options()
    # A single replica has nothing to divide, and DATA would take a `rebatch` of the data set's own for the division.
    policy = _Policy.DATA if strategy.num_replicas_in_sync > 1 else _Policy.OFF
    options.experimental_distribute.auto_shard_policy = policy
    return strategy.experimental_distribute_dataset(dataset.with_options(options))
