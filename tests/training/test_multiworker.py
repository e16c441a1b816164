"""Two worker processes on this machine train as one process does."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from corpus import write_corpus

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SETTINGS = {
    "model.vocab_size": 120, "model.hidden_size": 16, "model.num_hidden_layers": 1, "model.num_attention_heads": 2,
    "model.intermediate_size": 32, "phases.0.sequence_length": 16, "phases.0.batch_size": 8,
    "phases.0.max_predictions_per_seq": 3, "training.jit_compile": False, "training.log_every": 1,
    "training.evaluate_every": 5, "training.steps": 10, "data.validation_share": 0.2, "optimizer.warmup_steps": 2,
    "optimizer.learning_rate": 1e-2,
}  # fmt: skip


def run(*arguments, **options):
    command = [sys.executable, os.path.join(ROOT, "run.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, **options)


def losses(folder):
    lines = [json.loads(line) for line in open(os.path.join(folder, "metrics.jsonl"), encoding="utf-8")]
    return [(line["step"], line.get("loss", line.get("eval_loss"))) for line in lines]


@pytest.mark.slow
def test_two_workers_equal_one_process_on_the_same_global_batch(tmp_path):
    corpus = write_corpus(tmp_path / "text.txt", count=120)
    settings = [part for key, value in SETTINGS.items() for part in ("--set", f"{key}={value}")]
    arguments = ["pretrain", "--config", "wiki_mini", "--data", corpus, *settings]
    alone = run(*arguments, "--output", "one", "--strategy", "one", cwd=tmp_path)
    assert alone.returncode == 0, alone.stderr
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
