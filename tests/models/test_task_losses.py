"""The losses of fine-tuning are PyTorch's and transformers', count what weighs, and add up over parts of a batch."""

import os

import numpy as np
import pytest
import tensorflow as tf
from goldens import load_arrays, under

from keras_bert.config.finetuning import MULTI_LABEL, REGRESSION, SINGLE_LABEL
from keras_bert.layers.heads import cross_entropy
from keras_bert.tasks.classification.network import ClassificationObjective
from keras_bert.tasks.question_answering.network import SpanObjective
from keras_bert.tasks.tagging.network import TaggingObjective
from keras_bert.training.metrics import MetricSums

CLASSIFICATIONS = {
    "single": ClassificationObjective(SINGLE_LABEL),
    "multi_1": ClassificationObjective(MULTI_LABEL),
    "multi_3": ClassificationObjective(MULTI_LABEL),
    "regression": ClassificationObjective(REGRESSION),
}
each_objective = pytest.mark.parametrize("name", ["single", "weighted", "multi_3", "regression", "spans", "tagging"])


@pytest.fixture(scope="module")
def losses(goldens):
    """`{name: array}`; some logits are large enough to overflow a careless exp, one example only fills the batch."""
    return load_arrays(os.path.join(goldens, "losses.npz"))


def case_of(losses, name):
    """(objective, outputs, batch, loss that theirs computes)."""
    if name in ("spans", "tagging"):
        theirs = under(f"{name}/", losses)
        outputs = {key: value for key, value in theirs.items() if key.endswith("logits")}
        batch = {key: theirs[key] for key in theirs if key.endswith(("labels", "positions", "weights"))}
        return {"spans": SpanObjective, "tagging": TaggingObjective}[name](), outputs, batch, theirs["loss"]
    objective, theirs = CLASSIFICATIONS.get(name), under("classification/", losses)
    if name == "weighted":
        objective, name = ClassificationObjective(SINGLE_LABEL, [0.2, 3.0, 1.0]), "single"
    elif objective is None:
        objective = ClassificationObjective(SINGLE_LABEL, theirs[f"{name}/class_weights"].tolist())
    logits, labels = (theirs[f"{name}/{key}"] for key in ("logits", "labels"))
    labels = labels[:, 0] if name == "regression" else labels
    batch = {"labels": labels, "example_weights": theirs["example_weights"]}
    return objective, {"logits": logits}, batch, theirs[f"{name}/loss"]


def figures(objective, *parts):
    """What a log shows after a step over each of these parts: (outputs, batch)."""
    sums = MetricSums(objective.terms)
    for part in parts:
        outputs, batch = tf.nest.map_structure(tf.constant, part)
        sums.add({"sums": objective.sums(outputs, batch), "counts": objective.counts(batch)})
    return sums.take()


@pytest.mark.parity
@pytest.mark.parametrize("name", ["single", "single_three", "single_small"])
def test_cross_entropy_is_torchs(losses, name):
    """Also where the class weights add up to less than one."""
    objective, outputs, batch, loss = case_of(losses, name)
    received, kept = figures(objective, (outputs, batch)), batch["example_weights"] > 0
    assert list(received) == ["loss", "accuracy"] and received["loss"] == pytest.approx(loss, rel=1e-5)
    right = outputs["logits"].argmax(axis=1) == batch["labels"]
    assert not kept.all() and received["accuracy"] == np.mean(right[kept])


@pytest.mark.parity
@pytest.mark.parametrize("name", ["multi_1", "multi_3", "regression"])
def test_binary_cross_entropy_and_squared_error_are_torchs(losses, name):
    objective, outputs, batch, loss = case_of(losses, name)
    assert figures(objective, (outputs, batch)) == {"loss": pytest.approx(loss, rel=1e-5)}


