"""`run.py retrieve`."""

import json
import shutil

import numpy as np
import pytest
from command_line import give
from finetuning import write_tiny_bert
from served import RERANKER, write_served

import keras_bert

WORDS = ["good", "fine", "nice", "bad"]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """(model folder, BEIR folder, its content as `evaluate_retrieval` takes it)."""
    folder, random = tmp_path_factory.mktemp("retrieve"), np.random.default_rng(0)
    passages = {
        f"d{n}": " ".join([random.choice(WORDS), *(f"w{w}" for w in random.integers(0, 40, 5))]) for n in range(30)
    }
    queries = {f"q{n}": " ".join([random.choice(WORDS), f"w{random.integers(40)}"]) for n in range(5)}
    relevant = {name: {f"d{n}": int(random.integers(0, 3)) for n in random.permutation(30)[:8]} for name in queries}
    (folder / "beir" / "qrels").mkdir(parents=True)
    for name, texts in (("corpus", passages), ("queries", queries)):
        lines = [json.dumps({"_id": key, "text": text}) + "\n" for key, text in texts.items()]
        (folder / "beir" / f"{name}.jsonl").write_text("".join(lines))
    rows = [f"{query}\t{passage}\t{grade}\n" for query, of in relevant.items() for passage, grade in of.items()]
    (folder / "beir" / "qrels" / "dev.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(rows))
    return write_tiny_bert(folder / "bert"), str(folder / "beir"), (queries, passages, relevant)


def test_the_command_scores_as_python_does(data, tmp_path):
    model, folder, values = data
    output, run = tmp_path / "scores.json", tmp_path / "found.trec"
    options = ["--split", "dev", "--precision", "int8", "--size", "8", "--top-k", "10", "--query-prefix", "w1 "]
    told = give("retrieve", "--model", model, "--data", folder, *options, "--output", output, "--run", run).output
    config = {"precision": "int8", "size": 8, "top_k": 10, "query_prefix": "w1 "}
    expected = keras_bert.load(model).evaluate_retrieval(*values, **config)
    assert json.loads(output.read_text()) == {"dev": {"vectors": pytest.approx(expected.scores)}}
    assert "5 queries, 30 passages." in told and f"{100 * expected.scores['ndcg_at_10']:.2f}" in told
    lines = [line.split() for line in run.read_text().splitlines()]
    assert [line[2] for line in lines if line[0] == "q3"] == [name for name, _ in expected.ranking["q3"]]


@pytest.mark.slow
def test_a_reranker_has_a_row_of_its_own(data, tmp_path):
    model, folder, values = data
    reranker = write_served(tmp_path / "reranker", "pair", RERANKER)
    output, run = tmp_path / "scores.json", tmp_path / "found.trec"
    options = ["--split", "dev", "--top-k", "10", "--rerank", reranker, "--output", output, "--run", run]
    told = give("retrieve", "--model", model, "--data", folder, *options).output
    expected = keras_bert.load(model).evaluate_retrieval(*values, top_k=10, reranker=keras_bert.load(reranker))
    written = json.loads(output.read_text())["dev"]
    assert written["reranker"] == pytest.approx(expected.reranked.scores)
    assert written["vectors"] == pytest.approx(expected.scores) and "reranker" in told
    lines = [line.split() for line in run.read_text().splitlines()]
    assert [line[2] for line in lines if line[0] == "q0"] == [name for name, _ in expected.reranked.ranking["q0"]]


def test_ids_that_a_run_cannot_hold_are_found_before_the_search(data, tmp_path):
    """They would be refused only after everything was embedded and scored."""
    model, folder, _ = data
    spaced = tmp_path / "spaced"
    shutil.copytree(folder, spaced)
    with open(spaced / "corpus.jsonl", "a") as corpus:
        corpus.write('{"_id": "d 30", "text": "w1"}\n')
    options, run = ["--model", model, "--data", spaced, "--split", "dev"], tmp_path / "found.trec"
    told = give("retrieve", *options, "--run", run, status=2).output
    assert "found.trec: needs ids without spaces for TREC's columns. Received: 'd 30'." in told
    assert "passages." not in told and not run.exists()


def test_bad_input_is_one_line_and_status_2(data, tmp_path):
    """Refused before anything is embedded."""
    model, folder, _ = data
    single = write_served(tmp_path / "single", "regression", pair=False)
    for options, message in (
        ([], "qrels/test.tsv: needs a file. Received: none. The splits are dev."),
        (["--split", "dev", "--size", "99"], "size: needs 1 to"),
        (["--split", "dev", "--pooling", "last4"], "Pooling last4: needs a model with at least 4 layers"),
        (["--split", "dev", "--rerank", model], "needs a model that scores pairs of texts"),
        (["--split", "dev", "--rerank", single], "--rerank: needs a model that scores pairs of texts"),
        (["--split", "dev", "--output", f"{folder}/corpus.jsonl"], "needs a place of its own"),
    ):
        told = give("retrieve", "--model", model, "--data", folder, *options, status=2).output
        assert message in told and "Traceback" not in told
