"""From restored weights to the first step: the errors and the signals of that time."""

import os
import signal
from types import SimpleNamespace

import pytest
import tensorflow as tf
from pretraining import recipe
from said import listen

from keras_bert.config.finetuning import FinetuneConfig
from keras_bert.core.errors import UserError
from keras_bert.core.settings import to_yaml
from keras_bert.tasks.finetuning.run import Finetuning
from keras_bert.tasks.pretraining.run import Pretraining
from keras_bert.training.budget import StepBudget
from keras_bert.training.run_folder import RunFolder


def no_memory(*arguments):
    raise tf.errors.ResourceExhaustedError(None, None, "OOM when allocating tensor")


def stand_in(kind, config, folder):
    """A run whose parts are stand-ins, as far as the start of training needs them."""
    run = object.__new__(kind)
    run.config, run.run, run.strategy = config, RunFolder(str(folder)), tf.distribute.get_strategy()
    (folder / "config.yaml").write_text(to_yaml(config), encoding="utf-8")  # The loggers record this file.
    run.batches = SimpleNamespace(sample=None)
    run.engine = SimpleNamespace(
        model=None,
        step=SimpleNamespace(objective=SimpleNamespace(terms=("mlm",))),
        budget=StepBudget(12, [0.5, 0.5]),
        with_compilation=lambda *_: run.engine,
    )
    return run


@pytest.fixture
def pretraining(tmp_path):
    """A run of two phases."""
    phase = {"share": 0.5, "sequence_length": 16, "max_predictions_per_seq": 3}
    config = recipe("text.txt", phases=[{**phase, "batch_size": 8}, {**phase, "batch_size": 4}])
    run = stand_in(Pretraining, config, tmp_path)
    run.is_chief, run.tokenizer, run.sources = True, SimpleNamespace(vocabulary=None), SimpleNamespace(validation=None)
    run.engine.model, run.teacher = SimpleNamespace(config=config.model), None
    return run


@pytest.fixture
def finetuning(tmp_path):
    run = stand_in(Finetuning, FinetuneConfig("sst2"), tmp_path)
    run.validation = SimpleNamespace(columns=list, figures=None, checkpoint_score=None)
    run.source = SimpleNamespace(batches_per_epoch=4)
    run.command_started_at = run.began_at = None
    return run


@pytest.mark.parametrize(("first_step", "named"), [(0, "phases.0.batch_size 8"), (6, "phases.1.batch_size 4")])
def test_memory_that_runs_out_before_the_loop_is_explained(pretraining, monkeypatch, first_step, named):
    """It would end in a NameError, because the loop that knows the batch does not exist yet."""
    monkeypatch.setattr("keras_bert.tasks.pretraining.run.matmul_peak", no_memory)
    with pytest.raises(UserError, match=f"Out of memory with {named} on 1 replica.*accumulation=2"):
        pretraining.train(first_step)


@pytest.mark.parametrize(("kind", "key"), [("pretraining", "phases.0.batch_size 8"), ("finetuning", "batch_size 32")])
def test_memory_that_runs_out_in_timed_steps_is_explained(request, kind, key):
    """With `jit_compile: auto`, the first steps of a run are the timed ones."""
    run = request.getfixturevalue(kind)
    run.engine.with_compilation = no_memory
    with pytest.raises(UserError, match=f"Out of memory with .*{key} on 1 replica.*accumulation=2"):
        run.train(0)


@pytest.mark.parametrize("kind", ["pretraining", "finetuning"])
def test_a_signal_during_timed_steps_is_not_lost(request, monkeypatch, kind):
    """Otherwise it would end the process at once; the loop must find it after its first step."""
    run, found = request.getfixturevalue(kind), []

    def with_compilation(*arguments):
        os.kill(os.getpid(), signal.SIGTERM)
        return run.engine

    class Loop:
        done = 1

        def __init__(self, engine, batches, evaluate, settings, context, *others, **more):
            self.context = context

        def run(self, first_step):
            found.append((self.context.stop.reason(), self.context.stop.status))
            raise KeyboardInterrupt

    run.engine.with_compilation = with_compilation
    monkeypatch.setattr(f"keras_bert.tasks.{kind}.run.Loop", Loop)
    monkeypatch.setattr("keras_bert.tasks.pretraining.run.matmul_peak", lambda strategy, dtype: 1e9)
    previous = signal.signal(signal.SIGTERM, lambda number, frame: found.append("ended"))
    try:
        with pytest.raises(KeyboardInterrupt):
            run.train(0)
    finally:
        signal.signal(signal.SIGTERM, previous)
    assert found == [("SIGTERM", 75)]


@pytest.mark.parametrize(("speed", "first_step", "says"), [(1.0, 0, True), (1.0, 11, False), (1e9, 0, False)])
def test_a_run_of_months_says_so_before_its_first_step(pretraining, monkeypatch, speed, first_step, says):
    """`pretrain --data TEXT` is the paper's BERT-base, years on a CPU, whose first line of figures takes minutes."""
    monkeypatch.setattr("keras_bert.tasks.pretraining.run.matmul_peak", lambda strategy, dtype: speed)
    monkeypatch.setattr("keras_bert.tasks.pretraining.run.Loop", no_memory)
    said = listen()
    with pytest.raises(UserError, match="Out of memory"):
        pretraining.train(first_step)
    found = [line for line in said if "at least" in line]
    assert bool(found) == says
    if says:
        seconds = sum(6 * size * pretraining._flops(phase) for phase, size in enumerate((8, 4))) / speed
        assert f"at least {seconds / 86_400:,.0f} days" in found[0] and "five_minutes" in found[0]
