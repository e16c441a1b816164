"""Pretraining on next tokens: alone, and in one phase of a run on masks."""

import json

import numpy as np
import pytest
import tensorflow as tf
from command_line import give
from corpus import write_corpus
from pretraining import assert_resumes_like, metrics, recipe
from scipy.special import log_softmax
from tiny import pretraining_batch, random_weights, without_dropout

from keras_bert.config.pretraining import PretrainConfig
from keras_bert.core.errors import UserError
from keras_bert.inference.loading import load
from keras_bert.models.pretraining import BertForPreTraining, PretrainingObjective
from keras_bert.models.sizes import training_flops, unread_flops
from keras_bert.tasks.pretraining.engine import phase_flops
from keras_bert.tasks.pretraining.run import pretrain
from keras_bert.training.run_folder import RunFolder

NEXT = {"model.attention": "causal", "objective.tokens": "next", "objective.pair": "none"}
CAUSAL_FIRST = {
    "objective.pair": "none",
    "phases": [
        {"share": 0.5, "sequence_length": 32, "batch_size": 8, "max_predictions_per_seq": 5, "tokens": "next"},
        {"share": 0.5, "sequence_length": 32, "batch_size": 8, "max_predictions_per_seq": 5},
    ],
}


@pytest.fixture(scope="module")
def finished(corpus, tmp_path_factory):
    """(run folder, results) of a left-to-right run."""
    run = RunFolder(str(tmp_path_factory.mktemp("runs") / "next"))
    return run, pretrain(recipe(corpus, **NEXT, examples=["The cat", "The [MASK] sat."]), run)


def test_a_left_to_right_run_logs_its_own_figures_and_writes_a_decoder(finished):
    run, results = finished
    training = [line for line in metrics(run) if "lm_loss" in line]
    assert training and not any(name.startswith(("mlm", "nsp")) for line in metrics(run) for name in line)
    assert training[-1]["perplexity"] == pytest.approx(np.exp(training[-1]["lm_loss"]))
    assert results["eval_perplexity"] == pytest.approx(np.exp(results["eval_lm_loss"]))
    # The unigram does not know [SEP], so both are measured on tokens of text.
    assert abs(results["eval_text_token_loss"] - results["eval_text_token_unigram_loss"]) < 1.0
    with open(f"{run.model}/config.json", encoding="utf-8") as stream:
        fields = json.load(stream)
    assert fields["is_decoder"] and fields["architectures"] == ["BertLMHeadModel"]
    assert "next tokens, left to right" in open(f"{run.model}/README.md", encoding="utf-8").read()
    assert load(run.path).config.is_causal
    assert [example["text"] for example in results["examples"]] == ["The cat", "The"]
    assert all(example["continued"].startswith(example["text"]) for example in results["examples"])


def test_the_command_continues_texts(finished):
    run, results = finished
    asked = ["generate", "--model", run.path, "--max-tokens", "20", "The cat"]
    greedy = give(*asked)
    assert greedy.output.splitlines()[-1] == results["examples"][0]["continued"]
    drawn = [give(*asked, "--temperature", "1", "--seed", seed).output for seed in "112"]
    assert drawn[0] == drawn[1] != drawn[2]


@pytest.mark.slow
def test_raw_text_gives_the_same_kind_of_run(corpus, tmp_path, finished):
    settings = {**NEXT, "data.source": "text", "vocabulary.file": f"{finished[0].data}/vocab.txt", "training.steps": 2}
    results = pretrain(recipe(corpus, **settings), RunFolder(str(tmp_path / "run")))
    assert 0 < results["eval_lm_loss"] < 10 and "eval_text_token_unigram_loss" not in results


@pytest.mark.slow
def test_the_model_learns_the_next_token(tmp_path):
    corpus = write_corpus(tmp_path / "text.txt", 1500)
    settings = {
        "phases.0.batch_size": 32,
        "optimizer.warmup_steps": 30,
        "training.steps": 300,
        "training.evaluate_every": 300,
    }
    results = pretrain(recipe(corpus, **NEXT, **settings), RunFolder(str(tmp_path / "run")))
    assert results["eval_text_token_loss"] < results["eval_text_token_unigram_loss"] - 1.0


@pytest.mark.slow
def test_causal_first_and_then_masked_resumes_bit_for_bit(corpus, tmp_path, monkeypatch):
    """Killed in the second phase, with the last checkpoint after the first. Both are validated on the same masks."""
    config = recipe(corpus, **CAUSAL_FIRST, **{"training.checkpoint_every": 5})
    straight, stopped = (RunFolder(str(tmp_path / name)) for name in ("straight", "stopped"))
    assert_resumes_like((straight, pretrain(config, straight)), config, stopped, monkeypatch, stop=8, checkpoint=6)
    lines = metrics(straight)
    of_text, of_masks = ([line["step"] for line in lines if f"{name}_token_loss" in line] for name in ("text", "mask"))
    assert of_text == [2, 4, 6] and of_masks == [8, 10, 12]
    validations = [line for line in lines if "eval_mlm_loss" in line]
    assert len(validations) == 2 and all("eval_mask_token_unigram_loss" in line for line in validations)
    assert len({line["eval_mask_token_unigram_loss"] for line in validations}) == 1
    assert not load(straight.path).config.is_causal


