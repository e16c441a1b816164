"""A run's folder: one run in it, its log in step with its checkpoints."""

import contextlib
import json
import os

import pytest

from keras_bert.config.finetuning import FinetuneConfig, TaskDataConfig
from keras_bert.config.pretraining import PretrainConfig
from keras_bert.core.errors import RunStopped, UserError
from keras_bert.training.metrics_log import MetricsLog, read_metrics
from keras_bert.training.run_folder import MAY_DIFFER, RunFolder


def recipe(**overrides):
    return PretrainConfig.from_mapping({"training": {"steps": 10}}, overrides)


def started(path, **overrides):
    """A run that has a checkpoint."""
    run = RunFolder(str(path))
    run.claim(recipe(**overrides))
    os.makedirs(os.path.join(run.checkpoints, "step-000000001"))
    return run


def test_the_same_settings_go_on_and_others_are_shown(tmp_path):
    run = started(tmp_path / "run")
    run.claim(recipe())
    with pytest.raises(UserError, match="optimizer.learning_rate: was 0.0001, now 0.5.*--fresh"):
        run.claim(recipe(**{"optimizer.learning_rate": 0.5}))


def test_data_given_as_objects_are_the_same_wherever_the_folder_is(tmp_path):
    """They are files in the run's folder; if it was moved or spelled otherwise, the run used to refuse its own data."""

    def claim(folder, train):
        with RunFolder(str(folder)) as run:
            run.claim(FinetuneConfig("text", data=TaskDataConfig(train=train)))
            os.makedirs(os.path.join(run.checkpoints, "step-000000001"), exist_ok=True)

    claim(tmp_path / "a", "a/given/train.jsonl")
    os.rename(tmp_path / "a", tmp_path / "b")
    claim(tmp_path / "b", str(tmp_path / "b/given/train.jsonl"))
    run = started(tmp_path / "pretrained", **{"data.files": ["pretrained/given/text.jsonl"]})
    run.claim(recipe(**{"data.files": [f"{run.path}/given/text.jsonl"]}))
    for other in ("b/given/train.arrow", "b/kept/train.jsonl"):
        with pytest.raises(UserError, match="data.train: was 'a/given/train.jsonl', now 'b/"):
            claim(tmp_path / "b", other)


OTHERWISE = {
    "training.strategy": "mirrored",
    "training.devices": ["CPU:0", "CPU:1"],
    "training.tpu": "mine",
    "training.max_minutes": 5.0,
    "training.profile_at": 4,
    "training.accumulation": 2,
    "training.recompute_every": 1,
    "training.parallel_slices": 2,
    "training.steps_per_loop": 2,
    "training.log_every": 8,
    "training.log_to": [],
    "training.checkpoint_every": 7,
    "training.checkpoint_minutes": 1.0,
    "training.keep_checkpoints": 1,
    "training.keep_every": 5,
    "training.rollbacks": 1,
    "training.loss_band": 3.0,
    "optimizer.base_rate": 2e-5,
    "features.folder": "elsewhere",
    "examples": ["The [MASK] sat."],
}


@pytest.mark.parametrize("key", dict.fromkeys([*MAY_DIFFER, *OTHERWISE]))
def test_how_a_run_is_executed_may_differ(tmp_path, key):
    """The entries of a list too: other devices used to be refused as training.devices.0.

    The same went for training.accumulation, which a run that runs out of memory is advised to change.
    """
    of_finetuning = key.startswith(("features.", "optimizer."))
    values = {"task": "ner"} if of_finetuning else {"training": {"steps": 10}}
    read = FinetuneConfig.from_mapping if of_finetuning else PretrainConfig.from_mapping
    run = RunFolder(str(tmp_path / "run"))
    run.claim(read(values, {}))
    os.makedirs(os.path.join(run.checkpoints, "step-000000001"))
    run.claim(read(values, {key: OTHERWISE[key]}))
    run.claim(read(values, {}))


