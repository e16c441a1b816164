"""The package's log messages: bare on the terminal, and with the time in a file of the run folder."""

import contextlib
import errno
import logging
import os
import signal
import sys
import time
from typing import TextIO

import click

from keras_bert.core import files

LOGGER = logging.getLogger("keras_bert")
_DETAILED = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
_SECONDS_A_WRITE = 60.0
_MOST_WAITING = 1 << 20  # Characters kept while a store does not answer.


class _Terminal(logging.Handler):
    """Messages on stdout and warnings on stderr, above the bars that are shown."""

    def emit(self, record: logging.LogRecord) -> None:
        stream = sys.stderr if record.levelno >= logging.WARNING else sys.stdout
        # File names may not be valid text, and a terminal may lack characters: neither may end a run.
        encoding = stream.encoding or "utf-8"
        line = self.format(record).encode(encoding, "backslashreplace").decode(encoding)
        try:
            if tqdm := sys.modules.get("tqdm"):
                tqdm.tqdm.write(line, file=stream)
            else:
                stream.write(f"{line}\n")
            stream.flush()
        except OSError as error:
            _hang_up(stream, error)


def _hang_up(stream: TextIO, error: OSError) -> None:
    """Lets a run whose reader is gone leave a checkpoint. Re-raises the error of a write that has another cause.

    A terminal that was closed (EIO) has sent SIGHUP already, which nohup ignores. For a closed pipe (EPIPE) it is sent
    here, unless that would end the process at once.
    """
    is_pipe = error.errno == errno.EPIPE
    would_end = is_pipe and signal.getsignal(signal.SIGHUP) == signal.SIG_DFL
    if error.errno not in (errno.EPIPE, errno.EIO) or would_end:
        raise error
    silence(stream)
    if is_pipe:
        signal.raise_signal(signal.SIGHUP)


def silence(stream: TextIO) -> None:
    """Discards whatever is written to a stream whose reader is gone, by stdout or stderr too if they are the same."""
    own, nowhere = stream.fileno(), os.open(os.devnull, os.O_WRONLY)
    # All of them are found before the first is replaced.
    for number in [number for number in (own, 1, 2) if os.path.sameopenfile(number, own)]:
        os.dup2(nowhere, number)
    os.close(nowhere)


_TERMINAL = _Terminal()


def show(level: int = logging.INFO) -> None:
    """Shows messages of `level` and above; below INFO, with time and module. Until then, Python shows only warnings.

    The root logger's handlers, which TensorFlow adds, no longer show them a second time.
    """
    _TERMINAL.setFormatter(_DETAILED if level < logging.INFO else None)
    LOGGER.setLevel(min(level, logging.INFO))  # The run's file takes INFO even if the terminal does not.
    _TERMINAL.setLevel(level)
    if _TERMINAL not in LOGGER.handlers:
        LOGGER.addHandler(_TERMINAL)
    LOGGER.propagate = False


def mute() -> None:
    """Shows only warnings from now on, in a process whose chief shows the rest."""
    _TERMINAL.setLevel(logging.WARNING)


class LogFileHandler(logging.Handler):
    """Appends messages with their times to a file, which the first one creates.

    On a disk each is written at once. A store cannot append, so there the file is rewritten once a minute, and by
    `close`. A failed write does not stop the run.
    """

    def __init__(self, path: str):
        super().__init__(logging.INFO)
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        self._path, self._waiting, self._written = path, "", time.monotonic()
        # Without `show`, the root logger by default shows only warnings; it must not show what only the file takes.
        self._sets_level = LOGGER.level == logging.NOTSET
        self._forwards = self._sets_level and LOGGER.propagate
        if self._sets_level:
            LOGGER.setLevel(logging.INFO)
        if self._forwards:
            LOGGER.propagate = False
        LOGGER.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        self.keep(record)
        if self._forwards and record.levelno >= logging.root.level:
            # Without any handler, Python shows warnings by its last resort, which this handler disables.
            last_resort = [logging.lastResort] if LOGGER.handlers == [self] and logging.lastResort else []
            for handler in logging.root.handlers or last_resort:
                if record.levelno >= handler.level:
                    handler.handle(record)

    def keep(self, record: logging.LogRecord) -> None:
        """Writes what is only for the file."""
        self._waiting = (self._waiting + click.unstyle(f"{self.format(record)}\n"))[-_MOST_WAITING:]
        if not files.is_remote(self._path) or time.monotonic() - self._written > _SECONDS_A_WRITE:
            self._write()

    def _write(self) -> None:
        self._written = time.monotonic()
        mode, content = "ab", self._waiting.encode(errors="backslashreplace")
        with contextlib.suppress(OSError):
            if files.is_remote(self._path):
                mode = "wb"
                if files.exists(self._path):
                    with files.open_file(self._path) as stream:
                        content = stream.read() + content
            with files.open_file(self._path, mode) as written:
                written.write(content)
            self._waiting = ""

    def close(self) -> None:
        LOGGER.removeHandler(self)
        if self._sets_level and _TERMINAL not in LOGGER.handlers:
            LOGGER.setLevel(logging.NOTSET)
            LOGGER.propagate = LOGGER.propagate or self._forwards
        if self._waiting:
            self._write()
        super().close()
