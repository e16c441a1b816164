"""Scores of texts: as the libraries score whole sets, not means over single texts."""

import pytest

from keras_bert.config.finetuning import SEQ2SEQ_METRICS
from keras_bert.core.errors import UserError
from keras_bert.tasks.seq2seq.scores import require_packages, text_scores

WANTED = ["the cats sat on the mat", "a dog slept"]
WRITTEN = ["the cat sat on the mat", "a dog slept"]


def test_equal_texts_score_a_hundred_by_every_metric():
    for name, score in text_scores(SEQ2SEQ_METRICS, WANTED, WANTED).items():
        assert score == pytest.approx(100), name


def test_scores_by_hand():
    found = text_scores(["rouge2", "rougeL", "exact_match", "bleu"], WRITTEN, WANTED)
    assert list(found) == ["rouge2", "rougeL", "exact_match", "bleu"]
    assert found["exact_match"] == 50
    assert found["rougeL"] == pytest.approx(100)  # After stemming.
    one, two, three, four = 8 / 9, 5 / 7, 3 / 5, 1 / 3  # n-grams of both texts together.
    assert found["bleu"] == pytest.approx(100 * (one * two * three * four) ** 0.25)


def test_a_missing_package_is_named_before_anything_is_trained(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    require_packages(["exact_match"])
    with pytest.raises(UserError, match=r"^seq2seq.metrics: rougeL: needs the package rouge_score, .*\[seq2seq\]"):
        require_packages(["exact_match", "rougeL"])
