"""Checkpoints that are either complete or absent: written under another name, checksummed, then renamed."""

from __future__ import annotations

import contextlib
import logging
import re
import tempfile
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from keras_bert.checkpoints.google import readable_prefix
from keras_bert.core import files, whole_files
from keras_bert.core.errors import UserError, writing_remedy
from keras_bert.core.program import same_command
from keras_bert.core.stores import as_os_errors
from keras_bert.core.yaml_and_json import parse_json
from keras_bert.training.processes import fail_together
from keras_bert.training.run_folder import STATE, is_unfinished

if TYPE_CHECKING:
    import keras

_log = logging.getLogger(__name__)

_NAME = re.compile(r"step-(\d{9,})$")
_ASIDE = ".partial-"


class Checkpoints:
    """The checkpoints of one run.

    Each is a folder `step-000001000` with a `tf.train.Checkpoint` and state.json (step, validation score, figures not
    logged yet, divergences, SHA-256 of every file), which is written last. The step also gives the position in the
    data, because a batch is a function of the step and of what divergences left out.

    Attributes:
        unlogged, watch: as saved with the restored checkpoint; None before a checkpoint is restored.

    Args:
        keep: how many of the newest checkpoints to keep; the best one by score is kept as well.
        keep_every: checkpoints at multiples of this step are kept for good; 0 for none.
        is_writer: False for workers whose copy is not kept; they write too, because TensorFlow requires it of all.
        io_device: the device whose host reads and writes the files; None for the host of each variable. See
            `strategy.checkpoint_device`.
        agree: sums a number over all processes (see `processes.agreement`), so that no process continues or exits
            before all of them have written.
        **objects: the objects to save (`model=…`, `optimizer=…`).
    """

    unlogged: Mapping[str, Any] | None
    watch: Mapping[str, Any] | None

    def __init__(
        self,
        folder: str,
        keep: int,
        keep_every: int = 0,
        is_writer: bool = True,
        io_device: str | None = None,
        agree: Callable[[float], float] = float,
        **objects: tf.Module | keras.Model | keras.optimizers.Optimizer | list[keras.Variable],
    ):
        self.folder = folder
        self.keep = keep
        self.keep_every = keep_every
        self.is_writer = is_writer
        self.unlogged = self.watch = None
        self._agree = agree
        # Steps whose checkpoint is damaged or was not saved to the end; their scores no longer count.
        self._damaged: set[int] = set()
        # {step: score}. Cached, so that a brief outage of a store does not make the best checkpoint look scoreless.
        self._known_scores: dict[int, float | None] = {}
        self._checkpoint = tf.train.Checkpoint(**objects)
        self._objects = list(objects.values())
        self._options = tf.train.CheckpointOptions(experimental_io_device=io_device)

    def save(
        self,
        step: int,
        score: float | None = None,
        unlogged: Mapping[str, Any] | None = None,
        watch: Mapping[str, Any] | None = None,
    ) -> None:
        """Writes the checkpoint of `step` (steps done) and deletes those that are no longer needed.

        Args:
            score: the validation's score at this step, if it was measured; lower is better.
            unlogged: JSON values that the next log line needs from the steps before this one.
            watch: JSON values about divergences; see `DivergenceWatch`.

        Raises:
            UserError: it cannot be written (a full disk, …), here or by another process; older checkpoints are
                untouched.
        """
        with fail_together(self._agree):
            if self.is_writer:
                self._write(step, {"step": step, "score": score, "unlogged": unlogged, "watch": watch})
            else:
                self._write_and_discard(step)
            # In every process, or they would not restore the same best one.
            self._damaged.discard(step)
            self._known_scores[step] = score
            if self.is_writer:
                self._drop_old(step, (watch or {}).get("last_line", step))

    def _write(self, step: int, state: Mapping[str, Any]) -> None:
        name = f"step-{step:09d}"
        aside = files.join(self.folder, _ASIDE + name)
        try:
            self._remove_leftovers()
            files.make_folder(aside)
            with as_os_errors(self.folder):
                self._checkpoint.write(files.join(aside, "checkpoint"), self._options)
            sums = {entry: files.sha256(files.join(aside, entry)) for entry in files.list_folder(aside)}
            whole_files.write_json(files.join(aside, STATE), {**state, "sha256": sums})
            whole_files.move_folder(aside, files.join(self.folder, name), last=STATE)  # Syncs it to the disk first.
        except OSError as error:
            files.remove_folder(aside)
            older = [step for step in self.steps() if step not in self._damaged]
            kept = f"Checkpoints up to step {older[-1]} are intact." if older else "There are no earlier checkpoints."
            raise UserError(
                f"{self.folder}: the checkpoint of step {step} cannot be written ({error.strerror or error}). {kept} "
                f"{writing_remedy(error)}, then run {same_command()}."
            ) from error

    def _write_and_discard(self, step: int) -> None:
        """Writes to a temporary folder: TensorFlow requires all workers to write, and one copy is enough."""
        try:
            with tempfile.TemporaryDirectory() as scratch, as_os_errors(scratch):
                self._checkpoint.write(files.join(scratch, "checkpoint"), self._options)
        except OSError as error:
            raise UserError(
                f"{tempfile.gettempdir()}: workers other than the chief write a temporary checkpoint here while step "
                f"{step} is saved, which failed ({error.strerror or error}). {writing_remedy(error)}, or set TMPDIR."
            ) from error

    def are_finite(self) -> bool:
        """Whether all values that a checkpoint would hold now are finite; it would be of no use otherwise."""
        variables = (variable for thing in self._objects for variable in getattr(thing, "variables", thing))
        values = (tf.convert_to_tensor(variable) for variable in variables)
        return all(bool(tf.reduce_all(tf.math.is_finite(value))) for value in values if value.dtype.is_floating)

    def is_best(self, score: float | None) -> bool:
        """Whether a score is lower than that of every checkpoint that has one. A collective.

        The writer decides for all: another process may look when the writer has already saved this step.
        """
        if score is None:
            return False
        own = self.is_writer and all(score < other for other in self._scores().values())
        return self._agree(own) > 0

    def best(self) -> tuple[int, float] | None:
        """(step, score) of the checkpoint with the best score, the earliest in a tie; None if none has a score."""
        scores = self._scores()
        best = min(scores, key=scores.__getitem__, default=None)
        return None if best is None else (best, scores[best])

    def _scores(self) -> dict[int, float]:
        """`{step: score}` of the checkpoints that have a score and are not known to be damaged."""
        steps = [step for step in self.steps() if step not in self._damaged]
        for step in steps:
            if step not in self._known_scores:
                self._known_scores[step] = (_state(self._path(step)) or {}).get("score")
        return {step: score for step in steps if (score := self._known_scores[step]) is not None}

    def _remove_leftovers(self) -> None:
        """Removes what killed processes left behind; those steps may never be saved again."""
        for name in files.list_folder(self.folder):
            if name.startswith(_ASIDE) or name.endswith((".partial", ".replaced")):
                files.remove_folder(files.join(self.folder, name))

    def _drop_old(self, newest: int, last_line: int) -> None:
        steps = self.steps()
        kept = [step for step in steps if step <= newest and step not in self._damaged]
        scores = {step: score for step, score in self._scores().items() if step in kept}
        # Kept to go back to if the loss of the next line is outside the band; see `DivergenceWatch.check_loss`.
        good = max((step for step in kept if step <= last_line), default=None)
        stay = {*kept[-self.keep :], min(scores, key=scores.__getitem__, default=None), good}
        for step in steps:
            # Steps after the newest are damaged: the run resumed from an earlier one.
            is_for_good = self.keep_every and step % self.keep_every == 0 and step in kept
            if step not in stay and not is_for_good:
                with contextlib.suppress(OSError):
                    whole_files.remove_whole(self._path(step), last=STATE)

    def _path(self, step: int) -> str:
        return files.join(self.folder, f"step-{step:09d}")

    def steps(self) -> list[int]:
        """The steps that have a checkpoint, ascending."""
        matches = (_NAME.match(name) for name in files.list_folder(self.folder))
        return [int(match.group(1)) for match in matches if match]

    def restore_newest(self) -> int:
        """Restores the newest intact checkpoint and returns its step, or 0 if there is no checkpoint.

        A message names each damaged checkpoint, and the one before it is used. A checkpoint whose values are not finite
        counts as damaged. In a store, one whose save was interrupted is passed over too, and does not count as a
        checkpoint. If the best one is damaged, a message says so, and the next best takes its place. Raises `UserError`
        if there are checkpoints but all are damaged.
        """
        damaged = 0
        for step in reversed(self.steps()):
            path = self._path(step)
            if is_unfinished(path):
                self._damaged.add(step)  # `_drop_old` then removes it.
                _log.info(f"{path}: has no {STATE}, because it was not saved to the end. It is passed over.")
                continue
            damage = self._restored(step)
            if not damage:
                self._best_intact(self._damage, intact=step)
                return step
            self._damaged.add(step)
            damaged += 1
            _log.info(f"{damage} Falling back to the checkpoint before it.")
        if damaged:
            raise UserError(
                f"{self.folder}: all {damaged} checkpoints are damaged. Start over with --fresh, or copy one back."
            )
        return 0

    def restore_best(self) -> int | None:
        """Restores the intact checkpoint with the best score and returns its step; None if none has a score.

        Messages name damaged ones. Raises `UserError` if every checkpoint with a score is damaged.
        """
        best = self._best_intact(self._restored)
        if best is None and self._damaged:
            raise UserError(f"{self.folder}: every checkpoint with a score is damaged. Start over with --fresh.")
        return best

    def restore(self, step: int) -> None:
        """Restores the checkpoint of a step. Raises `UserError` if it is damaged or missing."""
        if damage := self._restored(step):
            raise UserError(damage)

    def go_back(self, last: int, note: Callable[[int, Mapping[str, Any]], Mapping[str, Any]]) -> bool:
        """Makes the newest intact checkpoint up to step `last` the newest of all; False if there is none.

        Later checkpoints are removed. For the writer alone; `restore_newest` then restores it in every process.

        Args:
            last: the last step that can be trusted.
            note: function (step, the checkpoint's `watch`) -> the `watch` that replaces it.

        Raises:
            UserError: the folder cannot be changed.
        """
        steps = self.steps()
        for step in [step for step in reversed(steps) if step <= last]:
            if damage := self._damage(step):
                _log.info(damage)
                continue
            state = _state(self._path(step))
            assert state is not None
            try:
                for later in [later for later in reversed(steps) if later > step]:
                    whole_files.remove_whole(self._path(later), last=STATE)
                # After that: a run killed in between finds the divergence again, and must not count it twice.
                state = {**state, "watch": note(step, state.get("watch") or {})}
                whole_files.write_json(files.join(self._path(step), STATE), state)
            except OSError as error:
                raise UserError(
                    f"{self.folder}: cannot be changed ({error.strerror or error}). {writing_remedy(error)}, then run "
                    f"{same_command()}."
                ) from error
            return True
        return False

    def _best_intact(self, damage_in: Callable[[int], str | None], intact: int | None = None) -> int | None:
        """The step of the best checkpoint in which `damage_in` finds nothing, or None; `intact` is not checked."""
        while best := self.best():
            damage = None if best[0] == intact else damage_in(best[0])
            if not damage:
                return best[0]
            self._damaged.add(best[0])
            _log.info(f"{damage} It was the best so far; its score no longer counts.")
        return None

    def _damage(self, step: int) -> str | None:
        return damage_of(self._path(step))

    def _restored(self, step: int) -> str | None:
        """Restores the checkpoint of a step, or says in one sentence why it cannot be used."""
        folder = self._path(step)
        if damage := self._damage(step):
            return damage
        with as_os_errors(folder):
            with readable_prefix(files.join(folder, "checkpoint")) as prefix:
                status = self._checkpoint.read(prefix, self._options)
                status.assert_existing_objects_matched()
        state = _state(folder)
        assert state is not None, folder
        self.unlogged, self.watch = state.get("unlogged"), state.get("watch")
        return None if self.are_finite() else f"{folder}: holds values that are not finite."


def _state(folder: str) -> dict[str, Any] | None:
    """The content of state.json, or None if it is missing or not valid."""
    try:
        state = parse_json(files.content(files.join(folder, STATE)))
    except (FileNotFoundError, ValueError):
        return None
    except OSError:
        if files.is_remote(folder):  # A store that does not answer is not damage.
            raise
        return None
    return state if isinstance(state, dict) else None


def damage_of(folder: str) -> str | None:
    """What is wrong with a checkpoint folder, in one sentence; None if it is intact."""
    state = _state(folder)
    if state is None or not isinstance(state.get("sha256"), dict) or not state["sha256"]:
        return f"{folder}: has no readable {STATE}."
    for name, digest in state["sha256"].items():
        path = files.join(folder, name)
        if not files.exists(path):
            return f"{path}: is missing."
        try:
            is_whole = files.sha256(path) == digest
        except OSError as error:
            if files.is_remote(path):
                raise
            return f"{path}: cannot be read ({error.strerror or error})."
        if not is_whole:
            return f"{path}: is damaged (its SHA-256 differs from the one written with it)."
    return None