def test_a_setting_that_may_differ_is_mended_though_what_the_run_has_is_refused(tmp_path):
    """Older versions accepted an example without [MASK]; such a run could not finish, mended or not."""
    run = started(tmp_path / "run")
    with open(run.config_file, encoding="utf-8") as stream:
        written = stream.read().replace("examples: []", "examples: [The cat sat.]")
    assert "The cat sat." in written
    with open(run.config_file, "w", encoding="utf-8") as stream:
        stream.write(written)
    run.claim(recipe(examples=["The [MASK] sat."]))
    assert run.begun_settings()["training"]["steps"] == 10


def test_steps_may_grow_and_not_shrink(tmp_path):
    run = started(tmp_path / "run")
    longer = recipe(**{"training.steps": 20})
    run.claim(longer)
    run.bind(longer)
    with pytest.raises(UserError, match="training.steps: was 20, now 10"):
        run.claim(recipe())


def test_a_start_that_is_refused_later_leaves_a_run_its_settings(tmp_path):
    """After a start with more steps, or only its estimate, the run's own command used to be refused."""
    run = started(tmp_path / "run")
    run.claim(recipe(**{"training.steps": 20}))
    run.claim(recipe())
    with pytest.raises(UserError, match="other settings"):
        run.claim(recipe(**{"optimizer.learning_rate": 0.5}))
    new = RunFolder(str(tmp_path / "new"))
    new.claim(recipe())  # Its data will be there, so it must look like a run's folder.
    assert os.listdir(new.path) and os.path.exists(new.config_file)


@pytest.mark.parametrize(
    ("key", "value", "stays"), [("optimizer.learning_rate", 0.5, True), ("data.files", ["b"], False)]
)
def test_a_start_that_failed_before_any_checkpoint_binds_nobody(tmp_path, key, value, stays):
    """The mended command must not be refused, nor find shards made before the mend.

    Text mended under the same command is in tests/tasks/pretraining/test_run_text.py.
    """
    run = RunFolder(str(tmp_path / "run"))
    run.claim(recipe())
    os.makedirs(run.data)
    run.claim(recipe(**{key: value}))
    assert os.path.exists(run.data) == stays
    assert str(value).strip("[]'") in open(run.config_file, encoding="utf-8").read()


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(
        UserError, match="needs an empty folder, or one that holds a pretraining run. Received: something else"
    ):
        RunFolder(str(tmp_path)).claim(recipe())
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_fresh_takes_the_first_free_name(tmp_path):
    path = str(tmp_path / "run")
    assert RunFolder.fresh(path).path == path
    RunFolder(path).claim(recipe())
    assert RunFolder.fresh(path).path == f"{path}-2"


def test_the_log_drops_steps_that_will_be_done_again(tmp_path):
    """A run killed after its last checkpoint has logged steps that the next start repeats."""
    run = RunFolder(str(tmp_path))
    log = MetricsLog(run, 0)
    for step in (1, 2, 3):
        log.write(step, {"loss": 1.0 / step, "eval_perplexity": float("inf")})
    log.close()
    with open(run.metrics_file, "a", encoding="utf-8") as stream:
        stream.write('{"step": 4, "lo')  # cut off by the kill
    log = MetricsLog(run, 2)
    log.write(3, {"loss": 0.1})
    log.close()
    lines = read_metrics(run.metrics_file)
    assert [line["step"] for line in lines] == [1, 2, 3]
    assert lines[2] == {"step": 3, "loss": 0.1}
    assert lines[0]["eval_perplexity"] is None  # JSON has no infinity
    assert all(json.loads(line) for line in open(run.metrics_file, encoding="utf-8"))


