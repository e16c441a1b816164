"""Runs whose shorter rows begin at a random position."""

import pytest
import tensorflow as tf
from pretraining import assert_resumes_like, metrics, recipe
from tiny import VOCABULARY

from keras_bert.core.errors import UserError
from keras_bert.layers.embeddings import BertEmbeddings
from keras_bert.tasks.pretraining.engine import pretraining_engine
from keras_bert.tasks.pretraining.run import pretrain
from keras_bert.training.run_folder import RunFolder

RANDOM = {"objective.random_positions": True}
PHASES = {
    "phases": [
        {"share": share, "sequence_length": length, "batch_size": 8, "max_predictions_per_seq": 2}
        for share, length in ((0.75, 16), (0.25, 32))
    ]
}
ELECTRA = {"model.model_type": "electra", "objective.tokens": "replaced", "objective.pair": "none"}
XLNET = {
    "model": {"model_type": "xlnet", "num_hidden_layers": 1},
    "objective.tokens": "permuted",
    "objective.pair": "none",
}


@pytest.mark.parametrize(("model", "layers"), [({}, 1), (ELECTRA, 2)], ids=["BERT", "ELECTRA"])
@pytest.mark.parametrize("is_random", [True, False])
def test_rows_of_all_models_of_a_run_begin_within_its_longest(tmp_path, model, layers, is_random):
    """If a generator's rows all began at the first position, only the discriminator would learn the others."""
    config = recipe("text.txt", **model, **PHASES, **RANDOM if is_random else {})
    engine = pretraining_engine(config, RunFolder(str(tmp_path)), tf.distribute.OneDeviceStrategy("CPU:0"), VOCABULARY)
    found = [layer.random_within for layer in engine.model._flatten_layers() if isinstance(layer, BertEmbeddings)]
    longest = max(phase.sequence_length for phase in config.phases)
    assert found == [longest if is_random else 0] * layers


@pytest.mark.slow
def test_stopped_and_started_again_gives_the_same_numbers(corpus, tmp_path, monkeypatch):
    config = recipe(corpus, **PHASES, **RANDOM)
    fixed, straight, stopped = (RunFolder(str(tmp_path / name)) for name in ("fixed", "straight", "stopped"))
    pretrain(recipe(corpus, **PHASES), fixed)
    results = pretrain(config, straight)
    assert metrics(fixed)[0]["loss"] != metrics(straight)[0]["loss"]
    assert_resumes_like((straight, results), config, stopped, monkeypatch, stop=8, checkpoint=6)


def test_a_model_without_positions_is_refused():
    message = "objective.random_positions: needs false for an XLNet, whose rows have no first position to choose"
    with pytest.raises(UserError, match=message):
        recipe("text.txt", **XLNET, **RANDOM)
