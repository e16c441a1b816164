"""What the commands say: what is shown, and what is kept in the folder of a run."""

import logging

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
    ("level", "out", "err"),
    [(logging.INFO, "a message\n", "a warning\n"), (logging.WARNING, "", "a warning\n")],
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
