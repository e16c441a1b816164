"""Weights & Biases and MLflow: what they are sent, once each, and what is said where they cannot be used."""

import os
import types

import pytest
import tensorflow as tf
from pretraining import recipe

from keras_bert.core import imports
from keras_bert.core.errors import UserError
from keras_bert.core.yaml_and_json import read_json, read_yaml
from keras_bert.training.run_context import run_context
from keras_bert.training.run_folder import RunFolder
from keras_bert.training.run_loggers import require_loggers

SERVICES = ("wandb", "mlflow")


class Refused(Exception):
    """What a service raises."""


class Services:
    """Stands for both packages: `calls` are the calls of both, in order."""

    Error = Refused
    exceptions = types.SimpleNamespace(MlflowException=Refused)

    def __init__(self):
        self.calls, self.sent, self.refuses = [], {service: [] for service in SERVICES}, False

    def init(self, name, reinit, **more):
        if self.refuses:
            raise Refused("No API key\nconfigured.")
        self.calls.append(("wandb", name, more))
        return types.SimpleNamespace(id="w1", log=self.log, finish=lambda exit_code: self.calls.append(exit_code))

    def log(self, figures, step):
        self.sent["wandb"].append((step, *figures))

    def start_run(self, run_id, run_name, nested):
        self.calls.append(("mlflow", run_id, run_name))
        return types.SimpleNamespace(info=types.SimpleNamespace(run_id="m1"))

    def log_params(self, values, run_id):
        self.calls.append((run_id, values))

    def log_metrics(self, figures, step, run_id, synchronous):
        self.sent["mlflow"].append((step, *figures))

    def flush_async_logging(self):
        self.calls.append("flushed")

    def end_run(self, status):
        self.calls.append(status)


@pytest.fixture()
def services(monkeypatch):
    fake = Services()
    monkeypatch.setattr(imports, "import_extra", lambda module, needed_by: fake)
    return fake


def settled(folder, *services):
    config = recipe("corpus", **{"training.log_to": list(services)})
    run = RunFolder(str(folder))
    run.bind(config)
    return run, config.training


def logging(run, training, step):
    return run_context(run, tf.distribute.get_strategy(), training, step, lambda: ("batch_size", 1), {})


def test_a_resumed_run_goes_on_in_the_same_place_and_sends_nothing_twice(tmp_path, services):
    """Killed between the line of step 4 and its validation, with a checkpoint of step 2; then it goes back to step 4.

    Otherwise every start would be a run of its own, and steps that are done again would be in it twice, or refused.
    """
    run, training = settled(tmp_path / "wiki", *SERVICES)
    with pytest.raises(KeyboardInterrupt), logging(run, training, 0) as context:
        for step in (2, 4):
            context.log.write(step, {"loss": 1.0, "f1_<x>": 1.0})
        raise KeyboardInterrupt
    config = read_yaml(run.config_file)
    assert services.calls.pop(0) == ("wandb", "wiki", {"config": config, "dir": run.path})
    started, (run_id, parameters), *ended = services.calls
    assert started == ("mlflow", None, "wiki") and run_id == "m1" and ended == [1, "flushed", "KILLED"]
    assert parameters["optimizer.learning_rate"] == 1e-2

    services.calls.clear()
    with logging(run, training, 2) as context:
        context.log.write(4, {"loss": 2.0})
        context.log.write(4, {"eval_loss": 2.0})
        context.log.write(6, {"loss": 2.0})
        context.log.rewind(4, [{"step": 4, "rollback": 1}])
        context.log.write(6, {"loss": 3.0})
        context.log.write(8, {"loss": 3.0})
    wandb, mlflow, *ended = services.calls
    assert wandb == ("wandb", "wiki", {"id": "w1", "resume": "allow", "dir": run.path})
    assert mlflow == ("mlflow", "m1", None) and ended == [0, "flushed", "FINISHED"]
    later = [(4, "eval_loss"), (6, "loss"), (8, "loss")]
    assert services.sent["wandb"] == [(2, "loss", "f1_<x>"), (4, "loss", "f1_<x>"), *later]
    assert services.sent["mlflow"] == [(2, "loss", "f1__x_"), (4, "loss", "f1__x_"), *later]
    assert not os.path.exists(run.tensorboard)  # Not asked for.


def test_nothing_is_sent_twice_however_often_a_run_is_killed(tmp_path, services):
    """Killed after step 6, with a checkpoint of step 2, and again before it was back there.

    The second start used to drop the lines that said what the services had, so the third sent them again.
    """
    run, training = settled(tmp_path / "wiki", *SERVICES)
    for first, last in ((0, 6), (2, 4), (2, 8)):
        with logging(run, training, first) as context:
            for step in range(first + 2, last + 1, 2):
                context.log.write(step, {"loss": 1.0})
    for service in SERVICES:
        assert [step for step, _ in services.sent[service]] == [2, 4, 6, 8]
    assert read_json(f"{run.path}/loggers.json") == {"wandb": "w1", "mlflow": "m1", "sent": [6, False]}


def test_what_is_missing_is_told_before_any_work(monkeypatch, tmp_path, services):
    """A run of a week would end in a traceback at its first line, hours after its start."""
    monkeypatch.setattr(imports, "is_installed", lambda package: package != "mlflow")
    with pytest.raises(UserError, match=r"training.log_to mlflow: needs the package mlflow.*bert-in-keras\[mlflow\]"):
        require_loggers(settled(tmp_path, *SERVICES)[1])
    services.refuses = True
    with pytest.raises(UserError, match=r"^training.log_to: wandb could not start \(No API key configured.\). Mend"):
        with logging(*settled(tmp_path, "wandb"), 0):
            pass
    with pytest.raises(UserError, match="training.log_to: needs some of tensorboard, wandb, mlflow, each once"):
        settled(tmp_path, "wandb", "wandb")


@pytest.mark.slow
@pytest.mark.parametrize("service", SERVICES)
def test_the_real_one_takes_a_run_and_its_second_start(service, tmp_path, monkeypatch):
    """Without a network: by the packages' own local modes."""
    package = pytest.importorskip(service)
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    run, training = settled(tmp_path / "run", service)
    for first in (0, 2):
        with logging(run, training, first) as context:
            for step in range(first + 1, first + 4):
                context.log.write(step, {"loss": float(step), "f1_<x>": 1.0})
                context.log.write(step, {"eval_loss": float("nan") if step == 4 else float(step)})
    if service == "wandb":
        assert len({path.name.split("-")[-1] for path in (tmp_path / "run" / "wandb").glob("offline-run-*")}) == 1
    else:
        [found] = package.search_runs(search_all_experiments=True, output_format="list")
        history = package.MlflowClient().get_metric_history(found.info.run_id, "loss")
        assert [(metric.step, metric.value) for metric in history] == [(step, step) for step in range(1, 6)]
        assert found.info.status == "FINISHED" and found.data.params["training.log_to.0"] == service
