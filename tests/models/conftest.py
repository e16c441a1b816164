"""Models that several files test."""

import functools
import os

import pytest
from goldens import COMMITTED, Golden

import keras_bert


@pytest.fixture(scope="session")
def opened():
    """Function (case) -> (its Golden, what load gives, the inputs in our names), of a BART or a T5."""

    @functools.cache
    def case_of(name):
        golden = Golden(os.path.join(COMMITTED, "encoder_decoders"), name)
        inputs = golden.batch
        inputs["decoder_mask"] = inputs.pop("decoder_attention_mask")
        inputs["input_type_ids"] = 0 * inputs["input_word_ids"]
        return golden, keras_bert.load(golden.path), inputs

    return case_of
