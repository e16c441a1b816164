"""tools/serve.py answers the clients of docs/serving.md, which use what TensorFlow Serving offers."""

import importlib.util
import json
import os
import pathlib
import shlex
import shutil
import socket
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
import yaml
from pages import ROOT, blocks
from served import write_served

import keras_bert
from keras_bert.export.saved_model import write_version
from keras_bert.export.serving_function import serving_function

PAGE = "docs/serving.md"
BEYOND_INT32 = {
    "signature_name": "tokens",
    "inputs": {"input_word_ids": [[2**40]], "input_mask": [[1]], "input_type_ids": [[0]]},
}
TEXTS = ["A delightful film.", "Two hours of my life."]
needs_stubs = pytest.mark.skipif(
    importlib.util.find_spec("tensorflow_serving") is None, reason="tensorflow-serving-api is not installed"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with `runs/sst2` and `served/sst2/1`, as on the page."""
    path = tmp_path_factory.mktemp("serve")
    (path / "runs").mkdir()
    write_served(path / "runs" / "sst2", "single")
    write_version(str(path / "served" / "sst2"), serving_function(keras_bert.load(str(path / "runs" / "sst2"))))
    return path


@pytest.fixture(scope="module")
def expected(folder):
    return serving_function(keras_bert.load(str(folder / "runs" / "sst2")))(TEXTS)


@pytest.fixture(scope="module")
def ports(folder):
    """A server's ports, gRPC's and REST's; it serves the folder."""
    command = [
        sys.executable,
        os.path.join(ROOT, "tools", "serve.py"),
        "served/sst2",
        "--port",
        "0",
        "--rest-port",
        "0",
    ]
    server = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        line = server.stdout.readline()
        assert line.startswith("sst2 version 1: gRPC "), server.stderr.read()
        yield line.split("gRPC ")[1].split(",")[0], line.split("REST ")[1].strip()
    finally:
        server.kill()
        server.wait()


def example(language, containing):
    return next(content for name, content, _ in blocks(PAGE) if name == language and containing in content)


@needs_stubs
def test_a_folder_that_is_not_there_is_named(monkeypatch, tmp_path):
    """It used to end in a traceback."""
    monkeypatch.syspath_prepend(os.path.join(ROOT, "tools"))
    from served_versions import ServedModel

    with pytest.raises(SystemExit, match="absent: needs a version, such as 1/saved_model.pb"):
        ServedModel(str(tmp_path / "absent"))


@needs_stubs
def test_a_port_that_is_taken_is_named(monkeypatch):
    """It used to end in a traceback."""
    monkeypatch.syspath_prepend(os.path.join(ROOT, "tools"))
    import serve

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for ports in ((0, port), (port, 0)):
            with pytest.raises(SystemExit, match=f"port {port}.*: needs free ports of 127.0.0.1 .*Give others"):
                serve.bound(serve.grpc.server(serve.futures.ThreadPoolExecutor(1)), None, "127.0.0.1", *ports)


@pytest.mark.slow
@needs_stubs
def test_the_grpc_client(ports, expected):
    names = {}
    exec(example("python", "import grpc").replace("localhost:8500", f"localhost:{ports[0]}"), names)
    np.testing.assert_allclose(names["probabilities"], expected["probabilities"], atol=1e-5)
    assert names["labels"].tolist() == expected["label"].tolist()
    assert set(names["response"].outputs) == {"label", "probabilities"}
    assert names["response"].model_spec.version.value == 1
    from tensorflow_serving.apis import get_model_metadata_pb2

    found = get_model_metadata_pb2.SignatureDefMap()
    assert names["metadata"].metadata["signature_def"].Unpack(found)
    assert found.signature_def["serving_default"].inputs["text"].dtype == tf.string.as_datatype_enum


@pytest.mark.slow
@needs_stubs
@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda request: setattr(request.model_spec, "name", "other"), "NOT_FOUND"),
        (lambda request: setattr(request.model_spec.version, "value", 2), "NOT_FOUND"),
        (lambda request: setattr(request.model_spec, "signature_name", "other"), "INVALID_ARGUMENT"),
        (lambda request: request.inputs.clear(), "INVALID_ARGUMENT"),
        (lambda request: request.output_filter.append("other"), "INVALID_ARGUMENT"),
        (lambda request: request.inputs["text"].CopyFrom(tf.make_tensor_proto([1, 2])), "INVALID_ARGUMENT"),
    ],
)
def test_a_bad_request_has_its_status(ports, change, code):
    names = {}
    exec(example("python", "import grpc").replace("localhost:8500", f"localhost:{ports[0]}"), names)
    request = names["predict_pb2"].PredictRequest()
    request.model_spec.name = "sst2"
    request.inputs["text"].CopyFrom(tf.make_tensor_proto(TEXTS))
    change(request)
    with pytest.raises(names["grpc"].RpcError) as caught:
        names["stub"].Predict(request, timeout=60)
    assert caught.value.code().name == code


