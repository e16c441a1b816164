"""Pretraining of a model with a decoder, on corrupted text."""

import json

import numpy as np
import pytest
import tensorflow as tf
from pretraining import WITHOUT_DROPOUT, assert_resumes_like, losses_on, metrics, recipe
from tiny import random_weights

from keras_bert.inference.loading import load
from keras_bert.models.bart.kind import BartConfig
from keras_bert.models.encoder_decoder import EncoderDecoder
from keras_bert.models.t5.kind import T5Config
from keras_bert.tasks.pretraining.engine import make_objective, phase_flops, phase_predictions
from keras_bert.tasks.pretraining.run import pretrain
from keras_bert.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from keras_bert.training.run_folder import RunFolder

MODEL = {
    "model_type": "bart",
    "vocab_size": 300,
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "decoder_layers": 1,
    "decoder_attention_heads": 2,
    "decoder_ffn_dim": 32,
    "max_position_embeddings": 32,
}
BART = {
    "model": MODEL,
    "vocabulary.kind": "bytes",
    "objective.tokens": "decoded",
    "objective.pair": "none",
    "objective.packing": "document",
}
MASS = {**BART, "objective.corruption.kinds": ["fragment"]}


@pytest.fixture(scope="module")
def finished(corpus, tmp_path_factory):
    """(run folder, results) of a run by MASS, with dropout."""
    run = RunFolder(str(tmp_path_factory.mktemp("runs") / "mass"))
    return run, pretrain(recipe(corpus, **MASS), run)


def test_a_run_logs_its_own_figures_and_writes_the_whole_model(finished):
    run, results = finished
    last = [line for line in metrics(run) if "decoded_loss" in line][-1]
    assert last["loss"] == last["decoded_loss"] and not any(name.startswith("mlm") for name in last)
    assert abs(results["eval_text_token_loss"] - results["eval_text_token_unigram_loss"]) < 2.0
    with open(f"{run.model}/config.json", encoding="utf-8") as stream:
        assert json.load(stream)["architectures"] == ["BartForConditionalGeneration"]
    assert isinstance(load(run.path).model, EncoderDecoder)


@pytest.mark.slow
def test_a_run_resumes_bit_for_bit(corpus, finished, tmp_path, monkeypatch):
    run = RunFolder(str(tmp_path / "stopped"))
    assert_resumes_like(finished, recipe(corpus, **MASS), run, monkeypatch, stop=8, checkpoint=6)


@pytest.mark.slow
def test_slices_and_devices_give_the_losses_of_one(corpus, finished, tmp_path, monkeypatch, mirrored_strategy):
    """Texts differ in how many tokens are predicted, so a mean of means would be another loss."""
    changes = {**WITHOUT_DROPOUT, "model.activation_dropout": 0.0, "training.steps": 3, "training.log_every": 1}
    changes.update({"optimizer.warmup_steps": 1, "vocabulary.file": f"{finished[0].data}/vocab.json"})
    config, sliced = (recipe(corpus, **MASS, **changes, **{"training.accumulation": slices}) for slices in (1, 2))
    one = tf.distribute.OneDeviceStrategy("CPU:0")
    losses = losses_on(one, config, tmp_path / "one", monkeypatch)
    assert losses_on(mirrored_strategy, config, tmp_path / "two", monkeypatch) == pytest.approx(losses, rel=1e-5)
    assert losses_on(one, sliced, tmp_path / "slices", monkeypatch) == pytest.approx(losses, rel=1e-5)


@pytest.mark.parametrize("config", [BartConfig, T5Config])
def test_a_fragment_is_decoded_as_if_masked_tokens_were_before_it(config):
    """At half the cost, as in the paper's figure, with the places before the fragment hidden."""
    fields = {name: value for name, value in MODEL.items() if not name.startswith(("model_type", "decoder_"))}
    decoders = {name: value for name, value in MODEL.items() if name.startswith("decoder_")}
    model = EncoderDecoder(config(**fields, **(decoders if config is BartConfig else {})))
    random_weights(model)
    ids, places = np.random.default_rng(0).integers(5, 300, (2, 9)).astype("int32"), np.arange(9)
    first = np.array([3, 5], "int32")
    inputs = {"input_word_ids": ids, "input_mask": np.ones_like(ids), "input_type_ids": np.zeros_like(ids)}
    is_fragment = (places >= first[:, None]) & (places < first[:, None] + 4)
    whole = model({**inputs, "decoder_input_ids": ids, "decoder_mask": is_fragment.astype("int32")})["logits"]
    alone = model({**inputs, "decoder_input_ids": ids[is_fragment].reshape(2, 4), "decoder_first_place": first})
    expected = whole.numpy()[is_fragment].reshape(2, 4, -1)
    np.testing.assert_allclose(alone["logits"], expected, atol=1e-5)


def test_a_decoder_predicts_as_many_tokens_as_the_corruption_leaves_it(corpus):
    for kinds, predictions in ((["infilling"], 32), (["fragment"], 15), (["sentinels"], 7)):
        config = recipe(corpus, **BART, **{"objective.corruption.kinds": kinds})
        assert phase_predictions(config, 0) == predictions
        S, P, H, F, V = 32, predictions, 16, 32, 300
        encoder = 8 * S * H**2 + 4 * S**2 * H + 4 * S * H * F
        decoder = 12 * P * H**2 + 4 * P**2 * H + 4 * S * H**2 + 4 * P * S * H + 4 * P * H * F + 2 * P * H * V
        assert phase_flops(config, 0) == 3 * (encoder + decoder)


def test_sentinels_do_not_count_as_text(corpus):
    """No text has sentinels, so the unigram model would be surprised by each and seem far behind the trained one."""
    vocabulary = Vocabulary([*SPECIAL_TOKENS, "[unused0]", "[unused1]", "."])
    ids = [vocabulary.ids[token] for token in ("[unused0]", "[unused1]")]
    for kinds, counted in ((["sentinels"], 0), (["masking"], 2)):
        objective = make_objective(recipe(corpus, **{**BART, "objective.corruption.kinds": kinds}), vocabulary)
        assert len({*ids} - {*objective.special_ids}) == counted


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"objective.packing": "full"}, "objective.packing: needs document for tokens decoded"),
        ({"objective.pair": "sop"}, "objective.pair: needs none for tokens decoded"),
        ({"objective.tokens": "masked"}, "objective.tokens: needs decoded for this model.model_type"),
        ({"objective.corruption.kinds": []}, "kinds: needs at least one corruption"),
        ({"objective.corruption.kinds": ["rotation", "rotation"]}, "kinds: needs each corruption once"),
        ({"objective.corruption.kinds": ["rotation", "sentinels"]}, "kinds: needs sentinels alone"),
        ({"objective.corruption": {"kinds": ["rotation"], "share": 0.3}}, "share: needs no value for rotation"),
        (
            {"objective.corruption": {"kinds": ["fragment"], "span_length": 2}},
            "span_length: needs no value for fragment",
        ),
        ({"objective.span_boundary": True}, "objective.span_boundary: needs false if decoded tokens are predicted"),
        ({"phases.0.tokens": "next"}, "phases.0.tokens: needs no value for a BART, which predicts .* its decoder"),
    ],
)
def test_what_does_not_fit_is_refused(corpus, changes, message):
    with pytest.raises(Exception, match=message):
        recipe(corpus, **{**BART, **changes})
