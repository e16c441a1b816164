"""The loss of tagging is PyTorch's over the first pieces of words, and a mean over words."""

import os

import numpy as np
import pytest
import tensorflow as tf
from goldens import load_arrays, under

from keras_bert.tasks.tagging.network import TaggingObjective
from keras_bert.training.metrics import MetricSums


@pytest.fixture(scope="module")
def theirs(goldens):
    return under("tagging/", load_arrays(os.path.join(goldens, "losses.npz")))


def figures(theirs, parts):
    """As a log gives them after the steps over these parts of the batch."""
    objective, sums = TaggingObjective(), MetricSums(TaggingObjective.terms)
    for part in parts:
        logits, labels, weights = (tf.constant(theirs[key][part]) for key in ("logits", "labels", "example_weights"))
        batch = {"labels": labels, "example_weights": weights}
        sums.add({"sums": objective.sums({"logits": logits}, batch), "counts": objective.counts(batch)})
    return sums.take()


@pytest.mark.parity
def test_cross_entropy_is_torchs(theirs):
    received = figures(theirs, [slice(0, 3)])
    assert received["loss"] == pytest.approx(theirs["loss"], rel=1e-5)
    words = (theirs["labels"] >= 0) & (theirs["example_weights"][:, None] > 0)
    right = theirs["logits"].argmax(-1)[words] == theirs["labels"][words]
    assert words.sum() == 4 and received["accuracy"] == np.mean(right)


def test_every_word_counts_alike_in_whatever_sentence(theirs):
    whole, parts = figures(theirs, [slice(0, 3)]), figures(theirs, [slice(0, 1), slice(1, 3)])
    assert whole == pytest.approx(parts)