def test_a_kill_while_the_settings_are_written_binds_nobody(tmp_path):
    """The folder then holds the file written aside, and must not be taken for someone else's."""
    run = RunFolder(str(tmp_path / "run"))
    os.makedirs(run.path)
    with open(f"{run.config_file}.partial", "w", encoding="utf-8") as stream:
        stream.write("name: pret")
    with run:
        run.claim(recipe())
    assert os.listdir(run.path) == ["config.yaml"]


def test_a_run_is_one_processs_alone(tmp_path):
    """Two would destroy each other's half-written files."""
    first, second = (RunFolder(str(tmp_path / "run")) for _ in range(2))
    first.claim(recipe())
    with pytest.raises(UserError, match=rf"run: in use by process {os.getpid()} on .*or give another --output"):
        second.claim(recipe())
    first.claim(recipe())  # It holds the lock itself.
    first.release()
    with second:
        second.claim(recipe())
    assert os.listdir(tmp_path / "run") == ["config.yaml"]
    first.claim(recipe())


def test_what_cannot_be_settled_is_given_back(tmp_path):
    run = started(tmp_path / "run")
    run.release()
    with pytest.raises(UserError, match="other settings"):
        run.claim(recipe(**{"optimizer.learning_rate": 0.5}))
    RunFolder(run.path).claim(recipe())


def test_a_run_taken_over_writes_nothing_more(tmp_path):
    run = RunFolder(str(tmp_path / "run"))
    run.claim(recipe())
    log = MetricsLog(run, 0)
    log.flush()
    run._lock.lost_to = "process 7 on elsewhere"
    for write in (log.flush, lambda: run.write_results({})):
        with pytest.raises(UserError, match="taken over by process 7 on elsewhere"):
            write()
    assert run.results() is None
    log.close()


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (RunStopped("Stopped by SIGHUP after step 7.", 75), "INFO Stopped by SIGHUP after step 7."),
        (UserError("data: needs texts."), "ERROR data: needs texts."),
        (KeyError("x"), "ERROR KeyError: 'x'"),
        (None, None),
    ],
)
def test_the_log_says_why_a_run_ended(error, line, tmp_path, caplog):
    """Whoever finds the run the next day no longer sees the terminal, or closed it to end the run."""
    with contextlib.suppress(Exception), RunFolder(str(tmp_path)) as run:
        run.hold()
        if error:
            raise error
    lines = (tmp_path / "log.txt").read_text().splitlines() if line else []
    assert [told.split(" ", 2)[2] for told in lines] == ([line] if line else []) and not caplog.records


def test_a_file_in_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "run").write_text("mine")
    with pytest.raises(UserError, match="needs a folder. Received: a file"):
        RunFolder(str(tmp_path / "run")).claim(recipe())


def test_results_bind_without_checkpoints_too(tmp_path):
    """If a finished run's checkpoints were removed to make room, its results must not be shown as another run's."""
    run = RunFolder(str(tmp_path / "run"))
    run.claim(recipe())
    run.write_results({"steps": 10})
    with pytest.raises(UserError, match="other settings"):
        run.claim(recipe(**{"optimizer.learning_rate": 0.5}))


def test_fresh_takes_a_name_beside_a_path_with_a_slash_behind_it(tmp_path):
    """`runs/x/` used to give `runs/x/-2`, inside the old run."""
    (tmp_path / "run").mkdir()
    assert RunFolder.fresh(f"{tmp_path}/run/").path == f"{tmp_path}/run-2"


def test_results_are_json_whatever_their_figures_are(tmp_path):
    """Python writes NaN and Infinity, which jq, JavaScript and most other readers refuse with the whole file."""
    run = RunFolder(str(tmp_path / "run"))
    run.write_results({"splits": {"dev": {"f1": float("nan")}}, "losses": [1.0, -float("inf")], "label": "é"})
    content = (tmp_path / "run" / "results.json").read_text(encoding="utf-8")
    assert "NaN" not in content and "Infinity" not in content and "é" in content
    assert run.results() == {"splits": {"dev": {"f1": None}}, "losses": [1.0, None], "label": "é"}
