"""metrics.jsonl, kept in step with the checkpoints."""

import operator
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from keras_bert.core import files, whole_files
from keras_bert.core.yaml_and_json import parse_json
from keras_bert.training.run_folder import RunFolder
from keras_bert.training.run_loggers import RunLogger, keep_sent, sent_before

# Every flush uploads the whole file to an object store again, and some stores accept one write a second.
_SECONDS_BETWEEN_UPLOADS = 30.0


class MetricsLog:
    """Writes one JSON object per logged step, and passes the same figures on to loggers such as TensorBoard's.

    Each line reaches the file at once, and then the loggers. In a store, a validation is uploaded at once, other lines
    half a minute after the last upload, or at `flush`.

    Args:
        step: steps done so far. Lines of later steps, left by a run that was stopped after its last checkpoint, are
            dropped, because those steps will be done again.
        loggers: what else receives the figures; closed with the log.
    """

    def __init__(self, run: RunFolder, step: int, loggers: Sequence[RunLogger] = ()):
        self._run = run
        self._path = run.metrics_file
        self._loggers = loggers
        self._pending: list[tuple[bool, int, Mapping[str, float]]] = []  # What the loggers have not received yet.
        lines = read_metrics(self._path)
        self._last = max([sent_before(run), *map(_place, lines)])  # The place of the last line ever written.
        self._open(step, (line for line in lines if line["step"] <= step))
        self._seconds_between_flushes = _SECONDS_BETWEEN_UPLOADS if files.is_remote(self._path) else 0.0
        self._flushed = time.monotonic()

    def _open(self, step: int, lines: Iterable[Mapping[str, Any]]) -> None:
        """Rewrites the file with these lines, none of them after `step`, and opens it for more."""
        if self._last > (step, True) and any(logger.keeps for logger in self._loggers):
            keep_sent(self._run, self._last)  # The next start may come before these lines are written again.
        with whole_files.atomic_write(self._path) as stream:
            stream.writelines(whole_files.json_text(line) + "\n" for line in lines)
        self._stream = files.open_file(self._path, "a")
        for logger in self._loggers:
            logger.forget_after(step)

    def rewind(self, step: int, rollbacks: Iterable[Mapping[str, Any]]) -> None:
        """Drops the lines of steps after `step`; each rollback gets a line after those of its own `step`."""
        self._stream.close()
        self._pass_on()
        lines = [line for line in read_metrics(self._path) if line["step"] <= step and "rollback" not in line]
        self._open(step, sorted([*lines, *rollbacks], key=operator.itemgetter("step")))

    def write(self, step: int, figures: Mapping[str, float]) -> None:
        """Writes one line, the figures in the given order; see `json_text` for those that are not finite."""
        line = {"step": step, **figures}
        self._stream.write(whole_files.json_text(line) + "\n")
        place = _place(line)
        self._pending.append((place > self._last, step, figures))
        self._last = max(place, self._last)
        is_validation = place[1]
        if is_validation or time.monotonic() - self._flushed >= self._seconds_between_flushes:
            self._send()

    def table(self, step: int, name: str, rows: Sequence[Sequence[str]]) -> None:
        """Passes a table on: rows of Markdown cells, the header first."""
        for logger in self._loggers:
            logger.table(step, name, rows)

    def flush(self) -> None:
        """Writes all lines to the disk. Call before a checkpoint: steps before a checkpoint are never logged again.

        Raises `UserError` if another process has taken over the run's folder; see `RunFolder.require_own`.
        """
        self._send()
        if not files.is_remote(self._path):
            os.fsync(self._stream.fileno())  # A power cut must not lose lines of steps that a checkpoint covers.

    def _send(self) -> None:
        self._run.require_own()
        self._stream.flush()
        self._flushed = time.monotonic()
        self._pass_on()

    def _pass_on(self) -> None:
        """Gives the loggers what is in the file, so that the file shows the next start what they have received."""
        for is_new, step, figures in self._pending:
            for logger in self._loggers:
                if is_new or not logger.keeps:
                    logger.write(step, figures)
        self._pending = []

    def close(self, is_whole: bool = True) -> None:
        """Closes the file and the loggers; `is_whole`: the run has come to its end."""
        self._stream.close()
        self._pass_on()
        for logger in self._loggers:
            logger.close(is_whole)


def _place(line: Mapping[str, Any]) -> tuple[int, bool]:
    """(step, whether it is a validation), in the order of lines."""
    return line["step"], any(name.startswith("eval_") for name in line)


class NoMetricsLog:
    """Stands in for `MetricsLog` in workers that write nothing."""

    def _nothing(self, *arguments: Any, **options: Any) -> None:
        pass

    rewind = write = table = flush = close = _nothing


def read_metrics(path: str) -> list[dict[str, Any]]:
    """The objects in a metrics.jsonl, without lines that are damaged, such as a last one cut off by a kill."""
    if not files.exists(path):
        return []
    found = map(_read_line, files.content(path).split(b"\n"))
    return [line for line in found if isinstance(line, dict) and isinstance(line.get("step"), int)]


def _read_line(line: bytes) -> Any:
    try:
        return parse_json(line)
    except ValueError:
        return None
