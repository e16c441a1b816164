"""A kind of task that the package does not know, registered by this file alone."""

import dataclasses
import json
import os
import subprocess
import sys
from typing import ClassVar

import keras
import numpy as np
import pytest
import tensorflow as tf
from finetuning import write_reviews, write_tiny_bert
from keras import ops

import keras_bert
from keras_bert.config.finetuning import FinetuneConfig
from keras_bert.export.saved_model import write_version
from keras_bert.export.serving_function import serving_function
from keras_bert.models.encoder_with_heads import EncoderWithHeads
from keras_bert.models.tensor_names import StoredName, TensorName
from keras_bert.tasks.classification.data import own_table
from keras_bert.tasks.classification.head import ClassificationConfig
from keras_bert.tasks.classification.problem import SequenceProblem
from keras_bert.tasks.classification.serving import classification_signatures
from keras_bert.tasks.finetuned_model import FinetunedModel, predict
from keras_bert.tasks.finetuning.runs import FinetuningRuns
from keras_bert.tasks.kind import TaskKind, register, unregister

PART = "mean_classifier"


@dataclasses.dataclass(frozen=True)
class MeanConfig(ClassificationConfig):
    architecture: ClassVar[str] = "BertForMeanClassification"


@keras.saving.register_keras_serializable(package="made_up")
class BertForMeanClassification(EncoderWithHeads):
    """Classifies by the mean of the last states, where BERT's own classifier takes [CLS]."""

    def __init__(self, config, num_labels, **kwargs):
        super().__init__(config, with_pooler=False, **kwargs)
        self.num_labels = num_labels
        self.mean_classifier = self.make_classifier(num_labels, PART)
        self.build()

    def call(self, inputs, training=False):
        states = self.encoder(inputs, training=training)["sequence_output"]
        return {"logits": self.classify(states, inputs["input_mask"], training)}

    def classify(self, states, mask, training=False):
        mask = ops.cast(mask, "float32")[..., None]
        mean = ops.sum(states * mask, axis=1) / ops.maximum(ops.sum(mask, axis=1), 1.0)
        return self.mean_classifier(mean, training=training)


class MeanClassification(TaskKind):
    head, part, tasks = MeanConfig, PART, ("mean_of_states",)
    tensors = {
        PART: tuple(
            TensorName(f"{PART}.dense.{name}", StoredName(f"keras_bert.{PART}.{name}"), StoredName(f"{PART}/{name}"))
            for name in ("kernel", "bias")
        )
    }
    titles = {PART: "classifier of the mean"}
    in_transformers = False
    pipeline = "text-classification"

    def make_model(self, config, head, **keras_options):
        return BertForMeanClassification(config, head.num_labels, **keras_options)

    def signatures(self, bert, text_inputs, network, n_best):
        def logits_of(inputs):
            states = network.encode(inputs)["sequence_output"]
            return network.run(lambda model: model.classify(states, inputs["input_mask"]))

        return classification_signatures(bert.head, text_inputs, network, logits_of)

    def open_problem(self, config, tokenizer, head, task_record, own):
        problem = SequenceProblem(own_table(config.data, head), "", tokenizer, config, head)
        problem.head = MeanConfig(problem.head.labels, problem.head.problem_type)
        return problem


@pytest.fixture
def kind():
    yield (made := register(MeanClassification()))
    unregister(made)


@pytest.mark.slow
def test_it_trains_evaluates_predicts_exports_and_reloads(kind, tmp_path):
    train, dev = (write_reviews(tmp_path / f"{name}.jsonl", count) for name, count in (("train", 120), ("dev", 40)))
    run = str(tmp_path / "run")
    config = FinetuneConfig.from_mapping(
        {
            "task": "mean_of_states",
            "init": write_tiny_bert(tmp_path / "bert"),
            "data": {"train": train, "dev": dev},
            "optimizer": {"learning_rate": 5e-3},
            "input": {"max_length": 16},
            "training": {"batch_size": 24, "epochs": 8.0},
        }
    )
    results = FinetuningRuns(config).one(run)
    with open(f"{run}/model/config.json", encoding="utf-8") as stream:
        stored = json.load(stream)
    assert stored["architectures"] == ["BertModel"] and stored["keras_bert"]["architecture"] == MeanConfig.architecture

    bert = keras_bert.load(run)
    assert isinstance(bert.model, BertForMeanClassification) and isinstance(bert.head, MeanConfig)
    assert not bert.report.made_new
    finetuned = FinetunedModel(run)
    assert finetuned.evaluate("dev")["accuracy"] == results["splits"]["dev"]["accuracy"]

    written, count = predict(finetuned, ["dev"], str(tmp_path / "answers.jsonl"))
    assert count == 40
    with open(written[0], encoding="utf-8") as stream:
        answers = [json.loads(line) for line in stream]

    version = write_version(str(tmp_path / "served"), serving_function(bert))
    served = tf.saved_model.load(version).signatures["serving_default"]
    texts = tf.constant([answer["text"] for answer in answers])
    probabilities = next(value for name, value in served(text=texts).items() if name == "probabilities").numpy()
    assert len({answer["label"] for answer in answers}) == 2
    assert [bert.head.labels[row.argmax()] for row in probabilities] == [answer["label"] for answer in answers]
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-5)


def test_names_are_taken_once(kind):
    with pytest.raises(ValueError, match="BertForMeanClassification: already registered"):
        register(MeanClassification())


def test_a_name_of_the_packages_own_is_taken_even_before_anything_asked_for_one():
    """Tested in a fresh process: the error must not come later, in whatever asks for a kind first."""
    program = (
        "from keras_bert.tasks.kind import TaskKind, register\n"
        "from keras_bert.tasks.tagging.task import Tagging\n"
        "try: register(Tagging())\n"
        "except ValueError as error: print(error)\n"
        "from keras_bert.tasks.kind import task_kinds\n"
        "print(task_kinds()[0].head.architecture)\n"
    )
    root = os.path.dirname(os.path.dirname(keras_bert.__file__))
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=root).stdout
    assert told.splitlines() == ["BertForTokenClassification: already registered.", "BertForSequenceClassification"]
