"""Runs of an XLNet by permutations: from raw text to a model folder, resumed, in slices and on two devices."""

import json

import numpy as np
import pytest
import tensorflow as tf
from pretraining import WITHOUT_DROPOUT, assert_resumes_like, begun, gradients_in_slices, losses_on, metrics, recipe

import keras_bert
from keras_bert.core.errors import UserError
from keras_bert.tasks.pretraining.engine import phase_predictions
from keras_bert.tasks.pretraining.run import pretrain
from keras_bert.text.xlnet_vocabulary import XlnetVocabulary
from keras_bert.training.run_folder import RunFolder

pytest.importorskip("sentencepiece")

PERMUTED = {
    "model": {
        "model_type": "xlnet",
        "vocab_size": 90,
        "hidden_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 64,
        "max_position_embeddings": 48,
    },
    "vocabulary": {"kind": "xlnet", "lower_case": False},
    "objective": {"tokens": "permuted", "pair": "none"},
    "masking": {"share": 0.1667, "validation_share": 0.1667},
    "initialization": {"decoder_bias": "unigram"},
}
SHORT = {"training.steps": 6, "training.evaluate_every": 6}
MEMORY = {"objective.memory_length": 40}  # More than the tokens of a row.


@pytest.fixture(scope="module")
def straight(corpus, tmp_path_factory):
    """(run folder, results) of an uninterrupted run."""
    run = RunFolder(str(tmp_path_factory.mktemp("runs") / "straight"))
    return run, pretrain(recipe(corpus, **PERMUTED, **SHORT, **MEMORY), run)


def test_a_run_on_raw_text_learns_its_vocabulary_and_writes_an_xlnet(straight):
    run, results = straight
    lines = [line for line in metrics(run) if "loss" in line]
    assert lines and all(line["loss"] == line["plm_loss"] for line in lines)
    assert results["eval_text_token_loss"] == pytest.approx(results["eval_plm_loss"])
    assert abs(results["eval_text_token_loss"] - results["eval_text_token_unigram_loss"]) < 0.5
    with open(f"{run.model}/config.json", encoding="utf-8") as stream:
        assert json.load(stream)["architectures"] == ["XLNetLMHeadModel"]
    with open(f"{run.model}/README.md", encoding="utf-8") as stream:
        assert "by permutation language modelling" in stream.read()
    loaded = keras_bert.load(run.path)
    assert isinstance(loaded.tokenizer.vocabulary, XlnetVocabulary) and not loaded.tokenizer.lower_case
    assert not loaded.report.made_new and not loaded.report.unused
    assert not loaded.model.encoder.mask_embedding.trainable


@pytest.mark.slow
def test_stopped_and_started_again_gives_the_same_numbers(corpus, straight, tmp_path, monkeypatch):
    """The mask embedding, its moments and the memory are in the checkpoint; orders are a function of the example."""
    config = recipe(corpus, **PERMUTED, **SHORT, **MEMORY)
    assert_resumes_like(straight, config, RunFolder(str(tmp_path / "stopped")), monkeypatch, stop=4, checkpoint=3)


@pytest.fixture(scope="module")
def built(corpus, tmp_path_factory):
    """A run about to begin, without dropout, and its first batch."""
    return begun(recipe(corpus, **PERMUTED, **SHORT, **WITHOUT_DROPOUT), tmp_path_factory.mktemp("built"))


def test_rows_end_in_cls_of_a_segment_of_its_own(built):
    """As in fine-tuning, whose pooler reads the last token."""
    pretraining, batch = built
    vocabulary, lengths = pretraining.tokenizer.vocabulary, batch["input_mask"].numpy().sum(axis=1)
    for ids, segments, ranks, length in zip(
        batch["input_word_ids"].numpy(), batch["input_type_ids"].numpy(), batch["permutation_ranks"].numpy(), lengths
    ):
        assert ids[length - 2 : length].tolist() == [vocabulary.sep_id, vocabulary.cls_id]
        assert segments.tolist() == [0] * (length - 1) + [2] + [0] * (len(ids) - length)
        assert (ids[length:] == vocabulary.pad_id).all() and vocabulary.cls_id not in ids[: length - 1]
        assert (ranks[length - 2 : length] >= 0).all() and (ranks[length:] == -1).all()
    assert phase_predictions(pretraining.config, 0) == batch["masked_lm_positions"].shape[1] == 5


