"""An ELMo-like model: what each direction sees, its folder, its pretraining and its features."""

import json
import os

import numpy as np
import pytest
from coming_back import assert_a_keras_file_keeps, reopened
from command_line import give
from corpus import write_corpus
from pretraining import metrics, recipe
from tiny import VOCABULARY, pretraining_batch, random_weights

import keras_bert
from keras_bert.checkpoints.writing import convert_folder
from keras_bert.core.errors import UserError
from keras_bert.export.serving_function import serving_function
from keras_bert.models import sizes
from keras_bert.models.bert.config import BertConfig
from keras_bert.models.elmo.encoder import ElmoEncoder
from keras_bert.models.elmo.kind import Elmo, ElmoConfig
from keras_bert.models.pretraining import BertForPreTraining
from keras_bert.tasks.classification.head import ClassificationConfig
from keras_bert.tasks.kind import kind_of_head
from keras_bert.tasks.pretraining.engine import phase_flops
from keras_bert.tasks.pretraining.run import pretrain
from keras_bert.tasks.tagging.head import FeatureTaggingConfig
from keras_bert.training.run_folder import RunFolder

CONFIG = ElmoConfig(vocab_size=60, hidden_size=16, max_position_embeddings=24, hidden_dropout_prob=0.0)
BOTH = {
    "model": {"model_type": "elmo", "vocab_size": 120, "hidden_size": 32, "max_position_embeddings": 48},
    "objective.tokens": "both",
    "objective.pair": "none",
    "training.steps": 4,
    "training.evaluate_every": 4,
}


@pytest.fixture(scope="module")
def model():
    made = BertForPreTraining(CONFIG)
    random_weights(made, scale=0.5)
    return made


@pytest.fixture(scope="module")
def batch():
    return pretraining_batch(CONFIG)


def test_each_direction_sees_its_own_side_alone(model, batch):
    """The first half of every layer changes from a changed token on, the second half up to it."""
    before = model.encoder(batch)["hidden_states"]
    assert len(before) == 3 and before[-1].shape[-1] == 16
    for place in (1, 4):
        ids = batch["input_word_ids"].copy()
        ids[:, place] = (ids[:, place] + 1) % 60
        after = model.encoder({**batch, "input_word_ids": ids})["hidden_states"]
        for old, new in zip(before, after):
            is_changed = ~np.isclose(old, new, rtol=1e-6, atol=1e-7)
            ahead, back = is_changed[..., :8].any(-1), is_changed[..., 8:].any(-1)
            assert not ahead[:, :place].any() and ahead[:, place].all()
            assert not back[:, place + 1 :].any() and back[:, place].all()
        assert is_changed[..., :8].any(-1)[:, place + 1].all() and is_changed[..., 8:].any(-1)[:, place - 1].all()


def test_padding_changes_no_real_token(model, batch):
    full = model.encoder(batch)
    for row, length in enumerate(batch["input_mask"].sum(axis=1)):
        alone = model.encoder({n: batch[n][row : row + 1, :length] for n in batch if n.startswith("input_")})
        for name in ("sequence_output", "pooled_output"):
            expected = full[name][row, :length] if name == "sequence_output" else full[name][row]
            np.testing.assert_allclose(alone[name][0], expected, rtol=1e-5, atol=1e-6)


def test_logits_are_of_each_half(model, batch):
    """Both directions share the output layer; without labels for the previous tokens, only the next are predicted."""
    states, table = model.encoder(batch)["sequence_output"], model.encoder.embeddings.word_embeddings
    inputs = {name: value for name, value in batch.items() if name.startswith("input_")}
    labels = {"next_token_ids": batch["input_word_ids"], "previous_token_ids": batch["input_word_ids"]}
    outputs = model({**inputs, **labels})
    np.testing.assert_allclose(outputs["mlm_logits"], model.mlm_head(states[..., :8], table), rtol=1e-6)
    np.testing.assert_allclose(outputs["previous_logits"], model.mlm_head(states[..., 8:], table), rtol=1e-6)
    assert set(model(inputs)) == {"mlm_logits"}


def test_its_size_is_that_of_the_table(model):
    counted = sum(int(np.prod(variable.shape)) for variable in model.weights)
    table = sizes.total(sizes.encoder_parts(CONFIG)) + sizes.total(sizes.head_parts(CONFIG))
    assert counted == table
    shown = give("inspect", "elmo-mini")
    assert "LSTM kernels" in shown.output
    assert phase_flops(recipe("text.txt", **BOTH), 0) == Elmo().training_flops(recipe("text.txt", **BOTH).model, 32, 0)


