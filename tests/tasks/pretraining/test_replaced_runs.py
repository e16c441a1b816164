"""Runs of an ELECTRA: with and without a generator, resumed, in slices, on two devices and from a BERT's weights."""

import json

import numpy as np
import pytest
import tensorflow as tf
from finetuning import finetune_config
from goldens import read_tensors
from pretraining import WITHOUT_DROPOUT, assert_resumes_like, begun, gradients_in_slices, losses_on, metrics, recipe
from said import listen

import keras_bert
from keras_bert.api.pretraining import pretraining_recipe
from keras_bert.core.errors import UserError
from keras_bert.models.electra.pretraining import ElectraForPreTraining
from keras_bert.tasks.finetuning.runs import FinetuningRuns
from keras_bert.tasks.pretraining.engine import phase_predictions
from keras_bert.tasks.pretraining.run import Pretraining, pretrain
from keras_bert.training.run_folder import RunFolder

REPLACED = {
    "model": {
        "model_type": "electra",
        "vocab_size": 120,
        "embedding_size": 16,
        "hidden_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 64,
        "max_position_embeddings": 48,
    },
    "objective": {"tokens": "replaced", "pair": "none", "replacement": {"generator_size": 0.5}},
    "masking": {"mask_token_share": 1.0, "random_token_share": 0.0},
    "initialization": "corpus",
}


@pytest.fixture(scope="module")
def straight(corpus, tmp_path_factory):
    """(run folder, results) of an uninterrupted run."""
    run = RunFolder(str(tmp_path_factory.mktemp("runs") / "straight"))
    return run, pretrain(recipe(corpus, **REPLACED), run)


def test_a_run_trains_both_and_writes_the_discriminator(straight):
    run, results = straight
    lines = [line for line in metrics(run) if "loss" in line]
    for line in lines:
        assert line["loss"] == pytest.approx(line["mlm_loss"] + line["rtd_loss"])
    assert lines[-1]["mlm_loss"] < lines[0]["mlm_loss"] and lines[-1]["rtd_loss"] < lines[0]["rtd_loss"]
    # At most 15% of a row are masked.
    assert 0.85 < results["eval_rtd_majority"] < 1 and results["eval_rtd_accuracy"] > 0.8
    assert results["eval_mask_token_loss"] == pytest.approx(results["eval_mlm_loss"])
    with open(f"{run.model}/config.json", encoding="utf-8") as stream:
        assert json.load(stream)["architectures"] == ["ElectraForPreTraining"]
    with open(f"{run.model}/README.md", encoding="utf-8") as stream:
        assert "by masked LM and replaced token detection" in stream.read()
    loaded = keras_bert.load(run.path)
    assert isinstance(loaded.model, ElectraForPreTraining) and loaded.model.generator is None
    assert not loaded.report.made_new and not loaded.report.unused
    assert loaded.encode(["The cat sees the dog."]).shape == (1, 32)
    with pytest.raises(UserError, match="needs a model with a masked LM head to fill"):
        loaded.fill(["The cat [MASK] the dog."])


@pytest.mark.slow
def test_stopped_and_started_again_gives_the_same_numbers(corpus, straight, tmp_path, monkeypatch):
    """The generator, the differences and their moments are in the checkpoint; draws are a function of the example."""
    run = RunFolder(str(tmp_path / "stopped"))
    assert_resumes_like(straight, recipe(corpus, **REPLACED), run, monkeypatch, stop=8, checkpoint=6)


@pytest.fixture(scope="module")
def built(corpus, tmp_path_factory):
    """A run about to begin, without dropout, and its first batch."""
    changes = {**REPLACED, **WITHOUT_DROPOUT, "initialization": "paper"}
    return begun(recipe(corpus, **changes), tmp_path_factory.mktemp("built"))


def test_two_slices_have_the_gradients_of_one(built):
    """Replacements agree too, since they are drawn for each example and not for its slice."""
    pretraining, batch = built
    assert phase_predictions(pretraining.config, 0) == batch["replacement_draws"].shape[1] == 5
    (whole, sums), (halves, sums_of_halves) = gradients_in_slices(pretraining.engine.step, batch)
    assert sums["rtd"]["majority"] == sums_of_halves["rtd"]["majority"]
    for one, two in zip(whole, halves, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-3, atol=1e-5)


