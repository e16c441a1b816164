"""The same random weights in transformers and here give the same numbers."""

import numpy as np
import pytest
import tensorflow as tf
from tiny import pretraining_batch, random_weights, without_dropout

from keras_bert.models.pretraining import BertForPreTraining
from keras_bert.models.pretraining_objective import PretrainingObjective
from keras_bert.training.step import Step

pytestmark = pytest.mark.parity("torch", "transformers")
ENCODER_INPUTS = ("input_word_ids", "input_mask", "input_type_ids")


@pytest.fixture(scope="module")
def both():
    """(our model, theirs, a batch with padding and both segments)."""
    import torch
    import transformers

    config = without_dropout()
    ours = BertForPreTraining(config)
    tensors = random_weights(ours)
    theirs = transformers.BertForPreTraining(
        transformers.BertConfig(**vars(config), attn_implementation="eager")
    ).eval()
    state = {name: torch.tensor(np.ascontiguousarray(value)) for name, value in tensors.items()}
    missing, unexpected = theirs.load_state_dict(state, strict=False)
    assert not unexpected and all("decoder" in name or "position_ids" in name for name in missing)
    theirs.tie_weights()
    return ours, theirs, pretraining_batch(config)


def run_theirs(model, batch, **options):
    import torch

    arguments = dict(zip(("input_ids", "attention_mask", "token_type_ids"), (batch[name] for name in ENCODER_INPUTS)))
    return model(**{name: torch.tensor(value).long() for name, value in arguments.items()}, **options)


def test_every_hidden_state_and_the_pooler(both):
    ours, theirs, batch = both
    expected = run_theirs(theirs.bert, batch, output_hidden_states=True)
    outputs = ours.encoder(batch)
    assert len(outputs["hidden_states"]) == len(expected.hidden_states) == 3
    # A padded position's own vector means nothing; every real one must agree.
    real = batch["input_mask"].astype(bool)
    for state, reference in zip(outputs["hidden_states"], expected.hidden_states):
        np.testing.assert_allclose(state.numpy()[real], reference.detach().numpy()[real], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(outputs["pooled_output"], expected.pooler_output.detach(), rtol=1e-5, atol=1e-5)


def test_attention_maps_on_request(both):
    ours, theirs, batch = both
    assert "attentions" not in ours.encoder(batch)
    attentions = ours.encoder(batch, return_attentions=True)["attentions"]
    expected = run_theirs(theirs.bert, batch, output_attentions=True).attentions
    assert len(attentions) == 2
    for probabilities, reference in zip(attentions, expected):
        np.testing.assert_allclose(probabilities, reference.detach(), rtol=1e-5, atol=1e-5)


def test_pretraining_logits(both):
    ours, theirs, batch = both
    expected = run_theirs(theirs, batch)
    everywhere = ours({name: batch[name] for name in ENCODER_INPUTS})
    real = batch["input_mask"].astype(bool)
    np.testing.assert_allclose(
        everywhere["mlm_logits"].numpy()[real], expected.prediction_logits.detach().numpy()[real], rtol=1e-4, atol=1e-4
    )
    np.testing.assert_allclose(
        everywhere["nsp_logits"], expected.seq_relationship_logits.detach(), rtol=1e-4, atol=1e-4
    )
    at_positions = ours(batch)["mlm_logits"].numpy()
    expected_there = np.take_along_axis(
        expected.prediction_logits.detach().numpy(), batch["masked_lm_positions"][..., None], axis=1
    )
    np.testing.assert_allclose(at_positions, expected_there, rtol=1e-4, atol=1e-4)


def test_gradients_of_the_pretraining_loss(both):
    """Each tensor's gradient within 1e-4 of its norm, the tied word embeddings' included."""
    import torch

    from keras_bert.checkpoints.names import model_variables

    ours, theirs, batch = both
    objective = PretrainingObjective(mask_id=4)
    step = Step(tf.distribute.get_strategy(), ours, objective)
    tensors = {name: tf.constant(value) for name, value in batch.items()}
    gradients, sums = step.gradients(tensors, objective.counts(tensors), tf.constant([1, 2], tf.uint32))
    of_variable = {id(variable): gradient for variable, gradient in zip(ours.trainable_variables, gradients)}

    labels = torch.full(batch["input_word_ids"].shape, -100)
    for row, (positions, ids, weights) in enumerate(
        zip(batch["masked_lm_positions"], batch["masked_lm_ids"], batch["masked_lm_weights"])
    ):
        for position, label, weight in zip(positions, ids, weights):
            if weight:
                labels[row, position] = int(label)
    loss = run_theirs(
        theirs, batch, labels=labels, next_sentence_label=torch.tensor(batch["next_sentence_labels"]).long()
    ).loss
    loss.backward()
    total = sum(float(sums[term]["loss"] / objective.counts(tensors)[term]) for term in objective.terms)
    np.testing.assert_allclose(total, loss.item(), rtol=1e-5)
    parameters = dict(theirs.named_parameters())
    for name, variable in model_variables(ours):
        expected = parameters[name.huggingface.name].grad.numpy()
        received = of_variable[id(variable)].numpy()
        received = received.T if name.huggingface.transposed else received
        # The keys' bias gets no gradient but rounding: it adds the same to every score of a row.
        norm = max(np.linalg.norm(expected), 1e-3)
        assert np.linalg.norm(received - expected) <= 1e-4 * norm, name.huggingface.name