def test_its_folder_opens_again_and_is_served(model, batch, tmp_path):
    folder, again = str(tmp_path / "model"), reopened(model, batch, tmp_path / "model")
    assert isinstance(again.encoder, ElmoEncoder)
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as stream:
        fields = json.load(stream)
    assert fields["model_type"] == "elmo" and fields["architectures"] == ["ElmoForPreTraining"]
    assert "num_attention_heads" not in fields and BertConfig.from_file(f"{folder}/config.json") == CONFIG
    assert "from transformers" not in (tmp_path / "model" / "README.md").read_text("utf-8")
    served = serving_function(again)(["w1 w2 w3", "w4"])
    np.testing.assert_allclose(served["mean_embedding"], again.encode(["w1 w2 w3", "w4"]), rtol=1e-4, atol=1e-5)
    with pytest.raises(UserError, match="finetune --task ner --features weighted_all --init MODEL$"):
        again.fill(["w1 [MASK]"])
    with pytest.raises(UserError, match="needs model.attention causal to generate.*left_to_right_mini.$"):
        again.generate(["w1"])  # Nor is it sent to `fill`, which would send it on.
    with pytest.raises(UserError, match="Google has no format for an ELMo"):
        convert_folder(again.folder, "google", str(tmp_path / "google"), VOCABULARY)


@pytest.mark.slow
@pytest.mark.parametrize(
    "head", [ClassificationConfig(("no", "yes")), FeatureTaggingConfig(("O", "B"), "weighted_all", 4)], ids=str
)
def test_heads_and_features_are_on_top_of_it(head, batch, tmp_path):
    """The scalar mix takes its layers."""
    made = kind_of_head(head).make_model(CONFIG, head)
    random_weights(made)
    again = reopened(made, batch, tmp_path / "model", head)
    if isinstance(head, FeatureTaggingConfig):
        states = made.encoder(batch)["hidden_states"]
        np.testing.assert_array_equal(made.frozen_features(batch), np.stack(states[1:], axis=2))
    assert serving_function(again)(["w1 w2"])
    assert_a_keras_file_keeps(made, batch, tmp_path)


@pytest.mark.slow
def test_it_is_pretrained_in_both_directions(tmp_path):
    corpus, run = write_corpus(tmp_path / "text.txt"), RunFolder(str(tmp_path / "run"))
    initialization = {"word_embeddings": "corpus", "decoder_bias": "unigram"}
    results = pretrain(recipe(corpus, **BOTH, initialization=initialization), run)
    lines = [line for line in metrics(run) if "loss" in line]
    assert lines and all(line["loss"] == pytest.approx(line["lm_loss"] + line["previous_loss"]) for line in lines)
    assert results["eval_text_token_unigram_loss"] > 0 and results["eval_previous_accuracy"] >= 0
    loaded = keras_bert.load(run.path)
    assert loaded.config.model_type == "elmo" and loaded.config.hidden_size == 32
    card = open(f"{run.model}/README.md", encoding="utf-8").read()
    assert "previous tokens, right to left" in card and "An ELMo" in card


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"objective.tokens": "masked"}, "objective.tokens: needs both for this model.model_type"),
        ({"objective.tokens": "next"}, "model.attention: needs causal for objective.tokens next"),
        ({"objective.pair": "nsp"}, "objective.pair: needs none"),
        ({"phases.0.tokens": "next"}, "phases.0.tokens: needs no value for an ELMo"),
        ({"model.hidden_size": 33}, "hidden_size: needs an even number"),
        ({"model.attention": "causal"}, "attention: needs no value for an ELMo"),
        ({"model.positions": "sinusoidal"}, "positions: needs no value for an ELMo"),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings, message):
    with pytest.raises(UserError, match=message):
        recipe("text.txt", **{**BOTH, **settings})
    with pytest.raises(UserError, match="objective.tokens: needs masked for this model.model_type"):
        recipe("text.txt", **{"objective.tokens": "both", "objective.pair": "none"})


def test_initializations_that_it_has_no_place_for_are_refused(tmp_path):
    corpus = write_corpus(tmp_path / "text.txt", 40)
    with pytest.raises(UserError, match="initialization.position_embeddings: needs random"):
        pretrain(recipe(corpus, **BOTH, initialization="corpus"), RunFolder(str(tmp_path / "run")))
