"""The loss of question answering is transformers', counts what weighs, and adds up over parts of a batch."""

import numpy as np
import pytest
import tensorflow as tf

from keras_bert.models.span_objective import SpanObjective
from keras_bert.training.metrics import MetricSums

WEIGHTS = np.array([1, 1, 0, 1, 1], "float32")  # The third only fills the batch.


def random_batch(seed=0, seq=9):
    """(outputs, batch); some logits are large enough to overflow a careless exp, some answers are at [CLS]."""
    rng = np.random.default_rng(seed)
    outputs = {f"{end}_logits": rng.normal(0, 3, (5, seq)).astype("float32") for end in ("start", "end")}
    outputs["start_logits"][0] *= 100
    batch = {f"{end}_positions": np.array([3, 0, 8, 1, 5], "int32") for end in ("start", "end")}
    batch["end_positions"][3:] += 2
    return outputs, {**batch, "example_weights": WEIGHTS}


def figures(*parts):
    objective = SpanObjective()
    sums = MetricSums(objective.terms)
    for outputs, batch in parts:
        outputs, batch = tf.nest.map_structure(tf.constant, (outputs, batch))
        sums.add({"sums": objective.sums(outputs, batch), "counts": objective.counts(batch)})
    return sums.take()


@pytest.mark.parity("torch")
def test_the_loss_is_the_mean_of_both_cross_entropies_over_the_whole_sequence():
    import torch

    outputs, batch = random_batch()
    kept = WEIGHTS > 0
    losses = [
        float(
            torch.nn.functional.cross_entropy(
                torch.tensor(outputs[f"{end}_logits"][kept]), torch.tensor(batch[f"{end}_positions"][kept]).long()
            )
        )
        for end in ("start", "end")
    ]
    received = figures((outputs, batch))
    assert received["loss"] == pytest.approx(np.mean(losses), rel=1e-5)
    for end in ("start", "end"):
        right = outputs[f"{end}_logits"].argmax(axis=1) == batch[f"{end}_positions"]
        assert received[f"accuracy_{end}"] == right[kept].mean()


def test_parts_of_a_batch_add_up_to_the_whole():
    outputs, batch = random_batch()
    parts = [tf.nest.map_structure(lambda value: value[part], (outputs, batch)) for part in (slice(0, 2), slice(2, 5))]
    assert figures(*parts) == pytest.approx(figures((outputs, batch)), rel=1e-5)


def test_a_batch_of_weight_zero_counts_nothing():
    outputs, batch = random_batch()
    assert set(figures((outputs, {**batch, "example_weights": np.zeros(5, "float32")})).values()) == {0.0}
