"""KerasHub's results for the same folders, on TensorFlow. See `__main__.py`.

    python tools/goldens/of_keras_hub.py make FOLDER  after of_transformers.py: outputs for its gelu_new folder
    python tools/goldens/of_keras_hub.py open JOBS    opens folders; JOBS as for of_transformers.py, without `kind`

KerasHub uses the tanh form of gelu whatever the config says, so the comparison is with `gelu_new`.
"""

import json
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ["KERAS_BACKEND"] = "tensorflow"

import arrays
import keras_hub

PACKAGES = ["keras-hub", "keras", "tensorflow"]


def make(folder: str) -> None:
    """Writes keras_hub.npz for the folder and inputs of the case `pretraining_gelu_new`."""
    case = os.path.join(folder, "pretraining_gelu_new")
    compute(case, os.path.join(case, "golden.npz"), os.path.join(case, "keras_hub.npz"))


def open_folders(jobs: str) -> None:
    """Opens folders that another program wrote; `jobs` as in of_transformers.py, without `kind`."""
    with open(jobs, encoding="utf-8") as stream:
        listed = json.load(stream)
    for job in listed:
        compute(job["folder"], job["golden"], job["to"])


def compute(folder: str, golden: str, to: str) -> None:
    """Writes the outputs of a folder's encoder, for the inputs in the file `golden`, to the file `to`."""
    names = {"token_ids": "input_ids", "segment_ids": "token_type_ids", "padding_mask": "attention_mask"}
    inputs = arrays.load(golden)
    backbone = keras_hub.models.BertBackbone.from_preset(folder)
    outputs = backbone({name: inputs[f"inputs/{theirs}"] for name, theirs in names.items()})
    found = {f"outputs/{name}": outputs[name].numpy() for name in ("sequence_output", "pooled_output")}
    arrays.save(to, PACKAGES, found)
    assert "torch" not in sys.modules, "PyTorch and TensorFlow must not share a process: see __main__.py."


if __name__ == "__main__":
    {"make": make, "open": open_folders}[sys.argv[1]](sys.argv[2])
