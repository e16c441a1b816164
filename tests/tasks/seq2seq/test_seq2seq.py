"""Texts for texts: `evaluate`, `predict`, Python and an export all write alike what was learned."""

import dataclasses
import json
import os
import re

import numpy as np
import pytest
import tensorflow as tf
from text_pairs import pairs, write_pairs, write_tiny_bart

import keras_bert
from keras_bert.checkpoints.model_folder import open_model_folder
from keras_bert.config.finetuning import FinetuneConfig, Seq2SeqConfig
from keras_bert.core.errors import UserError
from keras_bert.export.litert import LITERT
from keras_bert.export.portable import portable_signature
from keras_bert.export.saved_model import write_version
from keras_bert.export.serving_function import serving_function
from keras_bert.tasks.ensemble import Ensemble
from keras_bert.tasks.finetuned_model import FinetunedModel, finetune_config, predict
from keras_bert.tasks.finetuning.initial_weights import set_initial_weights
from keras_bert.tasks.finetuning.pictures import results_groups
from keras_bert.tasks.finetuning.results import results_lines
from keras_bert.tasks.finetuning.runs import FinetuningRuns
from keras_bert.tasks.kind import kind_of_task
from keras_bert.tasks.seq2seq.network import BertForConditionalGeneration, TargetObjective, shifted, target_losses
from keras_bert.tasks.seq2seq.serving import written
from keras_bert.tasks.seq2seq.task import ConditionalGenerationConfig

DEV = 24


@pytest.fixture(scope="module")
def bart(tmp_path_factory):
    return write_tiny_bart(tmp_path_factory.mktemp("bart") / "model")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pairs")
    return {"train": write_pairs(folder / "train.jsonl", 160), "dev": write_pairs(folder / "dev.jsonl", DEV, seed=1)}


def config_of(init, data, **overrides):
    values = {
        "task": "seq2seq",
        "init": init,
        "data": data,
        "input": {"max_length": 16},
        "seq2seq": {"max_target_length": 8, "metrics": ["exact_match", "chrf"], "beams": 2, "length_penalty": 0.5},
        "optimizer": {"learning_rate": 1e-2},
        "training": {"batch_size": 16, "epochs": 8, "evaluate_every": 40, "log_every": 20},
    }
    return FinetuneConfig.from_mapping(values, overrides)


@pytest.fixture(scope="module")
def trained(tmp_path_factory, bart, data):
    """(the run's folder, its results)."""
    path = str(tmp_path_factory.mktemp("run") / "run")
    return path, FinetuningRuns(config_of(bart, data)).one(path)


def test_it_learns_what_to_write(trained):
    _, results = trained
    found = results["splits"]["dev"]
    assert results["main_metric"] == "exact_match" and found["exact_match"] > 90 and found["chrf"] > 90
    assert results["baseline"]["dev"]["exact_match"] == 0 and 0 < found["loss"] < 0.3
    assert results["counts"] == {"dev": DEV}


@pytest.mark.slow
def test_answers_are_the_same_everywhere(trained, data, tmp_path):
    """In a file of answers, in Python, and as the first beam of an export."""
    model, output = FinetunedModel(trained[0], asked=data["dev"], n_best=2), tmp_path / "answers.jsonl"
    predict(model, ["input"], str(output))
    lines = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    texts = [text for text, _ in pairs(DEV, seed=1)]
    assert [line["text"] for line in lines] == texts
    bert = keras_bert.load(trained[0])
    for line, answer in zip(lines, bert.predict(texts), strict=True):
        assert answer.text == line["written"] and answer.texts == [one["written"] for one in line["n_best"]]
        np.testing.assert_allclose(answer.score, line["score"], rtol=1e-4)
    served = tf.saved_model.load(write_version(tmp_path / "served", serving_function(bert)))
    found = served.signatures["serving_default"](text=tf.constant(texts[:5]))
    assert [text.decode() for text in found["written"].numpy()[:, 0]] == [line["written"] for line in lines[:5]]
    np.testing.assert_allclose(found["scores"][:, 0], [line["score"] for line in lines[:5]], rtol=1e-4)


