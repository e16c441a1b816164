"""The mechanism of studies: parts that are made once, the page, and runs as parts."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from command_line import give
from finetuning import write_sst2, write_tiny_bert

from keras_bert.config.studies import WorthTaskPlan
from keras_bert.core import files
from keras_bert.core.errors import RunStopped, UserError
from keras_bert.core.settings import parse_override
from keras_bert.studies import runs
from keras_bert.studies.downstream import better, differences, examples_of, main_scores, table, worth
from keras_bert.studies.runs import StudyRun, run_command
from keras_bert.studies.study import Findings, StudyFolder
from keras_bert.tasks.finetuning.pictures import scores_picture
from keras_bert.training.run_folder import RunFolder

PLAN = """
words:
  folder: glue
  task: sst2
  set: {training.steps: 4, training.batch_size: 8, training.jit_compile: false, input.max_length: 24}
  rates: [1.0e-2]
"""


def test_a_killed_study_loses_the_part_that_it_was_making(tmp_path):
    """If finished parts were made again, hours would be lost; if half a part were kept, figures would be wrong."""
    calls = []

    def make(name):
        calls.append(name)
        if calls == ["a", "b"]:
            raise KeyboardInterrupt
        return {"score": len(name)}

    def study():
        with StudyFolder(str(tmp_path)) as folder:
            return folder.made(
                {name: folder.kept(f"of/{name}", {"words": 3}, lambda name=name: make(name)) for name in "abc"}
            )

    with pytest.raises(KeyboardInterrupt):
        study()
    assert os.listdir(tmp_path / "parts" / "of") == ["a.json"]
    assert study() == study() == dict.fromkeys("abc", {"score": 1})
    assert calls == ["a", "b", "b", "c"]


def test_a_part_made_from_something_else_is_refused(tmp_path):
    """Otherwise it would be shown as if it had been made with the settings given now."""
    with StudyFolder(str(tmp_path)) as folder:
        folder.kept("part", {"words": 3}, lambda: 1)()
        with pytest.raises(UserError, match=r"part\.json: was made with other settings \(words: was 3, now 4\)"):
            folder.kept("part", {"words": 4}, lambda: 2)()


def test_a_part_without_a_result_is_one_line(tmp_path):
    """A file that was edited must not end in a KeyError."""
    with StudyFolder(str(tmp_path)) as folder:
        (tmp_path / "parts").mkdir()
        (tmp_path / "parts" / "part.json").write_text('{"about": {}}')
        with pytest.raises(UserError, match=r"part\.json: needs the result of a part. .* Remove this file"):
            folder.kept("part", {}, lambda: 1)()


def test_the_page_shows_its_command_tables_and_pictures(tmp_path):
    picture = scores_picture({"task": {"model": [50.0]}})
    with StudyFolder(str(tmp_path)) as folder:
        findings = Findings("What was found", ["| a |", "| --- |"], {"bars": picture}, ["heads"])
        folder.write_page("heads", "<p>")
        page = folder.write("bars", findings, "python run.py study bars")
    text = open(page, encoding="utf-8").read()
    assert text.startswith("# What was found\n\n```\npython run.py study bars\n```\n\n| a |\n| --- |\n")
    assert text.endswith("[heads.html](heads.html)\n\n![bars](bars.png)\n")
    assert (tmp_path / "bars.png").read_bytes() == picture and (tmp_path / "heads.html").read_text() == "<p>"
    assert any("tfevents" in name for _, _, names in os.walk(tmp_path / "tensorboard") for name in names)


@pytest.mark.slow
def test_worth_from_the_command_line_and_once_more(tmp_path, monkeypatch):
    """The table has each model's better rate; a second start trains nothing, and a new task trains only that."""
    write_tiny_bert(tmp_path / "bert")
    write_sst2(tmp_path / "glue", train=64, dev=16)
    (tmp_path / "plan.yaml").write_text(PLAN)
    bert, output = tmp_path / "bert", tmp_path / "worth"
    line = ["study", "worth", "--plan", tmp_path / "plan.yaml", "--data", tmp_path, "--output", output, "--seeds", 1]
    line = [*map(str, line), f"ours={bert}", f"scratch=scratch:{bert}"]
    first = give(*line)
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: pytest.fail("Trained again."))
    again = give(*line)
    assert again.stdout == first.stdout  # Bars, which appear on stderr if it takes long, do not matter.
    text = (output / "worth.md").read_text()
    assert "| task | metric | scratch − ours |" in text and "no interval" not in text
    assert (
        "| task | metric | most frequent answer | shared pieces | ours | scratch |" in text
        and "| words | accuracy |" in text
    )
    for name, is_new in (("ours", False), ("scratch", True)):
        config = output / "words" / name / "rate-0.01" / "seed-1" / "config.yaml"
        assert f"from_scratch: {str(is_new).lower()}" in config.read_text()


