"""Weights of tokens by how well they are predicted: against the paper's formula, and what they do to a loss."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_bert
from keras_bert.config.objectives import ObjectiveConfig
from keras_bert.config.training import OptimizerConfig
from keras_bert.models.pretraining import PretrainingObjective
from keras_bert.tasks.pretraining.engine import new_model
from keras_bert.training.optimizer import make_optimizer
from keras_bert.training.step import Step
from keras_bert.training.token_weights import TokenWeights

VOCAB, ROWS, SEQ, PREDICTIONS = 12, 4, 8, 3


def batch_number(number):
    """Rows of which some predict fewer tokens than there is room for."""
    rng = np.random.default_rng(number)
    ids = rng.integers(5, VOCAB, (ROWS, PREDICTIONS))
    weights = np.arange(PREDICTIONS) < rng.integers(1, PREDICTIONS + 1, (ROWS, 1))
    batch = {
        "input_word_ids": rng.integers(4, VOCAB, (ROWS, SEQ)),
        "input_mask": np.ones((ROWS, SEQ)),
        "input_type_ids": np.zeros((ROWS, SEQ)),
        "masked_lm_positions": np.tile([1, 4, 6], (ROWS, 1)),
        "masked_lm_ids": np.where(weights, ids, 0),
    }
    batch = {name: tf.constant(value, tf.int32) for name, value in batch.items()}
    return {**batch, "masked_lm_weights": tf.constant(weights, tf.float32), "example_weights": tf.ones([ROWS])}


def by_definition(seen, steps):
    """The weights after batches of (ids, whether each is predicted, whether correctly), token by token."""
    weights = np.ones(VOCAB)
    for first in range(0, len(seen) - len(seen) % steps, steps):
        for token in range(VOCAB):
            answers = [
                right
                for ids, predicted, rights in seen[first : first + steps]
                for index, is_one, right in zip(ids.ravel(), predicted.ravel(), rights.ravel())
                if is_one and index == token
            ]
            score = (sum(answers) + 0.5) / (len(answers) + 1)
            weights[token] = max(0.2 * weights[token] + 0.8 * (1 - score), 0.005 / 0.15)
        weights /= weights.mean()
    return weights


def test_weights_are_the_papers():
    """Parts of a batch add up; token 5 is always right and reaches the least weight, token 6 always wrong."""
    memory, rng, seen = TokenWeights(VOCAB, 3), np.random.default_rng(0), []
    for number in range(16):
        batch = batch_number(number)
        ids, predicted = batch["masked_lm_ids"].numpy(), batch["masked_lm_weights"].numpy() > 0
        answers = np.where(ids == 5, 5, np.where(ids == 6, 7, rng.integers(5, VOCAB, ids.shape)))
        given = memory.with_memory(batch, 0)
        seen.append((ids, predicted, answers == ids))
        parts = [
            memory.of_rows(
                {"mlm_logits": tf.one_hot(answers[rows], VOCAB)}, {name: given[name][rows] for name in given}, 0
            )
            for rows in (slice(1), slice(1, ROWS))
        ]
        memory.remember({name: parts[0][name] + parts[1][name] for name in parts[0]}, batch)
        np.testing.assert_allclose(memory.weights, by_definition(seen, 3), rtol=1e-5)
    assert memory.seen == 1 and memory.predictions.numpy().sum() == seen[-1][1].sum()
    assert memory.weights[5] < 0.3 and memory.weights[6] > 1.2


def test_the_loss_is_the_weighted_mean_and_its_denominator_that_of_all_replicas():
    keras.utils.set_random_seed(0)
    config = keras_bert.BertConfig(VOCAB, 16, 1, 2, 32, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    model, memory = new_model(config, ObjectiveConfig(pair="none")), TokenWeights(VOCAB, 100)
    memory.weights.assign(np.linspace(0.1, 2.0, VOCAB))
    objective, batch = PretrainingObjective(4, terms=("mlm",)), batch_number(0)
    logits, ids = model(batch)["mlm_logits"].numpy(), batch["masked_lm_ids"].numpy()
    losses = keras.losses.sparse_categorical_crossentropy(ids, logits, from_logits=True).numpy()
    weights = np.linspace(0.1, 2.0, VOCAB)[ids] * batch["masked_lm_weights"].numpy()
    optimizer = make_optimizer(OptimizerConfig(warmup_steps=1), 3)
    optimizer.build(model.trainable_variables)
    step = Step(tf.distribute.get_strategy(), model, objective, optimizer, memory=memory)
    result = step.train(batch, tf.constant(0, tf.int64))
    found = result["sums"]["mlm"]["loss"] / result["counts"]["mlm"]
    assert found.numpy() == pytest.approx((losses * weights).sum() / weights.sum(), rel=1e-5)
    assert "memory" not in result["sums"]
    assert step.evaluate(batch)["counts"]["mlm"] == batch["masked_lm_weights"].numpy().sum(), "validation is uniform"
