"""Pretraining that goes back after a fault: other batches from there on, and the same bits however it is stopped."""

import dataclasses
import os

import numpy as np
import pytest
from faults import faults, high_loss, no_number
from pretraining import metrics, recipe, stopped_at
from said import listen

from keras_bert.config.pretraining import PretrainConfig
from keras_bert.core import settings
from keras_bert.core.errors import UserError
from keras_bert.inference.loading import load
from keras_bert.tasks.pretraining.run import pretrain
from keras_bert.training import rollbacks as loss_band
from keras_bert.training.run_folder import RunFolder

WHAT = "the loss or the gradient is no longer finite"


@pytest.fixture(scope="module")
def config(corpus):
    """A log line every 2 steps, a checkpoint every 3; the second phase begins at step 8."""
    values = {
        "training.steps": 12,
        "phases": [
            {"share": 2 / 3, "sequence_length": 16, "batch_size": 8, "max_predictions_per_seq": 3},
            {"share": 1 / 3, "sequence_length": 32, "batch_size": 4, "max_predictions_per_seq": 5},
        ],
    }
    return recipe(corpus, **values)


def settings_of(config, **overrides):
    """The same recipe with other settings."""
    return PretrainConfig.from_mapping(settings.to_mapping(config), overrides)


@pytest.fixture(scope="module")
def rolled_back(config, tmp_path_factory):
    """(run, steps and batches, lines said) of a run with two faults: in step 5, and in step 9 of the other phase."""
    run, said = RunFolder(str(tmp_path_factory.mktemp("runs") / "straight")), listen()
    with pytest.MonkeyPatch.context() as patch, faults(patch, {5: [no_number], 9: [no_number]}) as seen:
        pretrain(config, run)
    return run, seen, said


@pytest.mark.slow
def test_it_goes_back_to_the_checkpoint_and_says_so(rolled_back):
    """Each fault is found at the next line or checkpoint: that of step 5 at 6, that of step 9 at 9."""
    run, seen, _ = rolled_back
    lines = metrics(run)
    assert [line["step"] for line in lines] == [2, 3, 4, 6, 6, 6, 8, 10, 12, 12]
    rollbacks = [line for line in lines if "rollback" in line]
    assert [(line["step"], line["bad_step"], line["rollback"]) for line in rollbacks] == [(3, 5, 1), (6, 9, 2)]
    assert all(line["reason"].startswith(WHAT) for line in rollbacks)
    assert [line["left_out"] for line in rollbacks] == [[[0, 3, 2]], [[0, 6, 2], [1, 0, 1]]]
    assert [step for step, _ in seen] == [*range(6), *range(3, 9), *range(6, 12)]


@pytest.mark.slow
def test_no_batch_up_to_a_fault_is_trained_on_again(rolled_back, config, tmp_path, monkeypatch):
    """The other batches are those of a run without faults, in their order."""
    with faults(monkeypatch, {}) as straight:
        pretrain(config, RunFolder(str(tmp_path / "run")))
    plain = [digest for _, digest in straight]
    digests = [digest for _, digest in rolled_back[1]]
    assert digests[:6] == plain[:6]  # The batch of step 6 was trained on too, after the fault of 5.
    assert digests[6:9] == [plain[5], plain[6], plain[7]]  # Steps 3, 4, 5 get the batches of 5, 6, 7.
    after = digests[12:]
    assert not {*after[:2]} & {*digests[:12]} and after[2:5] == plain[9:12]


@pytest.mark.slow
@pytest.mark.parametrize(("step", "times"), [(4, 2), (8, 1), (8, 2)])
def test_stopped_and_started_again_gives_the_same_numbers(step, times, rolled_back, config, tmp_path, monkeypatch):
    """Killed between the first rollback and the next checkpoint, before the second, and between that and the next.

    The faults do not recur by themselves in the second process, so it must remember what they left out.
    """
    run, at = RunFolder(str(tmp_path / "run")), {5: [no_number], 9: [no_number]}
    with faults(monkeypatch, at), stopped_at(step, monkeypatch, times):
        pretrain(config, run)
    with faults(monkeypatch, {9: [no_number]} if times == 1 or step == 4 else {}):
        pretrain(config, run)
    assert metrics(run) == metrics(rolled_back[0])
    weights = [load(folder.path).model.get_weights() for folder in (run, rolled_back[0])]
    assert all(np.array_equal(ours, theirs) for ours, theirs in zip(*weights, strict=True))


