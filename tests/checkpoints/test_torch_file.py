"""Files of `torch.save` give PyTorch's own values, without PyTorch and without unpickling."""

import json
import os
import shutil

import numpy as np
import pytest
from goldens import load_arrays
from tiny import VOCABULARY
from torch_files import BERT_CONFIG, KINDS, bert_shapes, numbers

from keras_bert.checkpoints.model_folder import open_model_folder
from keras_bert.checkpoints.torch_file import TorchFile
from keras_bert.core.errors import UserError
from keras_bert.inference.loading import load

LAYOUTS = ("{}.bin", "{}_legacy.bin")


@pytest.fixture
def folder(tmp_path):
    """A folder of a BERT without its weights."""
    path = tmp_path / "model"
    path.mkdir()
    (path / "config.json").write_text(json.dumps(BERT_CONFIG))
    VOCABULARY.to_file(str(path / "vocab.txt"))
    return str(path)


@pytest.fixture
def golden(goldens):
    """Function (layout, what is in it) -> the file."""
    return lambda layout, what: os.path.join(goldens, "torch_save", layout.format(what))


@pytest.mark.parity
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_kind_of_number_and_every_way_to_lie_in_a_storage(golden, layout):
    file = TorchFile(golden(layout, "kinds"))
    assert file.names == list(KINDS)
    for name, (dtype, shape, _) in KINDS.items():
        assert file.shape(name) == shape
        value = file.value(name)
        if "float" not in dtype:
            assert value is None and file.kind(name) in ("I64", "U8", "BOOL")
            continue
        assert str(value.dtype) == dtype and value.shape == shape and not value.flags.writeable * value.size
        np.testing.assert_array_equal(value.astype("float32"), numbers(name, shape), err_msg=name)


@pytest.mark.parity
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_bert_of_2019_opens_with_the_values_that_were_saved(folder, golden, layout):
    """Its names predate LayerNorm.weight, and its decoder is the embeddings' storage again."""
    shutil.copy(golden(layout, "bert"), os.path.join(folder, "pytorch_model.bin"))
    loaded = load(folder)
    assert loaded.report.unused == []
    assert {name.rpartition(".")[0] for name in loaded.report.made_new} == {"bert.pooler.dense", "cls.seq_relationship"}
    tensors = open_model_folder(folder).tensors
    for name, shape in bert_shapes().items():
        np.testing.assert_array_equal(tensors.value(tensors.places[name]), numbers(name, shape), err_msg=name)
    assert loaded.encode(["w1 w2"]).shape == (1, BERT_CONFIG["hidden_size"])


def test_safetensors_go_before_a_pickle(folder, golden):
    """Both hold the same weights; the one that needs no interpreter is read."""
    shutil.copy(golden(LAYOUTS[0], "bert"), os.path.join(folder, "pytorch_model.bin"))
    with open(os.path.join(folder, "model.safetensors"), "wb") as stream:
        stream.write(b"broken")
    with pytest.raises(UserError, match="model.safetensors: is not a valid safetensors file"):
        load(folder)


@pytest.mark.parity
@pytest.mark.parametrize("name", ["today", "protocol_4", "wrapped", "legacy"])
def test_a_module_saved_in_any_way_is_read(goldens, name):
    """Views, half precision and a training program's wrapping dictionary."""
    folder = os.path.join(goldens, "torch_save")
    expected = load_arrays(os.path.join(folder, "module.npz"))
    del expected["made_with"]
    file = TorchFile(os.path.join(folder, f"module_{name}.bin"))
    assert set(file.names) == set(expected) - ({"new"} if name == "legacy" else set())
    for tensor in set(file.names) - {"new"}:
        np.testing.assert_array_equal(file.value(tensor).astype("float32"), expected[tensor])
