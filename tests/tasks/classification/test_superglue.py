"""SuperGLUE's pairs of texts: files, TFDS, scores against plain definitions, and submissions."""

import json

import numpy as np
import pytest
from finetuning import VOCABULARY
from superglue_folder import DIAGNOSTICS, EXAMPLES, prepare_superglue, write_lines, write_superglue
from whole_splits import load_examples

from keras_bert.config.finetuning import FinetuneConfig
from keras_bert.core.errors import UserError
from keras_bert.tasks import superglue
from keras_bert.tasks.classification.answers import TextWindow
from keras_bert.tasks.classification.benchmarks import SUPERGLUE
from keras_bert.tasks.classification.head import ClassificationConfig
from keras_bert.tasks.classification.problem import SequenceProblem
from keras_bert.tasks.classification.scores import scores
from keras_bert.tasks.problem import open_problem
from keras_bert.tasks.sources import TfdsSource
from keras_bert.text.wordpiece import WordPieceTokenizer

FOLDERS = {task.folders[0]: task for task in SUPERGLUE.values()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_superglue(tmp_path_factory.mktemp("superglue"))


@pytest.mark.parametrize("name", FOLDERS)
def test_the_files_and_tfds_give_the_same_in_the_words_of_the_benchmark(name, folder, tmp_path):
    """True is 1 in BoolQ, and CB's contradiction comes before neutral, whichever source is read."""
    task, rows = FOLDERS[name], {**EXAMPLES, **DIAGNOSTICS}[name]
    source = TfdsSource(prepare_superglue(folder, tmp_path, name))
    for split in task.splits:
        ours, theirs = load_examples(task, split, folder), load_examples(task, split, source)
        assert ours.texts == theirs.texts == [[row[text] for row in rows] for text in task.texts]
        assert ours.indices.tolist() == theirs.indices.tolist() == [row["idx"] for row in rows]
        if split == "test" and not task.trained_by:
            assert ours.labels is None and theirs.labels is None
        else:
            assert ours.labels.tolist() == theirs.labels.tolist()
            assert [task.labels[label] for label in ours.labels] == [str(row["label"]) for row in rows]


def test_labels_have_the_names_and_the_order_of_tfds_own_code():
    from tensorflow_datasets.text.super_glue import SuperGlue

    configs = SuperGlue.builder_configs
    for task in SUPERGLUE.values():
        config = configs[task.tfds.name.partition("/")[2]]
        assert task.labels == tuple(config.label_classes) and set(task.texts) == set(config.features)
    assert {task.config for task in superglue.TASKS.values()} <= set(configs)


def test_the_f1_of_commitment_bank_is_the_plain_mean_over_its_labels():
    random = np.random.default_rng(0)
    labels, predicted = random.integers(0, 3, (2, 40))
    head = ClassificationConfig(SUPERGLUE["cb"].labels)

    def f1(label):
        hits = sum(a == b == label for a, b in zip(labels, predicted))
        return 2 * hits / (sum(labels == label) + sum(predicted == label))

    found = scores(head, SUPERGLUE["cb"].metrics, labels, predicted)
    assert found["macro_f1"] == pytest.approx(np.mean([f1(label) for label in range(3)]))
    assert found["accuracy"] == np.mean(labels == predicted)


def test_gender_parity_is_the_share_of_pairs_with_one_answer():
    head = ClassificationConfig(SUPERGLUE["axg"].labels)
    labels = np.array([0, 0, 1, 1, 0, 0])
    found = scores(head, SUPERGLUE["axg"].metrics, labels, np.array([0, 1, 1, 1, 1, 1]))
    assert found == pytest.approx({"gender_parity": 2 / 3, "accuracy": 3 / 6})
    with pytest.raises(UserError, match="gender_parity: needs pairs .* Received: 5 examples. Give all of AX-g."):
        scores(head, ["gender_parity"], labels[:5], labels[:5])


@pytest.mark.parametrize(
    "task, predicted, lines",
    [
        ("boolq", [1, 0], [{"idx": 7, "label": "true"}, {"idx": 3, "label": "false"}]),
        ("cb", [1, 2], [{"idx": 7, "label": "contradiction"}, {"idx": 3, "label": "neutral"}]),
        ("superglue_rte", [0, 1], [{"idx": 7, "label": "entailment"}, {"idx": 3, "label": "not_entailment"}]),
        ("axg", [1, 1], [{"idx": 7, "label": "not_entailment"}, {"idx": 3, "label": "not_entailment"}]),
    ],
)
def test_submissions_are_as_the_server_wants_them(tmp_path, task, predicted, lines):
    problem = SequenceProblem(SUPERGLUE[task], "", WordPieceTokenizer(VOCABULARY), FinetuneConfig(task))
    logits = np.eye(problem.head.num_labels)[predicted]
    with problem.writing("test", str(tmp_path)) as write:
        write(TextWindow([["a"], ["b"]], [7], None, "test"), logits[:1])
        write(TextWindow([["a"], ["b"]], [3], None, "test"), logits[1:])
    name = {"boolq": "BoolQ", "cb": "CB", "superglue_rte": "RTE", "axg": "AX-g"}[task]
    written = (tmp_path / f"{name}.jsonl").read_text().splitlines()
    assert list(map(json.loads, written)) == lines


@pytest.mark.parametrize(
    "change, message",
    [
        ({"label": "true"}, None),  # The word is the same.
        ({"label": "yes"}, "line 2: needs a known label, one of false, true. Received: 'yes'"),
        ({"label": None}, "line 2: needs a label. Received: None"),
        ({"passage": 3}, "line 2: needs text. Received: 3"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path, change, message):
    first = EXAMPLES["BoolQ"][0]
    path = write_lines(tmp_path / "val.jsonl", [first, {**first, **change}])
    if message is None:
        assert load_examples(SUPERGLUE["boolq"], "dev", str(tmp_path)).labels.tolist() == [1, 1]
        return
    with pytest.raises(UserError) as error:
        load_examples(SUPERGLUE["boolq"], "dev", str(tmp_path))
    assert str(error.value).startswith(f"{path} {message}")


def test_a_model_of_rte_answers_the_diagnostics(folder):
    config = FinetuneConfig.from_mapping({"task": "axg", "data": {"folder": folder}, "input": {"max_length": 16}})
    head = ClassificationConfig(SUPERGLUE["superglue_rte"].labels)
    problem = open_problem(config, WordPieceTokenizer(VOCABULARY), head)
    assert problem.splits == ("test",) and problem.metric_names == ("gender_parity", "accuracy")
    logits = np.array([[0.0, 1.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    assert problem.evaluate("test", logits) == {"gender_parity": 0.5, "accuracy": 0.75}


def test_the_published_averages():
    """The paper's averages are means over each task's mean metric."""
    for system, average in (("BERT large", 69.0), ("human", 89.8)):
        values = []
        for task in superglue.TASKS:
            values.append(np.mean([score.value for score in superglue.published(task) if score.system == system]))
        assert np.mean(values) == pytest.approx(average, abs=0.05)