def test_its_folder_is_a_whole_model_of_transformers_that_scores_alike(trained, data):
    path, results = trained
    folder = os.path.join(path, "model")
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as stream:
        fields = json.load(stream)
    assert fields["architectures"] == ["BartForConditionalGeneration"]
    with open(os.path.join(folder, "generation_config.json"), encoding="utf-8") as stream:
        generation = json.load(stream)
    assert generation.items() >= {"max_length": 9, "num_beams": 2, "length_penalty": 0.5, "eos_token_id": 2}.items()
    again = FinetunedModel(folder, {"dev": data["dev"]})
    expected = {name: pytest.approx(value, rel=1e-3) for name, value in results["splits"]["dev"].items()}
    assert again.config.seq2seq == config_of("", data).seq2seq and again.evaluate("dev") == expected


@pytest.mark.slow
def test_the_code_of_its_card_writes_a_text(trained, monkeypatch, capsys):
    monkeypatch.chdir(os.path.join(trained[0], "model"))
    with open("README.md", encoding="utf-8") as stream:
        [code] = re.findall(r"^## Use in keras_bert\n.*?^```python\n(.*?)^```", stream.read(), re.DOTALL | re.MULTILINE)
    exec(code, {})
    assert re.search(r"(red|blue|green)\.", capsys.readouterr().out)


def test_the_loss_is_the_mean_over_all_targets_of_what_pytorch_calls_smoothed():
    """A weight of 0 leaves out an example that fills the batch, and padding does not count."""
    rng = np.random.default_rng(0)
    logits, smoothing = rng.normal(size=(3, 4, 7)).astype("float32"), 0.1
    targets = np.array([[3, 2, -1, -1], [1, 5, 6, 2], [3, 2, 2, 2]], "int32")
    batch = {"target_ids": tf.constant(targets), "example_weights": tf.constant([1.0, 1.0, 0.0])}
    log_probabilities = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    wanted = (1 - smoothing) * np.eye(7)[np.maximum(targets, 0)] + smoothing / 7
    expected = -(wanted * log_probabilities).sum(-1)[:2][targets[:2] >= 0]
    objective = TargetObjective(smoothing)
    assert float(objective.counts(batch)["loss"]) == 6
    received = float(objective.sums({"logits": tf.constant(logits)}, batch)["loss"]["loss"])
    np.testing.assert_allclose(received, expected.sum(), rtol=1e-5)
    assert shifted(tf.constant(targets), 9).numpy()[:2].tolist() == [[9, 3, 2, 0], [9, 1, 5, 6]]


@pytest.mark.parametrize(
    ("rows", "changes", "told"),
    [
        ([{"text": "a", "target": " "}], {}, r"train.jsonl line 1: needs a text to write in the column 'target'"),
        ([{"text": "a"}], {}, r"train.jsonl line 1: needs a JSON object with 'text', 'target'"),
        ([{"text": "a", "target": "b"}], {"data.label": "text"}, "needs another column than the text"),
        ([{"text": "a", "target": "b"}], {"data.texts": ["a", "b"]}, "needs the name of one column"),
        ([{"text": "a", "target": "b"}], {}, "needs enough rows to hold out a share"),
        ([{"text": "a", "target": "b"}], {"training.lora_rank": 4}, "lora_rank: needs a task on an encoder alone"),
        ([{"text": "a", "target": "b"}], {"input.long": "windows"}, "input.long: needs truncate or head_tail"),
    ],
)
def test_what_cannot_be_learned_from_is_refused_in_one_line(rows, changes, told, bart, tmp_path):
    path = tmp_path / "train.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    with pytest.raises(UserError, match=told) as refused:
        FinetuningRuns(config_of(bart, {"train": str(path)}, **changes))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("split", ["dev", "test"])
def test_scores_on_the_training_examples_are_told(bart, data, split, caplog):
    """Under another spelling of the path too."""
    FinetuningRuns(config_of(bart, data))
    assert "is train" not in caplog.text
    path = data["train"].replace("/train.jsonl", "/./train.jsonl")
    FinetuningRuns(config_of(bart, {**data, split: path}))
    assert f"{path}: is train and {split}, so its scores say nothing about other texts." in caplog.text


