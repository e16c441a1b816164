"""What the commands say: what is shown, and what is kept in the folder of a run."""

import contextlib
import logging
import os
import pty
import signal

import click
import pytest
from click.testing import CliRunner
from corpus import write_corpus

from keras_bert.cli import main
from keras_bert.core import messages

LOGGER = logging.getLogger("keras_bert.any")


@pytest.fixture(autouse=True)
def shown():
    yield
    messages.show()


def say():
    LOGGER.debug("a detail")
    LOGGER.info("a message")
    LOGGER.warning("a warning")


@pytest.mark.parametrize(
    ("level", "out", "err"), [(logging.INFO, "a message\n", "a warning\n"), (logging.WARNING, "", "a warning\n")]
)
def test_messages_are_bare_and_warnings_apart(level, out, err, capsys):
    """Scripts read stdout. Nor may a line show twice, through the handler that TensorFlow brings."""
    messages.show(level)
    say()
    assert capsys.readouterr() == (out, err)


def test_details_come_with_the_time_and_the_module(capsys):
    messages.show(logging.DEBUG)
    say()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" ", 2)[2] for line in lines] == [
        "DEBUG keras_bert.any: a detail",
        "INFO keras_bert.any: a message",
    ]


@pytest.mark.parametrize("folder", ["", "ram://messages/"])
def test_a_run_keeps_what_was_said_whatever_is_shown(folder, tmp_path, capsys):
    """It is appended, as a run may be started often; a store gets it at the end."""
    path = f"{folder or f'{tmp_path}/'}log.txt"
    messages.show(logging.WARNING)
    for text in ("first", "\x1b[1msecond\x1b[0m"):
        kept = messages.LogFileHandler(path)
        LOGGER.info(text)
        kept.close()
    LOGGER.info("after the end")
    with messages.files.open_file(path) as stream:
        lines = stream.read().decode().splitlines()
    assert [line.split(" ", 2)[2] for line in lines] == ["INFO first", "INFO second"]


def test_a_file_that_cannot_be_written_stops_nothing(tmp_path):
    """Otherwise a full disk would end a run of days for the sake of its log."""
    kept = messages.LogFileHandler(str(tmp_path / "absent" / "log.txt"))
    LOGGER.info("a message")
    kept.close()


def test_a_name_that_is_no_text_is_shown_and_kept_too(tmp_path, capsys):
    """Files may have such names; encoding one must not raise an error in the midst of a run."""
    messages.show()
    kept = messages.LogFileHandler(str(tmp_path / "log.txt"))
    # Not through the logger: pytest would capture the message, and its worker could not send it on.
    record = LOGGER.makeRecord(LOGGER.name, logging.INFO, __file__, 0, "a \udce9 name", (), None)
    for handler in (messages._TERMINAL, kept):
        handler.handle(record)
    kept.close()
    assert (tmp_path / "log.txt").read_text().endswith("INFO a \\udce9 name\n")
    assert capsys.readouterr().out == "a \\udce9 name\n"


def test_quiet_commands_say_nothing_but_answers(tmp_path):
    """Other lines would be in the way of programs that read the answers."""
    corpus = write_corpus(tmp_path / "text.txt")
    arguments = ["vocab", "--input", corpus, "--size", "100", "--output", str(tmp_path / "vocab.txt")]
    result = CliRunner().invoke(main, [*arguments, "--quiet"], catch_exceptions=False)
    assert (result.exit_code, result.output) == (0, "")
    arguments[-1] = str(tmp_path / "other.txt")
    result = CliRunner().invoke(main, [*arguments, "-v"], catch_exceptions=False)
    assert "INFO keras_bert.cli.vocab: Written: " in result.output


@pytest.fixture
def left():
    """Makes a stream, "terminal" or "pipe", whose reader has left."""
    streams = []

    def make(kind):
        reader, writer = pty.openpty() if kind == "terminal" else os.pipe()
        os.close(reader)
        streams.append(os.fdopen(writer, "w"))
        return streams[-1]

    yield make
    for stream in streams:
        with contextlib.suppress(BrokenPipeError):
            stream.close()


@pytest.mark.parametrize(("kind", "asked"), [("terminal", []), ("pipe", [signal.SIGHUP])])
def test_a_run_whose_reader_has_left_is_asked_to_stop_once(kind, asked, left, tmp_path, monkeypatch):
    """The run ended without a checkpoint. A second SIGHUP, after that of the terminal, would end it at once."""
    received = []
    monkeypatch.setattr("sys.stdout", left(kind))
    previous = signal.signal(signal.SIGHUP, lambda number, frame: received.append(number))
    kept = messages.LogFileHandler(str(tmp_path / "log.txt"))
    try:
        for text in ("first", "second"):
            LOGGER.info(text)
    finally:
        kept.close()
        signal.signal(signal.SIGHUP, previous)
    assert received == asked
    assert [line.split(" ", 2)[2] for line in (tmp_path / "log.txt").read_text().splitlines()] == [
        "INFO first",
        "INFO second",
    ]


def test_a_command_without_a_checkpoint_ends_in_silence_if_its_reader_has_left(left, tmp_path, monkeypatch):
    """It told of an internal error, with a traceback in the folder of the run."""

    def say_to_nobody(**options):
        click.get_current_context().meta["keras_bert.run_folder"] = str(tmp_path)
        with monkeypatch.context() as patch:
            patch.setattr("sys.stdout", left("pipe"))
            LOGGER.info("a message")

    monkeypatch.setattr(main.commands["settings"], "callback", say_to_nobody)
    result = CliRunner().invoke(main, ["settings"])
    assert (result.exit_code, result.output, os.listdir(tmp_path)) == (1, "", [])
