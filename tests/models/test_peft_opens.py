"""Adapters of peft open here, and those written here open in peft, with equal outputs.

Live: peft makes and opens all of them in processes of its own. tests/checkpoints/test_adapter.py tests without it.
"""

import os

import numpy as np
import pytest
from goldens import ENCODER_INPUTS, load_arrays, outputs_in, run_peer, under

from keras_bert.checkpoints.adapter import write_adapter
from keras_bert.core.yaml_and_json import read_json
from keras_bert.inference.loading import load
from keras_bert.models.tensor_names import lora_layers

pytestmark = pytest.mark.live
CASES = ("classes", "query_and_value", "tags", "spans", "choice", "roberta", "albert")
each_case = pytest.mark.parametrize("name", CASES)


@pytest.fixture(scope="module")
def made(goldens, tmp_path_factory):
    """The folder with the adapters of peft."""
    folder = str(tmp_path_factory.mktemp("peft"))
    run_peer("of_peft.py", "make", folder)
    return folder


def batch_of(made, name):
    arrays = load_arrays(os.path.join(made, name, "outputs.npz"))
    return {ENCODER_INPUTS[key]: value for key, value in under("inputs/", arrays).items() if key in ENCODER_INPUTS}


def assert_close(outputs, arrays, batch):
    """Outputs at padding do not count: RoBERTa's has a position of its own there."""
    real = batch["input_mask"].astype(bool)
    for output, expected in outputs_in(arrays).items():
        received = np.array(outputs[output])
        if expected.shape[:2] == real.shape and real.ndim == 2:
            received, expected = received[real], expected[real]
        np.testing.assert_allclose(received, expected, atol=1e-4, err_msg=output)


@each_case
def test_adapters_of_peft_open_here(made, name):
    loaded, batch = load(os.path.join(made, name, "adapter")), batch_of(made, name)
    assert loaded.head == load(os.path.join(made, name, "base")).head
    assert_close(loaded.model(batch), load_arrays(os.path.join(made, name, "outputs.npz")), batch)


@pytest.fixture(scope="module")
def adapted(made):
    """`{case: the model whose adapter peft has opened}`."""
    models, random = {}, np.random.default_rng(0)
    for name in CASES:
        base, again = (os.path.join(made, name, folder) for folder in ("base", "again"))
        loaded = load(base)
        loaded.encoder.enable_lora(3, 5.0)
        for variable in loaded.model.trainable_variables:
            variable.assign(random.normal(0, 0.2, variable.shape))
        assert lora_layers(loaded.model)
        write_adapter(again, loaded.model, base, base, read_json(os.path.join(base, "config.json")))
        models[name] = loaded.model
    run_peer("of_peft.py", "open", made)
    return models


@each_case
def test_adapters_written_here_open_in_peft(made, adapted, name):
    batch = batch_of(made, name)
    assert_close(adapted[name](batch), load_arrays(os.path.join(made, name, "again.npz")), batch)