def test_no_sum_of_gradients_depends_on_timing(built):
    """AddN writes into the first of its inputs that nothing else reads any more, and adds the others to it in order.

    If neither the first nor the second input is read by AddN alone, the third may be the one in some steps only.
    """
    step, batch = built[0].engine.step, built[1]
    traced = tf.function(step.gradients, autograph=False).get_concrete_function(
        batch, step.objective.counts(batch), tf.constant([0, 0], tf.uint32)
    )

    def is_its_own(value):
        shares_memory = value.op.type in ("Identity", "Reshape", "ExpandDims", "Squeeze")
        return len(value.consumers()) == 1 and (not shares_memory or is_its_own(value.op.inputs[0]))

    sums = [op for op in traced.graph.get_operations() if op.type == "AddN" and len(op.inputs) > 2]
    assert sums and all(any(map(is_its_own, op.inputs[:2])) for op in sums)


def test_two_slices_have_the_gradients_of_one(built):
    (whole, sums), (halves, sums_of_halves) = gradients_in_slices(built[0].engine.step, built[1])
    np.testing.assert_allclose(sums["plm"]["loss"], sums_of_halves["plm"]["loss"], rtol=1e-5)
    for one, two in zip(whole, halves, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_mirrored_in_slices_gives_the_losses_of_one_device(corpus, tmp_path, monkeypatch, mirrored_strategy):
    """If memory reached another row than its own, it would change the losses."""
    changes = {**PERMUTED, **SHORT, **WITHOUT_DROPOUT, **MEMORY}
    config, sliced = (recipe(corpus, **changes, **{"training.accumulation": slices}) for slices in (1, 2))
    one = losses_on(tf.distribute.OneDeviceStrategy("CPU:0"), config, tmp_path / "one", monkeypatch)
    mirrored = losses_on(mirrored_strategy, sliced, tmp_path / "mirrored", monkeypatch)
    np.testing.assert_allclose(one, mirrored, rtol=1e-5)


@pytest.mark.slow
def test_raw_text_gives_the_same_kind_of_run(corpus, straight, tmp_path):
    changes = {**PERMUTED, "data.source": "text", "vocabulary.file": f"{straight[0].data}/spiece.model"}
    learned = len(keras_bert.load(straight[0].path).tokenizer.vocabulary)
    changes |= {"training.steps": 2, "initialization": "paper", "model": {**PERMUTED["model"], "vocab_size": learned}}
    results = pretrain(recipe(corpus, **changes), RunFolder(str(tmp_path / "run")))
    assert 0 < results["eval_plm_loss"] < 10 and "eval_text_token_unigram_loss" not in results


@pytest.mark.parametrize(
    "settings, message",
    [
        (
            {"objective": {"tokens": "masked", "pair": "none"}},
            "objective.tokens: needs permuted for this model.model_ty",
        ),
        ({"objective": {"tokens": "permuted"}}, "objective.pair: needs none if permuted tokens are predicted"),
        ({"masking": {"unit": "word"}}, "masking.unit: needs no value for objective.tokens permuted"),
        ({"masking": {"random_token_share": 0.0}}, "masking.random_token_share: needs no value for objective.tokens"),
        ({"objective": {"memory_length": 8, "pair": "none"}}, "objective.memory_length: needs 0 for tokens masked"),
        ({"objective.memory_length": 8, "data.source": "text"}, "objective.memory_length: needs 0 if data.source is"),
        ({"model": {"max_position_embeddings": 128}}, "objective.tokens: needs masked for this"),
    ],
)
def test_settings_that_do_not_fit_together_are_refused(settings, message):
    with pytest.raises(UserError, match=message):
        recipe("text.txt", **{**PERMUTED, **settings})
