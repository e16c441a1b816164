"""The launcher: what happens to all workers when one fails or is asked to stop."""

import os
import signal
import subprocess
import sys
import textwrap

import pytest
from command_line import ROOT, give, run

from keras_bert.cli.launch import Workers, _started


def test_one_that_fails_stops_all(tmp_path):
    """With bad settings both workers end with status 2, and so does the launcher, at once."""
    result = run("launch", "--workers", "2", "--", "pretrain", "--set", "training.stepz=1", cwd=tmp_path)
    assert result.returncode == 2
    assert "training.stepz: no such setting" in result.stderr and "all workers are stopped" in result.stderr


def test_what_starts_over_is_not_restarted(monkeypatch):
    """--fresh makes a new folder at every start, so each restart would train from nothing."""
    monkeypatch.setattr(subprocess, "Popen", lambda *arguments, **options: pytest.fail("started"))
    result = give("launch", "--workers", "2", "--restart", "5", "--", "pretrain", "--fresh", status=2)
    assert "Received: --fresh, which would start over" in result.output, result.output


def test_the_gpus_that_are_visible_are_divided(monkeypatch):
    """A worker without a GPU would train on the CPU, and the others would wait for it at every step."""
    started = []
    monkeypatch.setattr(subprocess, "Popen", lambda *arguments, env, **options: started.append(env))
    for visible, shares in (("3,4,5", ["3,5", "4"]), ("-1", ["-1", "-1"]), ("", ["", ""])):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        started.clear()
        _started(2, ["pretrain"])
        assert [env["CUDA_VISIBLE_DEVICES"] for env in started] == shares
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    started.clear()
    result = give("launch", "--workers", "2", "--", "pretrain", status=2)
    assert "Received: 2 workers and 1." in result.output and not started, result.output


@pytest.mark.parametrize("failing", [0, 1])
def test_the_one_that_failed_is_named_not_those_stopped_for_it(failing):
    """Whichever worker fails, one that the launcher's own signal ended is not the cause."""
    processes = [started("import time; time.sleep(600)" if index != failing else "exit(2)") for index in range(2)]
    assert Workers(processes).wait() == failing
    assert [process.returncode for process in processes] == ([2, -15] if failing == 0 else [-15, 2])


def started(program):
    return subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)


SAVES = """
import os, signal, sys, time
asked = []
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, lambda *_: asked.append(1))
os.write(1, b"%d\\n" % os.getpgrp())
while not asked: time.sleep(0.01)
time.sleep({seconds})
sys.exit(75 if len(asked) == 1 else 9)
"""


def test_one_that_has_stopped_on_request_is_no_reason_to_ask_the_others_again():
    """The chief is still saving, and a second signal would end it in the middle."""
    processes = [started(SAVES.format(seconds=seconds)) for seconds in (1.0, 0.0)]
    for process in processes:
        process.stdout.readline()
    group = Workers(processes)
    group.stop(signal.SIGTERM)
    assert group.wait() is None
    assert [process.returncode for process in processes] == [75, 75]


def test_ctrl_c_reaches_each_worker_once(tmp_path):
    """The terminal signals the launcher's whole group; a worker asked twice leaves without a checkpoint."""
    program = tmp_path / "program.py"
    launching = "from keras_bert.cli.launch import launch\nlaunch(['--workers', '2', '--', 'worker'])"
    program.write_text(
        f"import sys\nif sys.argv[1:]:{textwrap.indent(SAVES.format(seconds=0.5), '    ')}\n{launching}\n"
    )
    process = subprocess.Popen(
        [sys.executable, program],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": ROOT},
    )
    # Two signals in quick succession often count as one, so the groups show more than the statuses.
    assert process.pid not in [int(process.stdout.readline()) for _ in range(2)]
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(timeout=60) == 75


def launched(tmp_path, program, *options):
    """The finished launcher of two workers that run `program`, where `n` is how often the worker was started before."""
    count = (
        "import os, sys, json\nindex = json.loads(os.environ['TF_CONFIG'])['task']['index']\n"
        "name = f'started-{index}'\nn = os.path.getsize(name) if os.path.exists(name) else 0\n"
        "open(name, 'a').write('x')\n"
    )
    launching = f"from keras_bert.cli.launch import launch\nlaunch(['--workers', '2', *{options!r}, '--', 'worker'])"
    path = tmp_path / "program.py"
    path.write_text(
        f"import sys\nif sys.argv[1:]:\n{textwrap.indent(count + program, '    ')}\n    exit()\n{launching}\n"
    )
    environment = {**os.environ, "PYTHONPATH": ROOT}
    return subprocess.run(
        [sys.executable, path], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60
    )


def test_after_a_failure_all_are_started_again_as_often_as_allowed(tmp_path):
    # The other worker, which is stopped, must have counted itself first.
    waits = "while index and (not os.path.exists('started-0') or os.path.getsize('started-0') <= n): pass\n"
    killed = waits + "if index == 1 and n < 2: os.kill(os.getpid(), 9)"
    result = launched(tmp_path, killed, "--restart", "2")
    assert result.returncode == 0, result.stderr
    assert all(f"{left} of 2 restarts are left" in result.stderr for left in (2, 1))
    assert [(tmp_path / f"started-{index}").read_text() for index in range(2)] == ["xxx", "xxx"]
    assert launched(tmp_path, "os.kill(os.getpid(), 9)", "--restart", "1").returncode == 128 + 9


def test_workers_without_a_peer_are_started_again_and_bad_input_is_not(tmp_path):
    """A worker that lost its peer exits with 75, as after a requested stop, but here nobody asked it to stop."""
    assert launched(tmp_path, "exit(75 if n == 0 else 0)", "--restart", "1").returncode == 0
    for name in ("started-0", "started-1"):
        (tmp_path / name).unlink()
    assert launched(tmp_path, "exit(2)", "--restart", "5").returncode == 2
    assert (tmp_path / "started-0").read_text() == "x"


def test_those_left_by_a_failure_are_asked_once_and_killed_when_the_grace_is_over():
    failing, deaf = started("exit(3)"), started(SAVES.format(seconds=600))
    deaf.stdout.readline()
    assert Workers([failing, deaf], grace_seconds=0.5).wait() == 0
    assert deaf.returncode == -signal.SIGKILL
