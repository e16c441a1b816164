"""Runs whose masked LM weights tokens by how well they are predicted: resumed, in slices and on two devices."""

import numpy as np
import pytest
import tensorflow as tf
from pretraining import WITHOUT_DROPOUT, assert_resumes_like, losses_on, recipe

from keras_bert.core.errors import UserError
from keras_bert.tasks.pretraining.run import pretrain
from keras_bert.training.run_folder import RunFolder

ADAPTIVE = {"objective.adapt_every": 4, "objective.pair": "none"}


@pytest.fixture(scope="module")
def straight(corpus, tmp_path_factory):
    """(run folder, results) of a run that nothing stops."""
    run = RunFolder(str(tmp_path_factory.mktemp("runs") / "straight"))
    return run, pretrain(recipe(corpus, **ADAPTIVE), run)


@pytest.mark.slow
def test_stopped_and_started_again_gives_the_same_numbers(corpus, straight, tmp_path, monkeypatch):
    """Weights and counts are in the checkpoint, which lies between two updates."""
    config, run = recipe(corpus, **ADAPTIVE), RunFolder(str(tmp_path / "stopped"))
    assert_resumes_like(straight, config, run, monkeypatch, stop=8, checkpoint=6)


@pytest.mark.slow
def test_replicas_xla_and_slices_give_the_losses_of_one_device(corpus, tmp_path, monkeypatch, mirrored_strategy):
    """The predictions of all replicas are counted as one device counts them; dropout is off."""

    def losses(name, strategy, **changes):
        config = recipe(corpus, **{**ADAPTIVE, **WITHOUT_DROPOUT, **changes})
        return losses_on(strategy, config, tmp_path / name, monkeypatch)

    one = tf.distribute.OneDeviceStrategy("CPU:0")
    uniform, weighted = losses("uniform", one, **{"objective.adapt_every": 0}), losses("weighted", one)
    compiled = losses("compiled", one, **{"training.jit_compile": True, "training.accumulation": 4})
    np.testing.assert_allclose(losses("mirrored", mirrored_strategy), weighted, rtol=1e-5)
    np.testing.assert_allclose(compiled, weighted, rtol=1e-3)
    assert uniform[0] == weighted[0] and uniform[1:] != weighted[1:]


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"objective.tokens": "next", "model.attention": "causal"}, "adapt_every: needs 0 for tokens next"),
        (
            {"phases.0.tokens": "next"},
            "adapt_every: needs 0 for tokens next: only masked tokens are weighted. Received: 4",
        ),
    ],
)
def test_other_tokens_are_refused(corpus, settings, message):
    with pytest.raises(UserError, match=message):
        recipe(corpus, **ADAPTIVE, **settings)
