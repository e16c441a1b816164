"""`run.py embed`."""

import json
import shutil

import numpy as np
import pytest
from command_line import give
from tiny import without_dropout, write_random
from usearch.index import Index

from keras_bert.checkpoints.sentence_transformers import POOLING_CONFIG, vector_files
from keras_bert.models.bert.encoder import BertEncoder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_random(tmp_path_factory.mktemp("model") / "model", BertEncoder(without_dropout()))


def embed(folder, *arguments, **options):
    """What it says."""
    return give("embed", "--model", folder, *arguments, **options).output


def test_the_last_line_opens_the_file(folder, tmp_path):
    output = str(tmp_path / 'my "out".npz')
    told = embed(folder, "--input", "-", "--output", output, stdin="w1 w2\n" + "w3 " * 30 + "\n")
    assert "1 of 2 texts have more than 24 tokens and were truncated, the first: stdin line 2." in told
    last = told.splitlines()[-1]
    assert "float32 [2, 16]" in last
    expression = last.partition("Next: ")[2].partition(", float32")[0]
    assert eval(expression, {"numpy": np}).shape == (2, 16)


def test_a_column_of_a_table_is_embedded(folder, tmp_path):
    """Otherwise whole lines of the CSV would be embedded, with their labels and commas."""
    table, output = tmp_path / "a.csv", str(tmp_path / "out.npz")
    table.write_text('label,review\n1,"w1, w2"\n0,w3\n')
    embed(folder, "--input", table, "--text", "review", "--output", output)
    found = np.load(output)["embeddings"]
    embed(folder, "--input", "-", "--output", output, stdin="w1, w2\nw3\n")
    np.testing.assert_array_equal(found, np.load(output)["embeddings"])
    told = embed(folder, "--input", table, "--output", output, status=2)
    assert "needs a column 'text'" in told and "--text COLUMN" in told


def test_the_folder_chooses_the_pooling_unless_the_user_does(folder, tmp_path):
    """A model trained for [CLS] would be averaged, and its texts would not be cut."""
    copy = shutil.copytree(folder, tmp_path / "copy")
    for name, content in {**vector_files(16, 5), POOLING_CONFIG: {"pooling_mode": "cls"}}.items():
        (copy / name).parent.mkdir(exist_ok=True)
        (copy / name).write_text(json.dumps(content))
    output, found = str(tmp_path / "out.npz"), {}
    for options in ((), ("--pooling", "cls"), ("--pooling", "mean")):
        told = embed(copy, "--input", "-", "--output", output, *options, stdin="w1 w2\nw3 w4 w5 w6\n")
        assert "1 of 2 texts have more than 5 tokens" in told
        assert ("by the pooling cls, scaled to length 1" in told) == (not options)
        found[options[1:]] = np.load(output)["embeddings"]
    norms = np.linalg.norm(found["cls",], axis=1, keepdims=True)
    np.testing.assert_allclose(found[()], found["cls",] / norms, atol=1e-6)
    assert np.abs(found["mean",] - found["cls",]).max() > 0.1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--input", "absent.txt"], "No file matches 'absent.txt'. Give a file"),
        (["--input", "-", "--max-length", "600"], "max_length: needs 3 to 24 tokens"),
        (["--input", "-", "--pooling", "last4"], "Pooling last4: needs a model with at least 4 layers. Received: one"),
        (["--input", "-"], "stdin: needs at least one text"),
        (["--input", "-", "--text", "review"], "--text: needs a table. Received: -, plain text, each line of which"),
        (["--input", "-", "--text", "a", "--text", "b"], "--text: needs one column. Received: a, b. Give one."),
    ],
)
def test_bad_input_is_one_line_and_status_2(folder, tmp_path, arguments, message):
    told = embed(folder, "--output", tmp_path / "out.npz", *arguments, status=2)
    assert f"Error: {message}" in told
    assert list(tmp_path.iterdir()) == []


