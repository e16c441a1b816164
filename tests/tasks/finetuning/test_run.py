"""Fine-tuning end to end on a small made-up task: it learns, resumes, keeps the best, and its model stands alone."""

import json
import os
import shutil

import numpy as np
import pytest
from clocked import without_clock
from finetuning import finetune_config, reviews, write_reviews
from said import listen
from tfds_folder import prepare

import keras_bert
from keras_bert.checkpoints.model_folder import open_model_folder
from keras_bert.core.errors import RunStopped, UserError
from keras_bert.tasks import evaluator
from keras_bert.tasks.classification.head import CLASSIFIER
from keras_bert.tasks.evaluator import Evaluator
from keras_bert.tasks.finetuned_model import FinetunedModel
from keras_bert.tasks.finetuning import run as finetuning_run
from keras_bert.tasks.finetuning.run import Finetuning
from keras_bert.tasks.finetuning.runs import FinetuningRuns
from keras_bert.training.metrics_log import read_metrics
from keras_bert.training.run_folder import RunFolder
from keras_bert.training.step import Step
from tools import compare_runs


@pytest.fixture(scope="module")
def run(init, glue, tmp_path_factory):
    """(path, results) of a run to its end."""
    path = str(tmp_path_factory.mktemp("runs") / "sst2")
    return path, FinetuningRuns(finetune_config(init, **{"data.folder": glue})).one(path)


@pytest.fixture(scope="module")
def one_epoch(init, glue, tmp_path_factory):
    """(path, results, the splits that were answered) of a run of one epoch, to its end."""
    path, asked, answers = str(tmp_path_factory.mktemp("runs") / "one_epoch"), [], Evaluator.answers
    config = finetune_config(init, **{"data.folder": glue, "training.epochs": 1.0})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Evaluator, "answers", lambda self, split: asked.append(split) or answers(self, split))
        results = FinetuningRuns(config).one(path)
    return path, results, asked


def figures(path):
    lines = read_metrics(RunFolder(path).metrics_file)
    return [without_clock(line) for line in lines]


def test_it_learns_and_writes_what_it_promises(run):
    path, results = run
    assert results["splits"]["dev"]["accuracy"] > 0.9 > results["baseline"]["dev"]["accuracy"]
    assert np.sum(results["splits"]["dev"]["confusion"]) == 48 and results["warnings"] == []
    assert {"config.yaml", "metrics.jsonl", "results.json", "model", "confusion_dev.png"} <= set(os.listdir(path))
    evaluations = {line["step"]: line["eval_accuracy"] for line in figures(path) if "eval_loss" in line}
    assert list(evaluations) == [30, 60, 90, 120]
    assert results["splits"]["dev"]["accuracy"] == max(evaluations.values())
    assert evaluations[results["best_step"]] == max(evaluations.values())


def test_the_model_folder_stands_alone_and_says_the_same(run, glue):
    path, results = run
    alone = FinetunedModel(os.path.join(path, "model"), {"folder": glue})
    assert alone.config.input.max_length == 24
    scored = alone.evaluate("dev")
    for name, value in scored.items():
        assert value == pytest.approx(results["splits"]["dev"][name], abs=1e-5)
    answer = keras_bert.load(path).predict(["w1 good w2", "w3 w4 dull"])
    assert [one.label for one in answer] == ["positive", "negative"]
    with open(os.path.join(path, "model", "README.md"), encoding="utf-8") as card:
        assert "| GLUE, sst2 | dev | 48 examples | accuracy |" in card.read()


@pytest.mark.slow
def test_loops_of_steps_over_batches_of_several_widths_give_the_same_numbers(init, glue, tmp_path, monkeypatch):
    """An epoch of 30 batches also ends within a loop of four steps, where it must be validated all the same."""
    monkeypatch.setattr("keras_bert.tasks.finetuning.shape_budget._SECONDS_TO_TRACE", 0.1)  # Else one width is enough.
    widths, build = [], Finetuning.build
    monkeypatch.setattr(Finetuning, "build", lambda self: build(self) or widths.append(len(self.source.widths)))

    def trained(steps_per_loop):
        path = str(tmp_path / str(steps_per_loop))
        config = finetune_config(init, **{"data.folder": glue, "training.steps_per_loop": steps_per_loop})
        results = FinetuningRuns(config).one(path)
        return figures(path), results["splits"], results["best_step"]

    assert trained(4) == trained(1)
    assert widths == [2, 2]


