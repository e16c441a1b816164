"""What `pretrain` prints at its end, and what `--estimate` leaves behind."""

import os
import shlex
from types import SimpleNamespace

import pytest
from corpus import write_corpus

from keras_bert.cli.pretrain import _estimate, _next, _show
from keras_bert.config.pretraining import PretrainConfig
from keras_bert.models.bert.config import TOKENS
from keras_bert.training.run_folder import RunFolder

MLM = {"steps": 5, "eval_mlm_loss": 2.0, "eval_perplexity": 7.4, "eval_mask_token_loss": 2.5, "examples": []}


@pytest.mark.parametrize(
    "more, expected",
    [
        ({}, ("perplexity 7.4.", "only: 2.500 nats.")),
        ({"eval_nsp_accuracy": 0.75}, ("perplexity 7.4, next sentence 75.0%.", "only: 2.500 nats.")),
        ({"eval_mask_token_unigram_loss": 3.0}, ("perplexity 7.4.", "below the training text's unigram (3.000).")),
    ],
)
def test_only_what_was_measured_is_shown(capsys, more, expected):
    _show({**MLM, **more})
    lines = capsys.readouterr().out.splitlines()
    assert [line.endswith(end) for line, end in zip(lines, expected, strict=True)] == [True, True]


@pytest.mark.parametrize("predicts", TOKENS)
def test_what_is_proposed_can_be_given_to_the_shell(predicts):
    """A run in a folder with a blank in its name was two arguments."""
    words = shlex.split(_next("runs/my run", predicts))
    assert words[:2] == ["python", "run.py"] and words.count("runs/my run") == 2


def test_an_estimate_of_a_longer_run_does_not_make_it_longer(tmp_path, monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    monkeypatch.setattr("keras_bert.tasks.pretraining.run.Pretraining.build", lambda pretraining: None)
    monkeypatch.setattr(
        "keras_bert.tasks.pretraining.estimate.estimate", lambda pretraining: SimpleNamespace(lines=list)
    )
    data = {"files": [write_corpus(tmp_path / "text.txt", 5)]}
    short, long = (PretrainConfig.from_mapping({"data": data, "training": {"steps": steps}}) for steps in (10, 20))
    run = RunFolder(str(tmp_path / "run"))
    with run:
        run.claim(short)
    os.makedirs(os.path.join(run.checkpoints, "step-000000001"))
    _estimate(long, run)
    with run:
        run.claim(short)
