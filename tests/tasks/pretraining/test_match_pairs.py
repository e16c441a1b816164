"""Preparing a model for tasks that compare texts: what is kept of it, logged, written and refused."""

import numpy as np
import pytest
import safetensors.numpy
import tensorflow as tf
from pretraining import metrics, recipe

from keras_bert.api.pretraining import pretraining_recipe
from keras_bert.config.recipes import find_config
from keras_bert.core.errors import UserError
from keras_bert.layers.embeddings import scaled_sinusoids
from keras_bert.models.term import RUNNING_TEXT, all_terms
from keras_bert.tasks.pretraining.run import Pretraining, pretrain
from keras_bert.training.run_folder import RunFolder

RELATED = {"objective.pair": "related", "objective.match": True}
ANEW = {
    "initialization.replaces": True,
    "initialization.attention": "mimetic",
    "initialization.position_embeddings": "sinusoidal",
}


@pytest.fixture(scope="module")
def first(corpus, tmp_path_factory):
    """A finished run of the masked LM."""
    run = RunFolder(str(tmp_path_factory.mktemp("first") / "run"))
    pretrain(recipe(corpus, **{"training.steps": 1, "objective.pair": "none"}), run)
    return run


def tensors(run):
    return safetensors.numpy.load_file(f"{run.model}/model.safetensors")


def test_positions_queries_and_keys_begin_anew_and_all_else_is_the_models(corpus, first, tmp_path):
    with RunFolder(str(tmp_path / "run")) as run:
        pretraining = Pretraining(recipe(corpus, init=first.path, **RELATED, **ANEW), run)
        pretraining.build()
        pretraining.restore()
        encoder = pretraining.engine.model.encoder
    stored, config = tensors(first), encoder.config
    queries = stored["bert.encoder.layer.0.attention.self.query.weight"]
    assert not np.allclose(encoder.blocks[0].attention.query.kernel.numpy(), queries.T)
    sinusoids = scaled_sinusoids(*encoder.embeddings.position_embeddings.shape, config.initializer_range)
    np.testing.assert_allclose(encoder.embeddings.position_embeddings.numpy(), sinusoids, rtol=1e-6)
    words = stored["bert.embeddings.word_embeddings.weight"]
    np.testing.assert_array_equal(encoder.embeddings.word_embeddings.numpy(), words)
    values = stored["bert.encoder.layer.0.attention.self.value.weight"]
    np.testing.assert_array_equal(encoder.blocks[0].attention.value.kernel.numpy(), values.T)


@pytest.mark.slow
@pytest.mark.parametrize("source", ["files", "text"])
def test_all_figures_are_logged_and_an_ordinary_bert_is_written(corpus, first, tmp_path, source):
    run = RunFolder(str(tmp_path / "run"))
    results = pretrain(recipe(corpus, init=first.path, **RELATED, **ANEW, **{"data.source": source}), run)
    lines = [line for line in metrics(run) if "loss" in line]
    for line in lines:
        assert line["loss"] == pytest.approx(line["mlm_loss"] + line["related_loss"] + line["match_loss"])
    assert lines and {"eval_match_accuracy", "eval_related_accuracy", "eval_perplexity"} <= {*results}
    before, after = tensors(first), tensors(run)
    assert {name: value.shape for name, value in after.items()} == {name: value.shape for name, value in before.items()}
    # The head that was not trained is the model's.
    np.testing.assert_array_equal(after["cls.seq_relationship.weight"], before["cls.seq_relationship.weight"])


def test_only_pairs_are_told_apart():
    term = next(term for term in all_terms() if term.name == "related")
    batch = {
        "related_labels": tf.constant([0, 1, RUNNING_TEXT, 1]),
        "example_weights": tf.constant([1.0, 1.0, 1.0, 0.0]),
    }
    np.testing.assert_array_equal(term.weights(batch), [1, 1, 0, 0])
    logits = tf.constant([[2.0, 0.0]] * 4)
    assert np.isfinite(term.metrics(logits, term.labels(batch))["loss"]).all()


def test_words_are_matched_in_related_pairs_alone():
    message = "objective.match: needs objective.pair related. Received: 'true with objective.pair nsp'"
    with pytest.raises(UserError, match=message):
        recipe("text.txt", **{"objective.match": True})


def test_the_recipe_needs_a_model():
    """Without one, it would train a new BERT-base for 400 steps."""
    with pytest.raises(UserError, match="initialization.replaces: needs a model to start from"):
        pretraining_recipe(find_config("pretrain", "match_pairs"), None, None, None, {"data.files": ["text.txt"]})