@pytest.mark.slow
def test_loops_of_steps_give_the_same_numbers(config, tmp_path, monkeypatch):
    """With two steps a call, the fault of step 5 is found inside a loop, whose other step is done again too."""
    run = RunFolder(str(tmp_path / "run"))
    looped = settings_of(config, **{"training.steps_per_loop": 2, "training.checkpoint_every": 2})
    with faults(monkeypatch, {5: [no_number]}):
        pretrain(looped, run)
    other = RunFolder(str(tmp_path / "other"))
    with faults(monkeypatch, {5: [no_number]}):
        pretrain(settings_of(config, **{"training.checkpoint_every": 2}), other)
    assert metrics(run) == metrics(other) and [line["step"] for line in metrics(run)].count(4) == 2


@pytest.mark.slow
def test_it_gives_up_with_the_message_of_a_run_that_never_goes_back(config, tmp_path, monkeypatch):
    """After as many rollbacks as allowed, counted over all its starts; the same run may be allowed more."""
    run = RunFolder(str(tmp_path / "run"))
    once = settings_of(config, **{"training.rollbacks": 1})
    message = (
        f"Step 5: {WHAT}, at a learning rate of about .* The last good checkpoint is at step 3. The run has gone back "
        "1 times .training.rollbacks.. Lower optimizer.learning_rate, .* --fresh"
    )
    for changes in ([no_number, no_number], [no_number]):
        with faults(monkeypatch, {5: changes}), pytest.raises(UserError, match=message):
            pretrain(once, run)
    with faults(monkeypatch, {5: [no_number]}):
        assert pretrain(config, run)["steps"] == 12
    assert [line["rollback"] for line in metrics(run) if "rollback" in line] == [1, 2]


def test_without_a_checkpoint_there_is_nothing_to_go_back_to(config, tmp_path, monkeypatch):
    with (
        faults(monkeypatch, {2: [no_number]}),
        pytest.raises(UserError, match="Step 2: .* No checkpoint is from before it"),
    ):
        pretrain(config, RunFolder(str(tmp_path / "run")))


def test_a_run_whose_last_update_spoiled_its_weights_writes_no_model(config, tmp_path):
    """Although its losses are all finite, it would end with a model of NaN and a results.json that is no JSON."""
    one_phase = [{**dataclasses.asdict(config.phases[0]), "share": 1.0}]
    run = RunFolder(str(tmp_path / "run"))
    short = settings_of(config, **{"training.steps": 1, "phases": one_phase})
    short.optimizer.clip_norm = np.inf  # Its gradients become inf * 0. No recipe may set this.
    with pytest.raises(UserError, match="Step 1: a weight or the optimizer's state is no longer finite.*--fresh"):
        pretrain(short, run)
    assert not any(os.path.exists(path) for path in (run.model, run.results_file)) and not run.has_begun()


@pytest.mark.slow
def test_a_loss_far_above_the_others_is_one_too(config, tmp_path, monkeypatch):
    """Found at line 8, with the last good line at 6; the checkpoint of step 7, after that line, is removed too."""
    monkeypatch.setattr(loss_band, "LEAST", 2)
    run = RunFolder(str(tmp_path / "run"))
    every = settings_of(config, **{"training.checkpoint_every": 7, "training.keep_every": 0})
    with faults(monkeypatch, {7: [high_loss]}) as seen:
        pretrain(every, run)
    assert [line["step"] for line in metrics(run) if "rollback" in line] == [6]
    assert [step for step, _ in seen] == [*range(8), *range(6, 12)]
    rollback = next(line for line in metrics(run) if "rollback" in line)
    assert rollback["bad_loss"] > rollback["limit"] > 0 and rollback["left_out"] == [[0, 6, 2]]
    assert sorted(os.listdir(run.checkpoints)) == ["step-000000006", "step-000000007", "step-000000012"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes", [{"training.accumulation": 2, "training.precision": "float16"}, "text", "mirrored"], ids=str
)
def test_it_does_so_in_every_kind_of_run(changes, corpus, tmp_path, monkeypatch, mirrored_strategy):
    """Stopped after the rollback, it ends as an uninterrupted run does. It has one phase; tests above have two."""
    if changes == "mirrored":
        monkeypatch.setattr("keras_bert.tasks.pretraining.run.make_strategy", lambda name, *where: mirrored_strategy)
    if changes == "text":
        changes = {"data.source": "text", "objective.pair": "none"}
    short = {"training.steps": 6, "phases.0.sequence_length": 16, "phases.0.max_predictions_per_seq": 3}
    config = recipe(corpus, **short, **(changes if changes != "mirrored" else {}))
    runs = [RunFolder(str(tmp_path / name)) for name in ("straight", "stopped")]
    with faults(monkeypatch, {5: [no_number]}):
        pretrain(config, runs[0])
    with faults(monkeypatch, {5: [no_number]}), stopped_at(4, monkeypatch, 2):
        pretrain(config, runs[1])
    pretrain(config, runs[1])
    assert metrics(runs[0]) == metrics(runs[1]) and any("rollback" in line for line in metrics(runs[0]))
