"""Checkpoints: whole or passed over, the newest kept, nothing of the model and optimiser lost."""

import contextlib
import os

import keras
import numpy as np
import pytest
import tensorflow as tf
from said import listen, silent

from keras_bert.core import files, program, stores
from keras_bert.core.errors import UserError
from keras_bert.training.checkpoints import Checkpoints
from keras_bert.training.optimizers.adamw import AdamW
from keras_bert.training.run_folder import RunFolder


def make():
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    optimizer = AdamW(0.1)
    optimizer.build(model.trainable_variables)
    return model, optimizer


def update(model, optimizer):
    optimizer.apply([tf.ones_like(variable) for variable in model.trainable_variables], model.trainable_variables)


def state(model, optimizer):
    return [variable.numpy() for variable in (*model.variables, *optimizer.variables)]


def test_restores_weights_moments_and_iterations(tmp_path):
    model, optimizer = make()
    checkpoints = Checkpoints(tmp_path, 2, model=model, optimizer=optimizer)
    for step in range(1, 5):
        update(model, optimizer)
        checkpoints.save(step)
    assert checkpoints.steps() == [3, 4]
    other = make()
    assert Checkpoints(tmp_path, 2, model=other[0], optimizer=other[1]).restore_newest() == 4
    for received, expected in zip(state(*other), state(model, optimizer), strict=True):
        np.testing.assert_array_equal(received, expected)
    update(model, optimizer)
    update(*other)
    np.testing.assert_array_equal(other[0].get_weights()[0], model.get_weights()[0])


def test_the_one_to_go_back_to_is_kept(tmp_path):
    """Those after the last log line may hold weights whose loss had begun to rise; step 6 has a line of its own."""
    model, optimizer = make()
    checkpoints = Checkpoints(tmp_path, 2, model=model, optimizer=optimizer)
    for step in range(1, 6):
        checkpoints.save(step, watch={"last_line": 2})
    assert checkpoints.steps() == [2, 4, 5]
    checkpoints.save(6, watch={"last_line": 6})
    assert checkpoints.steps() == [5, 6]


