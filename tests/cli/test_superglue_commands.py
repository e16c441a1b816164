"""SuperGLUE's own kinds of examples as a user gives them: trained, evaluated, submitted and exported."""

import json

import numpy as np
import pytest
from answers import exported_answers
from click.testing import CliRunner
from finetuning import WORDS, write_tiny_bert
from served import ReloadedExport
from superglue_folder import hidden, write_lines

import keras_bert
from keras_bert.cli import main
from keras_bert.export.serving_function import serving_function
from keras_bert.tasks.evaluation import FinetunedModel

SMALL = ["--set", "input.max_length=32", "--set", "optimizer.learning_rate=1e-2", "--set", "training.batch_size=8"]
SMALL += ["--set", "training.jit_compile=false", "--epochs", "6"]
GOOD, BAD = WORDS[:3], WORDS[3:6]


def give(*arguments):
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.output


def words_of_wic(random, number):
    """Both sentences have a good and a bad word: only which one is marked in the first tells the label."""
    row = {"word": "w", "idx": number}
    for which in (1, 2):
        words = [random.choice(GOOD), random.choice(BAD), *(f"w{index}" for index in random.integers(0, 49, 3))]
        order = random.permutation(5)
        marked = int(random.integers(2))
        words = [(words[index], index == marked) for index in order]
        start = len(" ".join(word for word, _ in words[: [mark for _, mark in words].index(True)]))
        start += 1 if start else 0
        row[f"sentence{which}"] = " ".join(word for word, _ in words)
        row |= {f"start{which}": start, f"end{which}": start + len(next(word for word, mark in words if mark))}
        if which == 1:
            row["label"] = marked == 0
    return row


def answers_of_multirc(random, number):
    """An answer is right if it is good."""

    def answer(index):
        is_good = bool(random.integers(2))
        return {"text": str(random.choice(GOOD if is_good else BAD)), "idx": 4 * number + index, "label": int(is_good)}

    questions = [
        {"question": "w1 ?", "idx": 2 * number + which, "answers": [answer(2 * which), answer(2 * which + 1)]}
        for which in (0, 1)
    ]
    return {"idx": number, "version": 1.1, "passage": {"text": "w2 w3", "questions": questions}}


def gaps_of_record(random, number):
    """The good one of a passage's words belongs in the gap."""
    names = [str(random.choice(GOOD)), str(random.choice(BAD)), f"w{random.integers(10, 20)}"]
    order = [names[index] for index in random.permutation(3)]
    starts = np.cumsum([0, *(len(name) + 1 for name in order[:-1])]).tolist()
    entities = [{"start": start, "end": start + len(name) - 1} for start, name in zip(starts, order)]
    place = entities[order.index(names[0])]
    asked = {"query": "w1 @placeholder w2", "idx": number, "answers": [{**place, "text": names[0]}]}
    return {"source": "CNN", "idx": number, "passage": {"text": " ".join(order), "entities": entities}, "qas": [asked]}


TASKS = {
    "wic": ("WiC", words_of_wic, 300, "accuracy"),
    "multirc": ("MultiRC", answers_of_multirc, 60, "f1a"),
    "record": ("ReCoRD", gaps_of_record, 80, "f1"),
}


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_a_task_is_learned_evaluated_submitted_and_exported(task, tmp_path):
    name, make, count, metric = TASKS[task]
    random = np.random.default_rng(0)
    data, run = tmp_path / "superglue", tmp_path / "run"
    for split, rows in (("train", count), ("val", 20), ("test", 20)):
        made = [make(random, number) for number in range(rows)]
        write_lines(data / name / f"{split}.jsonl", hidden(made) if split == "test" else made)
    bert = write_tiny_bert(tmp_path / "bert")
    given = ("--task", task, "--init", bert, "--data-dir", data, "--output", run)
    assert "Written: " in give("finetune", *given, *SMALL)
    results = json.loads((run / "results.json").read_text(encoding="utf-8"))
    best = results["splits"]["dev"][metric]
    assert best > 0.9 and best > results["baseline"]["dev"][metric]

    figures = tmp_path / "figures.json"
    give("evaluate", "--model", run / "model", "--data-dir", data, "--output", figures)
    again = json.loads(figures.read_text(encoding="utf-8"))["dev"]["as it is"][metric]
    assert again == pytest.approx(best, abs=1e-6)

    give("predict", "--model", run, "--split", "test", "--data-dir", data, "--output", tmp_path / "submission")
    lines = (tmp_path / "submission" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["idx"] for line in lines] == list(range(20))
    give("predict", "--model", run, "--input", data / name / "val.jsonl", "--output", tmp_path / "answers.jsonl")
    assert len((tmp_path / "answers.jsonl").read_text(encoding="utf-8").splitlines()) == (
        40 if task == "multirc" else 20
    )

    give("export", "--model", run, "--output", tmp_path / "served")
    model = FinetunedModel(str(run), {"folder": str(data)})
    reloaded = ReloadedExport(tmp_path / "served" / "1", serving_function(keras_bert.load(str(run))))
    exported = exported_answers(model.problem, "dev", reloaded)
    np.testing.assert_allclose(exported, model.evaluate.answers("dev")[0], atol=1e-4)
    assert model.problem.evaluate("dev", exported)[metric] == pytest.approx(best, abs=1e-6)
