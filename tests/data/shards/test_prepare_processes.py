"""Prepare in several processes writes the same bytes as one, and leaves nothing half-done after a kill."""

import errno
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from command_line import give
from corpus import write_corpus
from prepared import VOCABULARY, contents
from test_prepare import make_documents, prepare

from keras_bert.core.errors import UserError
from keras_bert.data.shards.document_tokenizer import map_in_processes
from keras_bert.data.shards.prepared_folder import is_prepared

ROOT = Path(__file__).parents[3]


def in_processes(folder, workers, monkeypatch):
    monkeypatch.setattr("keras_bert.data.shards.prepare.BATCH_CHARACTERS", 500)
    monkeypatch.setattr("keras_bert.data.shards.prepare._BATCHES_WORTH_PROCESSES", 2)
    report = prepare(make_documents(150), folder, 0.3, shard_megabytes=0.002, workers=workers)
    return contents(folder), report


@pytest.fixture
def of_one(tmp_path, monkeypatch):
    """What one process writes."""
    one = in_processes(tmp_path / "1", 1, monkeypatch)
    assert len(one[0]) > 10
    return one


@pytest.mark.slow
def test_a_process_for_each_of_three_cores_gives_the_bytes_of_one(of_one, tmp_path, monkeypatch):
    """0, the default, stands for one process per core."""
    started = []

    def spy(function, batches, workers, remedy):
        started.append(workers)
        return map_in_processes(function, batches, workers, remedy)

    monkeypatch.setattr("keras_bert.data.shards.prepare.all_cores", lambda: 3)
    monkeypatch.setattr("keras_bert.data.shards.prepare.map_in_processes", spy)
    assert in_processes(tmp_path / "0", 0, monkeypatch) == of_one
    assert started == [3]


def die(batch):
    os._exit(1)


def fail(batch):
    raise ValueError(f"batch {batch}")


def test_without_shared_memory_one_process_does_the_work(monkeypatch, caplog):
    """Some containers have no /dev/shm, where the locks of processes are."""

    def without_folder(*arguments):
        raise FileNotFoundError(errno.ENOENT, "No such file or directory")

    monkeypatch.setattr("_multiprocessing.SemLock", without_folder)
    assert list(map_in_processes(len, [("a", "x"), ("b", "xy")], 3, "")) == [("a", 1), ("b", 2)]
    assert caplog.messages == [
        "/dev/shm: cannot be used (No such file or directory), so one process does the work, not 3."
    ]


@pytest.mark.slow
def test_a_worker_that_dies_or_fails_ends_the_work():
    with pytest.raises(UserError, match=r"worker processes. Received: one that died.*out. Buy memory\.$"):
        list(map_in_processes(die, [("a", 1), ("b", 2)], 1, "Buy memory."))
    with pytest.raises(ValueError, match="batch 1"):
        list(map_in_processes(fail, [("a", 1), ("b", 2)], 1, ""))
    assert [child for child in multiprocessing.active_children() if child.is_alive()] == []


@pytest.mark.slow
def test_a_script_need_not_be_guarded(tmp_path):
    """A plain script that calls `keras_bert.pretrain(data=…)` would run again in each worker, and they would die."""
    script = tmp_path / "script.py"
    script.write_text(
        "from keras_bert.data.shards.document_tokenizer import map_in_processes\n"
        "print('read', list(map_in_processes(len, [(n, 'x' * n) for n in range(3)], 2, '')))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, str(script)], stdout=subprocess.PIPE, text=True, env=environment)
    assert done.returncode == 0 and done.stdout == "read [(0, 0), (1, 1), (2, 2)]\n"


def count_files(folder):
    """Files below these folders; `os.walk` does not mind that they come and go meanwhile."""
    return sum(len(names) for _, _, names in os.walk(folder))


@pytest.mark.slow
def test_killed_at_any_instant(tmp_path):
    """After kill -9: no folder, no leftover process, and the same command resumes to the same bytes."""
    text = write_corpus(tmp_path / "text.txt", 28_000)
    VOCABULARY.to_file(tmp_path / "vocab.txt")

    def start(folder):
        arguments = ["--input", text, "--vocab", "vocab.txt", "--output", folder, "--shard-megabytes", "0.2"]
        command = [sys.executable, str(ROOT / "run.py"), "prepare", *arguments, "--workers", "2"]
        return subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    kills = went_on = 0
    # Kills before the first shard, then after 1, 6 and 11 more files, each a random part of a write later.
    for files_more in (0, 1, 6, 11):
        process = start("killed")
        before = count_files(tmp_path / "killed.partial")
        deadline = time.monotonic() + 120
        while process.poll() is None and time.monotonic() < deadline:
            if count_files(tmp_path / "killed.partial") >= before + files_more:
                break
            time.sleep(0.002)
        if process.poll() is not None:
            break
        workers = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGKILL)
        process.wait()
        kills += 1
        assert not (tmp_path / "killed").exists() and not is_prepared(tmp_path / "killed.partial")
        assert psutil.wait_procs(workers, timeout=60)[1] == []
        went_on += "Resuming in killed.partial" in process.stdout.read()
    assert kills == 4 and went_on
    last = start("killed")
    output = last.communicate()[0]
    assert last.returncode == 0, output
    assert "Resuming in killed.partial" in output
    straight = ["--input", text, "--vocab", str(tmp_path / "vocab.txt"), "--output", str(tmp_path / "straight")]
    give("prepare", *straight, "--shard-megabytes", "0.2", "--workers", "1")
    assert contents(tmp_path / "killed") == contents(tmp_path / "straight")