@pytest.mark.slow
def test_loops_of_steps_cross_into_the_other_phase(corpus, tmp_path):
    """Each phase has a function of its own, with its own inputs."""
    runs = [RunFolder(str(tmp_path / f"{loop}")) for loop in (1, 2)]
    for loop, run in zip((1, 2), runs):
        config = recipe(corpus, **CAUSAL_FIRST, **{"training.steps_per_loop": loop, "training.checkpoint_every": 6})
        pretrain(config, run)
    assert metrics(runs[0]) == metrics(runs[1])


@pytest.fixture(scope="module")
def predicted():
    """(model, batch of next tokens): the model is that of a run on masks."""
    model, batch = BertForPreTraining(without_dropout()), pretraining_batch(without_dropout())
    random_weights(model)
    batch = {name: value for name, value in batch.items() if not name.startswith("masked")}
    ids, mask = batch["input_word_ids"], batch["input_mask"]
    following, has_next = np.roll(ids, -1, axis=1), np.roll(mask, -1, axis=1).astype("float32")
    has_next[:, -1] = 0
    return model, {**batch, "next_token_ids": following, "next_token_weights": has_next}


def test_the_loss_is_the_mean_over_next_tokens(predicted):
    """Against NumPy on the logits of the causal model; [SEP] and markers do not count as text."""
    model, batch = predicted
    outputs, sep_id, marker_id = model(batch), 3, 7
    causal = BertForPreTraining(without_dropout(attention="causal"))
    random_weights(causal)
    np.testing.assert_array_equal(outputs["mlm_logits"], causal(batch)["mlm_logits"])
    batch["next_token_ids"][0, 2:4] = sep_id, marker_id
    nats = np.linspace(1, 2, 60).astype("float32")
    objective = PretrainingObjective(4, nats, ("mlm",), sep_id, marker_ids=[marker_id])
    tensors = {name: tf.constant(value) for name, value in batch.items()}
    counts, sums = objective.counts(tensors), objective.sums(outputs, tensors)
    labels, weights = batch["next_token_ids"], batch["next_token_weights"]
    losses = -np.take_along_axis(log_softmax(outputs["mlm_logits"].numpy(), -1), labels[..., None], -1)[..., 0]
    of_text = weights * ~np.isin(labels, [sep_id, marker_id])
    assert float(counts["mlm"]) == weights.sum() and float(counts["text_token"]) == of_text.sum() < weights.sum()
    np.testing.assert_allclose(sums["mlm"]["loss"], (losses * weights).sum(), rtol=1e-5)
    np.testing.assert_allclose(sums["text_token"]["loss"], (losses * of_text).sum(), rtol=1e-5)
    np.testing.assert_allclose(sums["text_token"]["unigram_loss"], (nats[labels] * of_text).sum(), rtol=1e-5)


def test_flops_count_a_prediction_at_every_position(corpus):
    config = recipe(corpus, **CAUSAL_FIRST)
    assert phase_flops(config, 0) == training_flops(config.model, 32, 32)
    assert phase_flops(config, 1) == training_flops(config.model, 32, 5) - unread_flops(config.model, 32, 6)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({**NEXT, "model.attention": "bidirectional"}, "model.attention: needs causal for objective.tokens next"),
        ({"model.attention": "causal"}, "objective.tokens: needs next for model.attention causal"),
        ({**NEXT, "objective.pair": "nsp"}, "objective.pair: needs none if next tokens are predicted"),
        ({**CAUSAL_FIRST, "objective.pair": "sop"}, "objective.pair: needs none if next tokens are predicted"),
        ({"objective.tokens": "all"}, "objective.tokens: needs one of masked, next"),
        ({"model.attention": "left"}, "model.attention: needs one of bidirectional, causal"),
        ({"phases.0.tokens": "masked"}, "phases.0.tokens: needs next. Received: 'masked'"),
    ],
)
def test_settings_that_do_not_fit_together_are_refused(settings, message):
    with pytest.raises(UserError, match=message):
        recipe("text.txt", **settings)


def test_older_recipes_and_runs_predict_masks():
    config = PretrainConfig.from_mapping({})
    assert config.objective.terms == ("mlm", "nsp") and config.phase_objective(config.phases[0]) == config.objective