@pytest.mark.slow
def test_mirrored_gives_the_losses_of_one_device(corpus, tmp_path, monkeypatch, mirrored_strategy):
    config = recipe(corpus, **REPLACED, **WITHOUT_DROPOUT, **{"training.steps": 6, "training.evaluate_every": 6})
    one = losses_on(tf.distribute.OneDeviceStrategy("CPU:0"), config, tmp_path / "one", monkeypatch)
    mirrored = losses_on(mirrored_strategy, config, tmp_path / "mirrored", monkeypatch)
    np.testing.assert_allclose(one, mirrored, rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("source", ["random", "shuffled"])
def test_without_a_generator_only_the_discriminator_is_trained(corpus, straight, source, tmp_path):
    """This holds on raw text too."""
    changes = {**REPLACED, "data.source": "text", "vocabulary.file": f"{straight[0].data}/vocab.txt"}
    learned = len(keras_bert.load(straight[0].path).tokenizer.vocabulary)
    changes |= {"training.steps": 2, "model": {**REPLACED["model"], "vocab_size": learned}, "masking": {}}
    changes["objective"] = {**REPLACED["objective"], "replacement": {"made_by": source}}
    run = RunFolder(str(tmp_path / "run"))
    results = pretrain(recipe(corpus, **changes), run)
    assert results["eval_loss"] == results["eval_rtd_loss"] < 1 and results["eval_rtd_majority"] < 1
    assert not {"eval_perplexity", "eval_mlm_loss", "eval_mask_token_loss"} & results.keys()
    with open(f"{run.model}/README.md", encoding="utf-8") as stream:
        assert "by replaced token detection" in stream.read()


@pytest.fixture(scope="module")
def from_bert(corpus, init, tmp_path_factory):
    """A run about to begin from a BERT's folder, with its vocabulary."""
    folder = tmp_path_factory.mktemp("from_bert")
    changes = {**REPLACED, "data": {"files": [corpus], "validation_share": 0.1}, "initialization": "paper"}
    changes |= {"phases": [{"sequence_length": 16, "batch_size": 4, "max_predictions_per_seq": 3}], "training.steps": 2}
    del changes["model"]
    (folder / "recipe.yaml").write_text("name: from-bert\noptimizer:\n  warmup_steps: 1\n", "utf-8")
    config = pretraining_recipe(
        str(folder / "recipe.yaml"), init, None, None, {**changes, "objective.tokens": "replaced"}
    )
    pretraining = Pretraining(config, RunFolder(str(folder / "run")))
    pretraining.build()
    return pretraining


def test_a_berts_weights_begin_both(from_bert, init):
    """The discriminator computes what the BERT did; the generator gets its embeddings and its output bias."""
    said, bert = listen(), keras_bert.load(init)
    from_bert.restore()
    model = from_bert.engine.model
    told = "9 of 28 tensors of the generator, 21 of 25 tensors of the discriminator; the others are new."
    assert any(line.endswith(told) for line in said)
    assert model.config.embedding_size == bert.config.hidden_size
    ids = np.arange(12, dtype="int32").reshape(2, 6)
    inputs = {"input_word_ids": ids, "input_mask": ids * 0 + 1, "input_type_ids": ids * 0}
    ours, theirs = (encoder(inputs)["sequence_output"] for encoder in (model.encoder, bert.encoder))
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(
        model.generator.encoder.embeddings.word_embeddings, bert.encoder.embeddings.word_embeddings
    )
    np.testing.assert_array_equal(model.generator.mlm_head.bias, bert.model.mlm_head.bias)


@pytest.mark.slow
def test_a_task_is_learned_from_the_discriminator(straight, tmp_path):
    """It is written as transformers' class, with the pooler under the names of its head."""
    rows = [{"text": "the cat sees" if label else "a house hears", "label": label} for label in (0, 1)] * 20
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    data = {"data.train": str(tmp_path / "rows.jsonl"), "data.dev": str(tmp_path / "rows.jsonl")}
    FinetuningRuns(finetune_config(straight[0].path, "text", **data)).one(str(tmp_path / "run"))
    loaded, tensors = keras_bert.load(tmp_path / "run"), read_tensors(str(tmp_path / "run" / "model"))
    assert {"classifier.dense.weight", "classifier.out_proj.bias"} < tensors.keys()
    assert [one.label for one in loaded.predict(["the cat sees", "a house hears"])] == ["1", "0"]


@pytest.mark.parametrize(
    "settings, message",
    [
        (
            {"objective": {"tokens": "masked", "pair": "none"}},
            "objective.tokens: needs replaced for this model.model_ty",
        ),
        ({"model": {"max_position_embeddings": 128}}, "objective.tokens: needs masked for this"),
        ({"objective": {"tokens": "replaced"}}, "objective.pair: needs none with objective.tokens replaced"),
        (
            {"objective": {"tokens": "masked", "replacement": {"made_by": "random"}}},
            "objective.replacement: needs no value for tokens masked",
        ),
        (
            {"phases": [{"sequence_length": 32, "batch_size": 8, "max_predictions_per_seq": 5, "tokens": "next"}]},
            "phases.0.tokens: needs no value for an ELECTRA, which sees both sides of a token",
        ),
    ],
)
def test_settings_that_do_not_fit_together_are_refused(settings, message):
    with pytest.raises(UserError, match=message):
        recipe("text.txt", **{**REPLACED, **settings})
