"""Pretraining by permutations: what a prediction sees, its loss, and the embedding that only it trains."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from goldens import ENCODER_INPUTS, Golden, under

import keras_bert
from keras_bert.models.pretraining import BertForPreTraining, PretrainingObjective
from keras_bert.models.term import term_named

SEQ, VOCAB = 12, 30
CONFIG = keras_bert.XlnetConfig(
    VOCAB, 16, 3, 2, 32, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, initializer_range=0.4
)
PLACES = np.array([[2, 3, 7, 0], [1, 5, 0, 0]], "int32")
WEIGHTS = np.array([[1, 1, 1, 0], [1, 1, 0, 0]], "float32")
LENGTHS = np.array([SEQ, 9])


@pytest.fixture(scope="module")
def model():
    keras.utils.set_random_seed(0)
    return BertForPreTraining(CONFIG, terms=("plm",))


@pytest.fixture(scope="module")
def batch():
    rng = np.random.default_rng(0)
    mask = (np.arange(SEQ) < LENGTHS[:, None]).astype("int32")
    ids = rng.integers(9, VOCAB, (2, SEQ)).astype("int32")
    ranks = np.full((2, SEQ), -1, "int32")
    for row, (places, weights, length) in enumerate(zip(PLACES, WEIGHTS, LENGTHS)):
        ranked = [*places[weights > 0], length - 2, length - 1]  # The last two are <sep> and <cls>.
        ranks[row, ranked] = rng.permutation(SEQ)[: len(ranked)]
    return {
        "input_word_ids": ids,
        "input_mask": mask,
        "input_type_ids": np.where(np.arange(SEQ) == LENGTHS[:, None] - 1, 2, 0).astype("int32"),
        "masked_lm_positions": PLACES,
        "masked_lm_ids": np.take_along_axis(ids, PLACES, axis=1) * WEIGHTS.astype("int32"),
        "masked_lm_weights": WEIGHTS,
        "permutation_ranks": ranks,
        "example_weights": np.ones(2, "float32"),
    }


def test_a_prediction_depends_on_the_tokens_before_it_in_the_order_and_on_no_other(model, batch, monkeypatch):
    """By the gradients through both streams and all layers: a leak would teach to copy, a gap would hide context."""
    embeddings = model.encoder.embeddings
    states = embeddings(batch["input_word_ids"])
    monkeypatch.setattr(embeddings, "call", lambda ids, training=False: states)
    direction = np.random.default_rng(1).normal(size=VOCAB).astype("float32")
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(states)
        predicted = tf.unstack(tf.reduce_sum(model(batch)["mlm_logits"] * direction, axis=[0, 2]))
    for number, weights in enumerate(WEIGHTS.T):
        slopes = np.abs(tape.gradient(predicted[number], states)).max(axis=-1)
        for row in np.flatnonzero(weights):
            ranks, is_token = batch["permutation_ranks"][row], batch["input_mask"][row] > 0
            expected = (ranks < ranks[PLACES[row, number]]) & is_token
            np.testing.assert_array_equal(slopes[row] > 1e-7, expected)
            np.testing.assert_array_equal(slopes[row][~expected], 0.0)


def test_ranks_are_perm_mask_and_target_mapping_in_fewer_numbers(model, batch):
    ranks = batch["permutation_ranks"]
    mapping = np.eye(SEQ, dtype="float32")[PLACES]
    perm_mask = ((ranks[:, None, :] >= 0) & (ranks[:, :, None] <= ranks[:, None, :])).astype("float32")
    others = {name: batch[name] for name in ("input_word_ids", "input_mask", "input_type_ids")}
    expected = model.encoder({**others, "perm_mask": perm_mask, "target_mapping": mapping})
    found = model.encoder({**batch})
    np.testing.assert_allclose(found["query_output"], expected["query_output"], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(found["sequence_output"], expected["sequence_output"], rtol=1e-6, atol=1e-6)


@pytest.mark.parity
def test_a_prediction_by_ranks_is_that_of_transformers(goldens):
    """There, perm_mask and target_mapping replace the ranks, and rows are padded on the left."""
    golden = Golden(goldens, "xlnet")
    stored = under("streams/", under("outputs/", golden.arrays))
    model = keras_bert.load(golden.path).model
    perm_mask = stored["perm_mask"]
    inputs = {ours: stored[theirs] for theirs, ours in ENCODER_INPUTS.items()}
    inputs["permutation_ranks"] = (perm_mask.shape[-1] - perm_mask.sum(axis=-1)).astype("int32")
    inputs["masked_lm_positions"] = stored["target_mapping"].argmax(axis=-1).astype("int32")
    expected = under("outputs/", stored)["logits"]  # Of a second row, with the memory of the first.
    logits = model({**inputs, "mems": model.encoder(inputs, return_mems=True)["mems"]})["mlm_logits"]
    np.testing.assert_allclose(logits, expected, rtol=1e-4, atol=1e-4)


def test_the_loss_is_the_mean_at_the_predictions_beside_the_unigrams(model, batch):
    nats = np.linspace(1.0, 4.0, VOCAB).astype("float32")
    objective = PretrainingObjective(6, nats, ("plm",), sep_id=4)
    sums, counts = objective.sums(model(batch), batch), objective.counts(batch)
    logits = np.asarray(model(batch)["mlm_logits"], "float64")
    losses = np.log(np.exp(logits).sum(-1)) - np.take_along_axis(logits, batch["masked_lm_ids"][..., None], -1)[..., 0]
    assert float(counts["plm"]) == float(counts["text_token"]) == WEIGHTS.sum()
    for name in ("plm", "text_token"):
        np.testing.assert_allclose(sums[name]["loss"], (losses * WEIGHTS).sum(), rtol=1e-5)
    np.testing.assert_allclose(
        sums["text_token"]["unigram_loss"], (nats[batch["masked_lm_ids"]] * WEIGHTS).sum(), rtol=1e-6
    )


def test_pretraining_alone_trains_the_mask_embedding(batch):
    """Fine-tuning gives it no gradient, which a training step refuses; weight decay would shrink it."""
    keras.utils.set_random_seed(0)
    model = BertForPreTraining(CONFIG, terms=("plm",))
    embedding = model.encoder.mask_embedding
    assert not any(variable is embedding for variable in model.trainable_variables)
    term_named("plm").unfreeze(model)
    objective = PretrainingObjective(6, terms=("plm",), sep_id=4)
    with tf.GradientTape() as tape:
        loss = objective.sums(model(batch, training=True), batch)["plm"]["loss"]
    for variable, gradient in zip(model.trainable_variables, tape.gradient(loss, model.trainable_variables)):
        assert gradient is not None, variable.path
    assert any(variable is embedding for variable in model.trainable_variables)