@pytest.mark.slow
def test_the_average_of_the_weights_is_validated_and_written(init, glue, tmp_path):
    """With a rate for each layer, and with Adafactor, whose second moments have other shapes than the weights."""
    path = str(tmp_path / "run")
    settings = {"name": "adafactor", "layer_decay": 0.9, "rates": {"classifier": 2.0}, "weight_average": 0.9}
    changes = {f"optimizer.{key}": value for key, value in settings.items()}
    config = finetune_config(init, **{"data.folder": glue, "training.epochs": 1.0, **changes})
    results = FinetuningRuns(config).one(path)
    [validated] = [line for line in figures(path) if "eval_loss" in line]
    scored = FinetunedModel(os.path.join(path, "model"), {"folder": glue}).evaluate("dev")
    assert scored["loss"] == pytest.approx(validated["eval_loss"], abs=1e-5)
    assert scored["loss"] == pytest.approx(results["splits"]["dev"]["loss"], abs=1e-5)
    exported = keras_bert.load(path).model.encoder.embeddings.word_embeddings.numpy()
    checkpoint = compare_runs._last_checkpoint(path)
    tables = {name: value for name, value in checkpoint.items() if value.shape == exported.shape}
    assert len(tables) == 2, "The weights and their average."
    (same,) = [name for name, value in tables.items() if np.array_equal(value, exported)]
    assert "/_trainable_variables/" not in same, sorted(tables)


def test_by_the_clock_warm_up_is_a_share_of_the_time_and_not_of_an_epoch(init, glue, tmp_path, monkeypatch):
    """Where an epoch takes hours, a run of minutes would never reach its learning rate."""

    class Built(Exception):
        pass

    def show(self):
        raise Built(self)

    monkeypatch.setattr(Finetuning, "restore", show)
    config = finetune_config(init, **{"data.folder": glue, "training.minutes": 1.0})
    with pytest.raises(Built) as built:
        FinetuningRuns(config).one(str(tmp_path / "run"))
    finetuning = built.value.args[0]
    finetuning.engine.optimizer.iterations.assign(99)
    rates = []
    for share in (0.05, 0.1, 0.55):
        finetuning.engine.budget.share.assign(share)
        rates.append(float(finetuning.engine.optimizer.learning_rate) / config.optimizer.learning_rate)
    assert rates == pytest.approx([0.5, 1.0, 0.5])


def test_the_dev_examples_are_answered_once_where_the_last_validation_is_the_best(one_epoch):
    """Answering SQuAD's again would cost minutes."""
    path, results, asked = one_epoch
    assert asked == ["dev"]
    [validated] = [line for line in figures(path) if "eval_loss" in line]
    assert results["splits"]["dev"]["accuracy"] == validated["eval_accuracy"]


