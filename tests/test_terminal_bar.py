"""Where work is seen, and for how long."""

import fcntl
import gzip
import io
import os
import struct
import sys
import termios
import types

import pytest

from keras_bert.core import terminal_bar as module
from keras_bert.core.files import open_file
from keras_bert.core.terminal_bar import polled, terminal_bar
from keras_bert.data.corpus.documents import Corpus
from keras_bert.data.corpus.text_lines import read_lines


class Screen(io.StringIO):
    def __init__(self, is_terminal):
        super().__init__()
        self.is_terminal = is_terminal

    def isatty(self):
        return self.is_terminal


@pytest.fixture
def log(capsys):
    """Function () -> the lines written since the last call to stderr, which is no terminal."""
    return lambda: capsys.readouterr().err.splitlines()


@pytest.fixture
def clock(monkeypatch):
    """tqdm's clock, which stands still; `clock[0]` is its time in seconds."""
    now = [1000.0]
    monkeypatch.setattr("tqdm.std.time", lambda: now[0])
    return now


@pytest.mark.parametrize("leave", [True, False])
@pytest.mark.parametrize(
    ("is_terminal", "seconds_unseen", "is_seen"), [(True, 0.0, True), (True, 60.0, False), (False, 0.0, False)]
)
def test_nothing_is_seen_of_what_is_quick(monkeypatch, is_terminal, seconds_unseen, is_seen, leave):
    """Neither a terminal nor a log may fill with the bars of short work."""
    screen = Screen(is_terminal)
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setattr(module, "_SECONDS_UNSEEN", seconds_unseen)
    assert list(terminal_bar("Evaluating", "batches", over=range(3), leave=leave)) == [0, 1, 2]
    assert ("Evaluating" in screen.getvalue()) == is_seen


class ZMQInteractiveShell:
    """A Jupyter kernel's, by its name."""


class Shell(ZMQInteractiveShell):
    """Colab's."""


class TerminalInteractiveShell:
    """IPython's on a terminal."""


@pytest.mark.parametrize("disabled", ["", "1"])
@pytest.mark.parametrize(
    ("shell", "is_terminal", "is_drawn"),
    [
        (ZMQInteractiveShell, False, True),
        (Shell, False, True),
        (TerminalInteractiveShell, True, True),
        (TerminalInteractiveShell, False, False),
        (type(None), False, False),
        (type(None), True, True),
    ],
)
def test_training_draws_a_bar_where_someone_looks(monkeypatch, shell, is_terminal, is_drawn, disabled):
    """In a notebook, which has no terminal, minutes of training would look like a hang. TQDM_DISABLE turns bars off."""
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=shell))
    monkeypatch.setattr("sys.stderr", Screen(is_terminal))
    monkeypatch.setenv("TQDM_DISABLE", disabled)
    assert module.draws_bars() == (is_drawn and not disabled)


def test_a_log_has_a_line_a_minute(log, clock):
    """Otherwise hours of work in CI would look like a hang, or bars drawn ten times a second would fill its log."""
    with terminal_bar("Embedded", "texts", total=40) as bar:
        for _ in range(20):
            clock[0] += 10.0
            bar.update(2)
            bar.refresh()
    assert log() == [
        "Embedded:  30% 12/40 [01:00<02:20,  5.00s/ texts]",
        "Embedded:  60% 24/40 [02:00<01:20,  5.00s/ texts]",
        "Embedded:  90% 36/40 [03:00<00:20,  5.00s/ texts]",
        "Embedded: 100% 40/40 [03:20<00:00,  5.00s/ texts]",
    ]


def test_a_line_that_nobody_reads_ends_no_work(clock, monkeypatch):
    """The reader of a pipe may be gone long before a run that reports to it."""
    reader, writer = os.pipe()
    os.close(reader)
    screen = io.TextIOWrapper(io.FileIO(writer, "w"), write_through=True)
    monkeypatch.setattr(sys, "stderr", screen)
    with terminal_bar("Read", "lines", total=3) as bar:
        for _ in range(3):
            clock[0] += 61.0
            bar.update()
    with pytest.raises(BrokenPipeError):
        screen.write("Nobody reads.")


