"""Reranking: both scores against plain Python, the loss against NumPy, and a run from a table to an export."""

import json
import math

import numpy as np
import pytest
from command_line import output_of
from finetuning import write_tiny_bert
from scipy.special import expit
from served import write_served
from tiny import VOCABULARY

import keras_bert
from keras_bert.config.finetuning import REGRESSION, SINGLE_LABEL, FinetuneConfig
from keras_bert.core.errors import UserError
from keras_bert.tasks.classification.head import ClassificationConfig
from keras_bert.tasks.classification.network import ClassificationObjective
from keras_bert.tasks.classification.reranking import ranking_scores
from keras_bert.tasks.finetuned_model import FinetunedModel
from keras_bert.tasks.finetuning.runs import FinetuningRuns
from keras_bert.tasks.problem import open_problem
from keras_bert.text.tokenizers import make_tokenizer

COLUMNS = ["query", "passage"]


def plain_scores(queries, labels, scores):
    """(MRR@10, nDCG@10) by their definitions."""
    passages = {}
    for query, label, score in zip(queries, labels, scores):
        passages.setdefault(query, []).append((-score, label))
    ranks, gains = [], []
    for ranked in passages.values():
        found = [label for _, label in sorted(ranked)]
        if max(found) > 0:
            ranks.append(max([1 / rank for rank, label in enumerate(found[:10], 1) if label > 0], default=0))
            dcg, best = (
                sum(label / math.log2(rank + 1) for rank, label in enumerate(order[:10], 1))
                for order in (found, sorted(found, reverse=True))
            )
            gains.append(dcg / best)
    return sum(ranks) / len(ranks), sum(gains) / len(gains)


@pytest.mark.parametrize("labels", [[0, 1], [0, 0, 0, 0, 0, 1], [0, 0.25, 0.5, 1]])
def test_the_scores_are_those_of_their_definitions(labels):
    """With ties, more than ten passages for a query, queries with one passage, and rows in any order."""
    random = np.random.default_rng(len(labels))
    queries = random.integers(0, 30, 400)
    labels, scores = random.choice(labels, 400), random.integers(0, 12, 400) / 4
    found = ranking_scores(queries, labels, scores)
    assert list(found) == ["mrr_at_10", "ndcg_at_10"]
    np.testing.assert_allclose(list(found.values()), plain_scores(queries, labels, scores), rtol=1e-12)
    order = random.permutation(400)
    assert ranking_scores(queries[order], labels[order], scores[order]) == pytest.approx(found, rel=1e-12)


def test_one_score_for_all_gains_nothing_by_the_order_of_the_file():
    queries, labels = np.zeros(4, int), np.array([1, 0, 0, 0])
    assert ranking_scores(queries, labels, np.zeros(4))["mrr_at_10"] == 0.25
    assert ranking_scores(queries, 0 * labels, np.zeros(4)) == {"mrr_at_10": 0.0, "ndcg_at_10": 0.0}


def test_the_loss_is_the_binary_cross_entropy_of_grades():
    random = np.random.default_rng(0)
    logits, labels = random.normal(size=(6, 1)), random.random(6)
    batch = {"labels": labels.astype("float32"), "example_weights": np.array([1, 1, 0, 1, 1, 0.5], "float32")}
    objective = ClassificationObjective(REGRESSION, logistic=True)
    shares = expit(logits[:, 0])
    losses = -labels * np.log(shares) - (1 - labels) * np.log(1 - shares)
    found = objective.sums({"logits": logits.astype("float32")}, batch)["loss"]["loss"]
    np.testing.assert_allclose(found, losses @ batch["example_weights"], rtol=1e-5)


def write_table(path, queries, seed, grade=1):
    """Each query names a word, which one of its four passages contains."""
    random = np.random.default_rng(seed)
    with open(path, "w") as stream:
        for _ in range(queries):
            right, *wrong = random.permutation(["good", "fine", "nice", "bad"])
            for place, word in enumerate(random.permutation([right, *wrong])):
                passage = f"w{random.integers(9)} {word} w{9 + place}"
                row = {
                    "query": f"{right} w{random.integers(49)}",
                    "passage": passage,
                    "relevant": grade * (word == right),
                }
                stream.write(json.dumps(row) + "\n")
    return str(path)


