"""Few-shot classification: its loss against NumPy, the solved head, the drawn examples, and a run from end to end."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf
from command_line import output_of
from finetuning import VOCABULARY, finetune_config, reviews, write_reviews, write_tiny_bert
from said import listen
from scipy.special import softmax

import keras_bert
from keras_bert.core.errors import RunStopped, UserError
from keras_bert.export.saved_model import write_version
from keras_bert.export.serving_function import serving_function
from keras_bert.tasks.classification.data import ExampleRow
from keras_bert.tasks.few_shot.network import LabelPairsObjective
from keras_bert.tasks.few_shot.problem import draw_shots, fit_logistic_regression
from keras_bert.tasks.few_shot.task import FewShotConfig
from keras_bert.tasks.finetuned_model import FinetunedModel
from keras_bert.tasks.finetuning.runs import FinetuningRuns
from keras_bert.tasks.problem import open_problem
from keras_bert.text.tokenizers import make_tokenizer
from keras_bert.training.metrics_log import read_metrics
from keras_bert.training.run_folder import RunFolder
from keras_bert.training.stop_request import StopRequest


def unit_vectors(count, size=6, seed=0):
    vectors = np.random.default_rng(seed).normal(size=(count, size)).astype("float32")
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def plain_loss(vectors, labels):
    """The mean over texts, computed pair by pair."""
    losses = []
    for text, label in zip(vectors, labels, strict=True):
        errors = {True: [], False: []}
        for other, its_label in zip(vectors, labels, strict=True):
            if other is not text:
                errors[label == its_label].append((text @ other - (label == its_label)) ** 2)
        means = [np.mean(found) for found in errors.values() if found]
        losses.append(np.mean(means) if means else 0.0)
    return np.mean(losses)


@pytest.mark.parametrize("labels", [[0, 1, 0, 2, 1], [1, 1, 1], [0, 1], [2]])
def test_the_loss_is_that_of_all_pairs_of_the_batch(labels):
    """Also with one class, one text per class or a single text; examples that fill the batch change nothing."""
    vectors = [*unit_vectors(len(labels))]
    filled = np.stack([*vectors, *unit_vectors(3, seed=1)])
    batch = {
        "labels": np.array([*labels, *labels[:1] * 3], "int32"),
        "example_weights": np.array([1] * len(labels) + [0] * 3, "float32"),
    }
    objective = LabelPairsObjective()
    sums, counts = objective.sums({"vectors": filled}, batch), objective.counts(batch)
    found = float(sums["loss"]["loss"]) / float(counts["loss"])
    assert found == pytest.approx(plain_loss(vectors, labels), rel=1e-5)


@pytest.mark.parametrize("classes", [2, 3])
def test_the_head_is_the_minimum_of_logistic_regression(classes):
    """The derivative of the regularized cross-entropy is 0 there. As in scikit-learn, two classes share one vector of
    weights, and more have one each."""
    rng = np.random.default_rng(classes)
    vectors, labels = rng.normal(size=(20, 5)), np.arange(20) % classes
    kernel, bias = fit_logistic_regression(vectors, labels)
    assert kernel.shape == (5, classes) and bias.shape == (classes,)
    errors = softmax(vectors @ kernel + bias, axis=1) - np.eye(classes)[labels]
    penalty = kernel if classes > 2 else 2 * kernel
    np.testing.assert_allclose(vectors.T @ errors + penalty, 0, atol=1e-6)
    np.testing.assert_allclose(errors.sum(axis=0), 0, atol=1e-6)


def test_texts_are_drawn_by_seed_whatever_their_order():
    rows = [ExampleRow([f"text {number}"], number % 3, number) for number in range(60)]
    first = draw_shots(rows, 4, 1)
    assert sorted(row.label for row in first) == [0] * 4 + [1] * 4 + [2] * 4
    assert [row.number for row in first] == sorted(row.number for row in first)
    backwards = draw_shots(rows[::-1], 4, 1)
    assert draw_shots([*rows[::-1], *rows], 4, 1)[::-1] == sorted(backwards, key=lambda row: row.number)
    assert draw_shots(rows, 4, 2) != first and len(draw_shots(rows, 99, 1)) == 60


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """(the model to start from, the training file, the dev file)."""
    folder = tmp_path_factory.mktemp("few_shot")
    train, dev = (write_reviews(folder / f"{name}.jsonl", *rows) for name, *rows in (("train", 200), ("dev", 40, 1)))
    return write_tiny_bert(folder / "bert"), train, dev


def config_of(files, **changes):
    init, train, dev = files
    given = {"data.train": train, "data.dev": dev, "data.label": "label", "data.shots": 40}
    return finetune_config(init, "few-shot", **{**given, "training.epochs": 3.0, **changes})


@pytest.fixture(scope="module")
def run(files, tmp_path_factory):
    """(the run's folder, its results)."""
    path = str(tmp_path_factory.mktemp("runs") / "few-shot")
    return path, FinetuningRuns(config_of(files)).one(path)


def head_of(path):
    model = keras_bert.load(path).model
    return [variable.numpy() for variable in (model.logistic_head.dense.kernel, model.logistic_head.dense.bias)]


def texts_of(file):
    with open(file) as stream:
        return [json.loads(line)["text"] for line in stream]


def test_it_learns_from_forty_texts_of_each_class(run):
    path, results = run
    assert results["splits"]["dev"]["accuracy"] > 0.65 > results["baseline"]["dev"]["accuracy"]
    losses = [line["loss"] for line in read_metrics(RunFolder(path).metrics_file) if "loss" in line]
    assert losses[-1] < 0.75 * losses[0]
    assert FinetunedModel(path).evaluate("dev")["accuracy"] == results["splits"]["dev"]["accuracy"]


def test_the_head_follows_from_the_encoder(run):
    """The written head belongs to the written encoder and the drawn texts, not to another epoch's encoder."""
    found = FinetunedModel(run[0])
    rows = found.problem.rows("train")
    assert len(rows) == 80
    outputs, _ = found.evaluate.outputs(rows)
    fitted = fit_logistic_regression(outputs["vectors"], rows.extra["labels"])
    for one, other in zip(head_of(run[0]), fitted, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


@pytest.mark.slow
def test_averaged_weights_and_another_seed_have_a_head_of_their_own(files, tmp_path):
    path = str(tmp_path / "run")
    config = config_of(files, **{"optimizer.weight_average": 0.5, "training.epochs": 1.0})
    results = FinetuningRuns(config).one(path, seed=config.training.seed + 1)
    found = FinetunedModel(path)
    rows = found.problem.rows("train")
    vectors = found.evaluate.outputs(rows)[0]["vectors"]
    np.testing.assert_allclose(head_of(path)[0], fit_logistic_regression(vectors, rows.extra["labels"])[0], atol=1e-5)
    assert found.evaluate("dev")["accuracy"] == results["splits"]["dev"]["accuracy"]


@pytest.mark.slow
def test_a_run_that_is_stopped_goes_on_to_the_same_end(run, files, tmp_path, monkeypatch):
    path, asked = str(tmp_path / "stopped"), []
    with monkeypatch.context() as patch:
        patch.setattr(StopRequest, "reason", lambda self: asked.append(1) or ("a test" if len(asked) == 17 else None))
        with pytest.raises(RunStopped):
            FinetuningRuns(config_of(files)).one(path)
    results = FinetuningRuns(config_of(files)).one(path)
    assert results["splits"] == run[1]["splits"] and results["best_step"] == run[1]["best_step"]
    for one, other in zip(head_of(path), head_of(run[0]), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.slow
def test_two_replicas_solve_one_head(files, tmp_path, mirrored_strategy):
    """Each replica compares only its own pairs, so the encoder differs; the head is solved from all texts."""
    path = str(tmp_path / "run")
    FinetuningRuns(config_of(files, **{"training.epochs": 1.0}), mirrored_strategy).one(path)
    found = FinetunedModel(path)
    rows = found.problem.rows("train")
    vectors = found.evaluate.outputs(rows)[0]["vectors"]
    np.testing.assert_allclose(head_of(path)[0], fit_logistic_regression(vectors, rows.extra["labels"])[0], atol=1e-5)


@pytest.mark.slow
def test_frozen_vectors_get_a_head_of_their_own(files, tmp_path):
    """Nothing else is left to train: the encoder stays as it is."""
    init, path = files[0], str(tmp_path / "run")
    FinetuningRuns(config_of(files, **{"training.freeze": True, "training.epochs": 1.0})).one(path)
    texts = texts_of(files[2])[:4]
    np.testing.assert_array_equal(keras_bert.load(path).encode(texts), keras_bert.load(init).encode(texts))


def test_each_seed_draws_texts_of_its_own(files):
    problem = open_problem(config_of(files), make_tokenizer(VOCABULARY))
    first, second, again = (problem.training_rows(seed)[0].ids for seed in (1, 2, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, second)
    assert problem.notes[-1].endswith("80 texts to train on, 40 of each of 2 classes.")


def test_the_command_python_and_the_export_answer_alike(run, files, tmp_path):
    bert, texts = keras_bert.load(run[0]), texts_of(files[2])[:6]
    answers = bert.predict(texts)
    assert isinstance(answers[0], keras_bert.Classification)
    output = tmp_path / "answers.jsonl"
    output_of("predict", "--model", run[0], "--input", files[2], "--output", output)
    written = [json.loads(line) for line in output.read_text().splitlines()]
    function = serving_function(bert)
    served = function(texts)
    for answer, line, label, probabilities in zip(answers, written, served["label"], served["probabilities"]):
        assert answer.label == line["label"] == label.decode()
        np.testing.assert_allclose(list(answer.probabilities.values()), probabilities, atol=1e-6)
    version = tf.saved_model.load(write_version(str(tmp_path / "served"), function))
    reloaded = version.signatures["serving_default"](text=tf.constant(texts))
    np.testing.assert_allclose(reloaded["probabilities"], served["probabilities"], atol=1e-6)


def test_in_python_with_the_recipe(files, tmp_path):
    rows = [{"text": text, "label": label} for text, label in reviews(30)]
    run = keras_bert.finetune(
        files[0], "few-shot", train=rows, dev=files[2], text="text", label="label", shots=4, steps=2, output=tmp_path,
        max_length=24,
    )  # fmt: skip
    assert run.results["steps"] == 2 and run.predict(["w1 good w2"])[0].label in ("negative", "positive")
    assert json.loads((tmp_path / "model" / "config.json").read_text())["architectures"] == ["BertModel"]
    assert keras_bert.load(str(tmp_path)).head == FewShotConfig(("negative", "positive"))


def write_table(path, rows):
    path.write_text("".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in rows))
    return str(path)


@pytest.mark.slow
def test_a_class_of_a_single_text_is_learned_too(files, tmp_path):
    train = write_table(tmp_path / "train.jsonl", [("w1", "a"), ("w2", "b"), ("w3", "b"), ("w4", "c")])
    dev = write_table(tmp_path / "dev.jsonl", [("w1", "a"), ("w2", "b")])
    runs = FinetuningRuns(config_of((files[0], train, dev), **{"training.epochs": 1.0}))
    assert runs.problem.notes == [f"{train}: 4 texts to train on, 1 to 2 of each of 3 classes."]
    assert runs.one(str(tmp_path / "run"))["splits"]["dev"]["accuracy"] > 0


@pytest.mark.parametrize(
    ("labels", "changes", "message"),
    [
        ("aaaa", {}, "needs 2 labels or more .* Received: 'a'"),
        ("ab", {"data.dev": None, "data.dev_share": 0.6}, "needs at least one text of each class .* none of 'a'"),
        ("ab", {"input.long": "windows"}, "input.long: needs truncate or head_tail for few-shot. Received: windows"),
        ("ab", {"head.bilstm_size": 4}, "head.bilstm_size: needs a task"),
    ],
)
def test_what_cannot_be_learned_is_refused(files, tmp_path, labels, changes, message):
    train = write_table(tmp_path / "train.jsonl", [(f"w{number}", label) for number, label in enumerate(labels)])
    config = config_of((files[0], train, train), **changes)
    with pytest.raises(UserError, match=message) as error:
        open_problem(config, make_tokenizer(VOCABULARY)).rows("train")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("slices", "told"), [(1, 0), (4, 1)])
def test_slices_that_compare_fewer_texts_are_told(files, tmp_path, monkeypatch, slices, told):
    """A user must know why results differ: `training.accumulation: auto` may choose such slices."""
    monkeypatch.setattr("keras_bert.tasks.finetuning.run.make_engine", lambda *_, **options: None)
    said, config = listen(), config_of(files, **{"training.accumulation": slices})
    with pytest.raises(AttributeError):  # The engine is not made.
        FinetuningRuns(config).one(str(tmp_path / "run"))
    assert sum(line.startswith("The loss compares only the 2 of a batch's 8 examples") for line in said) == told


def test_the_draw_of_every_seed_is_told(files, tmp_path, monkeypatch):
    """The user would not see what is wrong with the texts drawn for the second seed and later ones."""
    monkeypatch.setattr("keras_bert.tasks.finetuning.run.make_engine", lambda *_, **options: None)
    said, runs, counts = listen(), FinetuningRuns(config_of(files)), []
    for seed in (1, 7):  # The first is the recipe's.
        with pytest.raises(AttributeError):  # The engine is not made.
            runs.one(str(tmp_path / f"seed-{seed}"), seed=seed)
        counts.append(sum("80 texts to train on" in line for line in said))
    assert counts == [1, 2]


def test_single_texts_with_nothing_to_compare_are_refused(files, tmp_path):
    """With a loss of 0, a run would go on to its end and learn nothing."""
    runs = FinetuningRuns(config_of(files, **{"training.accumulation": 8}))
    with pytest.raises(UserError, match=r"needs two examples or more .* Received: 8 in 8 slice\(s\) on 1 replica"):
        runs.one(str(tmp_path / "run"))


def test_the_head_is_trained_only_by_users_own_loss(files):
    """`load` with labels gives a model for Keras' `fit`, whose head must learn; in a run it must not."""
    bert = keras_bert.load(files[0], task="few-shot", labels=["no", "yes"])
    paths = [variable.path for variable in bert.model.trainable_variables]
    assert any("logistic_head" in path for path in paths)
    problem = open_problem(config_of(files), make_tokenizer(VOCABULARY))
    paths = [variable.path for variable in problem.make_model(bert.model.config).trainable_variables]
    assert paths and not any("logistic_head" in path for path in paths)
    assert isinstance(
        keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(bert.model)), keras.Model
    )
