"""MultiRC and ReCoRD: files, TFDS, scores against the official definitions, and submissions."""

import collections
import copy
import json
import re
import string

import numpy as np
import pytest
from finetuning import VOCABULARY
from superglue_folder import EXAMPLES, prepare_superglue, write_lines, write_superglue

from keras_bert.config.finetuning import FinetuneConfig
from keras_bert.core.errors import UserError
from keras_bert.tasks.classification.questions import QUESTION_TASKS, Question, passages
from keras_bert.tasks.classification.scores import cloze_scores, judgement_scores
from keras_bert.tasks.noise import Noise
from keras_bert.tasks.problem import open_problem
from keras_bert.tasks.task import with_own_files
from keras_bert.text.wordpiece import WordPieceTokenizer


def problem_of(task, folder, **settings):
    values = {"task": task, "data": {"folder": folder}, "input": {"max_length": 24, **settings}}
    return open_problem(FinetuneConfig.from_mapping(values), WordPieceTokenizer(VOCABULARY))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_superglue(tmp_path_factory.mktemp("superglue"))


@pytest.mark.parametrize("name", ["MultiRC", "ReCoRD"])
def test_the_files_and_tfds_give_the_same(name, folder, tmp_path):
    """In the same order, with the same candidates, labels and numbers, and with no labels for the hidden split."""
    ours, theirs = problem_of(name.lower(), folder), problem_of(name.lower(), prepare_superglue(folder, tmp_path, name))
    for split in ("train", "dev", "test"):
        found, again = (
            [
                (one.passage, one.number, one.context, one.query, list(one.candidates), list(one.numbers))
                for window in problem.windows(split)
                for one in window.examples
            ]
            for problem in (ours, theirs)
        )
        assert found == again and len(found) == 3
        assert ours.rows(split).ids.tolist() == theirs.rows(split).ids.tolist()
        assert ours.rows(split).extra["labels"].tolist() == theirs.rows(split).extra["labels"].tolist()
    with pytest.raises(UserError, match="needs labels to evaluate on. Received: none"):
        ours.evaluate("test", np.zeros((6, 2)))


def test_a_row_for_each_answer_of_multirc(folder):
    problem = problem_of("multirc", folder)
    [window] = problem.windows("train")
    assert window.texts[1] == [
        "Who w1 ? w2",
        "Who w1 ? w5",
        "Who w1 ? all of w2",
        "Why w3 ? w6",
        "Why w3 ? w4",
        "What ? w7",
    ]
    assert window.texts[0] == ["w1 w2 . w3 w4 ."] * 5 + ["w7 ."]
    assert problem.rows("train").extra["labels"].tolist() == [1, 0, 1, 0, 1, 1]


def test_a_row_for_each_different_entity_of_record(folder):
    """Each entity is put in the query's gap; all that are spelled like an answer are right."""
    problem = problem_of("record", folder)
    [window] = problem.windows("train")
    assert window.texts[1][:3] == ["Ann was met by Bob", "Ann Lee was met by Bob", "Bob was met by Bob"]
    assert window.texts[1][3:] == ["He is Ann .", "He is Ann Lee .", "He is Bob .", "w3 w1", "w3 w2"]
    assert problem.rows("train").extra["labels"].tolist() == [1, 1, 0, 0, 0, 1, 0, 1]


def question(number, labels, candidates=None, references=()):
    names = candidates or [f"c{index}" for index in range(len(labels))]
    return Question(0, number, "w1", "w2", names, range(len(labels)), labels, references)


def test_multircs_scores_are_the_official_ones():
    """F1a over all answers; exact match of a question only if all of its answers are judged right."""
    random = np.random.default_rng(1)
    questions = [question(n, random.integers(0, 2, random.integers(1, 6)).tolist()) for n in range(30)]
    labels = np.concatenate([one.labels for one in questions])
    judged = np.where(random.random(len(labels)) < 0.8, labels, 1 - labels)
    true_positives = sum(label and answer for label, answer in zip(labels, judged))
    precision, recall = true_positives / sum(judged), true_positives / sum(labels)
    at, exact = 0, []
    for one in questions:
        exact.append(judged[at : at + len(one.labels)].tolist() == one.labels)
        at += len(one.labels)
    found = judgement_scores(questions, labels, judged)
    assert found == pytest.approx({"f1a": 2 * precision * recall / (precision + recall), "exact": sum(exact) / 30})
    assert 0 < found["exact"] < found["f1a"] < 1
    assert judgement_scores(questions, labels, np.zeros_like(labels))["f1a"] == 0.0


