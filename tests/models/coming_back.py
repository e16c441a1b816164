"""Models that are written and opened again."""

import keras
import numpy as np
from tiny import VOCABULARY

import keras_bert
from keras_bert.checkpoints.writing import write_model_folder


def reopened(model, batch, folder, head=None):
    """A model that was written as a folder, loaded from it: nothing is new or left over, and outputs are the same."""
    write_model_folder(str(folder), model, VOCABULARY, lower_case=True, head=head)
    again = keras_bert.load(str(folder))
    assert type(again.encoder) is type(model.encoder) and (again.config, again.head) == (model.config, head)
    assert not again.report.made_new and not again.report.unused
    for name, value in model(batch).items():
        np.testing.assert_array_equal(again.model(batch)[name], value)
    return again


def assert_a_keras_file_keeps(model, inputs, folder, output="logits"):
    """It opens without custom objects."""
    model.save(folder / "model.keras")
    again = keras.saving.load_model(folder / "model.keras")
    np.testing.assert_array_equal(again(inputs)[output], model(inputs)[output])
