"""An objective that the package has never heard of, registered by this file alone: its term and its layer."""

import os
import shutil

import keras
import numpy as np
import pytest
import tensorflow as tf
from corpus import write_corpus
from keras import ops
from pretraining import metrics, recipe
from said import listen

from keras_bert.checkpoints.model_folder import open_model_folder
from keras_bert.cli.inspect import _contents
from keras_bert.cli.pretrain import _show
from keras_bert.core.errors import UserError
from keras_bert.export.serving_function import serving_function
from keras_bert.inference.loading import load
from keras_bert.models.objectives import ClassTerm
from keras_bert.models.pretraining import BertForPreTraining
from keras_bert.models.sizes import training_flops
from keras_bert.models.tensor_names import dense
from keras_bert.models.term import register_term, unregister_term
from keras_bert.tasks.pretraining.batch_sources import open_batch_sources
from keras_bert.tasks.pretraining.engine import phase_flops
from keras_bert.tasks.pretraining.run import _columns, pretrain
from keras_bert.training.run_folder import RunFolder

WITH_IT = {"objective.auxiliary": ["fill"], "training.steps": 6, "training.evaluate_every": 3}


@keras.saving.register_keras_serializable(package="made_up")
class FillHead(keras.layers.Layer):
    """Pooled output [batch, hidden] -> logits [batch, 4] float32."""

    def __init__(self, hidden_size, **kwargs):
        super().__init__(**kwargs)
        self.hidden_size = hidden_size
        self.classifier = keras.layers.Dense(4, dtype=self.dtype_policy, name="classifier")

    def build(self, input_shape):
        self.classifier.build((None, self.hidden_size))

    def call(self, pooled_output):
        return ops.cast(self.classifier(pooled_output), "float32")


class Fill(ClassTerm):
    """Which quarter of a row's length its tokens fill."""

    name, title, heading, sentence = "fill", "fill of rows", "fill", "how full rows are"
    weight, pools = 0.5, True

    def features(self, rows):
        return {"fill_labels": ops.minimum(rows.lengths * 4 // rows.word_ids.shape[1], 3)}

    def make_head(self, model):
        return FillHead(model.config.hidden_size, dtype=model.dtype_policy, name=self.head)

    def tensors(self):
        return dense("fill_head.classifier", "made_up.fill", "made_up/fill")

    def logits(self, head, encoded, inputs, training):
        return head(encoded["pooled_output"])

    def labels(self, batch):
        return batch["fill_labels"]

    def flops(self, config, predictions):
        return 2 * 4 * config.hidden_size


@pytest.fixture(scope="module", autouse=True)
def term():
    yield (made := register_term(Fill()))
    unregister_term(made)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("corpus") / "text.txt")


@pytest.fixture(scope="module")
def run(corpus, tmp_path_factory):
    """A finished run of the paper's objectives and the made-up one."""
    run = RunFolder(str(tmp_path_factory.mktemp("run") / "run"))
    pretrain(recipe(corpus, **WITH_IT), run)
    return run


def test_it_is_trained_and_validated_beside_the_others(run, capsys):
    lines = [line for line in metrics(run) if "loss" in line]
    assert lines
    for line in lines:
        # Its weight is in its own figure too.
        assert line["loss"] == pytest.approx(line["mlm_loss"] + line["nsp_loss"] + line["fill_loss"])
        assert line["fill_loss"] < 0.5 * 2 * np.log(4)
    results = run.results()
    assert 0 <= results["eval_fill_accuracy"] <= 1
    _show(results)
    assert f", fill of rows {results['eval_fill_accuracy']:.1%}." in capsys.readouterr().out
    assert [column.heading for column in _columns(("mlm", "fill"))] == ["perplexity", "masked LM", "fill"]


@pytest.mark.slow
def test_a_run_resumes_with_it(corpus, run, tmp_path):
    """From its checkpoint at step 3, as after a kill before the one at its end."""
    stopped = RunFolder(shutil.copytree(run.path, str(tmp_path / "stopped")))
    os.remove(stopped.results_file)
    shutil.rmtree(f"{stopped.checkpoints}/step-000000006")
    said = listen()
    pretrain(recipe(corpus, **WITH_IT), stopped)
    assert "Resuming from step 3." in said and metrics(stopped) == metrics(run)
    with pytest.raises(UserError, match="objective.auxiliary.0: was 'fill'"):
        pretrain(recipe(corpus), RunFolder(stopped.path))


def test_it_is_stored_opened_again_and_the_model_is_exported(run):
    folder = open_model_folder(run.path)
    assert "fill of rows head" in " ".join(_contents(folder))
    with open(os.path.join(run.model, "README.md"), encoding="utf-8") as stream:
        card = stream.read()
    assert "masked LM and next sentence prediction and how full rows are" in card and "fill_accuracy" in card
    model = BertForPreTraining(folder.config, terms=("fill",))
    report = folder.load_into(model)
    assert not report.made_new and not report.unused
    again = keras.models.model_from_json(model.to_json())
    assert again.terms == ("nsp", "fill") and isinstance(again.fill_head, FillHead)

    loaded = load(run.path)
    assert loaded.model.fill_head is None
    signatures = serving_function(loaded).signatures
    text = tf.constant(["The cat sees the [MASK] in the garden."])
    assert all(output.shape[0] is not None for output in signatures["serving_default"](text=text).values())


@pytest.mark.slow
def test_raw_text_has_its_labels_too(corpus, tmp_path):
    """Next sentence pairs are made of it too, as of prepared text."""
    sources = open_batch_sources(recipe(corpus, **WITH_IT, **{"data.source": "text"}), str(tmp_path / "data"))
    batch = next(sources.training[0].epoch(0).as_numpy_iterator())
    assert {"fill_labels", "next_sentence_labels"} < set(batch)
    np.testing.assert_array_equal(batch["fill_labels"], np.minimum(4 * batch["input_mask"].sum(axis=1) // 32, 3))


def test_its_products_are_counted(corpus):
    config = recipe(corpus, **WITH_IT)
    assert phase_flops(config, 0) == training_flops(config.model, 32, 5) + 3 * 2 * 4 * config.model.hidden_size


def test_names_that_nobody_registered_are_refused():
    with pytest.raises(ValueError, match="fill: already registered"):
        register_term(Fill())
    with pytest.raises(UserError, match=r"objective.auxiliary: needs registered terms \(fill\). Received: \['full'\]"):
        recipe("text.txt", **{"objective.auxiliary": ["full"]})
    with pytest.raises(UserError, match="objective.auxiliary: needs no such term if next tokens are predicted"):
        next_tokens = {"model.attention": "causal", "objective.tokens": "next", "objective.pair": "none"}
        recipe("text.txt", **WITH_IT, **next_tokens)
    with pytest.raises(ValueError, match="terms: needs names among mlm, .*, fill. Received: 'full'"):
        BertForPreTraining(recipe("text.txt").model, terms=("full",))
