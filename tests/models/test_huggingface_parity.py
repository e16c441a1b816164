"""The same weights in transformers and here give the same numbers."""

import numpy as np
import pytest
import tensorflow as tf
from goldens import Golden, under

from keras_bert.inference.loading import load
from keras_bert.models.pretraining import PretrainingObjective
from keras_bert.models.tensor_names import model_variables
from keras_bert.training.step import Step

pytestmark = pytest.mark.parity


@pytest.fixture(scope="module")
def theirs(goldens):
    """A batch with padding and both segments, and what transformers computes."""
    return Golden(goldens, "pretraining")


@pytest.fixture(scope="module")
def ours(theirs):
    return load(theirs.path).model


def test_every_hidden_state_and_the_pooler(ours, theirs):
    expected, outputs = theirs.outputs, ours.encoder(theirs.batch)
    assert len(outputs["hidden_states"]) == len(expected["hidden_states"]) == 3
    real = theirs.real
    for state, reference in zip(outputs["hidden_states"], expected["hidden_states"]):
        np.testing.assert_allclose(state.numpy()[real], reference[real], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(outputs["pooled_output"], expected["pooled_output"], rtol=1e-5, atol=1e-5)


def test_attention_maps_on_request(ours, theirs):
    assert "attentions" not in ours.encoder(theirs.batch)
    attentions = ours.encoder(theirs.batch, return_attentions=True)["attentions"]
    assert len(attentions) == 2
    for probabilities, reference in zip(attentions, theirs.outputs["attentions"], strict=True):
        np.testing.assert_allclose(probabilities, reference, rtol=1e-5, atol=1e-5)


def test_pretraining_logits(ours, theirs):
    expected, real = theirs.outputs, theirs.real
    everywhere = ours(theirs.encoder_batch)
    np.testing.assert_allclose(
        everywhere["mlm_logits"].numpy()[real], expected["mlm_logits"][real], rtol=1e-4, atol=1e-4
    )
    np.testing.assert_allclose(everywhere["nsp_logits"], expected["nsp_logits"], rtol=1e-4, atol=1e-4)
    there = np.take_along_axis(expected["mlm_logits"], theirs.batch["masked_lm_positions"][..., None], axis=1)
    np.testing.assert_allclose(ours(theirs.batch)["mlm_logits"], there, rtol=1e-4, atol=1e-4)


def test_gradients_of_the_pretraining_loss(ours, theirs):
    """Each tensor's gradient within 1e-4 of its norm, the tied word embeddings' included."""
    objective = PretrainingObjective(mask_id=4)
    step = Step(tf.distribute.get_strategy(), ours, objective)
    tensors = {name: tf.constant(value) for name, value in theirs.batch.items()}
    tensors["example_weights"] = tf.ones(len(theirs.real))
    gradients, sums = step.gradients(tensors, objective.counts(tensors), tf.constant([1, 2], tf.uint32))
    of_variable = {id(variable): gradient for variable, gradient in zip(ours.trainable_variables, gradients)}
    total = sum(float(sums[term]["loss"] / objective.counts(tensors)[term]) for term in objective.terms)
    np.testing.assert_allclose(total, theirs.outputs["loss"], rtol=1e-5)
    expected = under("gradients/", theirs.outputs)
    for name, variable in model_variables(ours):
        reference, received = expected[name.huggingface.name], of_variable[id(variable)].numpy()
        received = received.T if name.huggingface.transposed else received
        # The keys' bias gets no gradient but rounding: it adds the same to every score of a row.
        norm = max(np.linalg.norm(reference), 1e-3)
        assert np.linalg.norm(received - reference) <= 1e-4 * norm, name.huggingface.name
