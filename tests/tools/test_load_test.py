"""tools/load_test.py loads a real gRPC server with several clients at a time."""

import importlib.util
import shutil

import pytest
from served import VOCABULARY, write_served

import keras_bert
from keras_bert.export.saved_model import write_serving_files, write_version
from keras_bert.export.serving_function import serving_function

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("tensorflow_serving") is None, reason="tensorflow-serving-api is not installed"
    ),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model's folder with version 1."""
    path = tmp_path_factory.mktemp("load")
    folder = str(path / "served" / "single")
    write_version(folder, serving_function(keras_bert.load(write_served(path / "model", "single"))))
    write_serving_files(folder)
    return folder


@pytest.mark.parametrize("batching", [None, "batching.config"])
def test_no_request_is_lost_while_a_version_takes_over(folder, tmp_path, capsys, batching):
    """Not even when a client sends broken texts and messages. And errors are counted: every request for an absent model
    fails."""
    from tools import load_test

    folder = shutil.copytree(folder, tmp_path / "single")
    words = [token for token in VOCABULARY.tokens if token.isalpha()]
    server, address = load_test.start(folder, batching and folder / batching)
    try:
        for clients in (1, 4):
            found = load_test.load(address, "single", "text", words, clients, 2.0, server, folder)
            assert found["errors"] == 0 and found["requests"] >= clients
            assert set(found["versions"]) == ({1, 2} if clients == 1 else {2, 3})
            assert 0 < found["p50"] <= found["p99"] and found["memory"][1] > 0
        found = load_test.load(address, "single", "text", words, 1, 1.5, server, folder, swaps=2, hostile=True)
        assert found["errors"] == 0 and set(found["versions"]) == {3, 4, 5}
        assert found["hostile"]["answered"] > 10 and found["hostile"]["INVALID_ARGUMENT"] > 5
        assert load_test.load(address, "another", "text", words, 1, 0.2)["errors"] > 0
    finally:
        server.kill()
        server.wait()
    assert "4 clients: " in capsys.readouterr().out


def test_a_vocabulary_without_words_is_refused(tmp_path, monkeypatch, capsys):
    """Every client used to end with a traceback, and the test with no request, no error and status 0."""
    from tools import load_test

    (tmp_path / "vocab.json").write_text('{"a": 0}')
    monkeypatch.setattr("sys.argv", ["load_test.py", str(tmp_path), "--vocab", str(tmp_path / "vocab.json")])
    with pytest.raises(SystemExit, match="2"):
        load_test.main()
    assert "--vocab: needs a vocab.txt with whole words, one a line. Received: none in" in capsys.readouterr().err
