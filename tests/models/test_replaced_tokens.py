"""Replaced tokens: what is sampled, its labels, the loss, and where gradients flow.

The loss and the folder of transformers' ElectraForPreTraining are in tests/goldens.
"""

import keras
import numpy as np
import pytest
import tensorflow as tf
from goldens import Golden
from tiny import NO_DROPOUT, SIZES, pretraining_batch

import keras_bert
from keras_bert.config.replacement import DISENTANGLED, GENERATOR, RANDOM_TOKENS, SHARED, SHUFFLED, ReplacementConfig
from keras_bert.models.electra.encoder import ElectraEncoder
from keras_bert.models.electra.kind import ElectraConfig
from keras_bert.models.electra.pretraining import ElectraForPreTraining, sampled
from keras_bert.models.pretraining import PretrainingObjective
from keras_bert.models.sizes import encoder_parts, head_parts, total
from keras_bert.models.tensor_names import model_values, model_variables
from keras_bert.training.variable_names import gradient_parts, trainable_names

TABLES = ("word_embeddings", "position_embeddings", "token_type_embeddings")


def config(**changes):
    return ElectraConfig(**{**SIZES, **NO_DROPOUT, "embedding_size": 8, "initializer_range": 0.3, **changes})


def model_with(source=GENERATOR, embeddings=DISENTANGLED):
    keras.utils.set_random_seed(0)
    return ElectraForPreTraining(config(), ReplacementConfig(source, generator_size=0.5, embeddings=embeddings))


def batch_with_draws():
    """Rows whose unused predictions point at a position that another prediction uses."""
    batch = pretraining_batch(config())
    batch["masked_lm_positions"] *= batch["masked_lm_weights"].astype("int32")
    draws = np.random.default_rng(1).random(batch["masked_lm_ids"].shape)
    return {**batch, "replacement_draws": draws.astype("float32")}


def plainly_replaced(model, batch):
    """(ids, labels) [batch, seq] by loops over the same draws."""
    ids, labels = batch["input_word_ids"].copy(), np.zeros_like(batch["input_word_ids"])
    logits = model.generator(batch)["mlm_logits"].numpy().astype("float64") if model.generator else None
    for row, used in enumerate(batch["masked_lm_weights"] > 0):
        originals, draws = batch["masked_lm_ids"][row], batch["replacement_draws"][row]
        order = sorted(np.flatnonzero(used), key=lambda place: draws[place])
        for place in np.flatnonzero(used):
            if logits is not None:
                shares = np.exp(logits[row, place] - logits[row, place].max())
                token = np.searchsorted(np.cumsum(shares / shares.sum()), draws[place], side="right")
            elif model.replacement.made_by == SHUFFLED:
                token = originals[order[place]]
            else:
                token = int(draws[place] * 60)
            position = batch["masked_lm_positions"][row, place]
            ids[row, position] = token
            labels[row, position] = token != originals[place]
    return ids, labels


@pytest.mark.parametrize("source", [GENERATOR, RANDOM_TOKENS, SHUFFLED])
def test_the_discriminator_reads_what_plain_loops_put_there(source, monkeypatch):
    """The same tokens by the same draws, and a label only where the token is another one."""
    model, batch, read = model_with(source), batch_with_draws(), []
    call = ElectraEncoder.call
    if model.generator:  # So that some samples are the original.
        first = batch["masked_lm_positions"][:, :1]
        batch["masked_lm_ids"][:, :1] = np.take_along_axis(plainly_replaced(model, batch)[0], first, axis=1)

    def remembered(encoder, inputs, **options):
        read.append(inputs["input_word_ids"].numpy())
        return call(encoder, inputs, **options)

    monkeypatch.setattr(ElectraEncoder, "call", remembered)
    outputs = model(batch)
    monkeypatch.undo()
    ids, labels = plainly_replaced(model, batch)
    np.testing.assert_array_equal(read[-1], ids)
    np.testing.assert_array_equal(outputs["is_replaced"], labels)
    assert 0 < labels.sum() <= (batch["masked_lm_weights"] > 0).sum()
    alone = ElectraForPreTraining(config())
    values = {name.attribute: value for name, value in model_values(model).items()}
    for name, variable in model_variables(alone):
        variable.assign(values[name.attribute])
    logits = alone({**batch, "input_word_ids": ids})["rtd_logits"]
    np.testing.assert_allclose(outputs["rtd_logits"], logits, rtol=1e-5, atol=1e-5)


