"""Sentence order prediction: the loss of transformers' ALBERT, and where the head is stored."""

import os

import numpy as np
import pytest
import safetensors.numpy
from goldens import load_arrays, under
from tiny import VOCABULARY, random_weights, without_dropout

from keras_bert.checkpoints.model_folder import open_model_folder
from keras_bert.checkpoints.writing import write_model_folder
from keras_bert.models.pretraining import BertForPreTraining, PretrainingObjective

TERMS = ("mlm", "sop")


@pytest.fixture(scope="module")
def model():
    model = BertForPreTraining(without_dropout(), sentence_order=True)
    random_weights(model)
    return model


@pytest.mark.parity
def test_head_and_loss_are_alberts(goldens):
    """On ALBERT's pooled output, and its masked LM logits beside them: the total of both terms."""
    theirs = load_arrays(os.path.join(goldens, "sentence_order.npz"))
    inputs, outputs = under("inputs/", theirs), under("outputs/", theirs)
    model = BertForPreTraining(without_dropout(hidden_size=8, num_attention_heads=2), sentence_order=True)
    model.sop_head.dense.kernel.assign(theirs["head/weight"].T)
    model.sop_head.dense.bias.assign(theirs["head/bias"])
    sop_logits = model.sop_head(theirs["pooled_output"])
    np.testing.assert_allclose(sop_logits, outputs["sop_logits"], rtol=1e-5, atol=1e-6)

    positions = inputs["masked_lm_positions"]
    logits = np.take_along_axis(outputs["prediction_logits"], positions[..., None], axis=1)
    batch = {name: inputs[name] for name in ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights")}
    batch |= {
        "input_word_ids": inputs["input_ids"],
        "sentence_order_labels": inputs["next_sentence_labels"],
        "example_weights": np.ones(len(positions), "float32"),
    }
    objective = PretrainingObjective(VOCABULARY.mask_id, terms=TERMS)
    sums, counts = objective.sums({"mlm_logits": logits, "sop_logits": sop_logits}, batch), objective.counts(batch)
    total = sum(float(sums[term]["loss"] / counts[term]) for term in TERMS)
    np.testing.assert_allclose(total, outputs["loss"], rtol=1e-5)
    accuracy = np.mean(outputs["sop_logits"].argmax(axis=1) == inputs["next_sentence_labels"])
    assert float(sums["sop"]["accuracy"] / counts["sop"]) == pytest.approx(accuracy)


def test_the_head_is_stored_under_our_own_name_and_drops_out_in_training(model, tmp_path):
    write_model_folder(tmp_path / "model", model, VOCABULARY, True)
    stored = safetensors.numpy.load_file(tmp_path / "model" / "model.safetensors")
    assert np.array_equal(stored["keras_bert.sop_classifier.weight"], model.sop_head.dense.kernel.numpy().T)
    again = BertForPreTraining(model.config, sentence_order=True)
    report = open_model_folder(tmp_path / "model").load_into(again)
    assert not report.made_new and not report.unused
    assert np.array_equal(again.sop_head.dense.bias, model.sop_head.dense.bias)
    # A model without the head has no use for it; transformers ignores it too.
    report = open_model_folder(tmp_path / "model").load_into(BertForPreTraining(model.config))
    assert sorted(report.unused) == ["keras_bert.sop_classifier.bias", "keras_bert.sop_classifier.weight"]
    pooled = np.ones((1, 16), "float32")
    outputs = {model.sop_head(pooled, training=True).numpy().tobytes() for _ in range(8)}
    assert len(outputs) > 1 and model.sop_head.dropout_prob == 0.1
