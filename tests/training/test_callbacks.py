"""What Keras callbacks are told of a run; tests/api/test_training.py has whole runs with them."""

import keras
import pytest

from keras_bert.training.budget import StepBudget, TimeBudget
from keras_bert.training.callbacks import Callbacks


@pytest.mark.parametrize(
    ("budget", "epochs", "steps"), [(StepBudget(9, [1.0]), 3, 9), (TimeBudget(2.0, [1.0]), None, None)]
)
def test_callbacks_know_the_length_of_the_run(budget, epochs, steps):
    """Without `params`, as in `self.params["epochs"]`, a callback written for `fit` ends in a TypeError."""
    callback = keras.callbacks.Callback()
    Callbacks([callback]).begin(keras.Sequential(), budget.steps, evaluate_every=4)
    assert callback.params == {"verbose": 1, "epochs": epochs, "steps": steps}
