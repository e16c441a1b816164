"""A model's outputs for many rows, in the order of the rows."""

from collections.abc import Collection, Iterable

import numpy as np
import tensorflow as tf

from keras_bert.training.metrics import MetricSums
from keras_bert.training.step import Batch, Step


def all_outputs(
    step: Step, batches: Iterable[Batch], by_token: Collection[str] = ()
) -> tuple[dict[str, np.ndarray | list[np.ndarray]], dict[str, float]]:
    """Computes the outputs and the objective's figures over all batches.

    Args:
        step: computes the outputs.
        batches: global batches with `row_numbers` [batch] (see `length_batches.LengthBatches`), each row once.
        by_token: names of the outputs [batch, seq, …]; these are cut to each row's length.

    Returns: ({name: outputs [rows, …]}, {name: figure}). Outputs whose shape differs between rows are a list with one
        array per row.
    """
    sums = MetricSums(step.objective.terms)
    numbers: list[np.ndarray] = []
    found: dict[str, list[np.ndarray | list[np.ndarray]]] = {}
    for batch in batches:
        outputs, results = step.predict(batch)
        sums.add(results)
        row_numbers = _gathered(step.strategy, batch["row_numbers"])
        is_real = row_numbers >= 0
        numbers.append(row_numbers[is_real])
        lengths = _gathered(step.strategy, batch["input_mask"]).sum(axis=-1)[is_real] if by_token else ()
        for name, values in outputs.items():
            values = _gathered(step.strategy, values)[is_real]
            if name in by_token:
                values = [value[:length] for value, length in zip(values, lengths)]
            found.setdefault(name, []).append(values)
    order = np.argsort(np.concatenate(numbers), kind="stable")
    return {name: _in_order(batches, order) for name, batches in found.items()}, sums.take()


def _in_order(batches: list[np.ndarray | list[np.ndarray]], order: np.ndarray) -> np.ndarray | list[np.ndarray]:
    """The rows of a list of arrays, or of lists of arrays, in the given order."""
    arrays = [batch for batch in batches if isinstance(batch, np.ndarray)]
    if len(arrays) == len(batches) and all(array.shape[1:] == arrays[0].shape[1:] for array in arrays):
        return np.concatenate(arrays)[order]
    rows = [row for batch in batches for row in batch]
    return [rows[number] for number in order]


def _gathered(strategy: tf.distribute.Strategy, values: tf.Tensor) -> np.ndarray:
    """The parts of a global tensor on all replicas as one array."""
    return strategy.gather(values, axis=0).numpy()
