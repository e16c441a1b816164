"""A kind of model that the package has never heard of, registered by this file alone."""

import dataclasses
import json
import os

import keras
import numpy as np
import pytest
import tensorflow as tf
from tiny import VOCABULARY, random_weights, tiny_config

import keras_bert
from keras_bert.checkpoints.writing import convert_folder, write_model_folder
from keras_bert.config.heads import ClassificationConfig
from keras_bert.config.pretraining import PretrainConfig
from keras_bert.core.errors import UserError
from keras_bert.export.serving_function import serving_function
from keras_bert.inference.loading import load
from keras_bert.layers.pooler import Pooler
from keras_bert.models.bert.config import BertConfig
from keras_bert.models.bert.encoder import BertEncoder
from keras_bert.models.bert.kind import Bert
from keras_bert.models.kind import GoogleFiles, register_model_kind, unregister_model_kind
from keras_bert.models.pretraining import BertForPreTraining
from keras_bert.models.tensor_names import POOLER, StoredName, TensorName
from keras_bert.tasks.classification.network import BertForSequenceClassification


@dataclasses.dataclass
class ScaledConfig(BertConfig):
    model_type: str = "scaled"
    first_scale: float = 1.0


@keras.saving.register_keras_serializable(package="made_up")
class ScaledPooler(Pooler):
    """A pooler whose vectors have a learned scale."""

    def build(self, input_shape):
        super().build(input_shape)
        self.scale = self.add_weight(name="scale", shape=(1,), initializer="ones")

    def call(self, sequence_output):
        return super().call(sequence_output) * self.scale


@keras.saving.register_keras_serializable(package="made_up")
class ScaledEncoder(BertEncoder):
    def build(self, input_shape=None):
        super().build(input_shape)
        self.pooler.scale.assign([self.config.first_scale])

    def make_pooler(self):
        return ScaledPooler(self.config.hidden_size, dtype=self.dtype_policy, name="pooler")


class Scaled(Bert):
    model_type, title, config = "scaled", "Scaled", ScaledConfig
    class_prefix, google_files = "Scaled", GoogleFiles("scaled_config.json", "scaled.ckpt")

    def make_encoder(self, config, with_pooler=True, **keras_options):
        return ScaledEncoder(config, with_pooler=with_pooler, **keras_options)

    def parts(self, config):
        scale = TensorName("encoder.pooler.scale", StoredName("bert.pooler.scale"), StoredName("bert/pooler/scale"))
        parts = super().parts(config)
        return {**parts, POOLER: [*parts[POOLER], scale]}


@pytest.fixture(autouse=True)
def kind():
    yield (made := register_model_kind(Scaled()))
    unregister_model_kind(made)


def config():
    return ScaledConfig(**dataclasses.asdict(tiny_config()), first_scale=3.0)


def test_it_is_written_and_opens_again_in_both_formats(tmp_path):
    model = BertForPreTraining(config())
    stored = random_weights(model)
    folder, google = str(tmp_path / "model"), str(tmp_path / "google")
    write_model_folder(folder, model, VOCABULARY, lower_case=True)
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as stream:
        fields = json.load(stream)
    assert fields["architectures"] == ["ScaledForPreTraining"] and fields["model_type"] == "scaled"
    opened = keras_bert.open_model_folder(folder)
    assert opened.config == config() and "first_scale" not in opened.other_fields

    assert convert_folder(opened, "google", google, VOCABULARY) == []
    assert os.path.exists(os.path.join(google, "scaled_config.json"))
    for path in (folder, google):
        again = load(path)
        assert isinstance(again.encoder, ScaledEncoder) and not again.report.made_new and not again.report.unused
        np.testing.assert_array_equal(again.encoder.pooler.scale, stored["bert.pooler.scale"])
        np.testing.assert_array_equal(again.encode(["w1 w2"]), load(folder).encode(["w1 w2"]))


def test_it_has_every_head_and_is_exported(tmp_path):
    model = BertForSequenceClassification(config(), 2)
    head, folder = ClassificationConfig(("no", "yes"), "single_label_classification"), str(tmp_path / "model")
    write_model_folder(folder, model, VOCABULARY, lower_case=True, head=head)
    loaded = load(folder)
    assert isinstance(loaded.model, BertForSequenceClassification) and loaded.head == head
    served = serving_function(loaded).signatures["serving_default"](text=tf.constant(["w1 w2"]))
    expected = loaded.predict(["w1 w2"])[0].probabilities
    np.testing.assert_allclose(served["probabilities"][0], [expected["no"], expected["yes"]], rtol=1e-5)
    again = keras.models.model_from_json(model.to_json())
    assert type(again.config) is ScaledConfig and again.config == model.config


def test_a_recipe_names_it_and_its_own_fields():
    sizes = {"model_type": "scaled", "vocab_size": 60}
    recipe = PretrainConfig.from_mapping({"model": sizes}, {"model.first_scale": 2.0})
    assert recipe.model == ScaledConfig(vocab_size=60, first_scale=2.0)
    with pytest.raises(UserError, match="model.first_scale: no such setting"):
        PretrainConfig.from_mapping({"model": {"vocab_size": 60}}, {"model.first_scale": 2.0})
    with pytest.raises(UserError, match="model_type 'gpt' is not supported; a BERT.* or a Scaled is needed"):
        PretrainConfig.from_mapping({"model": {"model_type": "gpt"}})


def test_names_are_taken_once():
    with pytest.raises(ValueError, match="scaled: is registered already"):
        register_model_kind(Scaled())
