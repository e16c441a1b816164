"""The losses of fine-tuning are PyTorch's, where example weights are 0 and classes weigh, and add up over parts."""

import os

import keras
import numpy as np
import pytest
import tensorflow as tf
from goldens import load_arrays, under
from tiny import pretraining_batch, without_dropout

from keras_bert.config.finetuning import MULTI_LABEL, REGRESSION, SINGLE_LABEL
from keras_bert.config.training import OptimizerConfig
from keras_bert.tasks.classification.network import BertForSequenceClassification, ClassificationObjective
from keras_bert.training.metrics import MetricSums
from keras_bert.training.optimizer import make_optimizer
from keras_bert.training.step import Step

ONE_OF_EACH = {SINGLE_LABEL: "single", MULTI_LABEL: "multi_3", REGRESSION: "regression"}
each_kind = pytest.mark.parametrize("problem_type", ONE_OF_EACH)


@pytest.fixture(scope="module")
def losses(goldens):
    """`{name: array}`; some logits are large enough to overflow a careless exp, one example only fills the batch."""
    return under("classification/", load_arrays(os.path.join(goldens, "losses.npz")))


def batch_of(losses, name):
    """(logits [5, labels], labels, weights)"""
    logits, labels = (losses[f"{name}/{key}"] for key in ("logits", "labels"))
    labels = labels[:, 0] if name == "regression" else labels
    return logits, labels, losses["example_weights"]


def figures(objective, logits, labels, weights):
    """As a log gives them after one step."""
    batch = {"labels": tf.constant(labels), "example_weights": tf.constant(weights)}
    sums = MetricSums(objective.terms)
    sums.add({"sums": objective.sums({"logits": tf.constant(logits)}, batch), "counts": objective.counts(batch)})
    return sums.take()


@pytest.mark.parity
@pytest.mark.parametrize("name", ["single", "single_three", "single_small"])
def test_cross_entropy_is_torchs(losses, name):
    """Also where the class weights add up to less than one."""
    class_weights = losses.get(f"{name}/class_weights")
    assert (class_weights is None) == (name == "single")
    logits, labels, weights = batch_of(losses, name)
    objective = ClassificationObjective(SINGLE_LABEL, None if class_weights is None else class_weights.tolist())
    received = figures(objective, logits, labels, weights)
    assert list(received) == ["loss", "accuracy"]
    assert received["loss"] == pytest.approx(losses[f"{name}/loss"], rel=1e-5)
    kept = weights > 0
    assert not kept.all() and received["accuracy"] == np.mean(logits.argmax(axis=1)[kept] == labels[kept])


@pytest.mark.parity
@pytest.mark.parametrize("num_labels", [1, 3])
def test_binary_cross_entropy_is_torchs(losses, num_labels):
    name = f"multi_{num_labels}"
    received = figures(ClassificationObjective(MULTI_LABEL), *batch_of(losses, name))
    assert received == {"loss": pytest.approx(losses[f"{name}/loss"], rel=1e-5)}


@pytest.mark.parity
def test_squared_error_is_torchs(losses):
    received = figures(ClassificationObjective(REGRESSION), *batch_of(losses, "regression"))
    assert received == {"loss": pytest.approx(losses["regression/loss"], rel=1e-5)}


@each_kind
def test_a_batch_of_weight_zero_counts_nothing(losses, problem_type):
    logits, labels, _ = batch_of(losses, ONE_OF_EACH[problem_type])
    received = figures(ClassificationObjective(problem_type), logits, labels, np.zeros(5, "float32"))
    assert set(received.values()) == {0.0}


def test_class_weights_are_of_classes_alone():
    with pytest.raises(ValueError, match="class_weights: needs single_label_classification. Received: regression"):
        ClassificationObjective(REGRESSION, [1.0, 2.0])
    with pytest.raises(ValueError, match="problem_type: needs one of"):
        ClassificationObjective("ranking")


@each_kind
def test_parts_of_a_batch_add_up_to_the_whole(losses, problem_type):
    """Their shares of the weights differ, so a mean of means would show."""
    objective = ClassificationObjective(problem_type, [0.2, 3.0, 1.0] if problem_type == SINGLE_LABEL else None)
    whole = batch_of(losses, ONE_OF_EACH[problem_type])
    sums = MetricSums(objective.terms)
    for part in (slice(0, 2), slice(2, 5)):
        logits, labels, weights = (tf.constant(value[part]) for value in whole)
        batch = {"labels": labels, "example_weights": weights}
        sums.add({"sums": objective.sums({"logits": logits}, batch), "counts": objective.counts(batch)})
    assert sums.take() == pytest.approx(figures(objective, *whole), rel=1e-5)


def test_the_one_loop_trains_it():
    """The step finds its terms; the head learns three labels of one text each."""
    keras.utils.set_random_seed(0)
    config = without_dropout(num_hidden_layers=1)
    model = BertForSequenceClassification(config, 3)
    optimizer = make_optimizer(OptimizerConfig(learning_rate=1e-2, warmup_steps=1), 30)
    optimizer.build(model.trainable_variables)
    objective = ClassificationObjective(SINGLE_LABEL, [0.5, 1.0, 1.0])
    step = Step(tf.distribute.get_strategy(), model, objective, optimizer)
    inputs = pretraining_batch(config, batch=3)
    batch = {name: tf.constant(value) for name, value in inputs.items() if name.startswith("input_")}
    batch |= {"labels": tf.constant([0, 1, 2]), "example_weights": tf.ones(3)}
    sums, losses = MetricSums(objective.terms), []
    for index in range(30):
        sums.add(step.train(batch, tf.constant(index, tf.int64)))
        losses.append(sums.take()["loss"])
    assert losses[0] == pytest.approx(np.log(3), abs=0.1) and losses[-1] < 0.3