@pytest.mark.slow
def test_a_run_that_fails_is_named_with_its_last_words(tmp_path):
    with pytest.raises(
        UserError, match=r"run: `finetune` ended with status 2: Error: .*nothing.* The full log is .*run\.log\."
    ):
        run_command(str(tmp_path / "run"), {}, "finetune", {"--task": "sst2", "--init": str(tmp_path / "nothing")})


@pytest.mark.parametrize("value", [1e-5, "no", "1e-3", "", None, [], {"a, b": [1, True]}, ["The 🐱\x85 [MASK].\n" * 9]])
def test_a_run_gets_the_values_of_its_plan(value):
    """An emoji used to arrive as two characters that no file can hold."""
    assert parse_override(f"examples={runs._as_yaml(value)}") == ("examples", value)
    assert "\n" not in runs._as_yaml(value)


def trained(folder, changes, command, options):
    """Stands in for a run that leaves one checkpoint, or its results."""
    if "--seeds" in options:
        os.makedirs(f"{folder}/seed-1/checkpoints/step-2")
        raise KeyboardInterrupt
    os.makedirs(folder, exist_ok=True)
    with open(f"{folder}/results.json", "w") as stream:
        stream.write('{"score": 1}')
    return {"score": 1}


@pytest.mark.parametrize("seeds", [None, {"--seeds": "1,2"}])
def test_a_run_is_continued_or_taken_only_if_it_was_made_from_the_same(tmp_path, monkeypatch, seeds):
    """Finished or not; a flag, a setting of None and the original of a temporarily copied model count too."""
    monkeypatch.setattr("keras_bert.studies.runs.run_command", trained)
    folder = str(tmp_path / "run")

    def run(origin="step 4", changes=None, **options):
        options = {"--task": "sst2", "--init": "copy", **{f"--{name}": value for name, value in options.items()}}
        return StudyRun(folder, "finetune", options, changes or {"training.steps": 3}, origin)

    with contextlib.suppress(KeyboardInterrupt):
        run().make(seeds)
    assert run().results() == (None if seeds else {"score": 1})
    for other, shown in (
        (run(task="mrpc"), "--task: was 'sst2', now 'mrpc'"),
        (run(**{"from-scratch": None}), "--from-scratch: was None, now ''"),
        (run(changes={"training.steps": 3, "name": None}), "--set name: was None, now 'null'"),
        (run(origin="step 8"), "--init: was 'step 4', now 'step 8'"),
    ):
        for use in (other.results, other.make):
            with pytest.raises(UserError, match=rf"run\.json: was made with other settings \({shown}\). Give another"):
                use()
    os.remove(f"{folder}.json")
    with pytest.raises(UserError, match=r"run: needs a run with .*run\.json, .* Received: one without\. Give another"):
        run().results()


def test_a_run_that_failed_before_it_trained_may_be_given_other_settings(tmp_path, monkeypatch):
    """Otherwise a mistyped folder would cost the user the study's --output."""
    monkeypatch.setattr("keras_bert.studies.runs.run_command", lambda *_: (_ for _ in ()).throw(UserError("nothing")))
    with pytest.raises(UserError, match="nothing"):
        StudyRun(str(tmp_path / "run"), "finetune", {"--init": "mistyped"}, {}).make()
    assert StudyRun(str(tmp_path / "run"), "finetune", {"--init": "bert"}, {}).results() is None


def refused(*line):
    result = give("study", *map(str, line), status=2)
    assert "Traceback" not in result.output
    return result.output


def test_bad_input_gets_one_line(tmp_path):
    """Each is refused before TensorFlow is imported."""
    (tmp_path / "plan.yaml").write_text("ner: {folder: conll2003, rate: [1.0e-3]}")
    rest = ("--data", tmp_path, "--output", tmp_path / "out")
    assert "ner.rate: no such setting. The nearest is ner.rates" in refused(
        "worth", "--plan", tmp_path / "plan.yaml", *rest, "a=b"
    )
    assert "squad: no such task in" in refused("worth", "--only", "squad", *rest, "a=b")
    assert "Each model needs the form NAME=MODEL. Received: runs/a." in refused("worth", *rest, "runs/a")
    assert "basis: no such pilot" in refused("pilots", "--only", "basis", *rest)
    assert "NAME=MODEL: needs a name for every model that a folder of its own may have. Received: '../a'." in refused(
        "worth", *rest, "../a=runs/a"
    )
    attention = ("attention", "--model", "bert", "--output", tmp_path / "out")
    assert "TEXT: needs UTF-8. Received: 'a\\udcff'" in refused(*attention, "a\udcff")
    landscape = ("landscape", "--init", "bert", "--output", tmp_path / "out", "--task")
    assert "--task: needs one of boolq, " in refused(*landscape, "glue")
    assert "Received: superglue. The nearest is superglue_rte." in refused(*landscape, "superglue")
    assert "training.epoch: no such setting" in refused(*landscape, "sst2", "--set-scratch", "training.epoch=3")
    assert "nothing: no such config" in refused("pilots", "--plan", "nothing", *rest)


