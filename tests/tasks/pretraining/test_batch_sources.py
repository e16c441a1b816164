"""What the sources of a run give its phases."""

import numpy as np
import pytest
from corpus import write_corpus
from pretraining import recipe

from keras_bert.data.shards import shard_files
from keras_bert.tasks.pretraining.batch_sources import open_batch_sources


def test_phases_mask_what_they_say_and_validation_its_own_share(tmp_path):
    """Perplexities of runs that mask differently can be compared only at one share."""
    corpus = write_corpus(tmp_path / "text.txt")
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


def test_a_start_reads_each_shard_once(tmp_path, monkeypatch):
    """To check it and to count its tokens at once: twice would take twice the minutes over hundreds of gigabytes."""
    config = recipe(write_corpus(tmp_path / "text.txt"))
    open_batch_sources(config, str(tmp_path / "data"))  # Which plans the batches too.
    read, read_verified = [], shard_files.read_verified
    monkeypatch.setattr(
        shard_files, "read_verified", lambda path, sha256: read.append(path) or read_verified(path, sha256)
    )
    open_batch_sources(config, str(tmp_path / "data"))
    kinds = ("documents", "sentences", "tokens")
    shards = tmp_path / "data" / "shards"
    assert sorted(read) == [str(shards / side / f"00000.{kind}") for side in ("train", "validation") for kind in kinds]


@pytest.mark.parametrize("source", ["files", pytest.param("text", marks=pytest.mark.slow)])
def test_filled_rows_are_validated_on_those_of_whole_sentences(tmp_path, source):
    """Longer rows are easier to predict, so that filled ones would look better than they are."""
    corpus = write_corpus(tmp_path / "text.txt")

    def rows(packing):
        changes = {"objective.pair": "none", "objective.packing": packing, "data.source": source}
        sources = open_batch_sources(recipe(corpus, **changes), str(tmp_path / packing))
        sides = (sources.training[0].all_batches().take(2), sources.validation[0].all_batches())
        return [np.concatenate([batch["input_word_ids"] for batch in side.as_numpy_iterator()]) for side in sides]

    (full, full_validation), (filled, filled_validation) = rows("full"), rows("filled")
    np.testing.assert_array_equal(filled_validation, full_validation)
    assert (filled == 0).mean() < (full == 0).mean()