def test_a_model_without_a_decoder_and_litert_are_refused(init, data, bart):
    with pytest.raises(UserError, match="needs a model with a decoder, such as BART, for seq2seq. Received: BERT"):
        FinetuningRuns(config_of(init, data))
    with pytest.raises(UserError, match="seq2seq: needs a task that writes texts. Received: text"):
        FinetuningRuns(config_of(bart, {**data, "label": "target"}, task="text"))
    with pytest.raises(UserError, match="--format litert needs a model that answers in one pass"):
        portable_signature(keras_bert.load(bart), LITERT)


def test_the_recipe_of_a_pretraining_run_is_not_taken_for_that_of_a_task(bart, tmp_path):
    """`predict` with a BART pretrained here would say that its recipe's section `model` is no setting."""
    (tmp_path / "config.yaml").write_text("model: {model_type: bart}\n", encoding="utf-8")
    folder = dataclasses.replace(open_model_folder(bart), other_fields={"keras_bert": {"task": "seq2seq"}})
    assert finetune_config(str(tmp_path), folder, {}).task == "seq2seq"


def test_a_folder_that_names_no_class_with_a_head_starts_with_its_decoder(bart):
    """facebook/bart-base is a BartModel: its decoder would begin anew and lose all that it has learned."""
    folder = open_model_folder(bart)
    folder = dataclasses.replace(folder, other_fields={**folder.other_fields, "architectures": ["BartModel"]})
    assert folder.head is None
    model = BertForConditionalGeneration(folder.config)
    set_initial_weights(model, config_of(bart, {}), folder, ConditionalGenerationConfig())
    [name, *_] = folder.names("decoder")
    np.testing.assert_array_equal(model.decoder.embeddings.position_embeddings, folder.tensors.read(name))


def test_of_a_frozen_encoder_the_decoder_alone_is_trained(bart, data, tmp_path):
    """The word embeddings are the encoder's, so they and the output layer stay too. Dropout is the recipe's."""
    path, settings = str(tmp_path / "run"), {"training.freeze": True, "training.steps": 2, "training.dropout": 0.3}
    FinetuningRuns(config_of(bart, data, **settings)).one(path)
    config = keras_bert.load(path).config
    assert (config.hidden_dropout_prob, config.attention_probs_dropout_prob, config.activation_dropout) == (0.3,) * 3
    before, after = keras_bert.load(bart).model, keras_bert.load(path).model
    for old, new in zip(before.encoder.weights, after.encoder.weights, strict=True):
        np.testing.assert_array_equal(old, new, old.path)
    assert all((old.numpy() != new.numpy()).any() for old, new in zip(before.decoder.weights, after.decoder.weights))


def test_a_source_is_read_once_for_its_loss_and_its_text(trained, data, monkeypatch):
    problem, read = FinetuningRuns(config_of(trained[0], data)).problem, []
    model = keras_bert.load(trained[0]).model
    batch = {"target_ids": tf.constant([[5, 6, 2]]), "input_type_ids": tf.zeros([1, 3], tf.int32)}
    batch |= {"input_word_ids": tf.constant([[0, 7, 2]]), "input_mask": tf.ones([1, 3], tf.int32)}
    expected = target_losses(model(batch)["logits"], batch["target_ids"])
    encoder = type(model.encoder)
    whole = encoder.call
    monkeypatch.setattr(encoder, "call", lambda *options, **more: read.append(1) or whole(*options, **more))
    np.testing.assert_allclose(problem.answering(model)(batch)["losses"], expected, rtol=1e-5)
    assert len(read) == 1


def test_the_table_names_the_trivial_answer_for_what_it_is(trained):
    """A task without classes has no majority: a model has to beat a copy of the text."""
    header, *_ = results_lines(trained[1])
    assert header.split() == ["split", "metric", "score", "copy"]
    assert "copy" in results_groups(trained[1], ())["dev exact_match"]
    assert next(results_lines({**trained[1], "task": "sst2"})).split()[-1] == "majority"