def test_records_scores_are_the_official_ones():
    """Lower case, without punctuation and articles; F1 of bags of words, against the best of the answers."""

    def normalized(text):
        text = "".join(letter for letter in text.lower() if letter not in string.punctuation)
        return re.sub(r"\b(a|an|the)\b", " ", text).split()

    def f1(answer, reference):
        answer, reference = normalized(answer), normalized(reference)
        same = sum((collections.Counter(answer) & collections.Counter(reference)).values())
        return 2 * same / (len(answer) + len(reference)) if same else 0.0

    names = ["The U.S. Army", "US army", "Ann Lee", "Lee", "Bob"]
    references = [["US Army"], ["Ann Lee", "Lee Smith"], ["Bob"], ["Ann Lee"]]
    questions = [question(number, [0] * 5, names, texts) for number, texts in enumerate(references)]
    chosen = [0, 3, 2, 2]
    answers = [names[index] for index in chosen]
    expected = {
        "f1": np.mean([max(f1(answer, one) for one in texts) for answer, texts in zip(answers, references)]),
        "exact": np.mean(
            [any(normalized(answer) == normalized(one) for one in texts) for answer, texts in zip(answers, references)]
        ),
    }
    assert cloze_scores(questions, chosen) == pytest.approx(expected)
    assert expected["exact"] == 0.5 and 0.5 < expected["f1"] < 1


def test_clozes_of_equal_numbers_all_count():
    """When files are joined, only the last question of each number would be scored."""
    questions = [Question(0, 0, "", "@placeholder", ["Ann", "Bob"], (), None, [right]) for right in ("Ann", "Bob")]
    assert cloze_scores(questions, [1, 1]) == {"f1": 0.5, "exact": 0.5}


def test_the_most_probable_entity_is_the_answer_and_submitted(folder, tmp_path):
    """Even if the model judges none of a query's entities to be right, or several."""
    problem = problem_of("record", folder)
    logits = np.array([[3.0, 0], [2, 1], [5, 0], [0, 1], [0, 2], [0, 3], [0, 9], [9, 0]])
    assert problem.evaluate("dev", logits) == pytest.approx({"f1": 2 / 3, "exact": 2 / 3})
    assert problem.baseline("dev") == pytest.approx({"f1": 1 / 3, "exact": 1 / 3})  # Ann, Ann again, and w1.
    [window] = problem.windows("test")
    with problem.writing("test", str(tmp_path)) as write:
        write(window, logits)
    written = list(map(json.loads, (tmp_path / "ReCoRD.jsonl").read_text().splitlines()))
    assert written == [{"idx": 0, "label": "Ann Lee"}, {"idx": 1, "label": "Bob"}, {"idx": 2, "label": "w1"}]
    with problem.writing("dev", str(tmp_path / "dev.jsonl")) as write:
        write(window, logits)
    first = json.loads((tmp_path / "dev.jsonl").read_text().splitlines()[0])
    assert (first["idx"], first["label"], first["question"]) == (0, "Ann Lee", "@placeholder was met by Bob")
    assert [one["text"] for one in first["candidates"]] == ["Ann", "Ann Lee", "Bob"]


def test_multircs_submission_is_nested_as_the_server_wants_it(folder, tmp_path):
    problem = problem_of("multirc", folder)
    judged = np.array([1, 0, 0, 0, 1, 0])
    logits = np.stack([1.0 - judged, judged], axis=1)
    assert problem.evaluate("dev", logits) == pytest.approx({"f1a": 2 * 2 / (2 + 4), "exact": 1 / 3})
    assert problem.baseline("dev") == pytest.approx({"f1a": 2 * 4 / (6 + 4), "exact": 1 / 3})
    [window] = problem.windows("test")
    with problem.writing("test", str(tmp_path)) as write:
        write(window, logits)

    def answers(*pairs):
        return [{"idx": number, "label": label} for number, label in pairs]

    first = [{"idx": 0, "answers": answers((0, 1), (1, 0), (2, 0))}, {"idx": 1, "answers": answers((3, 0), (4, 1))}]
    written = list(map(json.loads, (tmp_path / "MultiRC.jsonl").read_text().splitlines()))
    assert written == [
        {"idx": 0, "passage": {"questions": first}},
        {"idx": 1, "passage": {"questions": [{"idx": 2, "answers": answers((5, 0))}]}},
    ]


