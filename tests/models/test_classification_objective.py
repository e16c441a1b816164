"""The losses of fine-tuning are PyTorch's, where example weights are 0 and classes weigh, and add up over parts."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from tiny import pretraining_batch, without_dropout

from keras_bert.config.classification import MULTI_LABEL, REGRESSION, SINGLE_LABEL
from keras_bert.config.training import OptimizerConfig
from keras_bert.models.classification_objective import ClassificationObjective
from keras_bert.models.sequence_classification import BertForSequenceClassification
from keras_bert.training.metrics import MetricSums
from keras_bert.training.optimizer import make_optimizer
from keras_bert.training.step import Step

WEIGHTS = np.array([1, 1, 0, 1, 1], "float32")  # The third only fills the batch.
KEPT = WEIGHTS > 0


def batch_of(problem_type, num_labels=3, seed=0):
    """(logits [5, labels], labels); some logits are large enough to overflow a careless exp."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 3, (5, 1 if problem_type == REGRESSION else num_labels)).astype("float32")
    logits[0] *= 100
    labels = {
        SINGLE_LABEL: rng.integers(0, num_labels, 5).astype("int32"),
        MULTI_LABEL: rng.integers(0, 2, (5, num_labels)).astype("float32"),
        REGRESSION: rng.normal(0, 2, 5).astype("float32"),
    }[problem_type]
    return logits, labels


def figures(objective, logits, labels, weights=WEIGHTS):
    """As a log gives them after one step."""
    batch = {"labels": tf.constant(labels), "example_weights": tf.constant(weights)}
    sums = MetricSums(objective.terms)
    sums.add({"sums": objective.sums({"logits": tf.constant(logits)}, batch), "counts": objective.counts(batch)})
    return sums.take()


@pytest.mark.parity("torch")
@pytest.mark.parametrize("class_weights", [None, [0.2, 3.0, 1.0], [0.01, 0.02, 0.0]])
def test_cross_entropy_is_torchs(class_weights):
    """Also where the class weights add up to less than one."""
    import torch

    logits, labels = batch_of(SINGLE_LABEL)
    weight = None if class_weights is None else torch.tensor(class_weights)
    expected = torch.nn.CrossEntropyLoss(weight)(torch.tensor(logits[KEPT]), torch.tensor(labels[KEPT]).long())
    received = figures(ClassificationObjective(SINGLE_LABEL, class_weights), logits, labels)
    assert list(received) == ["loss", "accuracy"]
    assert received["loss"] == pytest.approx(float(expected), rel=1e-5)
    assert received["accuracy"] == np.mean(logits.argmax(axis=1)[KEPT] == labels[KEPT])


@pytest.mark.parity("torch")
@pytest.mark.parametrize("num_labels", [1, 3])
def test_binary_cross_entropy_is_torchs(num_labels):
    import torch

    logits, labels = batch_of(MULTI_LABEL, num_labels)
    expected = torch.nn.BCEWithLogitsLoss()(torch.tensor(logits[KEPT]), torch.tensor(labels[KEPT]))
    assert figures(ClassificationObjective(MULTI_LABEL), logits, labels) == {
        "loss": pytest.approx(float(expected), rel=1e-5)
    }


@pytest.mark.parity("torch")
def test_squared_error_is_torchs():
    import torch

    logits, labels = batch_of(REGRESSION)
    expected = torch.nn.MSELoss()(torch.tensor(logits[KEPT, 0]), torch.tensor(labels[KEPT]))
    assert figures(ClassificationObjective(REGRESSION), logits, labels) == {
        "loss": pytest.approx(float(expected), rel=1e-5)
    }


@pytest.mark.parametrize("problem_type", [SINGLE_LABEL, MULTI_LABEL, REGRESSION])
def test_a_batch_of_weight_zero_counts_nothing(problem_type):
    received = figures(ClassificationObjective(problem_type), *batch_of(problem_type), np.zeros(5, "float32"))
    assert set(received.values()) == {0.0}


def test_class_weights_are_of_classes_alone():
    with pytest.raises(ValueError, match="class_weights: needs single_label_classification. Received: regression"):
        ClassificationObjective(REGRESSION, [1.0, 2.0])
    with pytest.raises(ValueError, match="problem_type: needs one of"):
        ClassificationObjective("ranking")


@pytest.mark.parametrize("problem_type", [SINGLE_LABEL, MULTI_LABEL, REGRESSION])
def test_parts_of_a_batch_add_up_to_the_whole(problem_type):
    """Their shares of the weights differ, so a mean of means would show."""
    objective = ClassificationObjective(problem_type, [0.2, 3.0, 1.0] if problem_type == SINGLE_LABEL else None)
    logits, labels = batch_of(problem_type)
    sums = MetricSums(objective.terms)
    for part in (slice(0, 2), slice(2, 5)):
        batch = {"labels": tf.constant(labels[part]), "example_weights": tf.constant(WEIGHTS[part])}
        outputs = {"logits": tf.constant(logits[part])}
        sums.add({"sums": objective.sums(outputs, batch), "counts": objective.counts(batch)})
    assert sums.take() == pytest.approx(figures(objective, logits, labels), rel=1e-5)


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
