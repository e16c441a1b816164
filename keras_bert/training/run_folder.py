"""The folder of one run: its settings, figures, checkpoints and result."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from keras_bert.checkpoints.hub import is_hub_name
from keras_bert.core import files, locks, messages, settings, whole_files
from keras_bert.core.errors import RunStopped, UserError
from keras_bert.core.yaml_and_json import read_json, read_yaml

if TYPE_CHECKING:
    from keras_bert.config.finetuning import FinetuneConfig
    from keras_bert.config.pretraining import PretrainConfig

STATE = "state.json"  # Written last and removed first; see `whole_files.move_folder`.


def is_unfinished(folder: str) -> bool:
    """Whether a checkpoint's folder is incomplete because its save or removal was interrupted.

    Only in a store, where files move one by one: a disk renames whole folders, so a missing file there is damage.
    """
    return files.is_remote(folder) and not files.exists(files.join(folder, STATE))


# What a run folder, or a folder of several runs, may hold.
PRETRAINING, FINETUNING = "a pretraining run", "a fine-tuning run"
SEEDS, SWEEP, TASKS = "a run for each seed", "the runs of a sweep", "a run for each task"
_OTHER = "something else"
MESSAGES = "log.txt"  # What the commands of the run said, with times.
GIVEN = "given"  # The data that a run from Python was given as objects.
# The runs that pretrained on a task's texts, and for pairs of texts, before fine-tuning.
TASK_TEXT, PAIRS = "task_text", "pairs"
INIT = "init.json"  # The weights that several runs start from.
ERROR_LOG = "error.log"  # The traceback of a command that failed, perhaps all that it left.
_NAMES = {"seed-": SEEDS, "batch_size-": SWEEP}  # The beginning of the folders' names.

# Settings that change how a run is executed, but not its result.
MAY_DIFFER = (
    "training.strategy",
    "training.devices",
    "training.tpu",
    "training.max_minutes",
    "training.profile_at",
    "training.accumulation",  # With recompute_every, what a run that ran out of memory is advised to change.
    "training.recompute_every",
    "training.parallel_slices",
    "training.steps_per_loop",
    "training.log_every",  # It changes a result only by when a divergence is noticed.
    "training.log_to",
    "training.checkpoint_every",
    "training.checkpoint_minutes",
    "training.keep_checkpoints",
    "training.keep_every",
    "training.rollbacks",  # They matter after a divergence only; a run that gave up may be given more.
    "training.loss_band",
    "optimizer.base_rate",  # Only the default of learning_rate, which a run that has begun keeps.
    "features.folder",
    "examples",  # Tried once the run is trained.
)
# Settings that may grow when a run is resumed.
MAY_GROW = ("training.steps", "training.minutes", "training.epochs")

# Settings that the vocabulary and the shards in a run's folder depend on.
DATA_SETTINGS = ("data.", "vocabulary.", "model.vocab_size.", "init.", "masking.unit.", "masking.validation_unit.")


class RunFolder:
    """Knows the paths in a run's folder, and keeps two runs, or two processes of the same run, from sharing it.

    A context manager: leaving the block releases the folder's lock, which `claim` and `hold` take.

    Attributes:
        path: the folder. `config_file`, `metrics_file`, `tensorboard`, `checkpoints`, `data`, `model`, `adapter`,
            `examples_file` and `results_file` are the paths of its files and folders.
    """

    def __init__(self, path: str):
        self.path = path
        self.config_file = files.join(path, "config.yaml")
        self.metrics_file = files.join(path, "metrics.jsonl")
        self.tensorboard = files.join(path, "tensorboard")
        self.checkpoints = files.join(path, "checkpoints")
        self.data = files.join(path, "data")
        self.model = files.join(path, "model")
        self.adapter = files.join(path, "adapter")
        self.examples_file = files.join(path, "examples.json")
        self.results_file = files.join(path, "results.json")
        self._lock: locks.Lock | None = None
        self._kept: messages.LogFileHandler | None = None

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is not None and self._kept is not None:
            # For those who find an ended run, and no longer see the terminal.
            level = logging.INFO if isinstance(error, RunStopped) else logging.ERROR
            told = str(error) if isinstance(error, RunStopped | UserError) else f"{type(error).__name__}: {error}"
            self._kept.keep(logging.LogRecord(__name__, level, __file__, 0, told, None, None))
        self.release()

    def hold(self) -> None:
        """Locks the folder for this process, until `release`.

        Raises:
            UserError: another process has the folder, or the path is a file.
        """
        if self._lock is not None:
            return
        if files.is_file(self.path):
            raise UserError(f"{self.path}: needs a folder. Received: a file. Give another --output.")
        self._lock = locks.take_folder(self.path, files.join(self.path, locks.NAME))
        self._kept = messages.LogFileHandler(files.join(self.path, MESSAGES))

    def release(self) -> None:
        """Releases the lock."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    def require_own(self) -> None:
        """Raises `UserError` if another process has taken over the folder; see `locks.require_own`."""
        if self._lock is not None:
            locks.require_own(self._lock, self.path)

    @classmethod
    def fresh(cls, path: str | os.PathLike[str]) -> RunFolder:
        """The folder `path` if it does not exist yet, else the first of path-2, path-3, … that does not."""
        path = os.fspath(path).rstrip("/") or "/"
        candidate, number = path, 1
        while files.exists(candidate):
            number += 1
            candidate = f"{path}-{number}"
        return cls(candidate)

    def claim(self, config: PretrainConfig | FinetuneConfig) -> None:
        """Locks the folder, and checks the resolved settings against those of the run in it, if any.

        Once the run `has_begun`, only the settings in `MAY_DIFFER` may change and those in `MAY_GROW` may grow. It
        keeps its recorded settings until it continues (see `bind`): this start may be refused, or be an estimate.

        Raises:
            UserError: as `hold`; the folder holds something else; or the settings differ, listing every difference.
        """
        self.hold()
        try:
            self._settle(config)
        except BaseException:
            self.release()
            raise

    def require(self, kind: str) -> None:
        """Raises `UserError` if the folder holds anything but `kind`, one of the constants of this module."""
        found = self._found()
        # Several runs have folders of their own, which may be beside other files.
        if found not in (None, kind) and (found != _OTHER or kind in (PRETRAINING, FINETUNING)):
            raise UserError(
                f"{self.path}: needs an empty folder, or one that holds {kind}. Received: {found}. Give another "
                "--output, or --fresh."
            )

    def _found(self) -> str | None:
        if files.exists(self.config_file):
            return FINETUNING if "task" in read_yaml(self.config_file) else PRETRAINING
        # A process killed while writing the settings leaves them in a .partial file.
        left = (locks.NAME, ERROR_LOG, MESSAGES, GIVEN, TASK_TEXT, PAIRS, INIT)
        names = [name for name in files.list_folder(self.path) if name not in left and not name.endswith(".partial")]
        of_names = (kind for name in names for start, kind in _NAMES.items() if name.startswith(start))
        if found := next(of_names, None):
            return found
        below = (RunFolder(files.join(self.path, name)) for name in names)
        is_run = (files.exists(run.config_file) or files.exists(run.results_file) for run in below)
        return TASKS if any(is_run) else _OTHER if names else None

    def has_begun(self) -> bool:
        """Whether anything was trained here: there is a checkpoint, or the results of a finished run."""
        names = [name for name in files.list_folder(self.checkpoints) if name.startswith("step-")]
        # The first one is enough, except in a store after a kill.
        saved = any(not is_unfinished(files.join(self.checkpoints, name)) for name in names)
        return saved or files.exists(self.results_file)

    def any_has_begun(self) -> bool:
        """Whether this run `has_begun` or, in a folder with the runs of several seeds or a sweep, one of these has."""
        runs = (name for name in files.list_folder(self.path) if name.startswith(tuple(_NAMES)))
        return self.has_begun() or any(RunFolder(files.join(self.path, name)).has_begun() for name in runs)

    def begun_settings(self) -> dict[str, Any] | None:
        """The settings in config.yaml that bind the run; None unless it `has_begun`."""
        return self._binding_settings() if self.has_begun() and files.exists(self.config_file) else None

    def begun_training(self) -> dict[str, Any]:
        """What config.yaml records of `training` in a run that `has_begun`; {} in others."""
        if not (self.has_begun() and files.exists(self.config_file)):
            return {}
        return settings.section_of(read_yaml(self.config_file), "training")

    def begun_init(self, init: str) -> str:
        """The model to open for `init`: the revision that the run began from, if `init` names the model without one.

        What a name of the hub stands for may change between two starts, and a run that goes on must not change with it.
        """
        recorded = (self.begun_settings() or {}).get("init") if is_hub_name(init) else None
        return recorded if recorded and recorded.startswith(f"{init}@") else init

    def _binding_settings(self) -> dict[str, Any]:
        """The content of config.yaml without `MAY_DIFFER`, one of which may have been invalid and since fixed."""
        values = read_yaml(self.config_file)
        for *sections, key in (name.split(".") for name in MAY_DIFFER):
            section: Any = values
            for name in sections:
                section = section.get(name) if isinstance(section, dict) else None
            if isinstance(section, dict):
                section.pop(key, None)
        return values

    def _settle(self, config: PretrainConfig | FinetuneConfig) -> None:
        self.require(FINETUNING if hasattr(config, "task") else PRETRAINING)
        if files.exists(self.config_file):
            # Settings that an older version did not write get their defaults.
            old = settings.to_mapping(type(config).from_mapping(self._binding_settings()))
            different = settings.differences(old, settings.to_mapping(config))
            refused = [
                (key, before, after)
                for key, before, after in different
                if not _is_part_of(key, MAY_DIFFER)
                and not (key in MAY_GROW and before and before < after)
                # The content of files is compared separately.
                and not (_is_part_of(key, ("data",)) and given_name(before) == given_name(after))
            ]
            if not self.has_begun():
                # Settings of a run that failed before it trained anything do not matter, but its data may not fit.
                if any(f"{key}.".startswith(DATA_SETTINGS) for key, _, _ in different):
                    files.remove_folder(self.data)
            elif refused:
                shown = "; ".join(f"{key}: was {before!r}, now {after!r}" for key, before, after in refused)
                raise UserError(
                    f"{self.path}: holds a run with other settings ({shown}). Give the same settings to resume it, "
                    "--fresh to start over in a new folder, or another --output."
                )
        if not self.has_begun():
            self.bind(config)

    def bind(self, config: PretrainConfig | FinetuneConfig) -> None:
        """Writes the resolved settings."""
        whole_files.write_file(self.config_file, settings.to_yaml(config))

    def results(self) -> dict[str, Any] | None:
        """The content of results.json, or None if the run is not finished."""
        if not files.exists(self.results_file):
            return None
        return read_json(self.results_file)

    def examples(self) -> dict[str, dict[str, np.ndarray]] | None:
        """`{split: {metric: [examples, 2]}}`, see `Problem.by_example`; None for a run of an earlier version."""
        if not files.exists(self.examples_file):
            return None
        found = read_json(self.examples_file)
        return {split: {name: np.array(pairs) for name, pairs in of.items()} for split, of in found.items()}

    def write_examples(self, examples: Mapping[str, Mapping[str, np.ndarray]]) -> None:
        """Writes what `examples` reads."""
        pairs = {split: {name: array.tolist() for name, array in of.items()} for split, of in examples.items()}
        whole_files.write_file(self.examples_file, whole_files.json_text(pairs))

    def write_results(self, results: Mapping[str, Any]) -> None:
        """Writes results.json. Raises `UserError` if another process has taken over the folder."""
        self.require_own()
        whole_files.write_json(self.results_file, results, ensure_ascii=False)


def _is_part_of(key: str, sections: Iterable[str]) -> bool:
    """Whether a dotted key is one of `sections` or inside one; `settings.differences` numbers the entries of lists."""
    return any(f"{key}.".startswith(f"{section}.") for section in sections)


def given_name(path: object) -> object:
    """A path in `GIVEN` without the run's folder, which may be moved or spelled otherwise; any other value as it is."""
    *_, folder, name = ("", *str(path).split("/"))
    return f"{folder}/{name}" if folder == GIVEN else path