@pytest.mark.slow
@needs_stubs
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not there")
def test_the_curl_examples(ports, expected):
    answers = []
    for command in example("sh", "curl").splitlines():
        command = command.replace("localhost:8501", f"localhost:{ports[1]}")
        answers.append(json.loads(subprocess.run(shlex.split(command), capture_output=True, check=True).stdout))
    rows, columns, tokens, metadata = answers
    for row, answer in enumerate(rows["predictions"]):
        np.testing.assert_allclose(answer["probabilities"], expected["probabilities"][row], atol=1e-5)
        assert answer["label"].encode() == expected["label"][row]
    np.testing.assert_allclose(columns["outputs"]["logits"], expected["logits"][:1], atol=1e-5)
    assert set(tokens["predictions"][0]) == {"label", "labels", "logits", "probabilities"}
    assert "serving_default" in metadata["metadata"]["signature_def"]["signature_def"]


@pytest.mark.slow
@needs_stubs
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not there")
@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("sst2:predict", '{"instances": [{"b64": "/3g="}]}', 200),
        ("sst2:predict", '{"instances": ["cat"', 400),
        pytest.param("sst2:predict", "[" * 100_000, 400, id="nested too deep"),
        ("sst2:predict", '{"instances": [{"words": "cat"}]}', 400),
        ("sst2:predict", '{"signature_name": "other", "instances": ["cat"]}', 400),
        ("sst2:predict", '{"signature_name": "tokens", "instances": ["cat"]}', 400),
        pytest.param("sst2:predict", json.dumps(BEYOND_INT32), 400, id="tokens beyond int32"),
        ("other:predict", '{"instances": ["cat"]}', 404),
        ("sst2/versions/2:predict", '{"instances": ["cat"]}', 404),
        pytest.param(f"sst2/versions/{'9' * 5000}:predict", "{}", 404, id="a version of too many digits"),
        ("sst2:classify", "{}", 404),
    ],
)
def test_rest_requests_have_their_status(ports, path, body, status):
    command = ["curl", "-s", "-w", "\n%{http_code}", "-d", body, f"http://localhost:{ports[1]}/v1/models/{path}"]
    answer, code = subprocess.run(command, capture_output=True, check=True, text=True).stdout.rsplit("\n", 1)
    assert int(code) == status and (("error" in json.loads(answer)) == (status != 200)), answer


def test_the_examples_without_a_server(folder, expected, monkeypatch):
    monkeypatch.chdir(folder)
    for marked in ("tf.saved_model.load", "serving_function"):
        content, _, last = example("python", marked).strip().rpartition("\n")
        names = {}
        exec(content, names)
        found = np.asarray(eval(last, names))
        np.testing.assert_allclose(found, expected["probabilities"][: len(found)], atol=1e-5)


def test_the_manifests_name_the_files_that_export_writes(folder):
    written = {path.name for path in (folder / "served" / "sst2").iterdir()}
    manifests = [content for language, content, _ in blocks(PAGE) if language == "yaml"]
    assert len(manifests) == 2 and all(list(yaml.safe_load_all(content)) for content in manifests)
    page = pathlib.Path(ROOT, PAGE).read_text(encoding="utf-8")
    for file in ("models.config", "batching.config"):
        assert file in written and all(f"/models/sst2/{file}" in content for content in (*manifests, page))
