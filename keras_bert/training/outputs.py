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

    Returns: `({name: list of arrays, one for each row}, {name: figure})`, the figures those of the objective.
    """
    sums = MetricSums(step.objective.terms)
    numbers, found = [], {}
    for batch in batches:
        outputs, results = step.predict(batch)
        sums.add(results)
        of_batch = _gathered(step.strategy, batch["row_numbers"])
        is_real = of_batch >= 0
        numbers += of_batch[is_real].tolist()
        lengths = _gathered(step.strategy, batch["input_mask"]).sum(axis=-1)[is_real] if by_token else None
        for name, values in outputs.items():
            values = list(_gathered(step.strategy, values)[is_real])
            if name in by_token:
                values = [value[:length] for value, length in zip(values, lengths)]
            found.setdefault(name, []).extend(values)
    order = np.argsort(numbers, kind="stable")
    return {name: [values[index] for index in order] for name, values in found.items()}, sums.take()


def _gathered(strategy, values):
    """A global tensor's parts on all replicas as one array."""
    return strategy.gather(values, axis=0).numpy()
