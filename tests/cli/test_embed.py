"""`run.py embed`."""

import json
import shutil

import numpy as np
import pytest
from click.testing import CliRunner
from tiny import random_weights, without_dropout
from usearch.index import Index

from keras_bert.checkpoints.sentence_transformers import POOLING_CONFIG, vector_files
from keras_bert.checkpoints.writing import write_model_folder
from keras_bert.cli import main
from keras_bert.models.bert.encoder import BertEncoder
from keras_bert.text.vocabulary import SPECIAL_TOKENS, Vocabulary


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    encoder = BertEncoder(without_dropout())
    random_weights(encoder)
    path = str(tmp_path_factory.mktemp("model") / "model")
    write_model_folder(path, encoder, Vocabulary([*SPECIAL_TOKENS, *(f"w{n}" for n in range(55))]), lower_case=True)
    return path


def embed(folder, *arguments, **options):
    return CliRunner().invoke(main, ["embed", "--model", folder, *arguments], **options)


def test_the_last_line_opens_the_file(folder, tmp_path):
    output = str(tmp_path / 'my "out".npz')
    result = embed(folder, "--input", "-", "--output", output, input="w1 w2\n" + "w3 " * 30 + "\n")
    assert result.exit_code == 0, result.output
    assert "1 of 2 texts have more than 24 tokens and were truncated, the first: stdin line 2." in result.output
    last = result.output.splitlines()[-1]
    assert "float32 [2, 16]" in last
    expression = last.partition("Next: ")[2].partition(", float32")[0]
    assert eval(expression, {"numpy": np}).shape == (2, 16)


def test_a_column_of_a_table_is_embedded(folder, tmp_path):
    """Otherwise whole lines of the CSV would be embedded, with their labels and commas."""
    table, output = tmp_path / "a.csv", str(tmp_path / "out.npz")
    table.write_text('label,review\n1,"w1, w2"\n0,w3\n')
    result = embed(folder, "--input", str(table), "--text", "review", "--output", output)
    assert result.exit_code == 0, result.output
    found = np.load(output)["embeddings"]
    assert embed(folder, "--input", "-", "--output", output, input="w1, w2\nw3\n").exit_code == 0
    np.testing.assert_array_equal(found, np.load(output)["embeddings"])
    result = embed(folder, "--input", str(table), "--output", output)
    assert result.exit_code == 2 and "needs a column 'text'" in result.output and "--text COLUMN" in result.output


def test_the_folder_chooses_the_pooling_unless_the_user_does(folder, tmp_path):
    """A model trained for [CLS] would be averaged, and its texts would not be cut."""
    copy = shutil.copytree(folder, tmp_path / "copy")
    for name, content in {**vector_files(16, 5), POOLING_CONFIG: {"pooling_mode": "cls"}}.items():
        (copy / name).parent.mkdir(exist_ok=True)
        (copy / name).write_text(json.dumps(content))
    output, found = str(tmp_path / "out.npz"), {}
    for options in ((), ("--pooling", "cls"), ("--pooling", "mean")):
        result = embed(str(copy), "--input", "-", "--output", output, *options, input="w1 w2\nw3 w4 w5 w6\n")
        assert result.exit_code == 0 and "1 of 2 texts have more than 5 tokens" in result.output
        assert ("by the pooling cls, scaled to length 1" in result.output) == (not options)
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
    result = embed(folder, "--output", str(tmp_path / "out.npz"), *arguments)
    assert result.exit_code == 2 and f"Error: {message}" in result.output
    assert list(tmp_path.iterdir()) == []


def test_the_index_finds_the_nearest_texts(folder, tmp_path):
    """By cosine, as comparing all pairs does; keys are line numbers, also over several windows of lines."""
    lines = [f"w{number % 50} w{number // 50}" for number in range(60)]
    output, index = str(tmp_path / "out.npz"), str(tmp_path / "out.usearch")
    result = embed(folder, "--input", "-", "--output", output, "--index", index, input="\n".join(lines))
    assert result.exit_code == 0, result.output
    vectors = np.load(output)["embeddings"]
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    expected = np.sort(unit @ unit[17])[::-1][:3]
    found = Index.restore(index).search(vectors[17], 3)
    assert found.keys[0] == 17
    np.testing.assert_allclose(1 - found.distances, expected, atol=1e-4)
    np.testing.assert_allclose(unit[found.keys.astype(int)] @ unit[17], expected, atol=1e-4)
    refused = embed(folder, "--input", "-", "--output", output, "--index", index, "--pooling", "tokens", input="w1")
    assert refused.exit_code == 2 and "--index: needs one dense vector for each text" in refused.output


@pytest.mark.parametrize("precision", ["float16", "int8", "binary"])
def test_smaller_vectors_are_indexed_and_found_by_queries(folder, tmp_path, precision):
    """Queries use the documents' ranges, and a query that equals a document has its vector."""
    lines = [f"w{number % 50} w{number // 50}" for number in range(60)]
    output, index, queries = (str(tmp_path / name) for name in ("out.npz", "out.usearch", "queries.npz"))
    options = ["--precision", precision, "--size", "12"]
    result = embed(folder, "--input", "-", "--output", output, "--index", index, *options, input="\n".join(lines))
    assert result.exit_code == 0, result.output
    arrays = dict(np.load(output))
    assert f"{arrays['embeddings'].dtype} [60, {2 if precision == 'binary' else 12}]" in result.output
    if precision == "int8":
        options += ["--ranges", output]
    result = embed(folder, "--input", "-", "--output", queries, *options, input=lines[17])
    assert result.exit_code == 0, result.output
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
    assert embed(folder, "--input", text, "--output", floats).exit_code == 0
    ranges = str(tmp_path / "ranges.npz")
    assert embed(folder, "--input", text, "--output", ranges, "--precision", "int8").exit_code == 0
    for options, message in (
        (["--size", "17"], "size: needs 1 to 16, the width of the vectors. Received: 17"),
        (["--size", "4", "--pooling", "tokens"], "--size: needs a vector for each text"),
        (["--ranges", ranges], "ranges: needs the precision int8. Received: float32"),
        (["--precision", "int8", "--ranges", floats], "Received: arrays embeddings. Give the file of the documents"),
        (["--precision", "int8", "--ranges", text], "int8 has written. Received: no arrays that NumPy saved. Give"),
        (["--precision", "int8", "--ranges", ranges, "--size", "8"], "needs ranges of 8 dimensions. Received: 16"),
        (["--precision", "int8", "--ranges", str(tmp_path / "absent")], "No such file"),
    ):
        result = embed(folder, "--input", text, "--output", output, *options)
        assert result.exit_code == 2 and message in result.output, result.output
    result = embed(folder, "--input", text, "--output", ranges, "--precision", "int8", "--ranges", ranges)
    assert result.exit_code == 2 and "needs a place of its own" in result.output
