"""A model's outputs for many rows, in the rows' order."""

import numpy as np

from keras_bert.training.metrics import MetricSums


def all_outputs(step, batches, by_token=()):
    """Computes every batch once.

    Args:
        step: a `Step`.
        batches: iterable of global batches that hold `row_numbers` [batch] (see `data.length_batches.LengthBatches`),
            each row once.
        by_token: names of the outputs [batch, seq, …], which are cut to each row's length.

    Returns: `({name: array [rows, …]}, {name: figure})`, the figures those of the objective. Where rows have outputs of
        different shapes they are a list of arrays, one for each row.
    """
    sums = MetricSums(step.objective.terms)
    numbers, found = [], {}
    for batch in batches:
        outputs, results = step.predict(batch)
        sums.add(results)
        of_batch = _gathered(step.strategy, batch["row_numbers"])
        is_real = of_batch >= 0
        numbers.append(of_batch[is_real])
        lengths = _gathered(step.strategy, batch["input_mask"]).sum(axis=-1)[is_real] if by_token else None
        for name, values in outputs.items():
            values = _gathered(step.strategy, values)[is_real]
            if name in by_token:
                values = [value[:length] for value, length in zip(values, lengths)]
            found.setdefault(name, []).append(values)
    order = np.argsort(np.concatenate(numbers), kind="stable")
    return {name: _in_order(batches, order) for name, batches in found.items()}, sums.take()


def _in_order(batches, order):
    """The rows of arrays, or of lists of arrays, in an order of their numbers."""
    if all(isinstance(batch, np.ndarray) and batch.shape[1:] == batches[0].shape[1:] for batch in batches):
        return np.concatenate(batches)[order]
    rows = [row for batch in batches for row in batch]
    return [rows[number] for number in order]


def _gathered(strategy, values):
    """A global tensor's parts on all replicas as one array."""
    return strategy.gather(values, axis=0).numpy()
