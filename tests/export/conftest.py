"""What the tests of signatures share."""

import pytest
from served import write_served

import keras_bert
from keras_bert.export.serving_function import serving_function


@pytest.fixture(scope="session")
def served(tmp_path_factory):
    """`served(kind, …)` gives (the loaded model, its ServingFunction), made once."""
    made = {}

    def make(kind, reading=(), **options):
        key = (kind, *reading, *options.items())
        if key not in made:
            bert = keras_bert.load(write_served(tmp_path_factory.mktemp(kind) / "model", kind, **dict(reading)))
            made[key] = bert, serving_function(bert, **options)
        return made[key]

    return make