def test_the_index_finds_the_nearest_texts(folder, tmp_path):
    """By cosine, as comparing all pairs does; keys are line numbers, also over several windows of lines."""
    lines = [f"w{number % 50} w{number // 50}" for number in range(60)]
    output, index = str(tmp_path / "out.npz"), str(tmp_path / "out.usearch")
    embed(folder, "--input", "-", "--output", output, "--index", index, stdin="\n".join(lines))
    vectors = np.load(output)["embeddings"]
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    expected = np.sort(unit @ unit[17])[::-1][:3]
    found = Index.restore(index).search(vectors[17], 3)
    assert found.keys[0] == 17
    np.testing.assert_allclose(1 - found.distances, expected, atol=1e-4)
    np.testing.assert_allclose(unit[found.keys.astype(int)] @ unit[17], expected, atol=1e-4)
    tokens = ("--index", index, "--pooling", "tokens")
    told = embed(folder, "--input", "-", "--output", output, *tokens, stdin="w1", status=2)
    assert "--index: needs one dense vector for each text" in told


@pytest.mark.parametrize("precision", ["float16", "int8", "binary"])
def test_smaller_vectors_are_indexed_and_found_by_queries(folder, tmp_path, precision):
    """Queries use the documents' ranges, and a query that equals a document has its vector."""
    lines = [f"w{number % 50} w{number // 50}" for number in range(60)]
    output, index, queries = (str(tmp_path / name) for name in ("out.npz", "out.usearch", "queries.npz"))
    options = ["--precision", precision, "--size", "12"]
    told = embed(folder, "--input", "-", "--output", output, "--index", index, *options, stdin="\n".join(lines))
    arrays = dict(np.load(output))
    assert f"{arrays['embeddings'].dtype} [60, {2 if precision == 'binary' else 12}]" in told
    if precision == "int8":
        options += ["--ranges", output]
    embed(folder, "--input", "-", "--output", queries, *options, stdin=lines[17])
    query = np.load(queries)["embeddings"]
    assert query.dtype == arrays["embeddings"].dtype
    found = Index.restore(index).search(query[0], 60, exact=True)
    if precision == "binary":
        expected = np.sort(np.unpackbits(arrays["embeddings"] ^ query, axis=1).sum(axis=1))
    else:
        floats = arrays["embeddings"].astype("float32")
        unit = floats / np.linalg.norm(floats, axis=1, keepdims=True)
        expected = np.sort(1 - unit @ unit[17])
    np.testing.assert_allclose(found.distances, expected, atol=5e-3)
    np.testing.assert_array_equal(query[0], arrays["embeddings"][17])


def test_options_of_smaller_vectors_that_do_not_fit_are_refused(folder, tmp_path):
    output, floats = str(tmp_path / "out.npz"), str(tmp_path / "floats.npz")
    text = str(tmp_path / "text.txt")
    (tmp_path / "text.txt").write_text("w1\nw2 w3\n")
    embed(folder, "--input", text, "--output", floats)
    ranges = str(tmp_path / "ranges.npz")
    embed(folder, "--input", text, "--output", ranges, "--precision", "int8")
    for options, message in (
        (["--size", "17"], "size: needs 1 to 16, the width of the vectors. Received: 17"),
        (["--size", "4", "--pooling", "tokens"], "--size: needs a vector for each text"),
        (["--ranges", ranges], "ranges: needs the precision int8. Received: float32"),
        (["--precision", "int8", "--ranges", floats], "Received: arrays embeddings. Give the file of the documents"),
        (["--precision", "int8", "--ranges", text], "int8 has written. Received: no arrays that NumPy saved. Give"),
        (["--precision", "int8", "--ranges", ranges, "--size", "8"], "needs ranges of 8 dimensions. Received: 16"),
        (["--precision", "int8", "--ranges", str(tmp_path / "absent")], "No such file"),
    ):
        told = embed(folder, "--input", text, "--output", output, *options, status=2)
        assert message in told, told
    told = embed(folder, "--input", text, "--output", ranges, "--precision", "int8", "--ranges", ranges, status=2)
    assert "needs a place of its own" in told
