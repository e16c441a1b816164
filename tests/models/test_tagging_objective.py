"""The loss of tagging is PyTorch's over the first pieces of words, and a mean over words."""

import numpy as np
import pytest
import tensorflow as tf

from keras_bert.models.tagging_objective import TaggingObjective
from keras_bert.training.metrics import MetricSums

LABELS = np.array([[-1, 2, -1, 0, 1, -1], [-1, 1, -1, -1, -1, -1], [-1, 0, 0, 0, 0, -1]], "int32")
WEIGHTS = np.array([1, 1, 0], "float32")  # The third only fills the batch.


def figures(parts):
    """As a log gives them after the steps over these parts of the batch."""
    objective, sums = TaggingObjective(), MetricSums(TaggingObjective.terms)
    for part in parts:
        batch = {"labels": tf.constant(LABELS[part]), "example_weights": tf.constant(WEIGHTS[part])}
        outputs = {"logits": tf.constant(logits()[part])}
        sums.add({"sums": objective.sums(outputs, batch), "counts": objective.counts(batch)})
    return sums.take()


def logits():
    return np.random.default_rng(0).normal(0, 3, (3, 6, 3)).astype("float32")


@pytest.mark.parity("torch")
def test_cross_entropy_is_torchs():
    import torch

    labels = np.where(WEIGHTS[:, None] > 0, LABELS, -1)
    loss = torch.nn.CrossEntropyLoss(ignore_index=-1)
    expected = loss(torch.tensor(logits()).reshape(-1, 3), torch.tensor(labels).reshape(-1).long())
    received = figures([slice(0, 3)])
    assert received["loss"] == pytest.approx(float(expected), rel=1e-5)
    words = labels >= 0
    assert words.sum() == 4 and received["accuracy"] == np.mean(logits().argmax(-1)[words] == labels[words])


def test_every_word_counts_alike_in_whatever_sentence():
    whole, parts = figures([slice(0, 3)]), figures([slice(0, 1), slice(1, 3)])
    assert whole == pytest.approx(parts)