def config_of(init, train, dev=None, **training):
    return FinetuneConfig.from_mapping(
        {
            "task": "rerank",
            "init": init,
            "data": {"train": train, "dev": dev, "texts": COLUMNS, "label": "relevant"},
            "optimizer": {"learning_rate": 1e-2},
            "input": {"max_length": 16},
            "training": {"batch_size": 16, "epochs": 2.0, **training},
        }
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """(the run folder, its results, the file to judge by)."""
    folder = tmp_path_factory.mktemp("rerank")
    train, dev = (write_table(folder / f"{seed}.jsonl", count, seed) for seed, count in enumerate((60, 12)))
    config = config_of(write_tiny_bert(folder / "bert"), train, dev)
    return str(folder / "run"), FinetuningRuns(config).one(str(folder / "run")), dev


def rows_of(path):
    with open(path) as stream:
        return [json.loads(line) for line in stream]


def test_a_run_is_judged_by_the_ranks_of_its_own_answers(run):
    path, results, dev = run
    rows, bert = rows_of(dev), keras_bert.load(path)
    scores = bert.predict([(row["query"], row["passage"]) for row in rows])
    assert all(0 < score < 1 for score in scores)
    queries, labels = ([row[name] for row in rows] for name in ("query", "relevant"))
    expected = dict(zip(("mrr_at_10", "ndcg_at_10"), plain_scores(queries, labels, scores)))
    assert results["main_metric"] == "mrr_at_10"
    assert {name: results["splits"]["dev"][name] for name in expected} == pytest.approx(expected, abs=1e-3)
    found = FinetunedModel(path).evaluate("dev")
    assert {name: found[name] for name in expected} == pytest.approx(expected, abs=1e-3)


@pytest.mark.slow
def test_predict_the_export_and_ranks_have_the_same_scores(run, tmp_path):
    path, _, dev = run
    bert, rows = keras_bert.load(path), rows_of(dev)[:8]
    columns = [[row[name] for row in rows] for name in COLUMNS]
    output = str(tmp_path / "answers.jsonl")
    output_of("predict", "--model", path, "--input", dev, "--output", output)
    written = [row["score"] for row in rows_of(output)[:8]]
    function = keras_bert.serving_function(bert)
    assert function.columns == ("text_a", "text_b")
    np.testing.assert_allclose(function(*columns)["score"], bert.predict(list(zip(*columns))), atol=1e-5)
    np.testing.assert_allclose(written, bert.predict(list(zip(*columns))), atol=1e-5)
    ranked = bert.rank(rows[0]["query"], columns[1])
    scores = bert.predict([(rows[0]["query"], passage) for passage in columns[1]])
    assert [index for index, _ in ranked] == sorted(range(8), key=lambda index: -scores[index])
    assert [score for _, score in ranked] == [scores[index] for index, _ in ranked]
    assert bert.rank("good", []) == []


def test_transformers_reads_one_label_with_a_sigmoid(run):
    """So do CrossEncoders of sentence-transformers, which find the activation by its name."""
    fields = json.loads(open(f"{run[0]}/model/config.json").read())
    assert fields["architectures"] == ["BertForSequenceClassification"]
    assert fields["sentence_transformers"] == {"activation_fn": "torch.nn.modules.activation.Sigmoid"}
    assert fields["problem_type"] == "multi_label_classification" and fields["id2label"] == {"0": "relevant"}
    assert keras_bert.load(run[0]).head == ClassificationConfig(("relevant",), REGRESSION, logistic=True)


def test_a_held_out_share_keeps_the_passages_of_a_query_together(tmp_path):
    bert = keras_bert.load(write_tiny_bert(tmp_path / "bert"))
    train = write_table(tmp_path / "train.jsonl", 60, 0)
    problem = open_problem(config_of("", train), make_tokenizer(bert.tokenizer.vocabulary, bert.folder.tokenizer))
    sides = [{text for window in problem.windows(split) for text in window.texts[0]} for split in ("train", "dev")]
    assert all(sides) and not sides[0] & sides[1]


def test_bad_data_is_refused(tmp_path):
    init, graded = write_tiny_bert(tmp_path / "bert"), write_table(tmp_path / "graded.jsonl", 9, 0, grade=2)
    config = config_of(init, graded, graded)
    with pytest.raises(UserError, match="graded.jsonl line .*: needs a label from 0 to 1. Received: 2"):
        FinetuningRuns(config).one(str(tmp_path / "run"))
    config.data.texts = ["passage"]
    with pytest.raises(UserError, match="needs the names of two columns, the query's and the passage's. Received: pas"):
        FinetuningRuns(config).one(str(tmp_path / "run"))


def test_models_of_classes_are_refused(tmp_path):
    path = write_served(tmp_path / "model", "pair")
    with pytest.raises(
        UserError, match=f"rerank needs a model with one score per pair. Received: one for {SINGLE_LABEL}"
    ):
        FinetunedModel(path, {"texts": COLUMNS, "dev": write_table(tmp_path / "dev.jsonl", 9, 0)}, task="rerank")
    with pytest.raises(UserError, match="needs a model that scores pairs of texts, to rank passages"):
        keras_bert.load(path).rank("the cat", ["the mat"])
    with pytest.raises(UserError, match="Received: one without a task's head"):
        keras_bert.load(write_tiny_bert(tmp_path / "bert")).rank("the cat", ["the mat"])


def test_without_files_it_names_them():
    """With nothing to read, the user must be told which files to give."""
    with pytest.raises(UserError, match="rerank: needs files. Received: none. Give --train and --dev"):
        open_problem(FinetuneConfig.from_mapping({"task": "rerank"}), make_tokenizer(VOCABULARY)).rows("train")
