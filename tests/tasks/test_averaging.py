"""Several models' probabilities, averaged for every kind of task, against the mean computed from its definition."""

import json

import numpy as np
import pytest
from scipy.special import expit, softmax
from squad_file import CAFE, paragraph, squad_tokenizer, write_squad

from keras_bert.config.finetuning import MULTI_LABEL, REGRESSION, FinetuneConfig
from keras_bert.tasks.classification.head import ClassificationConfig
from keras_bert.tasks.problem import mean_of_sigmoids, mean_of_softmax, open_problem
from keras_bert.tasks.tagging.label_schemes import read_entities

RANDOM = np.random.default_rng(0)


def problem_of(task, path, content, **settings):
    path.write_text(content, encoding="utf-8")
    values = {"task": task, "input": {"max_length": 32}, **settings}
    config = FinetuneConfig.from_mapping({**values, "data": {"train": str(path), "dev": str(path)}})
    return config, squad_tokenizer()


def test_means_are_of_probabilities_and_not_of_logits():
    one, two = RANDOM.normal(0, 5, (2, 4, 3))
    mean = (softmax(one, axis=1) + softmax(two, axis=1)) / 2
    np.testing.assert_allclose(softmax(mean_of_softmax([one, two]), axis=1), mean, rtol=1e-9)
    np.testing.assert_allclose(expit(mean_of_sigmoids([one, two])), (expit(one) + expit(two)) / 2, rtol=1e-9)
    # A choice that an example lacks stays without probability, and a sure model stays finite.
    assert mean_of_softmax([np.array([0.0, -np.inf])] * 2)[1] == -np.inf
    assert np.isfinite(mean_of_sigmoids([np.array([800.0, -800.0])] * 2)).all()


@pytest.mark.parametrize("kind", ["single_label_classification", MULTI_LABEL, REGRESSION])
def test_classes_and_scores(kind, tmp_path):
    labels = {"single_label_classification": ["a", "b"], MULTI_LABEL: ["a", "b"], REGRESSION: [1.5, 2.5]}[kind]
    rows = [{"text": "was founded", "label": label} for label in labels * 2]
    config, tokenizer = problem_of("text", tmp_path / "x.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    config.data.kind = kind
    problem = open_problem(config, tokenizer)
    assert isinstance(problem.head, ClassificationConfig)
    outputs = [{"logits": RANDOM.normal(0, 3, (4, problem.head.num_labels))} for _ in range(3)]
    logits = problem.answers("dev", problem.averaged("dev", outputs))
    turned = {"single_label_classification": lambda x: softmax(x, axis=1), MULTI_LABEL: expit, REGRESSION: np.asarray}
    expected = np.mean([turned[kind](one["logits"]) for one in outputs], axis=0)
    np.testing.assert_allclose(turned[kind](logits), expected, rtol=1e-6)


def test_scores_of_passages(tmp_path):
    """A reranker's score is the sigmoid, and passages are ranked by its mean."""
    rows = [{"query": "who", "passage": passage, "label": label} for passage, label in (("was", 0), ("by", 1))]
    content = "".join(json.dumps(row) + "\n" for row in rows)
    config, tokenizer = problem_of("rerank", tmp_path / "x.jsonl", content)
    config.data.texts = ["query", "passage"]
    problem = open_problem(config, tokenizer)
    outputs = [{"logits": np.array([[8.0], [2.0]])}, {"logits": np.array([[-3.0], [2.0]])}]
    logits = problem.answers("dev", problem.averaged("dev", outputs))
    np.testing.assert_allclose(expit(logits), np.mean([expit(one["logits"]) for one in outputs], axis=0), rtol=1e-6)
    assert problem.evaluate("dev", logits)["mrr_at_10"] == 1.0


def test_choices(tmp_path):
    lines = [
        {"context": "who", "choices": ["was", "by"], "label": 1},
        {"context": "in", "choices": ["a"] * 3, "label": 0},
    ]
    config, tokenizer = problem_of("choice", tmp_path / "x.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    problem = open_problem(config, tokenizer)
    outputs = [{"logits": [RANDOM.normal(0, 3, 2), RANDOM.normal(0, 3, 3)]} for _ in range(2)]
    answers = problem.answers("dev", problem.averaged("dev", outputs))
    for number, answer in enumerate(answers):
        expected = np.mean([softmax(one["logits"][number]) for one in outputs], axis=0)
        np.testing.assert_allclose(softmax(answer), expected, rtol=1e-6)


@pytest.mark.parametrize("head", ["linear", "crf"])
def test_tags(head, tmp_path):
    """A CRF's tags include only labels that the scheme allows."""
    words = "\n".join(f"{word} {label}" for word, label in zip("abcdefgh", ["B-X", "I-X", "O", "O"] * 2))
    config, tokenizer = problem_of("ner", tmp_path / "x.txt", words + "\n", head={"crf": head == "crf"})
    config.data.label = "1"
    problem = open_problem(config, tokenizer)
    lengths = problem.rows("dev").lengths
    places = problem.layout("dev").words.places
    outputs = []
    for _ in range(2):
        logits = [RANDOM.normal(0, 3, (length, 3)) for length in lengths]
        chain = (np.array([0, 0, -1e4]), np.array([[0, 0, -1e4], [1, 0, 2], [0, 0, 0]]), np.zeros(3))
        outputs.append({"logits": logits, **({"chain": chain} if head == "crf" else {})})
    averaged = problem.averaged("dev", outputs)
    answers = problem.answers("dev", averaged)
    if head == "linear":
        mean = np.mean([softmax(np.concatenate(one["logits"])[places], axis=1) for one in outputs], axis=0)
        assert answers == [problem.head.labels[number] for number in mean.argmax(axis=1)]
    else:
        assert len(read_entities(answers, [0, len(answers)]).breaks("bio")) == 0
        marginals = np.exp(np.concatenate(averaged["logits"])[places])
        np.testing.assert_allclose(marginals.sum(axis=1), 1, rtol=1e-4)
        assert marginals[0, 2] < 1e-6  # No sentence begins inside an entity.


def test_spans_over_all_windows_of_a_question(tmp_path):
    path = tmp_path / "x.json"
    write_squad(path, paragraph(CAFE * 3, ("who", "who", "José"), ("when", "in", "1921")))
    lengths = {"max_length": 32, "max_question_length": 8, "stride": 8}
    config, tokenizer = problem_of("qa", path, path.read_text(encoding="utf-8"), input=lengths)
    problem = open_problem(config, tokenizer)
    lengths, firsts = problem.rows("dev").lengths, problem.layout("dev").windows.first_rows
    assert len(lengths) > 4
    outputs = [{name: [RANDOM.normal(0, 3, n) for n in lengths] for name in problem.by_token} for _ in range(2)]
    averaged = problem.averaged("dev", outputs)
    for name in problem.by_token:
        assert [len(row) for row in averaged[name]] == lengths.tolist()
        for first, end in zip(firsts, firsts[1:]):
            expected = np.mean([softmax(np.concatenate(one[name][first:end])) for one in outputs], axis=0)
            np.testing.assert_allclose(np.exp(np.concatenate(averaged[name][first:end])), expected, rtol=1e-6)
    assert problem.answers("dev", averaged).keys() == {"who", "when"}