def test_samples_have_the_frequencies_of_the_distribution():
    """Draws over the whole unit interval, both ends included, give each class its share."""
    logits = np.random.default_rng(0).normal(0.0, 2.0, 7).astype("float32")
    draws = np.append(np.arange(2**12) / 2**12, 1 - 2.0**-24).astype("float32")
    classes = sampled(np.broadcast_to(logits, (len(draws), 7)), draws).numpy()
    shares = np.exp(logits) / np.exp(logits).sum()
    np.testing.assert_allclose(np.bincount(classes, minlength=7) / len(draws), shares, atol=1e-3)
    assert (np.diff(classes) >= 0).all() and classes[-1] == 6


def gradients(model, batch, term):
    """`{name of a variable: its gradient of the loss of one term, or None}`."""
    objective = PretrainingObjective(mask_id=4, terms=("mlm", "rtd"))
    with tf.GradientTape() as tape:
        loss = objective.sums(model(batch, training=True), batch)[term]["loss"]
    return dict(zip(trainable_names(model), tape.gradient(loss, model.trainable_variables), strict=True))


@pytest.mark.parametrize("embeddings", [DISENTANGLED, SHARED])
def test_the_discriminators_loss_reaches_the_generator_through_shared_tables_alone(embeddings):
    model, batch = model_with(embeddings=embeddings), batch_with_draws()
    of_discriminator, of_generator = (gradients(model, batch, term) for term in ("rtd", "mlm"))
    tables = {f"generator.encoder.embeddings.{name}" for name in TABLES}
    assert tables < of_generator.keys()
    for name, gradient in of_discriminator.items():
        is_own = not name.startswith("generator.")
        assert (gradient is not None) == (is_own or embeddings == SHARED and name in tables), name
    for name, gradient in of_generator.items():
        assert (gradient is not None) == name.startswith("generator."), name
    differences = [name for name in of_discriminator if name.endswith("_difference")]
    assert len(differences) == (3 if embeddings == DISENTANGLED else 0)
    assert {"generator", "embeddings", "block_0", "block_1", "rtd_head"} == set(gradient_parts(model))


def test_disentangled_tables_are_the_sum_that_is_written():
    model = model_with()
    own, base = model.encoder.embeddings, model.generator.encoder.embeddings
    np.testing.assert_array_equal(own.word_embeddings, base.word_embeddings)
    own.word_embeddings_difference.assign(np.ones((60, 8)))
    values = {name.attribute: value for name, value in model_values(model).items()}
    np.testing.assert_array_equal(values["encoder.embeddings.word_embeddings"], base.word_embeddings + 1.0)
    again = ElectraForPreTraining.from_config(model.get_config())
    assert [one.shape for one in again.get_weights()] == [one.shape for one in model.get_weights()]


def test_parameters_are_counted():
    model = ElectraForPreTraining(config())
    pooler = next(part.count for part in encoder_parts(model.config) if part.name == "pooler")
    assert total(encoder_parts(model.config)) - pooler + total(head_parts(model.config)) == model.count_params()
    generator = model_with().generator.config
    assert (generator.hidden_size, generator.num_attention_heads, generator.intermediate_size) == (8, 2, 16)


@pytest.mark.parity
def test_the_loss_is_that_of_transformers_discriminator(goldens):
    """The mean over all tokens but padding, of the same weights and labels."""
    golden = Golden(goldens, "electra")
    batch = {**golden.batch, "example_weights": np.ones(3, "float32")}
    objective = PretrainingObjective(mask_id=4, terms=("rtd",), weights={"rtd": 50.0})
    outputs = keras_bert.load(golden.path).model(golden.encoder_batch)
    sums, counts = objective.sums(outputs, batch), objective.counts(batch)
    np.testing.assert_allclose(sums["rtd"]["loss"] / counts["rtd"], 50.0 * golden.outputs["loss"], rtol=1e-5)
    is_right = (outputs["rtd_logits"].numpy() > 0) == batch["is_replaced"]
    mask = batch["input_mask"].astype(bool)
    np.testing.assert_allclose(sums["rtd"]["accuracy"], is_right[mask].sum())
    np.testing.assert_allclose(sums["rtd"]["majority"], (batch["is_replaced"] == 0)[mask].sum())
