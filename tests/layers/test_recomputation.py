"""Gradient checkpointing of encoder blocks: the same losses and gradients, with dropout, and fewer kept activations."""

import numpy as np
import pytest
import tensorflow as tf
from tiny import pretraining_batch, tiny_config

from keras_bert.layers.dropout import Dropout, dropout_key, recomputed
from keras_bert.models.pretraining import BertForPreTraining, PretrainingObjective
from keras_bert.training.step import Step

CONFIG = tiny_config(num_hidden_layers=3)
KEY = tf.constant([3, 5], tf.uint32)


@pytest.fixture(scope="module")
def model():
    return BertForPreTraining(CONFIG)


def gradients(model, recompute_every, jit_compile=False, accumulation=1):
    """[loss, *gradients] of one batch with dropout, and the graph that computed them."""
    model.encoder.recompute_every = recompute_every
    objective = PretrainingObjective(4)
    step = Step(tf.distribute.get_strategy(), model, objective, jit_compile=jit_compile, accumulation=accumulation)
    function = tf.function(step.gradients, autograph=False, jit_compile=jit_compile)
    batch = {name: tf.constant(value) for name, value in pretraining_batch(CONFIG, batch=4).items()}
    results, sums = function(batch, objective.counts(batch), KEY)
    graph = function.get_concrete_function(batch, objective.counts(batch), KEY).graph
    return [sums["mlm"]["loss"], *results], graph


def products(graph):
    """How many matrix products the graph has, forward and backward."""
    return sum(operation.type in ("MatMul", "BatchMatMulV2") for operation in graph.get_operations())


@pytest.fixture(scope="module")
def kept(model):
    return gradients(model, 0)


@pytest.mark.parametrize("recompute_every", [1, 2])
def test_gradients_are_the_same_with_the_same_dropout(model, kept, recompute_every):
    """They would differ if a block drew other masks the second time, or shifted the numbers of the masks after it."""
    received, graph = gradients(model, recompute_every)
    for value, expected in zip(received, kept[0], strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-6, atol=1e-6)
    blocks = CONFIG.num_hidden_layers // recompute_every
    # Each block has four projections, scores, context and two products of the feed-forward network.
    assert products(graph) >= products(kept[1]) + 8 * blocks - blocks


@pytest.mark.slow
def test_accumulated_slices_recompute_too(model):
    for value, expected in zip(*(gradients(model, n, accumulation=2)[0] for n in (1, 0)), strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.slow
def test_xla_recomputes_too(model):
    for value, expected in zip(*(gradients(model, n, jit_compile=True)[0] for n in (1, 0)), strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_replicas_recompute_too(mirrored_strategy):
    """Each replica draws its own masks twice; gradients of replicas' own variables reach them."""
    with mirrored_strategy.scope():
        model = BertForPreTraining(CONFIG)
    objective = PretrainingObjective(4)
    step = Step(mirrored_strategy, model, objective)
    (batch,) = mirrored_strategy.experimental_distribute_dataset(
        tf.data.Dataset.from_tensors(pretraining_batch(CONFIG, batch=4))
    )

    def of_replica(batch):
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        key = KEY + tf.cast(replica, tf.uint32)
        return step.gradients(batch, objective.counts(batch), key)[0]

    def computed(recompute_every):
        model.encoder.recompute_every = recompute_every
        run = tf.function(lambda batch: mirrored_strategy.run(of_replica, (batch,)), autograph=False)
        return [value for each in run(batch) for value in mirrored_strategy.experimental_local_results(each)]

    for value, expected in zip(computed(1), computed(0), strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-6, atol=1e-6)


def test_without_a_key_nothing_is_recomputed():
    """Keras' own seed generator would draw another mask the second time, and the gradients would be wrong."""
    layer = Dropout(0.5)
    function = layer.call
    assert recomputed(function) == function
    with dropout_key(KEY):
        assert recomputed(function) != function