@pytest.mark.parametrize("damage", ["altered", "truncated", "missing", "no state"])
def test_a_damaged_checkpoint_is_named_and_the_one_before_it_taken(tmp_path, damage):
    model, optimizer = make()
    checkpoints = Checkpoints(tmp_path, 3, model=model, optimizer=optimizer)
    checkpoints.save(1)
    kept = state(model, optimizer)
    update(model, optimizer)
    checkpoints.save(2)
    data = tmp_path / "step-000000002" / "checkpoint.data-00000-of-00001"
    content = bytearray(data.read_bytes())
    if damage == "altered":
        content[len(content) // 2] ^= 1
        data.write_bytes(content)
    elif damage == "truncated":
        data.write_bytes(content[:-1])
    elif damage == "missing":
        data.unlink()
    else:
        (data.parent / "state.json").write_text("{")
    lines = listen()
    assert checkpoints.restore_newest() == 1
    assert len(lines) == 1 and "step-000000002" in lines[0]
    for received, expected in zip(state(model, optimizer), kept, strict=True):
        np.testing.assert_array_equal(received, expected)


def test_nothing_but_damaged_ones_is_refused(tmp_path):
    model, optimizer = make()
    checkpoints = Checkpoints(tmp_path, 3, model=model, optimizer=optimizer)
    checkpoints.save(1)
    (tmp_path / "step-000000001" / "checkpoint.index").unlink()
    with pytest.raises(UserError, match="all 1 checkpoints are damaged.*--fresh"):
        checkpoints.restore_newest()


def test_a_damaged_one_does_not_push_out_those_saved_after_it(tmp_path):
    """With one to keep, a damaged one of a later step must not count as the newest."""
    model, optimizer = make()
    checkpoints = Checkpoints(tmp_path, 1, keep_every=4, model=model, optimizer=optimizer)
    checkpoints.save(4)
    checkpoints.save(8, 1.0)
    (tmp_path / "step-000000008" / "checkpoint.index").unlink()
    assert checkpoints.restore_newest() == 4
    checkpoints.save(5, 2.0)
    assert checkpoints.steps() == [4, 5]


def test_figures_begun_come_back_as_they_were(tmp_path):
    model, optimizer = make()
    checkpoints = Checkpoints(tmp_path, 1, model=model, optimizer=optimizer)
    begun = {"sums": {"mlm": {"loss": 0.1 + 0.2}}, "counts": {"mlm": 7.0}}
    checkpoints.save(1, unlogged=begun)
    other = Checkpoints(tmp_path, 1, model=model, optimizer=optimizer)
    assert other.unlogged is None and silent(other.restore_newest) == 1
    assert other.unlogged == begun


def test_the_best_and_every_nth_stay(tmp_path):
    model, optimizer = make()
    checkpoints = Checkpoints(tmp_path, 1, keep_every=4, model=model, optimizer=optimizer)
    scores = {1: 5.0, 2: 3.0, 3: 4.0, 6: 3.5}
    for step in range(1, 10):
        assert checkpoints.is_best(scores.get(step)) == (step in (1, 2))
        checkpoints.save(step, scores.get(step))
    assert checkpoints.steps() == [2, 4, 8, 9]


def with_scores(tmp_path, scores, **options):
    """Checkpoints of `{step: score}`, each of a model whose weights are its step."""
    model, optimizer = make()
    checkpoints = Checkpoints(tmp_path, 1, model=model, optimizer=optimizer, **options)
    for step, score in scores.items():
        model.weights[0].assign(0 * model.weights[0] + step)
        checkpoints.save(step, score)
    return model, Checkpoints(tmp_path, 1, model=model, optimizer=optimizer, **options)


def damage(tmp_path, step):
    next((tmp_path / f"step-{step:09d}").glob("checkpoint.data*")).write_bytes(b"")


def test_the_best_is_restored(tmp_path):
    model, checkpoints = with_scores(tmp_path, {1: None})
    assert silent(checkpoints.restore_best) is None
    model, checkpoints = with_scores(tmp_path, {1: 2.0, 2: 1.0, 3: 3.0})
    assert silent(checkpoints.restore_best) == 2
    assert float(model.weights[0].numpy().flat[0]) == 2.0


def test_a_damaged_best_is_told_on_going_on_and_the_next_best_kept(tmp_path):
    """Told only at the end, all training since would be in vain; and its score would keep others from being saved."""
    model, checkpoints = with_scores(tmp_path, {1: 2.0, 2: 1.0, 3: 3.0})
    damage(tmp_path, 2)
    lines = listen()
    assert checkpoints.restore_newest() == 3
    assert len(lines) == 1 and "step-000000002" in lines[0] and "its score no longer counts" in lines[0]
    assert checkpoints.best() == (3, 3.0) and checkpoints.is_best(2.5)
    checkpoints.save(4, 4.0)
    assert checkpoints.steps() == [3, 4]  # 3 is the best now.
    assert silent(checkpoints.restore_best) == 3


def test_a_newest_that_is_damaged_does_not_count_as_the_best_either(tmp_path):
    model, checkpoints = with_scores(tmp_path, {1: 2.0, 2: 1.0}, keep_every=1)
    damage(tmp_path, 2)
    assert checkpoints.restore_newest() == 1
    assert checkpoints.best() == (1, 2.0) and checkpoints.is_best(1.5)
    checkpoints.save(2, 1.5)
    assert checkpoints.best() == (2, 1.5)


def test_a_best_damaged_while_the_run_went_on_gives_way_to_the_next(tmp_path):
    model, checkpoints = with_scores(tmp_path, {1: 2.0, 2: 1.0, 3: 3.0})
    assert silent(checkpoints.restore_newest) == 3
    damage(tmp_path, 2)
    lines = listen()
    assert checkpoints.restore_best() == 3 and len(lines) == 1
    damage(tmp_path, 3)
    with pytest.raises(UserError, match="every checkpoint with a score is damaged"):
        checkpoints.restore_best()


@pytest.mark.parametrize("is_damaged", [True, False])
def test_a_step_saved_again_counts_in_processes_that_do_not_write_it(tmp_path, is_damaged):
    """They took the score of the first time, or none: at its end, the run was refused for different best ones."""
    model, writer = with_scores(tmp_path, {1: 2.0, 2: 1.0}, keep_every=1)
    if is_damaged:
        damage(tmp_path, 2)
    other = Checkpoints(tmp_path, 1, keep_every=1, is_writer=False, model=model)
    for checkpoints in (writer, other):
        assert checkpoints.restore_newest() == (1 if is_damaged else 2)
    if not is_damaged:  # A rollback.
        writer.go_back(1, lambda step, watch: watch)
    for step, score in ((2, 1.5), (3, 1.25 if not is_damaged else 3.0)):
        for checkpoints in (writer, other):
            checkpoints.save(step, score)
    assert other.best() == writer.best() == ((2, 1.5) if is_damaged else (3, 1.25))


def test_killed_at_any_instant_of_a_save_a_whole_one_is_there(tmp_path, killed_at):
    """With one to keep: the old one must stay until the new one stands."""
    model, optimizer = make()
    for instant in range(1000):
        folder = tmp_path / str(instant)
        checkpoints = Checkpoints(str(folder), 1, model=model, optimizer=optimizer)
        checkpoints.save(1)
        is_over = killed_at(instant, lambda checkpoints=checkpoints: checkpoints.save(2))
        restored = silent(checkpoints.restore_newest)
        assert restored in (1, 2)
        checkpoints.save(3)
        assert os.listdir(folder) == ["step-000000003"]
        if is_over:
            break
    assert is_over and restored == 2 and instant > 10


class Killed(BaseException):
    """Stands for SIGKILL."""


@pytest.mark.parametrize("older", [0, 1])
def test_killed_at_any_instant_of_a_save_in_a_store_the_run_goes_on(monkeypatch, older):
    """Files move one by one there. After a kill in the first save, every start said "all 1 checkpoints are damaged"."""
    call, (model, optimizer) = stores.call, make()
    for instant in range(1000):
        run, changes, said = RunFolder(f"ram://killed-save-{older}-{instant}"), [], listen()
        checkpoints = Checkpoints(run.checkpoints, 1, model=model, optimizer=optimizer)
        if older:
            checkpoints.save(older)

        def killed(name, *args, changes=changes, instant=instant, **options):
            if name in ("rename", "remove", "rmtree"):
                if len(changes) == instant:
                    raise Killed
                changes.append((name, *args))
            return call(name, *args, **options)

        is_over = False
        with monkeypatch.context() as patch, contextlib.suppress(Killed):
            patch.setattr(stores, "call", killed)
            checkpoints.save(2)
            is_over = True
        again = Checkpoints(run.checkpoints, 1, model=model, optimizer=optimizer)
        restored = again.restore_newest()
        is_whole = any(name == "rename" and path[-1].endswith("/step-000000002/state.json") for name, *path in changes)
        assert restored == (2 if is_whole else older), said
        assert run.has_begun() == (restored > 0), "what was not saved binds nobody to its settings"
        assert [line for line in said if "not saved to the end" in line] == said
        again.save(3)
        assert again.steps() == [3]
        if is_over:
            break
    assert is_over and instant > 4


def test_a_checkpoint_is_on_the_disk_before_it_counts_and_before_the_older_one_goes(tmp_path, disk_calls):
    """Otherwise a power cut could leave a name without its weights, and nothing older."""
    model, optimizer = make()
    checkpoints = Checkpoints(str(tmp_path / "checkpoints"), 1, model=model, optimizer=optimizer)
    checkpoints.save(1)
    disk_calls.clear()
    checkpoints.save(2)
    aside, folder = (str(tmp_path / "checkpoints" / name) for name in (".partial-step-000000002", "step-000000002"))
    named = disk_calls.index(("rename", aside, folder))
    for name in ("checkpoint.data-00000-of-00001", "checkpoint.index"):
        assert ("fsync", f"{aside}/{name}") in disk_calls[:named], name
    assert ("fsync", f"{aside}/state.json.partial") in disk_calls[:named] and ("fsync", aside) in disk_calls[:named]
    old = str(tmp_path / "checkpoints" / "step-000000001")
    dropped = disk_calls.index(("rename", old, f"{old}.partial"))
    assert ("fsync", str(tmp_path / "checkpoints")) in disk_calls[named:dropped]


def test_a_full_disk_leaves_the_older_ones_whole(tmp_path, monkeypatch):
    model, optimizer = make()
    checkpoints = Checkpoints(tmp_path, 2, model=model, optimizer=optimizer)
    checkpoints.save(1)
    write = checkpoints._checkpoint.write

    def full(path, options):
        write(path, options)  # what a disk that fills up half-way leaves behind
        raise tf.errors.ResourceExhaustedError(None, None, "No space left on device")

    monkeypatch.setattr(checkpoints._checkpoint, "write", full)
    monkeypatch.setattr(program, "_fresh_folder", "runs/wiki-2")  # With --fresh again it would start over.
    with pytest.raises(
        UserError,
        match="step 2 cannot be written .No space left on device.. Checkpoints up to step 1 are intact. Free some .*, "
        "then run the same command with --output runs/wiki-2 and without --fresh.",
    ):
        checkpoints.save(2)
    assert os.listdir(tmp_path) == ["step-000000001"]
    assert silent(checkpoints.restore_newest) == 1


@pytest.mark.parametrize("is_writer", [True, False])
def test_a_folder_that_cannot_be_written_is_no_full_disk(tmp_path, monkeypatch, is_writer):
    """The user would be told to free some space, and have plenty."""
    model, optimizer = make()
    checkpoints = Checkpoints(tmp_path, 2, is_writer=is_writer, model=model, optimizer=optimizer)

    def refused(path, options):
        raise tf.errors.PermissionDeniedError(None, None, "Permission denied")

    monkeypatch.setattr(checkpoints._checkpoint, "write", refused)
    with pytest.raises(UserError, match=r"\(Permission denied.*\)\. .*Make the folder writable, (then|or)"):
        checkpoints.save(1)


def test_a_store_that_does_not_answer_is_no_damage(monkeypatch):
    """Otherwise the newest checkpoint would count as damaged, and the best would lose its score and be dropped."""
    folder = "ram://checkpoints-no-answer"
    model, checkpoints = with_scores(folder, {1: 1.0, 2: 2.0})
    open_file = files.open_file

    def no_answer(path, *args, **options):
        if path.endswith("state.json") and "step-000000003" not in path:
            raise OSError(110, "Connection timed out", path)
        return open_file(path, *args, **options)

    monkeypatch.setattr(files, "open_file", no_answer)
    with pytest.raises(OSError, match="timed out"):
        silent(checkpoints.restore_newest)
    monkeypatch.undo()
    assert silent(checkpoints.restore_newest) == 2
    monkeypatch.setattr(files, "open_file", no_answer)
    assert not checkpoints.is_best(3.0)
    checkpoints.save(3, 3.0)
    assert checkpoints.steps() == [1, 3]


def test_a_file_that_the_disk_cannot_read_is_damaged(tmp_path, monkeypatch):
    model, checkpoints = with_scores(tmp_path, {1: 1.0, 2: 2.0})
    sha256 = files.sha256

    def unreadable(path):
        if "step-000000002" in path:
            raise OSError(5, "Input/output error", path)
        return sha256(path)

    monkeypatch.setattr(files, "sha256", unreadable)
    lines = listen()
    assert checkpoints.restore_newest() == 1
    assert "cannot be read (Input/output error)" in lines[0]


@pytest.mark.parametrize("content", ["[1]", "3", "[" * 100_000, '{"sha256": [1]}', '{"sha256": {}}'])
def test_a_state_that_is_none_is_told(tmp_path, content):
    model, checkpoints = with_scores(tmp_path, {1: 1.0, 2: None}, keep_every=1)
    (tmp_path / "step-000000002" / "state.json").write_text(content)
    lines = listen()
    assert checkpoints.restore_newest() == 1 and "has no readable state.json" in lines[0]


@pytest.mark.parametrize("name", ["run [1]", "a*b?", "back\\slash é"])
def test_a_folder_whose_name_looks_like_a_pattern(tmp_path, name):
    """TensorFlow writes there, and then finds no file that matches: the run would be lost."""
    model, checkpoints = with_scores(tmp_path / name, {1: 1.0, 2: 2.0})
    assert silent(checkpoints.restore_best) == 1
    assert float(model.weights[0].numpy().flat[0]) == 1.0


def test_a_checkpoint_of_no_numbers_is_passed_over_like_a_damaged_one(tmp_path):
    """Older versions saved them; a run resumed from one never had a finite loss again, however often it went back."""
    model, optimizer = make()
    checkpoints, said = Checkpoints(tmp_path, 3, model=model, optimizer=optimizer), listen()
    checkpoints.save(1, score=2.0)
    assert checkpoints.are_finite()
    optimizer.variables[-1].assign(tf.fill(optimizer.variables[-1].shape, np.inf))
    assert not checkpoints.are_finite()
    for step, score in ((2, 1.0), (3, None)):
        checkpoints.save(step, score=score)
    other = Checkpoints(tmp_path, 3, model=model, optimizer=optimizer)
    assert other.restore_newest() == 1 and other.are_finite()
    assert [line.partition(": ")[2] for line in said] == [
        "holds values that are not finite. Falling back to the checkpoint before it."
    ] * 2
    assert Checkpoints(tmp_path, 3, model=model, optimizer=optimizer).restore_best() == 1
    assert said[-1].endswith("not finite. It was the best so far; its score no longer counts.")
