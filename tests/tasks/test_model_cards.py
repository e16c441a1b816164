"""The cards of trained models say what was measured, on what, and where a model comes from; no path of this machine."""

import pytest

from keras_bert.config.finetuning import FinetuneConfig
from keras_bert.config.pretraining import PretrainConfig
from keras_bert.tasks.model_cards import finetuning_card, pretraining_card

RESULTS = {
    "main_metric": "accuracy",
    "steps": 1200,
    "best_epoch": 2.0,
    "splits": {"dev": {"loss": 0.3, "accuracy": 0.91, "confusion": [[1]]}},
    "baseline": {"dev": {"accuracy": 0.5}},
    "counts": {"dev": 872},
}
HUB = "hf:google-bert/bert-base-uncased@0123456"


def card(task, **settings):
    return finetuning_card(FinetuneConfig.from_mapping({"task": task, **settings}), "/home/me/runs/mine", RESULTS, "x")


def test_a_known_task_names_its_data_and_language():
    made = card("sst2", init=HUB)
    assert (made.title, made.language, made.base) == ("mine", "en", "google-bert/bert-base-uncased")
    [measured] = made.measured
    assert (measured.dataset, measured.config, measured.count) == ("nyu-mll/glue", "sst2", "872 examples")
    assert [(score.metric, score.value, score.baseline) for score in measured.scores] == [("accuracy", 0.91, 0.5)]
    assert HUB in made.made and "epoch 2" in made.measured_how and "accuracy" in made.measured_how


@pytest.mark.parametrize(
    "task, language, count",
    [
        ("squad", "en", "872 questions"),
        ("cmrc", "zh", "872 questions"),
        ("xnli", None, "872 examples"),
        ("ner", None, "872 words"),
        ("swag", "en", "872 examples"),
        ("text", None, "872 examples"),
    ],
)
def test_every_kind_of_task(task, language, count):
    made = card(task, init="/home/me/bert/")
    assert made.language == language and made.measured[0].count == count and made.base is None
    assert "`bert`" in made.made and "/home" not in made.made


def test_files_of_ones_own_are_not_the_tasks_data():
    """A model trained on other questions was not measured on SQuAD."""
    made = card("squad", data={"train": "mine.json"})
    assert made.language is None and made.measured[0].dataset is None


@pytest.mark.parametrize(
    "data, learned, judged",
    [
        ({}, "GLUE, stsb", "nyu-mll/glue"),
        ({"train": "mine.csv"}, "the author's own data", "nyu-mll/glue"),
        ({"dev": "mine.csv"}, "GLUE, stsb", None),
    ],
)
def test_vectors_are_said_to_be_trained_on_and_judged_by_what_they_were(data, learned, judged):
    """STS-B would be called the author's own data, whether or not the author gave files of his own."""
    made = card("pairs-contrastive", data=data)
    assert f"on {learned}, starting" in made.made and made.measured[0].dataset == judged


def test_from_scratch_has_no_base():
    made = card("sst2", init=HUB, from_scratch=True)
    assert made.base is None and "random weights" in made.made


def test_seeds_are_told_with_their_spread():
    spread = {"dev": {"accuracy": {"std": 0.0123}}}
    results = {**RESULTS, "seeds": [1, 2], "best_seed": 2, "over_seeds": spread}
    made = finetuning_card(FinetuneConfig("sst2"), "runs/mine", results)
    assert made.measured[0].scores[0].spread == " ± 0.012" and "seed 2, the best of them" in made.measured_how


def test_pretraining_tells_its_perplexity_and_its_languages_where_it_knows():
    evaluation = {"eval_mlm_loss": 2.0, "eval_perplexity": 7.39, "eval_else": 1.0}
    demo = PretrainConfig.from_mapping({"data": {"source": "python_documentation"}})
    made = pretraining_card(demo, "runs/demo", 100, evaluation)
    assert made.language == "en" and "starting from random weights: 100 steps of 256 rows of 128 tokens" in made.made
    assert [score.metric for score in made.measured[0].scores] == ["perplexity", "mlm_loss"]
    counted = PretrainConfig.from_mapping({"initialization": "corpus"})
    assert "from word vectors counted in that text and random" in pretraining_card(counted, "runs/own", 100, {}).made
    own = pretraining_card(PretrainConfig.from_mapping({"init": HUB}), "runs/own", 100, evaluation)
    assert own.language is None and own.base == "google-bert/bert-base-uncased"