ABLATION = "recipe: five_minutes\nvariants: {base: {}, other: %s}\ntasks: {sst2: {folder: ., rates: [1.0e-3]}}"


@pytest.mark.parametrize(
    ("study", "plan", "message"),
    [
        ("worth", "{}", "plan.yaml: needs at least one task. Received: none."),
        ("pilots", "{recipe: demo, pilots: {}}", "plan.yaml: needs at least one pilot. Received: none."),
        (
            "worth",
            "../a: {folder: ., rates: [1.0e-3]}",
            "every task that a folder of its own may have. Received: '../a'.",
        ),
        ("worth", "snapshots: {folder: ., rates: [1.0e-3]}", "every task that a folder of its own may have."),
        (
            "pilots",
            "{recipe: demo, pilots: {..: {}}}",
            "every pilot that a folder of its own may have. Received: '..'.",
        ),
        (
            "embryology",
            "{treebank: {task: pos, folder: .}, tasks: {../a: {task: sst2, folder: ., rates: [1.0e-3]}}}",
            "every task that a folder of its own may have. Received: '../a'.",
        ),
        ("worth", "sst2: {folder: absent, rates: [1.0e-3]}", "absent: needs the files of sst2. Received: no folder."),
        ("worth", "sst3: {folder: ., rates: [1.0e-3]}", "sst3: needs one of boolq, "),
        ("worth", "sst2: {folder: ., rates: [1.0e-3], set: {training.epoch: 3}}", "sst2: training.epoch: no such set"),
        ("ablation", ABLATION % "{recipe: absent}", "other: absent: no such config."),
        ("ablation", ABLATION % "{set: {masking.units: word}}", "other: masking.units: no such setting"),
        ("ablation", ABLATION % "{published: {MNLI: '84,4'}}", "published.MNLI: needs a finite number."),
        ("embryology", "{treebank: {task: pos, folder: .}, published: {DET: early}}", "published.DET: needs a finite"),
    ],
)
def test_what_could_only_fail_after_hours_is_refused_first(tmp_path, study, plan, message):
    """A fault may be in the last task's recipe or in the table; a plan without any part must not end in a traceback."""
    (tmp_path / "plan.yaml").write_text(plan)
    more = {"worth": ["a=b"], "ablation": ["--text", "prepared"], "embryology": ["run"]}.get(study, [])
    told = refused(study, "--plan", tmp_path / "plan.yaml", "--data", tmp_path, "--output", tmp_path / "out", *more)
    assert message in told and not (tmp_path / "out").exists(), told


def test_every_plan_that_is_shipped_can_be_read():
    """A typo would otherwise show only to a user who starts the study."""
    more = {"worth": ["a=b"], "ablation": ["--text", "prepared"]}
    for name, only in (("worth", "ner"), ("pilots", "base"), ("ablation", "base")):
        assert "no such" in refused(
            name, "--only", f"{only}-", "--data", "data", "--output", "out", *more.get(name, ())
        )


