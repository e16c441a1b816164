"""finetune, evaluate and predict as a user runs them."""

import json
import os
import pathlib
import re
import shlex
import shutil
import sys

import numpy as np
import pytest
import safetensors.numpy
import tensorflow as tf
from command_line import give, output_of, sets
from finetuning import spoil, write_reviews, write_sst2, write_tiny_bert
from glue_folder import write_glue
from scipy.special import softmax
from whole_splits import load_examples

from keras_bert.cli.options import run_settings
from keras_bert.config.finetuning import FinetuneConfig
from keras_bert.core.errors import UserError
from keras_bert.tasks.classification.answers import plain_answers
from keras_bert.tasks.classification.problem import SequenceProblem
from keras_bert.tasks.evaluator import Evaluator
from keras_bert.tasks.finetuned_model import FinetunedModel
from keras_bert.training.run_folder import RunFolder

SMALL = sets("input.max_length=24", "optimizer.learning_rate=1e-2", "training.batch_size=8")
UNCOMPILED = [*SMALL, *sets("training.jit_compile=false")]  # Compiling takes longer than the steps here.


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a model, SST-2 and a small version of all of GLUE."""
    folder = tmp_path_factory.mktemp("cli")
    write_tiny_bert(folder / "bert")
    write_sst2(folder / "sst2")
    write_glue(folder / "glue")
    return folder


@pytest.fixture(scope="module")
def trained(place):
    """The run of `finetune --task sst2`."""
    run = str(place / "run")
    result = finetune(place, "sst2", run, *SMALL)
    assert "majority" in result.output and "Written: " in result.output
    return run


def finetune(place, task, run, *more):
    data = ("--data-dir", place / task) if (place / task).exists() else ()
    return give("finetune", "--task", task, "--init", place / "bert", *data, "--output", run, *more)


@pytest.mark.parametrize(
    ("begun", "options"),
    [
        ("", ["--task", "sst2"]),
        ("seed-2", ["--task", "sst2", "--seeds", "1,2"]),
        ("batch_size-16", ["--task", "sst2", "--sweep"]),
        ("mrpc", ["--task", "glue"]),
        ("mrpc/seed-1", ["--task", "glue", "--seeds", "1,2"]),
    ],
)
def test_runs_that_have_begun_stay_with_the_commit_of_their_model(tmp_path, monkeypatch, begun, options):
    """After a new commit under the same name, a run would refuse its own command for a different `init`.

    A file beside the runs of a sweep, such as the traceback of a failure, must not be taken for a run.
    """
    recorded, opened = f"hf:me/bert@{'0123456789' * 4}", []

    def open_folder(path, lower_case):
        opened.append(path)
        raise UserError("not here")

    # The function of the same name hides the module.
    monkeypatch.setattr(sys.modules["keras_bert.api.finetuning"], "open_model_folder", open_folder)
    run = RunFolder(str(tmp_path / "run" / begun))
    with run:
        run.claim(FinetuneConfig.from_mapping({"task": "sst2", "init": recorded}))
    os.makedirs(os.path.join(run.checkpoints, "step-000000001"))
    if begun:
        (tmp_path / "run" / "a.log").touch()
    for init in ("hf:me/bert", "hf:me/other", "hf:me/bert@main"):
        give("finetune", *options, "--init", init, "--output", tmp_path / "run", status=2)
    give("finetune", *options, "--init", "hf:me/bert", "--output", tmp_path / "run", "--fresh", status=2)
    assert opened == [recorded, "hf:me/other", "hf:me/bert@main", "hf:me/bert"]


def test_evaluate_scores_the_run_also_with_errors_in_the_texts(trained, place, tmp_path):
    figures, record = tmp_path / "figures.json", pathlib.Path(trained, "data.json")
    said = record.read_text(encoding="utf-8")
    other = shutil.copytree(trained, tmp_path / "other")
    record.write_text(json.dumps({"dev": {**json.loads(said)["dev"], "bytes": 1, "sha256": ""}}), encoding="utf-8")
    result = give("evaluate", "--model", trained, "--noise", "nospace", "--noise", "typo=1", "--output", figures)
    both = give("evaluate", "--model", other, "--model", trained)
    record.write_text(said, encoding="utf-8")
    for given in (result, both):  # So its scores cannot be compared.
        assert f"Not the data that {trained} was trained with: dev, " in given.output
    found = json.loads(figures.read_text(encoding="utf-8"))["dev"]
    kept = json.load(open(os.path.join(trained, "results.json"), encoding="utf-8"))["splits"]["dev"]
    assert found["as it is"]["accuracy"] == kept["accuracy"] > 0.8
    assert found["nospace"]["accuracy"] < 0.7 and found["nospace"]["changed"]["words"] == 1.0
    assert "dev, typo=1: noise which changes" in result.output


def test_a_file_is_for_the_split_that_it_is_given_for(trained, place):
    """`evaluate --test FILE` used to score dev, and say nothing of the file."""
    (place / "labelled.tsv").write_bytes((place / "sst2" / "SST-2" / "train.tsv").read_bytes())
    test = ("--test", place / "labelled.tsv")
    scored = output_of("evaluate", "--model", trained, *test)
    # Published scores, which used to stand below, are of GLUE's own examples.
    assert re.search(r"^test +as it is ", scored, re.MULTILINE) and "BERT base" not in scored
    assert "BERT base" in output_of("evaluate", "--model", trained)
    refused = output_of("evaluate", "--model", trained, "--split", "dev", *test, status=2)
    assert "--test: goes with --split test. Received: --split dev." in refused, refused


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, r"test.tsv: needs to exist, for the split 'test' of text. Received: a folder with .*sst2"),
        ("a\tb\n1\t2\n", "test.tsv line 1: needs a column 'sentence'. Received: the columns 'a', 'b'"),
    ],
)
def test_what_is_to_be_predicted_is_read_before_training(place, content, message, monkeypatch, tmp_path):
    """A wrong name or column would show hours later."""
    monkeypatch.chdir(place)
    (place / "test.tsv").unlink(missing_ok=True)
    if content:
        (place / "test.tsv").write_text(content, "utf-8")
    own = ["--train", "sst2/SST-2/train.tsv", "--dev", "sst2/SST-2/dev.tsv", "--test", "test.tsv", "--text", "sentence"]
    command = [
        "finetune",
        "--task",
        "text",
        "--init",
        "bert",
        *own,
        "--label",
        "label",
        "--output",
        tmp_path / "run",
        *SMALL,
    ]
    refused = output_of(*command, status=2)
    assert re.search(message, refused) and not (tmp_path / "run").exists(), refused


def test_what_cannot_be_scored_is_refused_before_anything_is(trained, monkeypatch):
    """A split without labels, or a task that takes no noise, would be refused only after all models had answered."""
    monkeypatch.setattr(Evaluator, "_outputs", lambda self, *of: pytest.fail("something was scored"))
    result = give("evaluate", "--model", trained, "--split", "test", status=2)
    assert "test.tsv: needs labels to evaluate on" in result.output, result.output
    monkeypatch.setattr(SequenceProblem, "takes_noise", False)
    result = give("evaluate", "--model", trained, "--noise", "typo", status=2)
    assert "--noise: needs a task whose texts can take it" in result.output, result.output


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("evaluate",), "the run was started in. Received: no such path in .* Go to that folder, or give --data-dir"),
        (("predict", "--split", "dev", "--output", "a.tsv"), "Go to that folder, or give --data-dir"),
        (("evaluate", "--dev", "absent.tsv"), "^(?!.*the run was started in)"),
    ],
)
def test_a_path_that_the_run_recorded_begins_where_it_was_started(trained, place, tmp_path, monkeypatch, more, message):
    """From another folder, a bare `no such folder` would sound as if the data were gone."""
    run = tmp_path / "run"
    shutil.copytree(trained, run, ignore=shutil.ignore_patterns("checkpoints"))
    recipe = (run / "config.yaml").read_text(encoding="utf-8")
    (run / "config.yaml").write_text(recipe.replace(f"{place / 'sst2'}", "sst2"), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    refused = give(more[0], "--model", "run", *more[1:], status=2)
    assert re.search(message, refused.output), refused.output
    monkeypatch.chdir(place)
    if more == ("evaluate",):
        assert "accuracy" in give("evaluate", "--model", run).output


def biased(trained, folder, margins):
    """A copy of the model that leans to negative, so that averaging the two changes some of the model's answers.

    With two classes, the mean is positive where the sum of the two margins is.
    """
    shutil.copytree(os.path.join(trained, "model"), folder)
    path = folder / "model.safetensors"
    weights = safetensors.numpy.load_file(path)
    positive = np.sort(margins[margins > 0])
    widest = np.diff(positive).argmax()
    weights["classifier.bias"] += np.array([positive[widest] + positive[widest + 1], 0.0], np.float32)
    safetensors.numpy.save_file(weights, path)
    return folder


def test_several_models_answer_together(trained, place, tmp_path):
    """They answer with the mean of their probabilities; the table and picture show published results too."""
    figures, picture = tmp_path / "figures.json", tmp_path / "scores.png"
    data, first = ("--data-dir", place / "sst2"), FinetunedModel(trained)
    logits = [first.evaluate.answers("dev")[0]]
    second = biased(trained, tmp_path / "second", logits[0][:, 1] - logits[0][:, 0])
    logits.append(FinetunedModel(str(second), {"folder": str(place / "sst2")}).evaluate.answers("dev")[0])
    mean = np.mean([softmax(one, axis=1) for one in logits], axis=0)
    labels = load_examples(first.problem.task, "dev", str(place / "sst2")).labels
    alone, other, expected = (np.mean(one.argmax(axis=1) == labels) for one in (*logits, mean))
    assert other < expected < alone

    result = give("evaluate", "--model", trained, "--model", second, *data, "--output", figures, "--picture", picture)
    found = json.loads(figures.read_text(encoding="utf-8"))["dev"]["as it is"]
    assert found["accuracy"] == pytest.approx(expected)
    assert "BERT base" in result.output and "human" in result.output and "97.8" in result.output
    assert picture.read_bytes().startswith(b"\x89PNG")
    file = second / "tokenizer_config.json"
    cased = {**json.loads(file.read_text(encoding="utf-8")), "do_lower_case": False}
    file.write_text(json.dumps(cased), encoding="utf-8")
    result = give("evaluate", "--model", trained, "--model", second, *data, status=2)
    assert "model 2 with lower_case False instead of True" in result.output, result.output


def test_predict_writes_what_the_server_takes(trained, place, tmp_path):
    give("predict", "--model", trained, "--split", "test", "--output", tmp_path / "submission")
    lines = (tmp_path / "submission" / "SST-2.tsv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "index\tprediction" and len(lines) == 11
    assert {line.split("\t")[1] for line in lines[1:]} <= {"0", "1"}


def test_predict_answers_lines_and_tables_alike(trained, place, tmp_path):
    texts = ["w1 good w2", "dull w3 \u2603 it's"]
    table = tmp_path / "table.jsonl"
    table.write_text("".join(json.dumps({"sentence": text}) + "\n" for text in texts), encoding="utf-8")
    by_lines = give("predict", "--model", trained, "--input", "-", "--output", "-", stdin="\n".join(texts) + "\n")
    answers = [json.loads(line) for line in by_lines.output.splitlines()]
    assert [(answer["sentence"], answer["label"]) for answer in answers] == list(zip(texts, ["positive", "negative"]))
    assert all(0.99 < sum(answer["probabilities"].values()) < 1.01 for answer in answers)
    output = tmp_path / "answers.jsonl"
    give("predict", "--model", trained, "--input", table, "--output", output)
    assert [json.loads(line)["label"] for line in output.read_text(encoding="utf-8").splitlines()] == [
        answer["label"] for answer in answers
    ]


def test_predict_writes_no_answers_of_a_broken_model(trained, place, tmp_path):
    """For a user's texts as for a benchmark's: a label chosen among NaN would look like any other."""
    broken, texts, output = tmp_path / "broken", tmp_path / "texts.txt", tmp_path / "answers"
    shutil.copytree(os.path.join(trained, "model"), broken)
    spoil(broken)
    texts.write_text("w1 good w2\n", encoding="utf-8")
    for asked in (["--input", texts], ["--split", "test", "--data-dir", place / "sst2"]):
        result = give("predict", "--model", broken, *asked, "--output", output, status=2)
        assert "needs finite numbers" in result.output, result.output
        assert not output.exists() or not list(output.iterdir())


@pytest.mark.slow
def test_a_whole_dev_set_by_the_loop_and_by_the_reloaded_export(place, tmp_path):
    """Texts are read in windows, whose outputs are averaged: both must do so alike."""
    run, served = tmp_path / "run", tmp_path / "served"
    settings = [*UNCOMPILED, *sets("input.max_length=8", "input.long=windows")]
    finetune(place, "sst2", run, *settings, "--epochs", "1")
    give("export", "--model", run, "--output", served)
    by_loop = FinetunedModel(str(run))
    expected, _ = by_loop.evaluate.answers("dev")
    examples = load_examples(by_loop.problem.task, "dev", str(place / "sst2"))
    reloaded = tf.saved_model.load(str(served / "1")).signatures["serving_default"]
    answered = reloaded(text=tf.constant(examples.texts[0]))
    np.testing.assert_allclose(answered["logits"].numpy(), expected, atol=1e-5)
    predicted = [label.decode() for label in answered["label"].numpy()]
    right = [examples.label_names[label] for label in examples.labels]
    assert np.mean([one == other for one, other in zip(predicted, right)]) == pytest.approx(
        by_loop.problem.evaluate("dev", expected)["accuracy"]
    )
    problem = by_loop.problem
    assert [answer["label"] for answer in plain_answers(problem.head, expected)] == predicted


@pytest.mark.slow
def test_all_of_glue_in_one_table(place, tmp_path):
    output = tmp_path / "glue"
    result = finetune(place, "glue", output, *UNCOMPILED, *sets("input.max_length=8"), "--steps", "1")
    tasks = json.loads((output / "results.json").read_text(encoding="utf-8"))["tasks"]
    assert set(tasks) == {"cola", "sst2", "mrpc", "stsb", "qqp", "mnli", "qnli", "rte", "wnli"}
    assert set(tasks["mnli"]["splits"]) == {"dev_matched", "dev_mismatched"}
    rows = {line[:18].strip(): line.split()[-1] for line in result.output.splitlines() if "(" in line[:20]}
    assert rows["BERT base (test)"] == "79.6" and rows["BERT large (test)"] == "82.1"
    # MNLI's model answers the diagnostic set.
    asked = ("--task", "ax", "--split", "test", "--data-dir", place / "glue", "--output", tmp_path / "ax")
    give("predict", "--model", output / "mnli", *asked)
    lines = (tmp_path / "ax" / "AX.tsv").read_text(encoding="utf-8").splitlines()
    answers = {line.split("\t")[1] for line in lines[1:]}
    assert len(lines) == 3 and answers <= {"entailment", "neutral", "contradiction"}


@pytest.mark.parametrize(
    "arguments, message",
    [
        ("finetune", "--task: needs the name of a task"),
        ("finetune --task sst3 --init BERT", "--task: needs one of glue, superglue, boolq"),
        ("finetune --task sst2 --init BERT --sweep --steps 3", "Received: training.steps."),
        (
            "finetune --task sst2 --init BERT --sweep --set optimizer.learning_rate=1e-5",
            "Received: optimizer.learning_rate.",
        ),
        ("finetune --task sst2 --init absent", "absent: needs a model folder"),
        ("finetune --task text --init absent --dev mine.csv", "mine.csv: needs to exist, for the split 'dev' of text."),
        ("finetune --task ner --init absent --set data.train=mine", "mine: needs to exist, for the split 'train' of n"),
        ("finetune --task sst2 --init BERT --seeds 1,1", "--seeds: needs distinct whole numbers"),
        ("finetune --task sst2 --sweep --picture a.png", "--sweep: draws no picture."),
        ("finetune --task sst2 --output a --picture ./a", "./a: needs a place of its own. Received: that of another"),
        ("finetune --task glue --train a.tsv", "--train, --dev, --test, --text, --label: needs a single"),
        ("finetune --task mrpc --config OWN", "--task: needs sst2, the task of own.yaml, beside --config"),
        ("finetune --task glue --config OWN", "--task: needs a single task, beside --config"),
        ("finetune --task sst2 --config OWN --init absent", "absent: needs a model folder"),
        ("finetune --task sst2 --epochs 1 --steps 5", "--epochs: needs to be the only length of the"),
        ("finetune --task sst2 --set training.epochs=1 --minutes 5", "Received: --minutes too."),
        ("finetune --task sst2 --seeds 1 --set training.seed=4", "Received: 4 by --set and '--seeds 1' by the option"),
        ("finetune --task sst2 --set init=a --init b", "--set init: conflicts with an option"),
        ("pretrain --steps 5 --minutes 5", "--steps: needs to be the only length of the run."),
        ("finetune --task sst2 --set 'training={steps: 9}' --minutes 5", "Received: --minutes too."),
        ("finetune --task glue --init BERT --set task=mrpc", "--set task: conflicts with an option for the same"),
        ("finetune --task sst2 --init BERT --noise typo=0.3 --noise typo", "noise.kinds: needs each noise once"),
        ("finetune --task sst2 --init absent --noise rain", "noise: needs KIND or KIND=SHARE"),
        ("finetune --task sst2 --seed 5 --set training.seed=6", "--set training.seed: conflicts with an option"),
        ("finetune --task sst2 --seed 0 --seeds 1,2", "--seed: needs to be the only choice of seeds."),
        ("pretrain --seed 5 --set training.seed=6", "--set training.seed: conflicts with an option"),
        (
            "pretrain --tpu mine --strategy auto --devices CPU:0",
            "training.tpu: needs training.strategy tpu. Received: mine",
        ),
        ("pretrain --config demo --data own.yaml", "data.files: needs no value if source is python"),
        ("predict --model BERT --input - --output - --dev a", "--dev: goes with --split."),
        ("finetune --task glue --init BERT --sweep", "--sweep: needs a single task. Received: glue."),
        ("finetune --task glue --prepare pairs --prepare-text .", "--prepare: needs a single task. Received: glue."),
        ("finetune --task superglue --set prepare.kind=pairs", "--prepare: needs a single task. Received: superglue."),
        ("finetune --task sst2 --init BERT --data-dir absent --set input.max_length=24", "absent: needs"),
        ("finetune --task sst2 --init BERT", "bert. Received: 128. Give --max-length 32."),
        ("finetune --task sst2 --init BERT --set training.epoch=3", "The nearest is training.epochs"),
        (
            "finetune --task squad --init BERT --set input.max_question_length=-1",
            "input.max_question_length: needs 0 or more",
        ),
        ("evaluate --model BERT", "needs a fine-tuned model. Received: one without a task's head"),
        ("predict --model BERT --output x", "--split a split of the task. Give one"),
        ("evaluate --model BERT --noise rain", "noise: needs KIND or KIND=SHARE"),
        ("evaluate --model BERT --output -", "--output: needs the name of a file. Received: -"),
        ("evaluate --model BERT --output .", ".: needs a file to write. Received: a folder"),
        ("embed --model BERT --input - --output -", "--output: needs the name of a file"),
        ("fill --model BERT '[MASK]\udcff'", "TEXT: needs UTF-8. Received: '[MASK]"),
    ],
)
def test_what_cannot_be_done_is_one_line(arguments, message, place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.yaml").write_text("task: sst2")
    result = give(*shlex.split(arguments.replace("BERT", str(place / "bert")).replace("OWN", "own.yaml")), status=2)
    assert message in result.output, result.output
    assert "Traceback" not in result.output and not os.path.exists("runs")


def test_without_init_the_newest_pretraining_run_is_taken(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    alone = give("finetune", "--task", "sst2", status=2)
    first, last = alone.output.strip().split("\n")
    assert first.startswith("Starting from hf:google-bert/bert-base-uncased, because runs/ has no pretraining run")
    assert "Give --init" in last and "--data-dir" in last and "dev.tsv" in last, alone.output
    for number, name in enumerate(("older", "newer")):
        folder = tmp_path / "runs" / name
        write_tiny_bert(folder / "model")
        os.utime(folder / "model" / "config.json", (1000.0 + number, 1000.0 + number))
    result = give("finetune", "--task", "sst2", "--data-dir", "runs", *SMALL, status=2)
    assert "runs/newer, the newest pretraining run" in result.output


@pytest.mark.slow
def test_ones_own_table_by_its_columns(place, tmp_path):
    train = write_reviews(tmp_path / "train.jsonl", 60)
    run = tmp_path / "run"
    columns = ("--train", train, "--text", "text", "--label", "label")
    result = finetune(place, "text", run, *columns, *SMALL, "--steps", "2")
    wrong = give(
        "finetune", "--task", "text", "--init", place / "bert", "--train", train, "--text", "txt", *SMALL, status=2
    )
    assert "'txt'" in wrong.output
    # The model's folder alone knows its columns and labels.
    dev = write_reviews(tmp_path / "dev.jsonl", 20, seed=5)
    result = give("evaluate", "--model", run / "model", "--dev", dev)
    assert "macro_f1" in result.output, result.output


@pytest.mark.parametrize(
    ("holds", "arguments", "message"),
    [
        ({"config.yaml": "task: sst2"}, "finetune --task glue", "a run for each task. Received: a fine-tuning run"),
        ({"config.yaml": "task: sst2"}, "finetune --task sst2 --seeds 1", "for each seed. Received: a fine-tuning run"),
        ({"config.yaml": "task: sst2"}, "finetune --task sst2 --sweep", "of a sweep. Received: a fine-tuning run"),
        ({"config.yaml": "task: sst2"}, "pretrain", "a pretraining run. Received: a fine-tuning run"),
        ({"config.yaml": "phases: []"}, "finetune --task sst2", "a fine-tuning run. Received: a pretraining run"),
        ({"seed-1/config.yaml": "task: sst2"}, "finetune --task glue", "each task. Received: a run for each seed"),
        ({"seed-1/config.yaml": "task: sst2"}, "finetune --task sst2", "run. Received: a run for each seed"),
        ({"cola/config.yaml": "task: cola"}, "finetune --task sst2 --seeds 1", "seed. Received: a run for each task"),
        (
            {"cola/seed-1/a": ""},
            "finetune --task glue",
            "cola: needs an empty folder, .* Received: a run for each seed",
        ),
        ({"thesis.tex": "mine"}, "finetune --task sst2", "a fine-tuning run. Received: something else"),
    ],
)
def test_a_folder_of_other_runs_is_refused_before_anything_is_opened(holds, arguments, message, tmp_path, monkeypatch):
    """Running all of GLUE into one run's folder would replace its results and keep it from resuming."""
    monkeypatch.chdir(tmp_path)
    for name, content in holds.items():
        (tmp_path / "out" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "out" / name).write_text(content)
    before = sorted(tmp_path.rglob("*"))
    result = give(*arguments.split(), "--output", "out", status=2)
    assert re.search(message, result.output), result.output
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("options", "length"),
    [({"epochs": 2.0}, (2.0, 0, 0.0)), ({"steps": 9}, (3.0, 9, 0.0)), ({"minutes": 1.0}, (3.0, 5, 1.0))],
)
def test_a_length_that_is_given_counts_whatever_the_recipe_is_limited_by(options, length):
    """--epochs, and lengths given with --set, would be ignored under a recipe limited in steps."""
    none = dict.fromkeys(("strategy", "devices", "tpu", "steps", "minutes", "max_minutes"))
    recipe = {"task": "sst2", "training": {"steps": 5, "minutes": 7.0}}
    by_key = {f"training.{name}": value for name, value in options.items()}
    for changes in (run_settings({}, **{**none, **options}), {**by_key, **run_settings(by_key, **none)}):
        training = FinetuneConfig.from_mapping(recipe, changes).training
        assert (training.epochs, training.steps, training.minutes) == length
