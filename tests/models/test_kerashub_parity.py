"""KerasHub's BertBackbone gives the same hidden states, and opens the folders written here.

KerasHub computes gelu by tanh whatever the config says, so the weights are compared under `gelu_new`.
"""

import dataclasses
import json
import os

import numpy as np
import pytest
from goldens import Golden, load_arrays, outputs_in, run_peer, write_again

from keras_bert.inference.loading import load


@pytest.fixture(scope="module")
def ours(goldens):
    return load(os.path.join(goldens, "pretraining_gelu_new"))


def assert_equal_outputs(model, golden, theirs):
    outputs, expected = model(golden.encoder_batch), outputs_in(load_arrays(theirs))
    real = golden.real
    np.testing.assert_allclose(
        outputs["sequence_output"].numpy()[real], expected["sequence_output"][real], rtol=1e-5, atol=1e-5
    )
    np.testing.assert_allclose(outputs["pooled_output"], expected["pooled_output"], rtol=1e-5, atol=1e-5)


@pytest.mark.parity
def test_hidden_states_and_the_pooler(ours, goldens):
    golden = Golden(goldens, "pretraining_gelu_new")
    assert_equal_outputs(ours.encoder, golden, os.path.join(golden.path, "keras_hub.npz"))


@pytest.mark.live
def test_opens_what_is_written_here(ours, goldens, tmp_path):
    """The whole model and its encoder alone."""
    golden = Golden(goldens, "pretraining_gelu_new")
    for name, model in (("whole", ours.model), ("encoder", ours.encoder)):
        write_again(str(tmp_path / name), dataclasses.replace(ours, model=model))
    jobs = [
        {"folder": str(tmp_path / name), "golden": golden.file, "to": str(tmp_path / f"{name}.npz")}
        for name in ("whole", "encoder")
    ]
    (tmp_path / "jobs.json").write_text(json.dumps(jobs), "utf-8")
    run_peer("of_keras_hub.py", "open", tmp_path / "jobs.json")
    for name in ("whole", "encoder"):
        assert_equal_outputs(ours.encoder, golden, tmp_path / f"{name}.npz")
