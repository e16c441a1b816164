"""What the sources of a run give its phases."""

import pytest
from corpus import write_corpus
from pretraining import recipe

from keras_bert.tasks.pretraining.batch_sources import open_batch_sources


def test_phases_mask_what_they_say_and_validation_its_own_share(tmp_path):
    """Perplexities of runs that mask differently can be compared only at one share."""
    corpus = write_corpus(tmp_path / "text.txt")
    phase = {"sequence_length": 32, "batch_size": 8, "max_predictions_per_seq": 16}
    phases = [{**phase, "share": 0.5, "masking_share": 0.4}, {**phase, "share": 0.5}]
    config = recipe(corpus, phases=phases, **{"masking.share": 0.2, "masking.validation_share": 0.1})
    sources = open_batch_sources(config, str(tmp_path / "data"), lambda line: None)

    def masked(source):
        batches = list(source.all_batches().take(20).as_numpy_iterator())
        # [CLS] and [SEP] are never predicted.
        tokens = sum(batch["input_mask"].sum() - 3 * batch["example_weights"].sum() for batch in batches)
        return sum(batch["masked_lm_weights"].sum() for batch in batches) / tokens

    assert masked(sources.training[0]) == pytest.approx(0.45, abs=0.05)
    assert masked(sources.training[1]) == pytest.approx(0.22, abs=0.03)
    assert [masked(source) for source in sources.validation] == [pytest.approx(0.11, abs=0.02)] * 2
