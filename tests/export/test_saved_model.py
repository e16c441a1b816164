"""What lies in DIR/<version>/ and works without this project."""

import gc
import json
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from hostile_texts import HOSTILE
from served import KINDS, columns_of, ops_of_graphs, outside, write_served
from shortened import shortened
from tensorflow.core.framework import tensor_pb2

import keras_bert
from keras_bert.export.saved_model import write_version
from keras_bert.export.serving_function import serving_function

HERE = pathlib.Path(__file__).parent
STANDING_ALONE = ("single", "pair", "masked_lm", "tagging", "features", "answering")
EXPORTED = {"pair": {"dtype": "bfloat16"}, "masked_lm": {"dtype": "float16"}}  # One export of each kind is enough.


@pytest.fixture(scope="module")
def exports(tmp_path_factory):
    """`exports(kind)` is (the ServingFunction, its version folder, moved from where it was written)."""
    made = {}

    def make(kind, **options):
        key = (kind, *options.items())
        if key not in made:
            scratch = tmp_path_factory.mktemp(kind)
            model = write_served(scratch / "model", kind)
            function = serving_function(keras_bert.load(model), **options)
            version = write_version(str(scratch / "served" / "name"), function)
            assert os.path.basename(version) == "1"
            shutil.rmtree(model)
            shutil.move(scratch / "served", scratch / "moved")
            made[key] = function, scratch / "moved" / "name" / "1"
        return made[key]

    return make


def columns_asked(function):
    return dict(zip(function.columns, columns_of(function, [*HOSTILE, b"the cat sat on [MASK]", b"cat " * 100])))


@pytest.fixture(scope="module")
def answered_alone(exports, tmp_path_factory):
    """{kind: what `alone.py` prints of its export}, of one process that has no path to this repository."""
    cwd, asked = tmp_path_factory.mktemp("alone"), {}
    for kind in STANDING_ALONE:
        function, folder = exports(kind, **EXPORTED.get(kind, {}))
        texts = {name: [text.hex() for text in column] for name, column in columns_asked(function).items()}
        asked[kind] = str(folder), texts
    (cwd / "asked.json").write_text(json.dumps(asked), "utf-8")
    command = [sys.executable, shutil.copy(HERE / "alone.py", cwd), "asked.json"]
    environment = {**os.environ, "PYTHONPATH": "", "TF_CPP_MIN_LOG_LEVEL": "3"}
    result = subprocess.run(command, env=environment, cwd=cwd, capture_output=True, text=True)
    if result.returncode and "keras_bert can be imported" in result.stderr:
        pytest.skip("keras_bert is installed in this environment, so that no process can be without it")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("kind", STANDING_ALONE)
def test_it_stands_alone(exports, answered_alone, kind):
    """Moved, in a fresh process with tensorflow, tensorflow_text and nothing of ours."""
    function, _ = exports(kind, **EXPORTED.get(kind, {}))
    expected = function(*columns_asked(function).values())
    assert answered_alone[kind]
    for name, received in answered_alone[kind].items():
        np.testing.assert_allclose(received, expected[name], atol=1e-5, err_msg=name)


