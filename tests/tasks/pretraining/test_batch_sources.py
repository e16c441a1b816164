"""What the sources of a run give its phases, and the masked LM alone on packed rows from them."""

import functools
import operator

import keras
import numpy as np
import pytest
from pretraining import assert_resumes_like, metrics, recipe
from said import listen

from keras_bert.core.errors import UserError
from keras_bert.data.shards import shard_files
from keras_bert.inference.loading import load
from keras_bert.models.pretraining import BertForPreTraining
from keras_bert.tasks.pretraining.batch_sources import open_batch_sources
from keras_bert.tasks.pretraining.run import _columns, pretrain
from keras_bert.training.run_folder import RunFolder


def test_phases_mask_what_they_say_and_validation_its_own_share(corpus, tmp_path):
    """Perplexities of runs that mask differently can be compared only at one share."""
    phase = {"sequence_length": 32, "batch_size": 8, "max_predictions_per_seq": 16}
    phases = [{**phase, "share": 0.5, "masking_share": 0.4}, {**phase, "share": 0.5}]
    config = recipe(corpus, phases=phases, **{"masking.share": 0.2, "masking.validation_share": 0.1})
    sources = open_batch_sources(config, str(tmp_path / "data"))

    def masked(source):
        batches = list(source.all_batches().take(20).as_numpy_iterator())
        # [CLS] and [SEP] are never predicted.
        tokens = sum(batch["input_mask"].sum() - 3 * batch["example_weights"].sum() for batch in batches)
        return sum(batch["masked_lm_weights"].sum() for batch in batches) / tokens

    assert masked(sources.training[0]) == pytest.approx(0.45, abs=0.05)
    assert masked(sources.training[1]) == pytest.approx(0.22, abs=0.03)
    assert [masked(source) for source in sources.validation] == [pytest.approx(0.11, abs=0.02)] * 2


def test_a_phase_with_too_little_text_is_refused_before_the_first_step(corpus, tmp_path):
    """A run would train for days and end when that phase begins."""
    phase = {"sequence_length": 32, "batch_size": 8, "max_predictions_per_seq": 4, "share": 0.5}
    with pytest.raises(UserError, match=r"needs at least batch_size \(100000\) examples"):
        config = recipe(corpus, phases=[phase, {**phase, "batch_size": 100000}])
        open_batch_sources(config, str(tmp_path / "data"))


def test_a_start_reads_each_shard_once(corpus, tmp_path, monkeypatch):
    """Reading them twice, to check and to count tokens, would double the minutes over hundreds of gigabytes."""
    config = recipe(corpus)
    open_batch_sources(config, str(tmp_path / "data"))  # This plans the batches too.
    read, read_verified = [], shard_files.read_verified
    monkeypatch.setattr(
        shard_files, "read_verified", lambda path, sha256: read.append(path) or read_verified(path, sha256)
    )
    open_batch_sources(config, str(tmp_path / "data"))
    kinds = ("documents", "sentences", "tokens")
    shards = tmp_path / "data" / "shards"
    assert sorted(read) == [str(shards / side / f"00000.{kind}") for side in ("train", "validation") for kind in kinds]


@pytest.mark.parametrize("source", ["files", pytest.param("text", marks=pytest.mark.slow)])
def test_filled_rows_are_validated_on_those_of_whole_sentences(corpus, tmp_path, source):
    """Longer rows are easier to predict, so filled ones would look better than they are."""

    def rows(packing):
        changes = {"objective.pair": "none", "objective.packing": packing, "data.source": source}
        sources = open_batch_sources(recipe(corpus, **changes), str(tmp_path / packing))
        sides = (sources.training[0].all_batches().take(2), sources.validation[0].all_batches())
        return [np.concatenate([batch["input_word_ids"] for batch in side.as_numpy_iterator()]) for side in sides]

    (full, full_validation), (filled, filled_validation) = rows("full"), rows("filled")
    np.testing.assert_array_equal(filled_validation, full_validation)
    assert (filled == 0).mean() < (full == 0).mean()


PACKED = {"objective.pair": "none", "training.steps": 6, "training.checkpoint_every": 2}


@pytest.fixture(scope="module")
def packed(corpus, tmp_path_factory):
    """A function from the source of the data to (run folder, results, lines said) of the masked LM alone."""

    @functools.cache
    def run_on(source):
        run, said = RunFolder(str(tmp_path_factory.mktemp("packed") / source)), listen()
        return run, pretrain(recipe(corpus, **PACKED, **{"data.source": source}), run), said

    return run_on


@pytest.mark.parametrize("source", ["files", pytest.param("text", marks=pytest.mark.slow)])
def test_the_masked_lm_alone(packed, source):
    """On packed rows from shards and from raw text: no next-sentence figure, and its heads stay as they began."""
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
    config, run = recipe(corpus, **PACKED, **{"data.source": "text"}), RunFolder(str(tmp_path / "stopped"))
    assert_resumes_like(packed("text")[:2], config, run, monkeypatch, stop=4, checkpoint=2)


def test_the_table_has_columns_for_what_is_predicted_only():
    """Otherwise every run would show empty columns for losses that it does not have."""
    assert [column.heading for column in _columns(("mlm", "sop"))] == ["perplexity", "masked LM", "sent. order"]