def test_a_terminal_without_a_size_shows_a_bar(monkeypatch):
    """A container's terminal often reports 0 columns; bars would fail or be invisible."""
    monkeypatch.setattr(module, "_SECONDS_UNSEEN", 0.0)
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 0, 0, 0, 0))
    with os.fdopen(theirs, "w") as screen, os.fdopen(ours, "rb") as shown:
        terminal_bar("Embedded", "texts", total=2, file=screen).close()
        assert b"Embedded:   0%|" in shown.read1(1000)


def test_a_corpus_is_measured_in_bytes_of_its_files(tmp_path, log, clock):
    """The total of documents is unknown, and compressed files must count too, or the time left would be wrong."""
    plain, packed = tmp_path / "1.txt", tmp_path / "2.txt.gz"
    plain.write_text("One document here.\n\nAnother document.\n")
    packed.write_bytes(gzip.compress(b"A third one, which is compressed.\n"))
    sizes = [plain.stat().st_size, packed.stat().st_size]
    for _ in Corpus([str(plain), str(packed)]).documents("Read"):
        clock[0] += 60.0
    first, _, _, last = log()
    assert first.startswith(f"Read: {sizes[0] / sum(sizes):4.0%} {sizes[0]:.1f}/{sum(sizes):.1f} [01:00<")
    assert last.startswith(f"Read: 100% {sum(sizes):.1f}/{sum(sizes):.1f} [03:00<00:00,")
    assert last.endswith("3 documents]")


def test_a_pipe_is_counted(tmp_path, log, clock):
    """A pipe has no size: a bar would fail, or show a share of nothing."""
    os.mkfifo(tmp_path / "pipe")
    with terminal_bar("Embedded", "texts", read=[str(tmp_path / "pipe")]) as bar:
        clock[0] += 60.0
        bar.update(30)
    assert log()[0] == "Embedded: 30 texts [01:00,  2.00s/ texts]"


@pytest.mark.parametrize("is_file", [True, False])
def test_a_window_counts_by_its_batches(tmp_path, log, clock, is_file):
    """A window of answers may take minutes, in which a bar would stand still, or already count all that was read."""
    path = tmp_path / "texts.txt"
    path.write_bytes(b"x" * 100)
    with terminal_bar("Answered", "examples", total=80, read=[str(path)] if is_file else []) as bar:
        with open_file(str(path)) as stream:
            for _ in range(2):
                stream.read(50)
                for share in (0.5, 1.0):
                    clock[0] += 60.0
                    bar.partly(share, 40)
                bar.update(40)
    shares = [line.split("%")[0] for line in log()]
    assert shares == ["Answered:  25", "Answered:  50", "Answered:  75", "Answered: 100", "Answered: 100"]


def test_what_others_do_is_asked_for(log, monkeypatch):
    """Otherwise the work of other processes would show nothing before its end."""
    monkeypatch.setattr(module, "_SECONDS_A_POLL", 0.001)
    monkeypatch.setattr(module, "_SECONDS_A_LINE", 0.001)
    bar = terminal_bar("Counted", "parts", total=2)
    asked = module.threading.Event()
    with polled(bar, lambda: asked.set() or 2):
        assert asked.wait(10.0)
    assert bar.n == 2


def test_a_file_is_read_little_ahead(tmp_path):
    """Otherwise the bar of a file of a megabyte would be full when the work on it begins."""
    path = tmp_path / "texts.txt"
    path.write_text("Some text.\n" * 20_000)
    bar = terminal_bar("Answered", "examples", read=[str(path)])
    lines = read_lines(path)
    assert next(lines) == "Some text."
    assert 0 < bar.position() < 100_000 < bar.total
