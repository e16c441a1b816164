"""Two worker processes on this machine train as one process does."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner
from corpus import write_corpus

from keras_bert.cli import main
from keras_bert.cli.launch import first_to_fail

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RECIPE = """
model: {vocab_size: 120, hidden_size: 16, num_hidden_layers: 1, num_attention_heads: 2, intermediate_size: 32,
  hidden_dropout_prob: 0, attention_probs_dropout_prob: 0}
data: {validation_share: 0.2}
phases: [{sequence_length: 16, batch_size: 8, max_predictions_per_seq: 3}]
optimizer: {learning_rate: 1.0e-2, warmup_steps: 2}
training: {steps: 10, log_every: 1, evaluate_every: 5}
"""


def run(*arguments, **options):
    command = [sys.executable, os.path.join(ROOT, "run.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, **options)


def losses(folder):
    lines = [json.loads(line) for line in open(os.path.join(folder, "metrics.jsonl"), encoding="utf-8")]
    return [(line["step"], line.get("loss", line.get("eval_loss"))) for line in lines]


@pytest.mark.slow
def test_two_workers_equal_one_process_on_the_same_global_batch(tmp_path, monkeypatch):
    corpus = write_corpus(tmp_path / "text.txt", count=120)
    (tmp_path / "recipe.yaml").write_text(RECIPE)
    arguments = ["pretrain", "--config", "recipe.yaml", "--data", corpus]
    monkeypatch.chdir(tmp_path)
    alone = CliRunner().invoke(main, [*arguments, "--output", "one", "--strategy", "one"])
    assert alone.exit_code == 0, alone.output
    together = run("launch", "--workers", "2", "--", *arguments, "--output", "two", cwd=tmp_path)
    assert together.returncode == 0, together.stderr
    assert "process 0 of 2" in together.stdout and "2 replicas" in together.stdout
    one, two = losses(tmp_path / "one"), losses(tmp_path / "two")
    assert [step for step, _ in two] == [step for step, _ in one]
    np.testing.assert_allclose([loss for _, loss in two], [loss for _, loss in one], rtol=1e-5)
    assert (tmp_path / "two" / "model" / "model.safetensors").exists()


def test_one_that_fails_stops_all(tmp_path):
    """Bad settings: both end with status 2, and so does the launcher, at once."""
    result = run("launch", "--workers", "2", "--", "pretrain", "--set", "training.stepz=1", cwd=tmp_path)
    assert result.returncode == 2
    assert "training.stepz: no such setting" in result.stderr and "all are stopped" in result.stderr


@pytest.mark.parametrize("failing", [0, 1])
def test_the_one_that_failed_is_named_not_those_stopped_for_it(failing):
    """Whichever place it has: a worker ended by the launcher's own signal is no reason."""
    processes = [
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)" if index != failing else "exit(2)"])
        for index in range(2)
    ]
    assert first_to_fail(processes) == failing
    assert [process.returncode for process in processes] == ([2, -15] if failing == 0 else [-15, 2])
