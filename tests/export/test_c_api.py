"""An export under TensorFlow's own loader, as in Serving: a C program, tf-text's op libraries, and no Python."""

import glob
import os
import pathlib
import shutil
import struct
import subprocess

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_text
from hostile_texts import HOSTILE
from served import ROBERTA, columns_of, write_served
from tensorflow.core.protobuf import saved_model_pb2

import keras_bert
from keras_bert.export.saved_model import write_version
from keras_bert.export.serving_function import serving_function

HERE = pathlib.Path(__file__).parent
COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(COMPILER is None, reason="no C compiler is there to build the program that opens the export"),
]


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    root = os.path.dirname(tf.__file__)
    libraries = sorted(glob.glob(f"{root}/libtensorflow_cc.so.*") + glob.glob(f"{root}/libtensorflow_framework.so.*"))
    path = str(tmp_path_factory.mktemp("program") / "open_as_serving")
    command = [COMPILER, "-O1", str(HERE / "open_as_serving.c"), "-o", path, f"-I{tf.sysconfig.get_include()}"]
    subprocess.run([*command, *libraries, f"-Wl,-rpath,{root}"], check=True)
    return path


def text_libraries(kind=""):
    """The libraries that the graph's tokenizer needs; Serving links all of tf-text."""
    folder = os.path.join(os.path.dirname(tensorflow_text.__file__), "python", "ops")
    tokenizer = "sentencepiece" if kind == ROBERTA else "fast_wordpiece"
    return [os.path.join(folder, f"_{tokenizer}_tokenizer.so")]


def run(program, folder, signature, output, columns, libraries):
    meta = saved_model_pb2.SavedModel.FromString((pathlib.Path(folder) / "saved_model.pb").read_bytes()).meta_graphs[0]
    signature = meta.signature_def[signature]
    inputs = [signature.inputs[name].name for name in columns]
    texts = [text for column in columns.values() for text in column]
    rows = len(texts) // len(columns)
    command = [
        program,
        str(folder),
        signature.outputs[output].name,
        str(rows),
        str(len(libraries)),
        *libraries,
        *inputs,
    ]
    sent = b"".join(struct.pack("=I", len(text)) + text for text in texts)
    return subprocess.run(command, input=sent, capture_output=True, env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"})


@pytest.mark.parametrize(
    ("kind", "output", "options"),
    [
        ("single", "probabilities", {}),
        ("pair", "probabilities", {"dtype": "bfloat16"}),
        ("masked_lm", "scores", {}),
        ("tagging", "scores", {}),
        ("answering", "n_best_start_logits", {}),
        (ROBERTA, "scores", {}),
    ],
)
def test_a_c_program_gets_the_same_figures(program, tmp_path, kind, output, options):
    function = serving_function(keras_bert.load(write_served(tmp_path / "model", kind)), **options)
    folder = write_version(str(tmp_path / "served"), function)
    texts = [*HOSTILE, b"the cat sat on the [MASK].", b"cat " * 100]
    columns = dict(zip(function.columns, map(list, columns_of(function, texts))))
    result = run(program, folder, "serving_default", output, columns, text_libraries(kind))
    assert result.returncode == 0, result.stderr.decode()
    received = np.array(result.stdout.split(), "float32")
    np.testing.assert_allclose(received, function(*columns.values())[output].ravel(), atol=1e-5)


def test_without_the_tokenizers_ops_it_is_not_opened(program, tmp_path):
    """Otherwise the test above would not show that tf-text's library is what the program needs."""
    function = serving_function(keras_bert.load(write_served(tmp_path / "model", "regression")))
    folder = write_version(str(tmp_path / "served"), function)
    result = run(program, folder, "serving_default", "score", {"text": [b"cat"]}, [])
    assert result.returncode == 1 and b"Op type not registered 'FastWordpieceTokenizeWithOffsets" in result.stderr