@pytest.mark.slow
def test_dev_examples_are_computed_in_the_slices_of_training(init, glue, tmp_path, monkeypatch):
    """A batch that fits in memory only in slices would exhaust it at the first validation. The figures stay."""
    sizes, batches = [], evaluator.every_row_once

    def every_row_once(rows, batch_size, pad_id, most):
        sizes.append(batch_size)
        return batches(rows, batch_size, pad_id, most=most)

    monkeypatch.setattr(evaluator, "every_row_once", every_row_once)
    config = finetune_config(init, **{"data.folder": glue, "training.steps": 1, "training.accumulation": 4})
    dev = FinetuningRuns(config).one(str(tmp_path / "run"))["splits"]["dev"]
    assert sizes == [8 // 4]
    assert FinetunedModel(str(tmp_path / "run"), {"folder": glue}).evaluate("dev")["loss"] == pytest.approx(dev["loss"])


@pytest.mark.parametrize(("labels", "is_kept"), [(("negative", "positive"), True), (("bad", "good"), False)])
def test_a_head_of_the_same_labels_is_a_beginning_too(labels, is_kept, run, glue, tmp_path):
    """Otherwise a model trained on would lose what its head has learned."""
    folder = shutil.copytree(os.path.join(run[0], "model"), tmp_path / "model")
    described = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    described["id2label"] = dict(enumerate(labels))
    described["label2id"] = {label: index for index, label in enumerate(labels)}
    (folder / "config.json").write_text(json.dumps(described), encoding="utf-8")
    lines, path = listen(), str(tmp_path / "run")
    more = {"data.folder": glue, "training.steps": 1, "optimizer.learning_rate": 1e-12}
    FinetuningRuns(finetune_config(str(folder), **more)).one(path)
    before, after = (open_model_folder(one).read(CLASSIFIER) for one in (folder, os.path.join(path, "model")))
    assert all(np.allclose(after[name], before[name], atol=1e-6) for name in before) == is_kept
    assert any("but newly initialized" in line for line in lines) != is_kept


@pytest.mark.slow
def test_a_run_that_is_stopped_goes_on_to_the_same_end(run, init, glue, tmp_path, monkeypatch):
    straight, expected = run
    config = finetune_config(init, **{"data.folder": glue})
    path = str(tmp_path / "stopped")
    from keras_bert.training.stop_request import StopRequest

    asked = []
    with monkeypatch.context() as patch:
        patch.setattr(StopRequest, "reason", lambda self: asked.append(1) or ("a test" if len(asked) == 35 else None))
        with pytest.raises(RunStopped):
            FinetuningRuns(config).one(path)
    results = FinetuningRuns(config).one(path)
    assert figures(path) == figures(straight)
    assert results["splits"] == expected["splits"] and results["best_step"] == expected["best_step"]


def test_a_finished_run_is_not_run_again(run, init, glue):
    path, results = run
    said = listen()
    again = FinetuningRuns(finetune_config(init, **{"data.folder": glue})).one(path)
    assert again == results and any("is finished" in line for line in said)


@pytest.mark.slow
def test_a_finished_run_may_be_given_more_epochs(run, init, glue, tmp_path):
    path = str(tmp_path / "run")
    shutil.copytree(run[0], path)
    results = FinetuningRuns(finetune_config(init, **{"data.folder": glue, "training.epochs": 5})).one(path)
    assert results["steps"] == 150 and figures(path)[: len(figures(run[0]))] == figures(run[0])


@pytest.mark.slow
def test_two_replicas_come_to_what_one_does(one_epoch, init, glue, tmp_path, mirrored_strategy):
    _, expected, _ = one_epoch
    config = finetune_config(init, **{"data.folder": glue, "training.epochs": 1.0})
    runs = FinetuningRuns(config, mirrored_strategy)
    results = runs.one(str(tmp_path / "run"))
    assert runs.strategy.num_replicas_in_sync == 2
    assert results["splits"]["dev"]["loss"] == pytest.approx(expected["splits"]["dev"]["loss"], abs=1e-3)
    assert results["splits"]["dev"]["confusion"] == expected["splits"]["dev"]["confusion"]


@pytest.mark.slow
def test_out_of_a_folder_of_tfds(one_epoch, init, tmp_path):
    """The same sentences from TFDS give the same run."""
    _, expected, _ = one_epoch
    names = {"train": ("train", 240), "validation": ("dev", 48)}
    rows = {
        split: [((f"{text} ",), ("negative", "positive").index(label)) for text, label in reviews(count, len(name))]
        for split, (name, count) in names.items()
    }
    prepare(tmp_path / "tfds", "sst2", rows, labels=["negative", "positive"])
    config = finetune_config(init, **{"data.folder": str(tmp_path / "tfds"), "training.epochs": 1.0})
    results = FinetuningRuns(config).one(str(tmp_path / "run"))
    assert results["splits"] == expected["splits"]


def test_one_cpu_traces_the_step_once_for_all_widths(init, glue, tmp_path, monkeypatch):
    """Tracing one for each width would take longer than the steps of a short run."""
    steps, widths, make, build = [], [], Step.__init__, Finetuning.build
    monkeypatch.setattr("keras_bert.tasks.finetuning.run.affordable_shapes", lambda *given: 4)
    monkeypatch.setattr(Step, "__init__", lambda self, *given: make(self, *given) or steps.append(self))
    monkeypatch.setattr(Finetuning, "build", lambda self: build(self) or widths.append(self.source.widths))
    FinetuningRuns(finetune_config(init, **{"data.folder": glue, "training.steps": 8})).one(str(tmp_path / "run"))
    training, validation = steps
    assert len(widths[0]) > 1 and training.train.experimental_get_tracing_count() == 1
    assert validation.predict.experimental_get_tracing_count() == 1


def test_a_run_that_goes_on_keeps_its_number_of_shapes(init, glue, tmp_path, monkeypatch):
    """With more epochs it could afford more: some rows of the interrupted epoch would come twice, others never."""
    asked, run = [], RunFolder(str(tmp_path / "run"))
    module = "keras_bert.tasks.finetuning.run"
    choose = finetuning_run.choose_shapes
    monkeypatch.setattr(f"{module}.choose_shapes", lambda rows, most: asked.append(most) or choose(rows, most))
    monkeypatch.setattr(f"{module}.make_engine", lambda *_, **options: None)
    for affordable, epochs in ((3, 1.0), (2, 1.0), (4, 2.0)):
        monkeypatch.setattr(f"{module}.affordable_shapes", lambda *given, most=affordable: most)
        with pytest.raises(AttributeError):  # The engine is not made.
            FinetuningRuns(finetune_config(init, **{"data.folder": glue, "training.epochs": epochs})).one(run.path)
        if asked[1:]:  # The first start failed before it trained anything.
            run.write_results({})
    assert asked == [3, 2, 2]


@pytest.mark.slow
def test_one_class_throughout_is_told(init, glue, tmp_path):
    config = finetune_config(init, **{"data.folder": glue, "optimizer.learning_rate": 1e-9, "training.epochs": 1})
    said = listen()
    results = FinetuningRuns(config).one(str(tmp_path / "run"))
    assert len(results["warnings"]) == 1 and "the training failed" in results["warnings"][0]
    assert results["warnings"][0] in said


def test_batches_by_length_lose_nothing(one_epoch, glue, monkeypatch):
    """Padding every row to one width gives the same loss."""
    model = FinetunedModel(one_epoch[0], {"folder": glue})
    by_length = model.evaluate("dev")["loss"]
    monkeypatch.setattr("keras_bert.data.batches.length_batches.choose_shapes", lambda rows, most: ([24], [1]))
    padded = model.evaluate("dev")["loss"]
    assert by_length == pytest.approx(padded, abs=1e-5)


@pytest.mark.parametrize(
    "kind",
    [pytest.param("single_label_classification", marks=pytest.mark.slow), "multi_label_classification", "regression"],
)
def test_ones_own_table(init, kind, tmp_path):
    names = {
        "single_label_classification": lambda label: label,
        "multi_label_classification": lambda label: {"negative": "bad", "positive": "good,seen"}[label],
        "regression": lambda label: {"negative": -1.0, "positive": 1.0}[label],
    }
    train = write_reviews(tmp_path / "train.jsonl", 300, name=names[kind])
    data = {"data.train": train, "data.kind": kind}
    path = str(tmp_path / "run")
    results = FinetuningRuns(finetune_config(init, "text", **data)).one(path)
    figure = results["splits"]["dev"][results["main_metric"]]
    assert figure > 0.85 and (figure > results["baseline"]["dev"][results["main_metric"]])
    again = FinetunedModel(path).evaluate("dev")
    assert again[results["main_metric"]] == pytest.approx(figure, abs=1e-5)


@pytest.mark.slow
def test_class_weights_move_the_answers(init, glue, tmp_path):
    base = {"data.folder": glue, "training.epochs": 1, "optimizer.learning_rate": 1e-3}
    shares = []
    for weight in (0.05, 20.0):
        config = finetune_config(init, **base, **{"training.class_weights": {"positive": weight}})
        results = FinetuningRuns(config).one(str(tmp_path / str(weight)))
        shares.append(np.array(results["splits"]["dev"]["confusion"])[:, 1].sum())
    assert shares[0] < shares[1]


@pytest.mark.parametrize(
    ("task", "train", "dev", "told"),
    [
        (
            "tokens",
            "good N\nbad V\n",
            "good X\n",
            "dev.txt: needs labels that the model has, such as N, V. Received: X",
        ),
        ("tokens", "good N\nbad V\n", None, "tokens: needs dev examples, to choose the best epoch by"),
        ("pos", None, None, r"data.label \(--label\): needs a task that reads it, of .*tokens.*\. Received: pos"),
    ],
)
def test_what_cannot_be_validated_is_told_before_training(init, tmp_path, monkeypatch, task, train, dev, told):
    """Otherwise the run would fail only at its first validation, or when all training was done."""
    monkeypatch.setattr(Finetuning, "train", None)
    data = {f"data.{name}": str(tmp_path / f"{name}.txt") for name in ("train", "dev")}
    for name, content in (("train", train), ("dev", dev)):
        (tmp_path / f"{name}.txt").write_text(content or "1\tgood\t_\tX\t_\t_\t_\t_\t_\t_\n")
    if train and not dev:
        del data["data.dev"]
    config = finetune_config(init, task, **data, **({"data.label": "3"} if task == "pos" else {}))
    with pytest.raises(UserError, match=told):
        FinetuningRuns(config).one(str(tmp_path / "run"))


def test_an_unknown_class_in_the_weights_is_refused(init, glue, tmp_path):
    config = finetune_config(init, **{"data.folder": glue, "training.class_weights": {"postive": 2.0}})
    with pytest.raises(UserError, match="names of labels, of negative, positive. Received: 'postive'"):
        FinetuningRuns(config).one(str(tmp_path / "run"))