@pytest.mark.parity
def test_the_loss_of_spans_is_the_mean_of_both_cross_entropies_over_the_whole_sequence(losses):
    objective, outputs, batch, loss = case_of(losses, "spans")
    received, kept = figures(objective, (outputs, batch)), batch["example_weights"] > 0
    assert not kept.all() and received["loss"] == pytest.approx(loss, rel=1e-5)
    for end in ("start", "end"):
        right = outputs[f"{end}_logits"].argmax(axis=1) == batch[f"{end}_positions"]
        assert received[f"accuracy_{end}"] == right[kept].mean()


@pytest.mark.parity
def test_the_loss_of_tagging_is_torchs_over_the_first_pieces_of_words(losses):
    objective, outputs, batch, loss = case_of(losses, "tagging")
    received = figures(objective, (outputs, batch))
    assert received["loss"] == pytest.approx(loss, rel=1e-5)
    words = (batch["labels"] >= 0) & (batch["example_weights"][:, None] > 0)
    right = outputs["logits"].argmax(-1)[words] == batch["labels"][words]
    assert words.sum() == 4 and received["accuracy"] == np.mean(right)


@each_objective
def test_a_batch_of_weight_zero_counts_nothing(losses, name):
    objective, outputs, batch, _ = case_of(losses, name)
    weightless = {**batch, "example_weights": np.zeros_like(batch["example_weights"])}
    assert set(figures(objective, (outputs, weightless)).values()) == {0.0}


@each_objective
def test_parts_of_a_batch_add_up_to_the_whole(losses, name):
    """Their shares of the weights differ, so a mean of means would show."""
    objective, outputs, batch, _ = case_of(losses, name)
    parts = [
        tf.nest.map_structure(lambda value, part=part: value[part], (outputs, batch))
        for part in (slice(0, 1), slice(1, None))
    ]
    assert figures(objective, *parts) == pytest.approx(figures(objective, (outputs, batch)), rel=1e-5)


def test_class_weights_are_of_classes_alone():
    with pytest.raises(ValueError, match="class_weights: needs single_label_classification. Received: regression"):
        ClassificationObjective(REGRESSION, [1.0, 2.0])
    with pytest.raises(ValueError, match="problem_type: needs one of"):
        ClassificationObjective("ranking")


def test_of_equal_logits_the_first_is_the_prediction():
    """In bfloat16 the largest logits are often equal: each label among them must not count as right."""
    logits = np.array([[1.0, 3.0, 3.0], [1.0, 3.0, 3.0], [2.0, 1.0, 0.0]], "float32")
    received = cross_entropy(logits, np.array([1, 2, 0], "int32"))
    np.testing.assert_array_equal(received["accuracy"], [1.0, 0.0, 1.0])
    np.testing.assert_allclose(received["loss"][2], np.log(1 + np.exp(-1) + np.exp(-2)), rtol=1e-6)


@pytest.mark.parametrize("jit_compile", [False, True])
def test_the_gradient_of_the_cross_entropy_is_the_probabilities_without_the_label(jit_compile):
    """It is written by hand, so it is tried where logits are equal, large or far below, and labels weigh unequally."""
    logits = np.array([[[1.0, 3.0, 3.0, -1e9], [300.0, 2.0, 1.0, 0.0]], [[0.0] * 4, [5.0, -5.0, 0.5, 1.0]]], "float32")
    labels, weights = np.array([[2, 1], [0, 3]], "int32"), np.array([[1.0, 0.5], [2.0, 0.0]], "float32")

    @tf.function(jit_compile=jit_compile)
    def gradient(logits):
        with tf.GradientTape() as tape:
            tape.watch(logits)
            metrics = cross_entropy(logits, labels)
            total = tf.reduce_sum(metrics["loss"] * weights) + tf.reduce_sum(metrics["accuracy"])
        return tape.gradient(total, logits)

    powers = np.exp(logits.astype("float64") - logits.max(axis=-1, keepdims=True))
    expected = (powers / powers.sum(axis=-1, keepdims=True) - np.eye(4)[labels]) * weights[..., None]
    np.testing.assert_allclose(gradient(tf.constant(logits)), expected, rtol=1e-6, atol=1e-7)
