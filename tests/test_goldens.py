"""The golden arrays, and the wall between the process that compares with them and those that made them."""

import glob
import importlib
import os
import sys

import pytest
from goldens import load_arrays


@pytest.mark.parametrize("package", ["torch", "triton", "transformers", "sentence_transformers", "keras_hub"])
def test_a_peer_is_not_imported_beside_tensorflow(package):
    """None so far in this process, and none from here on: importing triton after TensorFlow is a segmentation fault."""
    assert package not in sys.modules and "tensorflow" in sys.modules
    with pytest.raises(pytest.fail.Exception, match=f"{package} is imported in a process with TensorFlow"):
        importlib.import_module(package)
    assert package not in sys.modules


@pytest.mark.parity
def test_every_file_says_what_made_it(goldens):
    files = glob.glob(os.path.join(goldens, "**", "*.npz"), recursive=True)
    assert len(files) > 10
    for path in files:
        made_with = " ".join(load_arrays(path)["made_with"])
        assert "numpy " in made_with and ("torch " in made_with or "keras-hub " in made_with), path