def test_texts_without_a_character_are_told(bart, data, tmp_path):
    """Otherwise the user would not know that a model learns a text for no text, and writes it for any."""
    path = tmp_path / "train.jsonl"
    path.write_text('{"text": "a", "target": "b"}\n{"text": " ", "target": "b"}\n', encoding="utf-8")
    problem = FinetuningRuns(config_of(bart, {**data, "train": str(path)})).problem
    assert problem.notes == [f"{path}: empty texts: 1 (the first: {path} line 2)"]


def test_texts_to_read_take_noise_and_what_to_write_does_not(bart, data):
    config = config_of(bart, data, **{"noise.kinds": ["nospace"]})
    problem = FinetuningRuns(config).problem
    rows, _ = problem.training_rows(1)
    plain, noisy = np.split(rows.targets.ids, 2)
    assert len(rows) == 320 and (plain == noisy).all() and rows.lengths[:160].sum() != rows.lengths[160:].sum()


def test_several_models_are_refused_before_one_of_them_writes(trained, data):
    """Otherwise they would be refused only after each had written the whole split."""
    model = FinetunedModel(trained[0], {"dev": data["dev"]})
    with pytest.raises(UserError, match="--model: needs one model for seq2seq. Received: 2. Score each by itself."):
        Ensemble([model, model])


def test_the_shortest_targets_are_those_of_the_setting(bart, data):
    """Labels such as "yes" need 4 tokens; the least of `input.max_length`, 8, must not hold for them."""
    rows = FinetuningRuns(config_of(bart, data, **{"seq2seq.max_target_length": 2})).problem.rows("train")
    assert (np.diff(rows.targets.starts) == 2).all()


def test_every_setting_of_the_search_reaches_it_and_transformers(bart, monkeypatch):
    """Otherwise the fewest tokens and when to stop could not be set."""
    monkeypatch.setattr("keras_bert.tasks.seq2seq.serving.decode", lambda step, cache, tokens, settings: settings)
    loaded = keras_bert.load(bart)
    settings = Seq2SeqConfig(8, 3, beams=2, length_penalty=0.5, early_stopping="never", no_repeat_ngram=2, n_best=2)
    inputs = keras_bert.encoder_inputs(loaded.tokenizer(["red cat"]), loaded.tokenizer.vocabulary)
    found = written(loaded.model, inputs, settings, loaded.tokenizer.vocabulary, 2)
    searched = {"beams": 2, "length_penalty": 0.5, "early_stopping": "never", "no_repeat_ngram": 2, "n_best": 2}
    assert vars(found).items() >= {**searched, "max_tokens": 8, "min_tokens": 3}.items()
    fields = {"pad_token_id": 1, "eos_token_id": 2, "keras_bert": vars(settings)}
    [said] = kind_of_task("seq2seq").folder_files(loaded.config, fields).values()
    assert said["early_stopping"] == "never" and said["min_new_tokens"] == 3
    with pytest.raises(ValueError, match=r"min_target_length: needs at most max_target_length \(8\). Received: 9."):
        Seq2SeqConfig(8, 9)


@pytest.mark.usefixtures("rewritten_graphs")  # The last test, because the graphs stay rewritten in this file.
def test_grappler_leaves_the_answers_of_a_graph_alone(bart):
    """If a step were part of the loop in the graph, Grappler would make empty tensors of it."""
    loaded = keras_bert.load(bart)
    settings = Seq2SeqConfig(max_target_length=4), loaded.tokenizer.vocabulary, 1
    inputs = keras_bert.encoder_inputs(loaded.tokenizer(["red cat", "so blue"]), loaded.tokenizer.vocabulary)
    inputs = {name: tf.constant(value) for name, value in inputs.items()}
    in_graph = tf.function(lambda inputs: written(loaded.model, inputs, *settings), autograph=False)(inputs)
    np.testing.assert_array_equal(in_graph.ids, written(loaded.model, inputs, *settings).ids)
