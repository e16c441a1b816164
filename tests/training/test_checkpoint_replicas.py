"""A checkpoint made on one replica restores on two and back, and nothing that follows changes by it."""

import numpy as np
import pytest
import tensorflow as tf
from said import silent
from tiny import model_and_optimizer, pretraining_batch, without_dropout

from keras_bert.models.pretraining import PretrainingObjective
from keras_bert.training.checkpoints import Checkpoints
from keras_bert.training.step import Step

STEPS = 10


def go_on(strategy, folder, until):
    """Trains from the newest checkpoint in `folder` to step `until`, saves, and returns weights and moments."""
    config = without_dropout(num_hidden_layers=1)
    model, optimizer = model_and_optimizer(strategy, config, STEPS)
    checkpoints = Checkpoints(folder, 1, model=model, optimizer=optimizer)
    done = silent(checkpoints.restore_newest)
    step = Step(strategy, model, PretrainingObjective(4), optimizer, clip_norm=0.5)
    batches = [pretraining_batch(config, batch=8, seed=number) for number in range(done, until)]
    dataset = tf.data.Dataset.from_tensor_slices({name: np.stack([b[name] for b in batches]) for name in batches[0]})
    for number, batch in enumerate(strategy.experimental_distribute_dataset(dataset), done):
        step.train(batch, tf.constant(number, tf.int64))
    checkpoints.save(until)
    return [variable.numpy() for variable in (*model.trainable_variables, *optimizer.variables)]


@pytest.fixture(scope="module")
def never_changed(tmp_path_factory):
    return go_on(tf.distribute.get_strategy(), tmp_path_factory.mktemp("one"), STEPS)


@pytest.mark.slow
@pytest.mark.parametrize("order", ["one, then two", "two, then one"])
def test_changing_the_replicas_changes_nothing(never_changed, mirrored_strategy, tmp_path, order):
    strategies = {"one": tf.distribute.get_strategy(), "two": mirrored_strategy}
    for name, until in zip(order.split(", then "), (5, STEPS), strict=True):
        state = go_on(strategies[name], tmp_path, until)
    for received, expected in zip(state, never_changed, strict=True):
        np.testing.assert_allclose(received, expected, rtol=0, atol=1e-5)