def test_noise_changes_what_is_read_and_not_what_is_right(folder):
    problem = problem_of("record", folder)
    clean, logits = problem.rows("dev").ids.tolist(), np.zeros((8, 2))
    scores = problem.evaluate("dev", logits)
    with problem.under(Noise("nospace")):
        assert problem.rows("dev").ids.tolist() != clean and problem.evaluate("dev", logits) == scores


def broken(task, change):
    rows = copy.deepcopy(EXAMPLES[task])
    change(rows[1])
    return rows


@pytest.mark.parametrize(
    "name, change, message",
    [
        ("MultiRC", lambda row: row.update(idx="x"), "line 2: needs a whole number as idx. Received: 'x'"),
        ("MultiRC", lambda row: row.update(passage=3), "line 2: needs a text 'text' in a passage. Received: None"),
        ("MultiRC", lambda row: row["passage"].pop("questions"), "line 2: needs a list of objects 'questions'"),
        (
            "MultiRC",
            lambda row: row["passage"]["questions"][0]["answers"][0].update(label=2),
            "line 2: needs a label 0 or 1. Received: 2",
        ),
        (
            "MultiRC",
            lambda row: row["passage"]["questions"][0]["answers"].append({"text": "w1", "idx": 6}),
            "line 2: needs a label for every answer of a question. Received: some without",
        ),
        (
            "MultiRC",
            lambda row: row["passage"]["questions"][0]["answers"][0].pop("label"),
            "question 2: needs labels for all questions or for none. Received: none, unlike question 0",
        ),
        ("MultiRC", lambda row: row["passage"]["questions"][0].update(answers=[]), "line 2: needs at least one answer"),
        ("ReCoRD", lambda row: row["qas"][0].update(query="w3"), "line 2: needs @placeholder in every query"),
        ("ReCoRD", lambda row: row["passage"].update(entities=[]), "line 2: needs at least one entity for every query"),
        (
            "ReCoRD",
            lambda row: row["passage"]["entities"][1].update(end=5),
            "line 2: needs entities within the 5 characters of its passage. Received: 3 to 5",
        ),
        ("ReCoRD", lambda row: row["qas"][0].pop("idx"), "line 2: needs a whole number as idx of a question"),
        ("ReCoRD", lambda row: row.pop("qas"), "line 2: needs a JSON object with 'idx', 'passage', 'qas'."),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path, name, change, message):
    path = write_lines(tmp_path / "val.jsonl", broken(name, change))
    with pytest.raises(UserError) as error:
        list(passages(QUESTION_TASKS[name.lower()], "dev", str(tmp_path))[1])
    assert str(error.value).startswith(f"{path} {message}") and "\n" not in str(error.value)


def test_of_several_files_the_broken_one_is_named(tmp_path):
    """The user would be told a line of any of them."""
    write_lines(tmp_path / "a.jsonl", [EXAMPLES["MultiRC"][0]])
    write_lines(tmp_path / "b.jsonl", [{**EXAMPLES["MultiRC"][0], "idx": "x"}])
    task = with_own_files(QUESTION_TASKS["multirc"], {"dev": str(tmp_path / "*.jsonl")})
    with pytest.raises(UserError, match="b.jsonl line 1: needs a whole number as idx"):
        list(passages(task, "dev", "")[1])


def test_what_does_not_fit_is_refused(folder, tmp_path):
    with pytest.raises(UserError, match="input.long: needs truncate or head_tail for multirc. Received: windows"):
        problem_of("multirc", folder, long="windows")
    write_lines(tmp_path / "train.jsonl", [])
    with pytest.raises(UserError, match="needs a table. Received: an empty file"):
        problem_of("record", str(tmp_path)).rows("train")
