"""Real processes that are killed and restarted give the numbers of one left alone: tools/torture.py in short."""

import fcntl
import json
import os
import pty
import random
import select
import subprocess
import sys
import termios
import time

import psutil
import pytest
import yaml
from command_line import sets

from keras_bert.training.stop_request import STOPPED_BY_SIGNAL
from tools.compare_runs import compare
from tools.torture import ACCIDENTS, torture, write_text
from tools.tortured_run import FULL_DISK, RECIPE, ROOT, SAVE

pytestmark = pytest.mark.usefixtures("quick_commands")

STEPS = 60
ADAFACTOR = ["name=adafactor", "relative_step=true", "first_moment=true", "weight_average=0.8"]


def assert_same(rows):
    for what, number, different in rows:
        assert number > 0 and not different, what


@pytest.mark.slow
def test_three_kills_change_nothing(tmp_path):
    """One of them during a save, one in training and one after the last step."""
    hits, restarts, rows, _ = torture(str(tmp_path), kills=3, steps=36, seed=1)
    assert sum(hits.values()) == restarts == 3 and hits[SAVE] >= 1
    assert_same(rows)


@pytest.mark.slow
def test_half_written_files_and_a_jumping_clock_change_nothing(tmp_path):
    hits, restarts, rows, happened = torture(str(tmp_path), kills=2, steps=36, seed=4, tried=ACCIDENTS)
    assert hits[FULL_DISK] >= 1 and happened["metrics.jsonl cut"] >= 1 and happened["clock"] == sum(hits.values()) == 2
    assert_same(rows)


def last_step(folder):
    try:
        with open(os.path.join(folder, "metrics.jsonl"), encoding="utf-8") as stream:
            return json.loads(stream.read().splitlines()[-1])["step"]
    except (FileNotFoundError, IndexError, ValueError):
        return 0


@pytest.mark.slow
def test_workers_killed_twice_are_started_again_by_the_launcher(tmp_path):
    """One of the two, at random steps: the numbers are those of two that nothing happened to.

    With the optimizer whose state has the most parts, averages and a first moment included.
    """
    write_text(tmp_path / "text.txt")
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(RECIPE))
    launch = [sys.executable, os.path.join(ROOT, "run.py"), "launch", "--workers", "2"]
    optimizer = sets(*(f"optimizer.{setting}" for setting in ADAFACTOR))
    given = ["--config", "recipe.yaml", "--data", "text.txt", "--steps", str(STEPS), *optimizer]
    pretrain = ["--", "pretrain", *given, "--output"]
    subprocess.run([*launch, *pretrain, "alone"], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL, timeout=600)
    generator, killed = random.Random(3), tmp_path / "killed"
    planned, deadline = sorted(generator.randrange(STEPS * 8 // 10) for _ in range(2)), time.monotonic() + 1500
    with open(tmp_path / "killed.log", "w") as output:
        process = subprocess.Popen(
            [*launch, "--restart", "2", *pretrain, "killed"], cwd=tmp_path, stdout=output, stderr=subprocess.STDOUT
        )
    victims = []
    try:
        while planned and process.poll() is None and time.monotonic() < deadline:
            workers = [child for child in psutil.Process(process.pid).children() if child not in victims]
            if len(workers) == 2 and last_step(killed) >= planned[0]:
                victims += workers
                generator.choice(workers).kill()
                planned.pop(0)
            time.sleep(0.02)
        said = (tmp_path / "killed.log").read_text
        assert not planned, said()
        assert process.wait(timeout=max(deadline - time.monotonic(), 1)) == 0, said()
    finally:
        process.kill()
    assert "1 of 2 restarts are left" in said()  # Before the second.
    assert_same(compare(str(tmp_path / "alone"), str(killed)))


@pytest.mark.slow
@pytest.mark.parametrize("more", [[], ["--quiet"]])
def test_a_run_whose_terminal_is_closed_leaves_a_checkpoint(more, tmp_path):
    """The signal was noted, but the next line failed on the terminal that was gone, and ended the run before it."""
    write_text(tmp_path / "text.txt")
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(RECIPE))
    terminal, own = pty.openpty()
    given = ["--config", "recipe.yaml", "--data", "text.txt", "--output", "run", "--steps", "10000", *more]
    process = subprocess.Popen(
        [sys.executable, os.path.join(ROOT, "run.py"), "pretrain", *given],
        cwd=tmp_path,
        stdin=own,
        stdout=own,
        stderr=own,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(own)
    try:
        while last_step(tmp_path / "run") < 3 and process.poll() is None:
            if select.select([terminal], [], [], 0.1)[0]:
                os.read(terminal, 1 << 16)
        os.close(terminal)
        assert process.wait(timeout=300) == STOPPED_BY_SIGNAL and last_step(tmp_path / "run") < 10000
    finally:
        process.kill()
    assert os.listdir(tmp_path / "run" / "checkpoints")
    assert "Stopped by SIGHUP after step" in (tmp_path / "run" / "log.txt").read_text()
