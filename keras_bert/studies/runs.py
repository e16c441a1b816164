"""Training runs as parts of a study: each a command of its own process, which resumes and is not done twice."""

import contextlib
import itertools
import json
import signal
import subprocess
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any

from keras_bert import files
from keras_bert.errors import RunStopped, UserError
from keras_bert.program import own_program
from keras_bert.training.run_folder import RunFolder
from keras_bert.training.stop_request import REQUESTS, STOPPED_BY_SIGNAL


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
    line = [*own_program(), command, *itertools.chain.from_iterable(map(_given, options, options.values()))]
    line += ["--output", folder]
    for key, value in changes.items():
        line += ["--set", f"{key}={json.dumps(value)}"]
    log_file = f"{folder}.log"
    with open(log_file, "ab") as log:
        # A session of its own: a signal from the terminal reaches only this process, which passes it on once.
        process = subprocess.Popen(line, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
        with _signals_passed_to(process) as asked:
            status = process.wait()
    if asked:
        raise RunStopped(f"{folder}: stopped; the same command resumes.", STOPPED_BY_SIGNAL)
    results = RunFolder(folder).results()
    if status or results is None:
        raise UserError(
            f"{folder}: `{command}` ended with status {status}: {_last_line(log_file)} All is in {log_file}."
        )
    return results


def pretrained(folder: str, recipe: str, changes: Mapping[str, Any], data: str, seed: int) -> str:
    """Pretrains by a recipe with changed settings unless that is done; returns the run's folder."""
    if RunFolder(folder).results() is None:
        run_command(folder, changes, "pretrain", {"--config": recipe, "--data": data, "--seed": str(seed)})
    return folder


def _given(option: str, value: str | None) -> list[str]:
    return [option] if value is None else [option, value]


def _last_line(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as stream:
        lines = [line.strip() for line in stream if line.strip()]
    return lines[-1] if lines else "it said nothing."


@contextlib.contextmanager
def _signals_passed_to(process: subprocess.Popen) -> Iterator[list[int]]:
    """A block in which requests to stop go to a process; the list holds those that came."""
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