WAITS = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(75))
print("ready", flush=True)
time.sleep(60)
"""


def test_a_request_to_stop_is_passed_on_and_waited_for(tmp_path, monkeypatch):
    """Otherwise the run would go on by itself, and the same command would find its folder taken."""
    monkeypatch.setattr("keras_bert.studies.runs.own_program", lambda: [sys.executable, "-c", WAITS])
    log = tmp_path / "run.log"

    def ask():
        while not log.exists() or "ready" not in log.read_text():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGTERM)

    asker = threading.Thread(target=ask)
    asker.start()
    with pytest.raises(RunStopped, match="run: stopped; the same command resumes") as stopped:
        run_command(str(tmp_path / "run"), {}, "finetune", {})
    asker.join()
    assert stopped.value.status == 75
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_the_lines_of_a_run_in_a_store_are_kept_beside_it():
    """A process cannot write to the store itself; the lines of earlier runs stay."""
    for line in (b"once\n", b"twice\n"):
        with pytest.raises(KeyError), runs._process_log("ram://study/run.log") as log:
            log.write(line)
            raise KeyError
    assert runs._last_line("ram://study/run.log") == "twice"
    with files.open_file("ram://study/run.log") as stream:
        assert stream.read() == b"once\ntwice\n"


def plans(*tasks, metrics=()):
    return {task: WorthTaskPlan("glue", [1e-4], metrics=list(metrics)) for task in tasks}


def results_of_seeds(values, per_cent=False, majority=0.5):
    """Results as `finetune --seeds` writes them."""
    return {
        "main_metric": "f1",
        "per_cent": per_cent,
        "seeds": list(range(1, len(values) + 1)),
        "splits": {"dev": {"f1": sorted(values)[len(values) // 2]}, "other": {"f1": 1.0}},
        "over_seeds": {"dev": {"f1": {"values": values}}, "other": {"f1": {"values": [1.0]}}},
        "baseline": {"dev": {"f1": majority}, "other": {"f1": 0.0}},
    }


def test_the_better_rate_counts_for_each_model_by_its_median():
    """The best seed would reward a rate that varies most."""
    steady, lucky = results_of_seeds([0.70, 0.71, 0.72]), results_of_seeds([0.60, 0.69, 0.90])
    rate, found = better({1e-3: lucky, 5e-4: steady}, main_scores)
    assert rate == 5e-4 and found is steady
    lines = list(
        table(
            {"ner": {"scratch": (1e-3, results_of_seeds([0.6, 0.5, 0.55])), "ours": (rate, found)}},
            ["scratch", "ours"],
            plans("ner"),
        )
    )
    assert lines[-1] == "| ner | f1 | 50.0 | – | 55.0 (50.0–60.0) at 0.001 | 71.0 (70.0–72.0) at 0.0005 |"
    assert len({line.count("|") for line in lines}) == 1


def test_scores_are_per_cent_whatever_they_are_written_as():
    assert main_scores(results_of_seeds([0.25, 0.5])) == [25.0, 50.0]
    assert main_scores(results_of_seeds([25.0, 50.0], per_cent=True)) == [25.0, 50.0]
    no_majority = table({"stsb": {"a": (1e-4, results_of_seeds([0.5], majority="–"))}}, ["a"], plans("stsb"))
    assert list(no_majority)[-1] == "| stsb | f1 | – | – | 50.0 at 0.0001 |"


def test_differences_to_the_first_model_or_why_there_are_none(tmp_path):
    """Runs of an older version have no examples.json; an empty cell alone would look like no difference."""
    right = np.random.default_rng(1).random((2, 200)) < 0.6
    for model, extra in (("base", 0.0), ("same", 0.0), ("good", 1.0)):
        for seed, share in enumerate(np.where(np.arange(200) < 100, np.maximum(right, extra), right), 1):
            os.makedirs(tmp_path / model / f"seed-{seed}")
            pairs = np.stack([share, np.ones(200)], axis=1)
            RunFolder(str(tmp_path / model / f"seed-{seed}")).write_examples({"dev": {"accuracy": pairs}})
    models = ["base", "same", "good", "old"]
    results = {**results_of_seeds([0.6, 0.6]), "main_metric": "accuracy"}
    results["over_seeds"]["dev"]["accuracy"] = results["over_seeds"]["dev"]["f1"]
    found = {"mrpc": dict.fromkeys(models, (1e-4, results))}
    examples = {("mrpc", model): examples_of(str(tmp_path / model), results) for model in models}
    lines = list(differences(found, models, plans("mrpc", metrics=["f1"]), examples))
    *_, accuracy, f1, _, old, _, no_f1 = lines
    assert accuracy.startswith("| mrpc | accuracy | +0.0 (+0.0 to +0.0) | **+") and accuracy.endswith("** |  |")
    assert f1 == "| mrpc | f1 |  |  |  |"
    assert old == "mrpc: no interval, because the runs of old lack examples.json, which older versions did not write."
    assert no_f1 == "mrpc: no interval, because examples.json has nothing about f1."
    right, wrong = ({"accuracy": np.stack([np.full((2, 5), share), np.ones((2, 5))], -1)} for share in (1.0, 0.0))
    few = {("mrpc", "base"): wrong, ("mrpc", "good"): right}
    *_, last = differences(found, ["base", "good"], plans("mrpc"), few)  # It was bold: every sample has a gain of 1.
    assert last == "mrpc: no interval, because 5 dev examples are too few to rule out chance, which takes 6."


def test_a_metric_that_a_task_lacks_is_refused_with_its_first_results(tmp_path, monkeypatch):
    """Otherwise all other tasks would be trained first."""
    made = []
    results = results_of_seeds([0.6])
    monkeypatch.setattr("keras_bert.studies.downstream.finetune", lambda run, _: made.append(run.folder) or results)
    with pytest.raises(UserError, match="mrpc.metrics: needs metrics of f1. Received: recall"):
        worth(StudyFolder(str(tmp_path)), {"a": "a", "b": "b"}, plans("mrpc", "rte", metrics=["recall"]), "data", 1)
    assert len(made) == 1
