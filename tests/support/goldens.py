"""What other implementations computed, under our names; tools/goldens makes it and says how to add to it."""

import functools
import json
import os
import subprocess
import sys

import numpy as np
import safetensors.numpy

from keras_bert.checkpoints.writing import write_model_folder
from keras_bert.models.kind import kind_of_model_fields

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COMMITTED = os.path.join(TESTS, "goldens")
TOOL = os.path.join(os.path.dirname(TESTS), "tools", "goldens")

ENCODER_INPUTS = {"input_ids": "input_word_ids", "attention_mask": "input_mask", "token_type_ids": "input_type_ids"}
_OUTPUTS = {
    "prediction_logits": "mlm_logits",
    "seq_relationship_logits": "nsp_logits",
    "pooler_output": "pooled_output",
}


def load_arrays(path):
    """`{name: array}` of a file that tools/goldens wrote."""
    with np.load(path, allow_pickle=False) as stored:
        return dict(stored)


class Golden:
    """A model folder that transformers wrote, with the inputs and outputs of its model.

    Attributes:
        path: the folder.
        file: its golden.npz.
        arrays: all of that file.
    """

    def __init__(self, goldens, name):
        self.path = os.path.join(goldens, name)
        self.file = os.path.join(self.path, "golden.npz")

    @functools.cached_property
    def arrays(self):
        return load_arrays(self.file)

    @property
    def batch(self):
        """All inputs, under our names."""
        return {ENCODER_INPUTS.get(name, name): value for name, value in under("inputs/", self.arrays).items()}

    @property
    def encoder_batch(self):
        return {name: self.batch[name] for name in ENCODER_INPUTS.values()}

    @property
    def real(self):
        """Where there is no padding: a padded position's own vector means nothing."""
        return self.batch["input_mask"].astype(bool)

    @property
    def outputs(self):
        return outputs_in(self.arrays)


def read_tensors(folder):
    """The tensors of a model folder. An encoder's names begin with `bert.` or `albert.`, which transformers leaves out
    for a bare BertModel and reads either way.
    """
    tensors = safetensors.numpy.load_file(os.path.join(folder, "model.safetensors"))
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as stream:
        kind = kind_of_model_fields(json.load(stream), folder)
    prefix, bare = kind.stored_prefix, kind.word_embeddings in tensors
    return {f"{prefix}{name}" if bare else name: value for name, value in tensors.items()}


def under(prefix, arrays):
    """The arrays whose names begin with `prefix`, without it."""
    return {name.removeprefix(prefix): value for name, value in arrays.items() if name.startswith(prefix)}


def outputs_in(arrays):
    return {_OUTPUTS.get(name, name): value for name, value in under("outputs/", arrays).items()}


def run_peer(script, *arguments):
    """Runs a command of a script of tools/goldens in a process of its own; raises if it fails.

    The process does not import TensorFlow, so sentencepiece may need a newer protobuf than TensorFlow accepts.
    """
    environment = {**os.environ, "TEMPORARILY_DISABLE_PROTOBUF_VERSION_CHECK": "true"}
    subprocess.run([sys.executable, os.path.join(TOOL, script), *map(str, arguments)], check=True, env=environment)


def write_again(folder, loaded):
    """Writes what `keras_bert.load` gave."""
    settings = loaded.folder.tokenizer
    options = {"lower_case": settings.lower_case, "prefix_space": settings.prefix_space, "head": loaded.head}
    write_model_folder(folder, loaded.model, loaded.tokenizer.vocabulary, **options)
