"""The folder of one run: its settings, figures, checkpoints and result."""

import json
import os

from keras_bert import files, locks, settings
from keras_bert.errors import UserError

# What changes how a run is carried out, but not what comes out of it.
MAY_DIFFER = (
    "training.strategy",
    "training.devices",
    "training.tpu",
    "training.max_minutes",
    "training.profile_at",
    "training.steps_per_loop",
    "training.checkpoint_every",
    "training.checkpoint_minutes",
    "features.folder",
)
# What may grow: a run that goes on may be given more of it.
MAY_GROW = ("training.steps", "training.minutes", "training.epochs")

# What the vocabulary and the shards in a run's folder are made from.
DATA_SETTINGS = ("data.", "vocabulary.", "model.vocab_size.", "init.")


class RunFolder:
    """Names every place in a run's folder and keeps two different runs, or two starts of one, from sharing it.

    A context manager: the folder's lock, which `settle` and `hold` take, is given back at the end of the block.

    Attributes: `path`, `config_file`, `metrics_file`, `tensorboard`, `checkpoints`, `data`, `model`,
    `results_file`.
    """

    def __init__(self, path):
        self.path = path
        self.config_file = files.join(path, "config.yaml")
        self.metrics_file = files.join(path, "metrics.jsonl")
        self.tensorboard = files.join(path, "tensorboard")
        self.checkpoints = files.join(path, "checkpoints")
        self.data = files.join(path, "data")
        self.model = files.join(path, "model")
        self.results_file = files.join(path, "results.json")
        self._lock = None

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.release()

    def hold(self, report=print):
        """Takes the folder for this process alone, until `release`.

        `report` takes a line of text where it takes a while to find out whether another process is still at work.

        Raises:
            UserError: another process has it, or the path is that of a file.
        """
        if self._lock is not None:
            return
        if files.is_file(self.path):
            raise UserError(f"{self.path}: needs a folder. Received: a file. Give another --output.")
        self._lock = locks.take_folder(self.path, files.join(self.path, locks.NAME), report)

    def release(self):
        """Gives the lock back."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def require_own(self):
        """Raises `UserError` where another process has taken the folder over; see `locks.require_own`."""
        if self._lock is not None:
            locks.require_own(self._lock, self.path)

    @classmethod
    def fresh(cls, path):
        """`path` if nothing is there yet, else the first of path-2, path-3, … that is free."""
        path = os.fspath(path).rstrip("/") or "/"
        candidate, number = path, 1
        while files.exists(candidate):
            number += 1
            candidate = f"{path}-{number}"
        return cls(candidate)

    def settle(self, config, report=print):
        """Takes the folder, and writes the resolved settings or checks them against those of the run in it.

        `report` is as for `hold`. Raises `UserError` as `hold`, and showing every difference, once there is a
        checkpoint. More steps or minutes, other devices, another time limit and other times for checkpoints are taken.
        """
        self.hold(report)
        try:
            self._settle(config)
        except BaseException:
            self.release()
            raise

    def has_begun(self):
        """Whether anything was learned here: there is a checkpoint, or the results of a run that is over."""
        names = files.list_folder(self.checkpoints)
        return any(name.startswith("step-") for name in names) or files.exists(self.results_file)

    def _settle(self, config):
        if not files.exists(self.config_file):
            # A kill while the settings were written leaves them under another name.
            others = set(files.list_folder(self.path)) - {locks.NAME}
            if any(not name.endswith(".partial") for name in others):
                raise UserError(
                    f"{self.path}: is not empty and not a run of this program. Give another --output, or --fresh."
                )
        else:
            # What an older version of this program did not write has its default.
            old = settings.to_mapping(type(config).from_mapping(settings.read_yaml(self.config_file)))
            different = settings.differences(old, settings.to_mapping(config))
            refused = [
                (key, before, after)
                for key, before, after in different
                if key not in MAY_DIFFER and not (key in MAY_GROW and before and before < after)
            ]
            if not self.has_begun():
                # A start that failed before anything was learned binds nobody.
                if any(f"{key}.".startswith(DATA_SETTINGS) for key, _, _ in different):
                    files.remove_folder(self.data)
            elif refused:
                shown = "; ".join(f"{key}: {before!r} there, {after!r} now" for key, before, after in refused)
                raise UserError(
                    f"{self.path}: holds a run with other settings ({shown}). Give the same settings to go on, "
                    "--fresh to start over in a new folder, or another --output."
                )
        with files.atomic_write(self.config_file) as stream:
            stream.write(settings.to_yaml(config))

    def results(self):
        """What the finished run wrote, or None while it is not finished."""
        if not files.exists(self.results_file):
            return None
        return settings.read_json(self.results_file)

    def write_results(self, results):
        self.require_own()
        with files.atomic_write(self.results_file) as stream:
            stream.write(json.dumps(results, indent=2, ensure_ascii=False) + "\n")
