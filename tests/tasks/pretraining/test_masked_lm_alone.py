"""Pretraining by the masked LM alone, on packed rows from shards and from raw text."""

import functools
import operator

import keras
import numpy as np
import pytest
from corpus import write_corpus
from pretraining import metrics, recipe, stopped_at
from said import listen

from keras_bert.inference.loading import load
from keras_bert.models.pretraining import BertForPreTraining
from keras_bert.tasks.pretraining.run import _columns, pretrain
from keras_bert.training.run_folder import RunFolder

PACKED = {"objective.pair": "none", "training.steps": 6, "training.checkpoint_every": 2}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("corpus") / "text.txt")


@pytest.fixture(scope="module")
def packed(corpus, tmp_path_factory):
    """A function: (run folder, results, lines said) of the masked LM alone, by the source of its data."""

    @functools.cache
    def run_on(source):
        run, said = RunFolder(str(tmp_path_factory.mktemp("packed") / source)), listen()
        return run, pretrain(recipe(corpus, **PACKED, **{"data.source": source}), run), said

    return run_on


@pytest.mark.parametrize("source", ["files", pytest.param("text", marks=pytest.mark.slow)])
def test_the_masked_lm_alone(packed, source):
    """Packed rows from shards and from raw text: no figure of the next sentence, and the heads stay as they began."""
    run, results, said = packed(source)
    lines = metrics(run)
    assert lines and not any("nsp" in name for line in lines for name in line)
    assert all(line["loss"] == line["mlm_loss"] for line in lines if "loss" in line)
    assert ("eval_mask_token_unigram_loss" in results) == (source == "files")
    (described,) = [line for line in said if line.startswith("Training examples:")]
    assert "% padding" in described and "next" not in described
    trained = load(run.path).model
    keras.utils.set_random_seed(1)
    fresh = BertForPreTraining(trained.config)
    for part in ("nsp_head", "encoder.pooler"):
        kept, started_at = (operator.attrgetter(part)(model).get_weights() for model in (trained, fresh))
        assert all(np.array_equal(one, other) for one, other in zip(kept, started_at, strict=True))
    assert not np.array_equal(trained.mlm_head.get_weights()[0], fresh.mlm_head.get_weights()[0])


@pytest.mark.slow
def test_a_run_on_raw_text_stopped_and_started_again_gives_the_same_numbers(corpus, packed, tmp_path, monkeypatch):
    config = recipe(corpus, **PACKED, **{"data.source": "text"})
    straight, expected, _ = packed("text")
    stopped = RunFolder(str(tmp_path / "stopped"))
    with stopped_at(4, monkeypatch):
        pretrain(config, stopped)
    said = listen()
    results = pretrain(config, stopped)
    assert "Resuming from step 2." in said
    assert metrics(stopped) == metrics(straight)
    assert {**results, "seconds": 0} == {**expected, "seconds": 0}


def test_the_table_has_columns_for_what_is_predicted_only():
    """Every run used to show three empty columns, for the losses it does not have."""
    assert [column.heading for column in _columns(("mlm", "sop"))] == ["perplexity", "masked LM", "sent. order"]
