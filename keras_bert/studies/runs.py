"""Training runs as parts of a study: each is a command in a process of its own, which resumes and is never repeated."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any, BinaryIO

import yaml

from keras_bert.core import files, whole_files
from keras_bert.core.errors import RunStopped, UserError
from keras_bert.core.program import own_program
from keras_bert.core.yaml_and_json import read_json
from keras_bert.studies.study import require_same
from keras_bert.training.run_folder import RunFolder
from keras_bert.training.stop_request import REQUESTS, STOPPED_BY_SIGNAL


@dataclasses.dataclass(frozen=True)
class StudyRun:
    """A run as a part of a study. Its provenance is kept in FOLDER.json and must not change.

    Seeds are not part of it, because a study may add some.

    Attributes:
        folder: for `--output`.
        command: such as `finetune`.
        options: `{option: value}`, None for a flag.
        changes: `{setting: value}` for `--set`.
        origin: the origin of `--init`'s model, if its path does not say, such as that of a temporary copy.
    """

    folder: str
    command: str
    options: Mapping[str, str | None]
    changes: Mapping[str, Any]
    origin: str | None = None

    @property
    def provenance(self) -> dict[str, str]:
        """The command, its options and its settings as they are given, `{name: text}`."""
        options = {**self.options, **({"--init": self.origin} if self.origin else {})}
        changes = {f"--set {key}": json.dumps(value, sort_keys=True) for key, value in self.changes.items()}
        return {"command": self.command, **{option: value or "" for option, value in options.items()}, **changes}

    def results(self) -> dict[str, Any] | None:
        """The content of results.json, or None if the run is not finished.

        Raises:
            UserError: the run there was made with other settings, or has no record of them.
        """
        self._require_same()
        return RunFolder(self.folder).results()

    def make(self, seeds: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Runs the command; returns the results. Raises what `results` and `run_command` raise.

        Args:
            seeds: `{option: value}` of the seeds.
        """
        self._require_same()
        whole_files.write_json(self._record, self.provenance)
        return run_command(self.folder, self.changes, self.command, {**self.options, **(seeds or {})})

    @property
    def _record(self) -> str:
        return f"{self.folder}.json"

    def _require_same(self) -> None:
        # A run that failed before it trained anything may be given other settings.
        if not RunFolder(self.folder).any_has_begun():
            return
        if not files.exists(self._record):
            raise UserError(
                f"{self.folder}: needs a run with {self._record}, which says what it was made from. "
                "Received: one without. Give another --output."
            )
        require_same(self._record, read_json(self._record), self.provenance, "Give another --output.")


def run_command(
    folder: str, changes: Mapping[str, Any], command: str, options: Mapping[str, str | None]
) -> dict[str, Any]:
    """Runs a command of this program into a run folder, its output appended to FOLDER.log; returns the run's results.

    A signal to stop is passed on to the command, which leaves a checkpoint.

    Args:
        folder: for `--output`; an unfinished run in it is resumed.
        changes: `{setting: value}` for `--set`.
        command: such as `finetune`.
        options: `{option: value}`, None for a flag.

    Raises:
        UserError: the command failed.
        RunStopped: it was asked to stop.
    """
    files.make_folder(files.parent(folder))
    line = [*own_program(), command]
    for option, value in options.items():
        line += [option] if value is None else [option, value]
    line += ["--output", folder]
    for key, value in changes.items():
        line += ["--set", f"{key}={_as_yaml(value)}"]
    log_file = f"{folder}.log"
    with _process_log(log_file) as log:
        # A session of its own: a signal from the terminal reaches only this process, which passes it on once.
        process = subprocess.Popen(line, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
        with _signals_passed_to(process) as asked:
            status = process.wait()
    if asked:
        raise RunStopped(f"{folder}: stopped; the same command resumes.", STOPPED_BY_SIGNAL)
    results = RunFolder(folder).results()
    if status or results is None:
        raise UserError(
            f"{folder}: `{command}` ended with status {status}: {_last_line(log_file)} The full log is {log_file}."
        )
    return results


def _as_yaml(value: Any) -> str:
    """A value on one line, as `--set` reads it. JSON would escape an emoji as two halves, which YAML does not join."""
    return yaml.safe_dump([value], default_flow_style=True, width=math.inf).strip()[1:-1]


def pretrained(folder: str, recipe: str, changes: Mapping[str, Any], data: str, seed: int) -> str:
    """Pretrains by a recipe with changed settings unless that is done; returns the run's folder."""
    run = StudyRun(folder, "pretrain", {"--config": recipe, "--data": data}, changes)
    if run.results() is None:
        run.make({"--seed": str(seed)})
    return folder


@contextlib.contextmanager
def _process_log(path: str) -> Iterator[BinaryIO]:
    """A log for a process to append to; one in a store, where that is impossible, gets the output at the end."""
    if not files.is_remote(path):
        with open(path, "ab") as log:
            yield log
        return
    with tempfile.TemporaryFile() as log:
        try:
            yield log
        finally:
            log.seek(0)
            with files.open_file(path, "ab") as kept:
                shutil.copyfileobj(log, kept)


def _last_line(path: str) -> str:
    with files.open_file(path, "r", errors="replace") as stream:
        lines = [line.strip() for line in stream if line.strip()]
    return lines[-1] if lines else "it printed nothing."


@contextlib.contextmanager
def _signals_passed_to(process: subprocess.Popen) -> Iterator[list[int]]:
    """Passes requests to stop on to a process during the block; yields the list of those that came."""
    asked: list[int] = []

    def pass_on(number: int, frame: FrameType | None) -> None:
        asked.append(number)
        process.send_signal(number)

    before = {
        number: signal.signal(number, pass_on) for number in REQUESTS if signal.getsignal(number) != signal.SIG_IGN
    }
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
