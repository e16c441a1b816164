"""What `pretrain` prints at its end."""

import pytest

from keras_bert.cli.pretrain import _show

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
