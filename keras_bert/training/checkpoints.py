"""Checkpoints that are whole or not there: written aside, summed, then renamed."""

import hashlib
import json
import re

import tensorflow as tf

from keras_bert import files
from keras_bert.errors import UserError

_NAME = re.compile(r"step-(\d{9})$")
_STATE = "state.json"


class Checkpoints:
    """The checkpoints of one run, newest kept.

    Each is a folder `step-000001000` with a `tf.train.Checkpoint` and state.json (step, SHA-256 of every
    file), which is written last. The step is the data position too: a batch is a function of it.

    Args:
        folder: where they lie.
        keep: how many of the newest stay.
        **objects: what is saved (`model=…`, `optimizer=…`).
    """

    def __init__(self, folder, keep, **objects):
        self.folder = folder
        self.keep = keep
        self._checkpoint = tf.train.Checkpoint(**objects)

    def save(self, step):
        """Writes the checkpoint of `step` (steps done) and drops the oldest ones."""
        name = f"step-{step:09d}"
        aside = files.join(self.folder, f".partial-{name}")
        files.remove_folder(aside)
        files.make_folder(aside)
        self._checkpoint.write(files.join(aside, "checkpoint"))
        sums = {entry: _sha256(files.join(aside, entry)) for entry in files.list_folder(aside)}
        with files.atomic_write(files.join(aside, _STATE)) as stream:
            json.dump({"step": step, "sha256": sums}, stream, indent=2)
        final = files.join(self.folder, name)
        files.remove_folder(final)
        files.rename(aside, final)
        for old in self.steps()[: -self.keep]:
            files.remove_folder(files.join(self.folder, f"step-{old:09d}"))

    def steps(self):
        """The steps that have a checkpoint, ascending."""
        matches = (_NAME.match(name.rstrip("/")) for name in files.list_folder(self.folder))
        return [int(match.group(1)) for match in matches if match]

    def restore_newest(self, report):
        """Restores the newest whole checkpoint and returns its step, or 0 where there is none.

        A damaged one is named through `report(line)` and the one before it taken. Raises `UserError`
        when there are checkpoints and none is whole.
        """
        steps = self.steps()
        for step in reversed(steps):
            folder = files.join(self.folder, f"step-{step:09d}")
            damage = _damage(folder)
            if damage:
                report(f"{damage} The checkpoint before it is taken.")
                continue
            status = self._checkpoint.read(files.join(folder, "checkpoint"))
            status.assert_existing_objects_matched()
            return step
        if steps:
            raise UserError(
                f"{self.folder}: all {len(steps)} checkpoints are damaged. Start over with --fresh, or copy one back."
            )
        return 0


def _damage(folder):
    """What is wrong with a checkpoint folder, in one sentence; None when it is whole."""
    try:
        with files.open_file(files.join(folder, _STATE)) as stream:
            expected = json.loads(stream.read())["sha256"]
    except (OSError, ValueError, KeyError, tf.errors.OpError):
        return f"{folder}: has no readable {_STATE}."
    for name, digest in expected.items():
        path = files.join(folder, name)
        if not files.exists(path):
            return f"{path}: is missing."
        if _sha256(path) != digest:
            return f"{path}: is damaged (its SHA-256 is not the one written with it)."
    return None


def _sha256(path):
    digest = hashlib.sha256()
    with files.open_file(path) as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
