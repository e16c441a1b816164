"""Checkpoints that are whole or not there: written aside, summed, then moved to their place."""

import contextlib
import json
import re
import tempfile

import tensorflow as tf

from keras_bert import files
from keras_bert.checkpoints.readable_prefix import readable_prefix
from keras_bert.errors import UserError
from keras_bert.stores import as_os_errors
from keras_bert.training.processes import failing_together

_NAME = re.compile(r"step-(\d{9,})$")
_STATE = "state.json"
_ASIDE = ".partial-"


class Checkpoints:
    """The checkpoints of one run.

    Each is a folder `step-000001000` with a `tf.train.Checkpoint` and state.json (step, validation score, figures not
    logged yet, SHA-256 of every file), which is written last. The step is the data position too: a batch is a function
    of it.

    Attributes:
        unlogged: what `save` was given as such with the checkpoint restored; None before.

    Args:
        folder: where they lie.
        keep: how many of the newest stay; the best by score stays as well.
        keep_every: those of every so many steps stay for good; 0 for none.
        is_writer: False for the workers whose copy is not kept; they write too, because TensorFlow wants all to.
        io_device: the device whose host reads and writes the files; None for the host of each variable. See
            `strategy.checkpoint_device`.
        agree: function (number) -> its sum over all processes (see `processes.agreement`), so that none goes on, or
            leaves, before all have written.
        **objects: what is saved (`model=…`, `optimizer=…`).
    """

    def __init__(self, folder, keep, keep_every=0, is_writer=True, io_device=None, agree=float, **objects):
        self.folder = folder
        self.keep = keep
        self.keep_every = keep_every
        self.is_writer = is_writer
        self.unlogged = None
        self._agree = agree
        self._damaged = set()  # Steps found damaged, whose scores stand no more.
        # {step: score}, so that a store that does not answer for a moment does not make the best one look like none.
        self._known_scores = {}
        self._checkpoint = tf.train.Checkpoint(**objects)
        self._options = tf.train.CheckpointOptions(experimental_io_device=io_device)

    def save(self, step, score=None, unlogged=None):
        """Writes the checkpoint of `step` (steps done) and drops those that need not stay.

        Args:
            score: the validation loss at this step, where it was measured; lower is better.
            unlogged: plain numbers that the next line of the log needs, where it has begun before this step.

        Raises:
            UserError: it cannot be written (a full disk, …), here or by another process; the older ones are untouched.
        """
        with failing_together(self._agree):
            self._write(step, score, unlogged)

    def _write(self, step, score, unlogged):
        if not self.is_writer:
            self._write_for_the_writer(step)
            return
        name = f"step-{step:09d}"
        aside = files.join(self.folder, _ASIDE + name)
        try:
            self._remove_cut_short()
            files.make_folder(aside)
            with as_os_errors(self.folder):
                self._checkpoint.write(files.join(aside, "checkpoint"), self._options)
            sums = {entry: files.sha256(files.join(aside, entry)) for entry in files.list_folder(aside)}
            with files.atomic_write(files.join(aside, _STATE)) as stream:
                json.dump({"step": step, "score": score, "unlogged": unlogged, "sha256": sums}, stream, indent=2)
            files.move_folder(aside, files.join(self.folder, name), last=_STATE)  # Puts it on the disk first.
        except OSError as error:
            files.remove_folder(aside)
            older = self.steps()
            kept = f"Those up to step {older[-1]} are whole." if older else "There is none yet."
            raise UserError(
                f"{self.folder}: the checkpoint of step {step} cannot be written ({error.strerror or error}). {kept} "
                "Make room, then give the same command again."
            ) from error
        self._damaged.discard(step)
        self._known_scores[step] = score
        self._drop_old(step)

    def _write_for_the_writer(self, step):
        try:
            with tempfile.TemporaryDirectory() as scratch, as_os_errors(scratch):
                self._checkpoint.write(files.join(scratch, "checkpoint"), self._options)
        except OSError as error:
            raise UserError(
                f"{tempfile.gettempdir()}: a process that writes no checkpoint of its own needs room for one here "
                f"while step {step} is saved ({error.strerror or error}). Make room, or set TMPDIR."
            ) from error

    def is_best(self, score):
        """Whether a validation loss is below that of every checkpoint that has one, as the writer of them finds.

        Another process may look when this step's is there already.
        """
        if score is None:
            return False
        own = self.is_writer and all(score < other for other in self._scores().values())
        return self._agree(own) > 0

    def best(self):
        """(step, score) of the checkpoint with the best score, the first of several; None where none has one."""
        scores = self._scores()
        best = min(scores, key=scores.get, default=None)
        return None if best is None else (best, scores[best])

    def _scores(self):
        """`{step: score}` of the checkpoints that have one and are not known to be damaged."""
        steps = [step for step in self.steps() if step not in self._damaged]
        for step in steps:
            if step not in self._known_scores:
                self._known_scores[step] = (_state(self._path(step)) or {}).get("score")
        return {step: self._known_scores[step] for step in steps if self._known_scores[step] is not None}

    def _remove_cut_short(self):
        """What kills left behind, which may be of steps that are not saved again."""
        for name in files.list_folder(self.folder):
            if name.startswith(_ASIDE) or name.endswith((".partial", ".replaced")):
                files.remove_folder(files.join(self.folder, name))

    def _drop_old(self, newest):
        steps = self.steps()
        kept = [step for step in steps if step <= newest and step not in self._damaged]
        scores = {step: score for step, score in self._scores().items() if step in kept}
        stay = {*kept[-self.keep :], min(scores, key=scores.get, default=None)}
        for step in steps:
            # Those behind the newest are damaged, for the run went on from one before them.
            is_for_good = self.keep_every and step % self.keep_every == 0 and step in kept
            if step not in stay and not is_for_good:
                with contextlib.suppress(OSError):
                    files.remove_whole(self._path(step), last=_STATE)

    def _path(self, step):
        return files.join(self.folder, f"step-{step:09d}")

    def steps(self):
        """The steps that have a checkpoint, ascending."""
        matches = (_NAME.match(name) for name in files.list_folder(self.folder))
        return [int(match.group(1)) for match in matches if match]

    def restore_newest(self, report):
        """Restores the newest whole checkpoint and returns its step, or 0 where there is none.

        A damaged one is named through `report(line)` and the one before it taken; so is the best by score, and the next
        best then counts as the best. Raises `UserError` when there are checkpoints and none is whole.
        """
        steps = self.steps()
        for step in reversed(steps):
            damage = _damage(self._path(step))
            if not damage:
                self._best_whole(report, {step})
                return self._restore(step)
            self._damaged.add(step)
            report(f"{damage} The checkpoint before it is taken.")
        if steps:
            raise UserError(
                f"{self.folder}: all {len(steps)} checkpoints are damaged. Start over with --fresh, or copy one back."
            )
        return 0

    def restore_best(self, report):
        """Restores the whole checkpoint with the best score and returns its step; None where none has a score.

        Damaged ones are named through `report(line)`. Raises `UserError` when none that has a score is whole.
        """
        best = self._best_whole(report)
        if best is None and self._damaged:
            raise UserError(f"{self.folder}: every checkpoint with a score is damaged. Start over with --fresh.")
        return None if best is None else self._restore(best)

    def _best_whole(self, report, whole=()):
        """The step of the best checkpoint by score that is whole, None for none; those `whole` are known to be so."""
        while best := self.best():
            damage = None if best[0] in whole else _damage(self._path(best[0]))
            if not damage:
                return best[0]
            self._damaged.add(best[0])
            report(f"{damage} It was the best so far; its score does not count any more.")
        return None

    def _restore(self, step):
        folder = self._path(step)
        with as_os_errors(folder):
            with readable_prefix(files.join(folder, "checkpoint")) as prefix:
                status = self._checkpoint.read(prefix, self._options)
                status.assert_existing_objects_matched()
        self.unlogged = _state(folder).get("unlogged")
        return step


def _state(folder):
    """What state.json says, or None where there is none that can be read."""
    try:
        with files.open_file(files.join(folder, _STATE)) as stream:
            state = json.loads(stream.read())
    except (FileNotFoundError, ValueError):
        return None
    except OSError:
        if files.is_remote(folder):  # No answer from a store is no damage.
            raise
        return None
    return state if isinstance(state, dict) else None


def _damage(folder):
    """What is wrong with a checkpoint folder, in one sentence; None when it is whole."""
    state = _state(folder)
    if state is None or not isinstance(state.get("sha256"), dict) or not state["sha256"]:
        return f"{folder}: has no readable {_STATE}."
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
            return f"{path}: is damaged (its SHA-256 is not the one written with it)."
    return None
