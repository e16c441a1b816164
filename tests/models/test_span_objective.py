"""The loss of question answering is transformers', counts what weighs, and adds up over parts of a batch."""

import os

import numpy as np
import pytest
import tensorflow as tf
from goldens import load_arrays, under

from keras_bert.tasks.question_answering.network import SpanObjective
from keras_bert.training.metrics import MetricSums


@pytest.fixture(scope="module")
def theirs(goldens):
    """Their batch: some logits are large enough to overflow a careless exp, some answers are at [CLS]."""
    return under("spans/", load_arrays(os.path.join(goldens, "losses.npz")))


@pytest.fixture(scope="module")
def batch(theirs):
    """(outputs, batch)"""
    parts = [{name: value for name, value in theirs.items() if name.endswith(end)} for end in ("logits", "positions")]
    return parts[0], {**parts[1], "example_weights": theirs["example_weights"]}


def figures(*parts):
    objective = SpanObjective()
    sums = MetricSums(objective.terms)
    for outputs, batch in parts:
        outputs, batch = tf.nest.map_structure(tf.constant, (outputs, batch))
        sums.add({"sums": objective.sums(outputs, batch), "counts": objective.counts(batch)})
    return sums.take()


@pytest.mark.parity
def test_the_loss_is_the_mean_of_both_cross_entropies_over_the_whole_sequence(theirs, batch):
    received, kept = figures(batch), theirs["example_weights"] > 0
    assert not kept.all() and received["loss"] == pytest.approx(theirs["loss"], rel=1e-5)
    for end in ("start", "end"):
        right = theirs[f"{end}_logits"].argmax(axis=1) == theirs[f"{end}_positions"]
        assert received[f"accuracy_{end}"] == right[kept].mean()


def test_parts_of_a_batch_add_up_to_the_whole(batch):
    parts = [tf.nest.map_structure(lambda value, part=part: value[part], batch) for part in (slice(0, 2), slice(2, 5))]
    assert figures(*parts) == pytest.approx(figures(batch), rel=1e-5)


def test_a_batch_of_weight_zero_counts_nothing(batch):
    outputs, inputs = batch
    weightless = {**inputs, "example_weights": np.zeros(5, "float32")}
    assert set(figures((outputs, weightless)).values()) == {0.0}
