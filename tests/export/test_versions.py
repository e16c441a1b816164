"""The versions in an export's folder and the server's files beside them, as the command writes them."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
import tensorflow as tf
from command_line import ROOT, give, output_of
from said import listen
from served import write_served

from keras_bert.core import locks
from keras_bert.core.errors import UserError
from keras_bert.export import saved_model
from keras_bert.export.saved_model import next_version, write_serving_files, write_version


def test_versions_count_up(tmp_path):
    assert next_version(str(tmp_path / "absent")) == 1
    for name in ("2", "11", "12.partial", "x", "batching.config"):
        (tmp_path / name).mkdir()
    assert next_version(str(tmp_path)) == 12


def test_the_command_writes_the_next_version(tmp_path):
    model = write_served(tmp_path / "model", "regression")
    output = tmp_path / "score"
    for version in ("1", "2"):
        if version == "2":
            (output / "batching.config").write_text("mine")
        result = give("export", "--model", model, "--output", str(output))
        assert f"Written: {output}/{version}. Next:" in result.output.splitlines()[-1]
        assert "serving_default: text → score" in result.output
    assert sorted(path.name for path in output.iterdir()) == ["1", "2", "batching.config", "models.config"]
    assert 'name: "score"' in (output / "models.config").read_text()
    assert (output / "batching.config").read_text() == "mine"


@pytest.mark.parametrize("folder", ["a[1]", "a[1]/sst2", "a\\b", "*"])
def test_a_folder_that_reads_as_a_pattern_is_refused(tmp_path, folder):
    """An export to such a folder could be written, but not loaded."""
    with pytest.raises(UserError, match=r"does not read as a pattern. Received: one with [\[*\\]. Give another"):
        write_version(tmp_path / folder, None)
    assert not list(tmp_path.iterdir())


def test_the_servers_files_are_whole_whatever_the_folder_is_called(tmp_path, monkeypatch):
    """A quote would end the name in the server's config, and `.` has no name of its own."""
    folder = tmp_path / 'the "best" \u4e2d [1]'
    folder.mkdir()
    monkeypatch.chdir(folder)
    write_serving_files(".")
    config = (folder / "models.config").read_text(encoding="utf-8")
    assert '    name: "the \\"best\\" \u4e2d [1]"\n    base_path: "/models/the \\"best\\" \u4e2d [1]"\n' in config


def test_bad_arguments_are_one_line_and_status_2(tmp_path):
    (tmp_path / "file").write_text("")
    model = write_served(tmp_path / "model", "single", max_length=1000)
    reader, filler = (write_served(tmp_path / kind, kind) for kind in ("answering", "masked_lm"))
    tokens, answers = "a masked LM or a left-to-right model", "a model that answers questions or writes texts"
    for arguments, message in (
        (["--model", str(tmp_path / "absent")], "needs a model folder"),
        (["--model", model], "keras_bert.max_length: needs 3 to 40 tokens. Received: 1000."),
        (["--model", model, "--dtype", "int8"], "int8"),
        (["--model", reader, "--top-k", "3"], f"--top-k: needs {tokens}. Received: a BertForQuestionAnswering. Leave"),
        (["--model", reader, "--encoder", "--n-best", "3"], f"--n-best: needs {answers}. Received: --encoder. Leave"),
        (["--model", filler, "--n-best", "3"], f"--n-best: needs {answers}. Received: a BertForPreTraining. Leave"),
        (["--model", filler, "--format", "litert", "--encoder", "--top-k", "3"], f"--top-k: needs {tokens}. Received"),
    ):
        result = give("export", "--output", str(tmp_path / "out"), *arguments, status=2)
        assert message in result.output
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_kill_while_writing_leaves_no_version(tmp_path):
    """The process is killed when the weights are written but the version does not have its name yet."""
    model = write_served(tmp_path / "model", "regression")
    output = tmp_path / "served"
    program = (
        "import os, signal, sys\n"
        "from keras_bert.export import saved_model\n"
        "saved_model.write_warm_up = lambda *arguments: os.kill(os.getpid(), signal.SIGKILL)\n"
        "from keras_bert.cli import main\n"
        "main()\n"
    )
    command = [sys.executable, "-c", program, "export", "--model", model, "--output", str(output)]
    environment = {**os.environ, "PYTHONPATH": ROOT}
    result = subprocess.run(command, env=environment, capture_output=True)
    assert result.returncode == -signal.SIGKILL
    assert (output / "1.partial" / "saved_model.pb").exists() and not (output / "1").exists()
    output_of("export", "--model", model, "--output", output)
    assert (output / "1" / "saved_model.pb").exists() and not (output / "1.partial").exists()


def test_the_servers_files_are_written_by_one_export_at_a_time(tmp_path, monkeypatch):
    """Two first exports used to share an unfinished file, which the second to finish no longer found."""

    def written(folder):
        with pytest.raises(locks.Held):
            locks.take(os.path.join(folder, locks.NAME))
        raise KeyboardInterrupt

    monkeypatch.setattr(saved_model, "write_serving_files", written)
    with pytest.raises(KeyboardInterrupt):
        write_version(str(tmp_path), None)


def test_two_exports_at_the_same_time_take_two_numbers(tmp_path, monkeypatch):
    """Both used to take the next one, and to write into the same unfinished folder."""
    monkeypatch.setattr(locks, "_ASKED_EVERY", 0.01)
    output, said, written = str(tmp_path), listen(), []
    (tmp_path / "1").mkdir()

    class Function:
        inputs, text_inputs, signatures = {}, None, None

        @contextlib.contextmanager
        def tracked(self):
            if not written:  # The second begins while the first is writing.
                written.append(threading.Thread(target=lambda: written.append(write_version(output, self))))
                written[0].start()
                while not said:
                    time.sleep(0.01)
            yield tf.Module()

    monkeypatch.setattr(saved_model, "write_warm_up", lambda *_: None)
    assert write_version(output, Function()).endswith("/2")
    written[0].join()
    assert written[1].endswith("/3") and "in use by process" in said[0]
    assert sorted(os.listdir(tmp_path)) == ["1", "2", "3", "batching.config", "models.config"]