@pytest.mark.slow
def test_saved_model_cli_shows_the_signatures(exports):
    _, folder = exports("single")
    command = [sys.executable, "-m", "tensorflow.python.tools.saved_model_cli", "show", "--dir", str(folder), "--all"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for line in (
        "signature_def['serving_default']",
        "signature_def['tokens']",
        "inputs['text'] tensor_info",
        "dtype: DT_STRING",
        "inputs['input_mask'] tensor_info",
        "outputs['probabilities'] tensor_info",
        "shape: (-1, 3)",
    ):
        assert line in shown, shown


@pytest.mark.slow
def test_inputs_and_outputs_have_their_names(exports):
    for kind, names, outputs in (
        ("single", {"text"}, {"label", "labels", "logits", "probabilities"}),
        ("pair", {"text_a", "text_b"}, {"label", "labels", "logits", "probabilities"}),
        ("masked_lm", {"text"}, {"masks", "pieces", "scores"}),
        ("tagging", {"text"}, {"labels", "scores", "starts", "ends", "num_words"}),
        ("choice", {"context", "question", "choices"}, {"choice", "probabilities", "logits"}),
        (
            "answering",
            {"question", "context"},
            {
                "answer",
                "start",
                "end",
                "score",
                "null_score",
                "null_logits",
                "num_answers",
                "n_best_answers",
                "n_best_starts",
                "n_best_ends",
                "n_best_start_logits",
                "n_best_end_logits",
            },
        ),
    ):
        signatures = saved_model(exports(kind, **EXPORTED.get(kind, {}))[1]).meta_graphs[0].signature_def
        assert set(signatures["serving_default"].inputs) == names
        assert set(signatures["serving_default"].outputs) == outputs
        assert set(signatures["tokens"].inputs) == {"input_word_ids", "input_mask", "input_type_ids"}


def saved_model(folder):
    from tensorflow.core.protobuf import saved_model_pb2

    return saved_model_pb2.SavedModel.FromString((folder / "saved_model.pb").read_bytes())


def nodes(folder):
    graph = saved_model(folder).meta_graphs[0].graph_def
    return [*graph.node, *(node for function in graph.library.function for node in function.node_def)]


def test_the_graph_has_nothing_of_training_and_of_no_machine(exports):
    _, folder = exports("single")
    found = nodes(folder)
    graph = saved_model(folder).meta_graphs[0].graph_def
    # TensorFlow itself pins the reading and writing of weights to the CPU.
    functions = [function for function in graph.library.function if "traced_" not in function.signature.name]
    assert not {node.device for function in functions for node in function.node_def if node.device}
    assert {node.device for node in found} <= {"", "/device:CPU:0", "/device:CPU:*"}
    assert not [node.op for node in found if "Random" in node.op or "PyFunc" in node.op]
    names = [name for name, _ in tf.train.list_variables(str(folder / "variables" / "variables"))]
    # One layer: 16 variables, 5 of the embeddings, 2 of the pooler, 2 of the classifier; and the object graph.
    assert len(names) == 16 + 5 + 2 + 2 + 1, names


# Kinds whose files are checked; for the others, the graphs of their signatures are.
WRITTEN = ("single", "pair", "masked_lm", "tagging", "answering", "choice")


@pytest.mark.slow
def test_every_op_is_known_to_serving(exports, served):
    """`serving_ops.txt` says how the list was made."""
    lines = (HERE / "serving_ops.txt").read_text().splitlines()
    known = {line for line in lines if line and not line.startswith("#")}
    for kind in KINDS:
        if kind in WRITTEN:
            _, folder = exports(kind, **EXPORTED.get(kind, {}))
            library = saved_model(folder).meta_graphs[0].graph_def.library
            ops, functions = {node.op for node in nodes(folder)}, {each.signature.name for each in library.function}
        else:
            ops, functions = ops_of_graphs(served(kind)[1])
        assert len(ops) > 50 and "FastWordpieceTokenizeWithOffsets" in ops
        assert not ops - known - functions


def ops_of_signatures(folder):
    """The ops that a request may run: those of the signatures' functions and of all functions that these call."""
    meta = saved_model(folder).meta_graphs[0]
    functions = {function.signature.name: function for function in meta.graph_def.library.function}
    fetched = {
        info.name.partition(":")[0]
        for name, key in meta.signature_def.items()
        if name != "__saved_model_init_op"
        for info in key.outputs.values()
    }
    waiting = [node for node in meta.graph_def.node if node.name in fetched]
    assert waiting
    seen, ops = set(), set()
    while waiting:
        node = waiting.pop()
        ops.add(node.op)
        called = {node.op, *(value.func.name for value in node.attr.values() if value.HasField("func"))}
        called |= {function.name for value in node.attr.values() for function in value.list.func}
        for name in called & functions.keys() - seen:
            seen.add(name)
            waiting += functions[name].node_def
    return ops


@pytest.mark.parametrize("kind", shortened(WRITTEN))
def test_no_written_signature_touches_files_connections_or_python(exports, kind):
    ops = ops_of_signatures(exports(kind, **EXPORTED.get(kind, {}))[1])
    assert "FastWordpieceTokenizeWithOffsets" in ops
    assert not outside(ops)


@pytest.mark.slow
def test_two_exports_in_half_precision_in_one_process_answer_as_alone(tmp_path):
    """The float32 copies of their weights are resources of the process; neither may read the other's."""
    texts, alone, loaded = ["the cat", "sat on a mat"], [], []
    for seed in (1, 2):
        model = keras_bert.load(write_served(tmp_path / f"model{seed}", "regression", seed=seed))
        function = serving_function(model, "float16")
        alone.append(function(texts)["score"])
        loaded.append(tf.saved_model.load(write_version(str(tmp_path / f"served{seed}"), function)))
        del model, function
    assert np.abs(alone[0] - alone[1]).max() > 1e-2
    for expected, export in zip(alone, loaded):
        answers = export.signatures["serving_default"](text=tf.constant(texts))
        np.testing.assert_allclose(answers["score"], expected, atol=1e-5)


def test_widened_weights_go_with_the_model_that_was_opened(tmp_path):
    """Each export opened in a process used to leave its float32 copy behind, a named resource that nobody freed.

    A signature reads only variables, which TensorFlow frees with their last handle. It needs nothing else of what was
    opened, and another opened from the same folder can go before it.
    """
    model = keras_bert.load(write_served(tmp_path / "model", "regression"))
    function = serving_function(model, "float16")
    folder, texts = write_version(str(tmp_path / "served"), function), ["the cat"]
    expected = function(texts)["score"]  # Filled again after it was saved.
    first, second = (tf.saved_model.load(folder) for _ in range(2))
    for signature in (function.signatures["serving_default"], first.signatures["serving_default"]):
        handles = {id(variable.handle) for variable in signature.variables}
        read = [handle for handle in signature.captured_inputs if handle.dtype == tf.resource]
        assert len(read) > 20 and {id(handle) for handle in read} <= handles
    signature = second.signatures["serving_default"]
    del first, second
    gc.collect()
    np.testing.assert_array_equal(signature(text=tf.constant(texts))["score"], expected)


def test_half_is_half_as_large(exports):
    sizes = []
    for options in ({}, {"dtype": "float16"}):
        reader = tf.train.load_checkpoint(str(exports("masked_lm", **options)[1] / "variables" / "variables"))
        shapes, types = reader.get_variable_to_shape_map(), reader.get_variable_to_dtype_map()
        sizes.append(sum(np.prod(shapes[name]) * types[name].size for name in shapes if types[name] != tf.string))
    assert sizes[1] < 0.6 * sizes[0]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("pair", {("serving_default", 1), ("tokens", 16), ("tokens", 32), ("tokens", 40)}),
        ("tagging", {("serving_default", 1), ("words", 14), ("words", 30), ("words", 38), ("tokens", 40)}),
        ("answering", {("serving_default", 1), ("tokens", 16), ("tokens", 40)}),
        ("choice", {("serving_default", 2), ("tokens", 16), ("tokens", 40)}),
    ],
)
def test_warm_up_requests_are_there_for_every_signature(exports, kind, expected):
    """Read by their field numbers, which are Serving's, and answered by the saved model."""
    _, folder = exports(kind, **EXPORTED.get(kind, {}))
    loaded = tf.saved_model.load(str(folder))
    seen = set()
    records = list(tf.data.TFRecordDataset(str(folder / "assets.extra" / "tf_serving_warmup_requests")))
    assert 0 < len(records) <= 1000
    for record in records:
        (log,) = fields(record.numpy())[6]
        (request,) = fields(log)[1]
        spec = fields(fields(request)[1][0])
        assert spec[1] == [b"name"]
        signature = spec[3][0].decode()
        inputs = (fields(entry) for entry in fields(request)[2])
        tensors = {entry[1][0].decode(): tensor_pb2.TensorProto.FromString(entry[2][0]) for entry in inputs}
        answers = loaded.signatures[signature](**{n: tf.constant(tf.make_ndarray(t)) for n, t in tensors.items()})
        assert all(np.isfinite(answer).all() for answer in answers.values() if answer.dtype.is_floating)
        seen.add((signature, max(tensor.tensor_shape.dim[-1].size for tensor in tensors.values())))
    assert seen >= expected


def fields(message):
    """`{field number: [content]}` of a protobuf message whose fields are all of wire type 2."""
    found, place = {}, 0

    def varint():
        nonlocal place
        value, shift = 0, 0
        while True:
            byte = message[place]
            place += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while place < len(message):
        key, length = varint(), varint()
        assert key & 7 == 2
        found.setdefault(key >> 3, []).append(message[place : place + length])
        place += length
    return found


def test_warm_up_requests_are_servings_own_messages(exports):
    logs = pytest.importorskip(
        "tensorflow_serving.apis.prediction_log_pb2", reason="tensorflow-serving-api is not there"
    )
    _, folder = exports("pair", dtype="bfloat16")
    for record in tf.data.TFRecordDataset(str(folder / "assets.extra" / "tf_serving_warmup_requests")):
        request = logs.PredictionLog.FromString(record.numpy()).predict_log.request
        assert request.model_spec.name == "name" and len(request.inputs) in (2, 3)
