"""What happens between the restored weights and the first step: the errors and the signals of that time."""

from types import SimpleNamespace

import pytest
import tensorflow as tf
from pretraining import recipe

from keras_bert.errors import UserError
from keras_bert.tasks.pretraining.run import Pretraining
from keras_bert.training.budget import StepBudget
from keras_bert.training.run_folder import RunFolder


def no_memory(*arguments):
    raise tf.errors.ResourceExhaustedError(None, None, "OOM when allocating tensor")


@pytest.fixture
def pretraining(tmp_path, monkeypatch):
    """A run of two phases whose parts are stand-ins, as far as the start of its training needs them."""
    phase = {"share": 0.5, "sequence_length": 16, "max_predictions_per_seq": 3}
    pretraining = object.__new__(Pretraining)
    pretraining.config = recipe("text.txt", phases=[{**phase, "batch_size": 8}, {**phase, "batch_size": 4}])
    pretraining.run = RunFolder(str(tmp_path))
    pretraining.strategy = tf.distribute.get_strategy()
    pretraining.report = lambda line: None
    pretraining.tokenizer = SimpleNamespace(vocabulary=None)
    pretraining.sources = SimpleNamespace(validation=None)
    pretraining.batches = SimpleNamespace(sample=None)
    pretraining.engine = SimpleNamespace(
        model=None,
        step=SimpleNamespace(objective=SimpleNamespace(terms=("mlm",))),
        budget=StepBudget(12, [0.5, 0.5]),
        with_compilation=lambda *_: pretraining.engine,
    )
    return pretraining


@pytest.mark.parametrize(("first_step", "named"), [(0, "phases.0.batch_size 8"), (6, "phases.1.batch_size 4")])
def test_memory_that_runs_out_before_the_loop_is_explained(pretraining, monkeypatch, first_step, named):
    """It was a NameError, because the batch was asked of a loop that was not there yet."""
    monkeypatch.setattr("keras_bert.tasks.pretraining.run.matmul_peak", no_memory)
    with pytest.raises(UserError, match=f"Out of memory with {named} on 1 replica.*accumulation=2"):
        pretraining.train(first_step)
