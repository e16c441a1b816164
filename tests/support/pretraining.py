"""Small pretraining runs for tests: their recipe, their figures, and a kill at a chosen step."""

import contextlib

import numpy as np
import pytest
import tensorflow as tf
from clocked import without_clock
from said import listen

from keras_bert.config.pretraining import PretrainConfig
from keras_bert.inference.loading import load
from keras_bert.tasks.pretraining.run import Pretraining, pretrain
from keras_bert.training.loop import Loop
from keras_bert.training.metrics_log import read_metrics
from keras_bert.training.run_folder import RunFolder

MODEL = {
    "vocab_size": 120,
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 48,
}


WITHOUT_DROPOUT = {"model.hidden_dropout_prob": 0.0, "model.attention_probs_dropout_prob": 0.0}


def recipe(corpus, **overrides):
    values = {
        "model": MODEL,
        "data": {"files": [corpus], "validation_share": 0.1},
        "phases": [{"sequence_length": 32, "batch_size": 8, "max_predictions_per_seq": 5}],
        "optimizer": {"learning_rate": 1e-2, "warmup_steps": 5},
        "training": {
            "steps": 12,
            "log_every": 2,
            "evaluate_every": 6,
            "checkpoint_every": 3,
            "evaluation_examples": 64,
        },
        "examples": [],  # Filling one takes as long as all the steps.
    }
    return PretrainConfig.from_mapping(values, overrides)


def metrics(run):
    return [without_clock(line) for line in read_metrics(run.metrics_file)]


def losses_on(strategy, config, folder, monkeypatch, name="loss"):
    """The losses of a run's steps and of its validations, trained in the folder on a strategy."""
    with monkeypatch.context() as patch:
        patch.setattr("keras_bert.tasks.pretraining.run.make_strategy", lambda *_: strategy)
        run = RunFolder(str(folder))
        pretrain(config, run)
    return [line[each] for line in metrics(run) for each in (name, f"eval_{name}") if each in line]


def begun(config, folder):
    """(a run about to begin, its first batch)."""
    pretraining = Pretraining(config, RunFolder(str(folder)))
    pretraining.build()
    return pretraining, next(iter(pretraining.sources.training[0].epoch(0)))


def gradients_in_slices(step, batch):
    """(gradients, sums) of a batch, and (gradients, sums) of the batch in two slices."""
    totals, key = step.objective.counts(batch), tf.constant([0, 0], tf.uint32)
    whole = step.gradients(batch, totals, key)
    step.accumulation = 2
    try:
        return whole, step.gradients(batch, totals, key)
    finally:
        step.accumulation = 1


@contextlib.contextmanager
def stopped_at(step, monkeypatch, times=1):
    """Kills the training in it after a step, once that step's figures are written for the nth time (`times`)."""
    record, written = Loop._record, []

    def stop(loop, done, figures):
        record(loop, done, figures)
        written.append(done)
        if written.count(step) == times:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Loop, "_record", stop)
        yield


def assert_resumes_like(straight, config, run, monkeypatch, stop, checkpoint):
    """A run stopped after step `stop` goes on from a checkpoint to the figures and weights of an unstopped one.

    Args:
        straight: (run folder, results) of the unstopped one.
    """
    with stopped_at(stop, monkeypatch):
        pretrain(config, run)
    assert run.results() is None
    said = listen()
    results = pretrain(config, run)
    assert f"Resuming from step {checkpoint}." in said and metrics(run) == metrics(straight[0])
    assert without_clock(results) == without_clock(straight[1])
    weights = [load(folder.path).model.get_weights() for folder in (run, straight[0])]
    assert all(np.array_equal(ours, theirs) for ours, theirs in zip(*weights, strict=True))
