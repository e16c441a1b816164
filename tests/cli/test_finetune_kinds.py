"""Every kind of task as a user runs it: trained, evaluated, asked, submitted and exported."""

import json
import os
import re

import numpy as np
import pytest
from answers import exported_answers
from command_line import output_of, sets
from finetuning import TELLING, WORDS, reviews, spoil, write_columns, write_questions, write_sst2, write_tiny_bert
from served import ReloadedExport
from superglue_folder import hidden, write_lines
from tiny import without_dropout, write_random

import keras_bert
from keras_bert.export.serving_function import serving_function
from keras_bert.models.pretraining import BertForPreTraining
from keras_bert.tasks.finetuned_model import FinetunedModel
from keras_bert.text.vocabulary import SPECIAL_TOKENS, Vocabulary

SMALL = sets("input.max_length=32", "optimizer.learning_rate=1e-2", "training.batch_size=8")
SMALL += sets("training.jit_compile=false")  # Compiling takes longer than all the training here.


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return write_tiny_bert(tmp_path_factory.mktemp("kinds") / "bert")


def write_treebank(path, count, seed):
    """A treebank in CoNLL-U: the telling words are adjectives."""
    rows = "{}\t{}\t_\t{}\t_\t_\t_\t_\t_\t_"
    sentences = [
        "\n".join(
            rows.format(number, word, "ADJ" if word in TELLING else "NOUN")
            for number, word in enumerate(text.split(), 1)
        )
        for text, _ in reviews(count, seed)
    ]
    path.write_text("\n\n".join(sentences) + "\n\n", encoding="utf-8")


def write_choices(path, count, seed):
    """Two or three choices, of which the one with a telling word is right."""
    lines = []
    for number, (text, _) in enumerate(reviews(count, seed)):
        choices = ["w3 w4", "w5"][: 1 + number % 2]
        choices.insert(number % 2, text)
        lines.append(json.dumps({"question": "w1", "choices": choices, "label": number % 2}))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


KINDS = {
    "ner": (write_columns, "txt", "f1"),
    "ner crf": (write_columns, "txt", "f1"),
    "pos": (write_treebank, "conllu", "accuracy"),
    "qa": (write_questions, "json", "f1"),
    "choice": (write_choices, "jsonl", "accuracy"),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_of_task(kind, bert, tmp_path):
    write, ending, metric = KINDS[kind]
    train, dev = tmp_path / f"train.{ending}", tmp_path / f"dev.{ending}"
    write(train, 200, seed=1)
    write(dev, 40, seed=2)
    run = tmp_path / "run"
    kind, *head = kind.split()
    given = ["--task", kind, "--init", bert, "--train", train, "--dev", dev, "--output", run]
    given += ["--label", "1"] if kind == "ner" else []  # The model's folder keeps it for evaluation.
    given += ["--set", f"head.{head[0]}=true"] if head else []
    lengths = ["--set", "input.max_question_length=4"] if kind == "qa" else []
    said = output_of("finetune", *given, *SMALL, *lengths, "--epochs", "4")
    ask_as_told(said, run)
    results = json.load(open(run / "results.json", encoding="utf-8"))
    scale = 1 if results["per_cent"] else 100
    best = scale * results["splits"]["dev"][metric]
    assert best > 75 and best > scale * results["baseline"]["dev"][metric] or kind in ("ner", "pos") and best > 99

    figures = tmp_path / "figures.json"
    # The model's folder is enough, without the recipe.
    output_of("evaluate", "--model", run / "model", "--dev", dev, "--output", figures)
    again = json.loads(figures.read_text(encoding="utf-8"))["dev"]["as it is"][metric]
    assert again * scale == pytest.approx(best, abs=1e-6)

    output, by_loop, by_export = tmp_path / "answers", tmp_path / "by_loop", tmp_path / "by_export"
    output_of("predict", "--model", run, "--input", dev, "--output", output)
    most = ["--n-best", "20"] if kind == "qa" else []
    output_of("export", "--model", run, "--output", tmp_path / "served", *most)
    model = FinetunedModel(str(run))
    problem, function = model.problem, serving_function(keras_bert.load(str(run)), n_best=20)
    exported = exported_answers(problem, "dev", ReloadedExport(tmp_path / "served" / "1", function))
    [window] = problem.windows("dev")
    for answers, path in ((model.evaluate.answers("dev")[0], by_loop), (exported, by_export)):
        with problem.writing("dev", str(path)) as write:
            write(window, answers)
    assert scale * problem.evaluate("dev", exported)[metric] == pytest.approx(best, abs=1e-6)
    assert_same_files(output, by_loop)
    assert_same_files(output, by_export)

    spoil(run / "model")
    told = output_of("predict", "--model", str(run), "--input", str(dev), "--output", str(output), status=2)
    assert "The model's outputs: needs finite numbers" in told
    assert_same_files(output, by_loop)


def ask_as_told(said, run):
    """The next command that the run proposes answers an example, or names files if texts are not enough."""
    example = re.search(r"Next: .* predict --model \S+ (.+?)   \|", said)[1]
    texts = ["w1 w2"] * example.count("…")
    assert texts or example == "--input FILE --output FILE"
    output_of("predict", "--model", run, *(texts or ["w1 w2"]), status=0 if texts else 2)


def assert_same_files(one, other):
    """Texts are equal, and numbers within 1e-5."""
    if one.is_dir():
        assert sorted(os.listdir(one)) == sorted(os.listdir(other))
        for name in os.listdir(one):
            assert_same_files(one / name, other / name)
        return
    texts = [path.read_text(encoding="utf-8") for path in (one, other)]
    number = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
    assert number.sub("", texts[0]) == number.sub("", texts[1])
    numbers = [[float(found) for found in number.findall(text)] for text in texts]
    np.testing.assert_allclose(*numbers, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_a_tagger_over_frozen_features(bert, tmp_path):
    """It has its own name and rate unless told otherwise, and is asked like any other."""
    train, dev, run = tmp_path / "train.txt", tmp_path / "dev.txt", tmp_path / "run"
    write_columns(train, 200, seed=1)
    write_columns(dev, 40, seed=2)
    given = ["--task", "ner", "--init", bert, "--train", train, "--dev", dev, "--features", "weighted_all"]
    small = ["--set", "features.lstm_size=32", "--epochs", "12"]
    said = output_of("finetune", *given, *SMALL, *small, "--set", "optimizer.learning_rate=2e-2", "--output", run)
    assert "are computed once" in said and "Written: " in said
    assert "name: ner-weighted_all" in (run / "config.yaml").read_text(encoding="utf-8")
    best = json.load(open(run / "results.json", encoding="utf-8"))["splits"]["dev"]["f1"]
    assert best > 0.9
    figures = tmp_path / "figures.json"
    output_of("evaluate", "--model", run / "model", "--dev", dev, "--output", figures)
    assert json.loads(figures.read_text(encoding="utf-8"))["dev"]["as it is"]["f1"] == pytest.approx(best, abs=1e-6)
    output = tmp_path / "answers"
    output_of("predict", "--model", run, "--input", dev, "--output", output)
    assert len(output.read_text(encoding="utf-8").splitlines()) == len(dev.read_text(encoding="utf-8").splitlines())
    assert "tagger over frozen features, layer weights of the features" in output_of("inspect", run)


def test_features_are_for_taggers_and_for_models_deep_enough(bert):
    """Refused in one line each, before anything is read."""
    for given, line in (
        (("--task", "sst2", "--features", "last"), "features: needs a tagging task (ner, pos, tokens)"),
        (("--task", "pos", "--features", "concat_last4"), "need a model with at least 4 layers. Received: one with 1"),
    ):
        told = output_of("finetune", *given, "--init", bert, "--set", "input.max_length=32", status=2)
        assert line in told and told.strip().count("\n") == 0


def write_texts(path, count, seed):
    """A text per line; its words begin with w or are telling ones, so a letter and its neighbours show which."""
    path.write_text("".join(f"{text}\n" for text, _ in reviews(count, seed)), encoding="utf-8")


@pytest.mark.slow
def test_words_are_found_and_lost_blanks_restored(tmp_path):
    """Trained on texts without blanks, then used before classifying texts that lost theirs."""
    bert, sst2, run, spaces = tmp_path / "bert", tmp_path / "glue", tmp_path / "run", tmp_path / "spaces"
    write_letter_bert(bert)
    write_sst2(sst2)
    train, dev = tmp_path / "train.txt", tmp_path / "dev.txt"
    write_texts(train, 200, seed=1)
    write_texts(dev, 40, seed=2)
    long = ["--set", "input.max_length=64"]
    given = ["--task", "segment", "--init", bert, "--train", train, "--dev", dev, "--output", spaces]
    said = output_of("finetune", *given, *SMALL, *long, "--epochs", "8")
    assert "Written: " in said
    results = json.load(open(spaces / "results.json", encoding="utf-8"))["splits"]["dev"]
    assert results["f1"] > 0.95
    figures, lost, output = tmp_path / "figures.json", tmp_path / "lost.txt", tmp_path / "found.txt"
    output_of("evaluate", "--model", spaces / "model", "--dev", dev, "--output", figures)
    again = json.loads(figures.read_text(encoding="utf-8"))["dev"]["as it is"]
    assert again["f1"] == pytest.approx(results["f1"], abs=1e-6)
    texts = dev.read_text(encoding="utf-8")
    lost.write_text(texts.replace(" ", ""), encoding="utf-8")
    output_of("predict", "--model", spaces, "--input", lost, "--output", output)
    found = output.read_text(encoding="utf-8")
    assert found.replace(" ", "") == texts.replace(" ", "")
    output_of("export", "--model", spaces, "--output", tmp_path / "served")
    reloaded = ReloadedExport(tmp_path / "served" / "1", serving_function(keras_bert.load(str(spaces))))
    served = [row["segmented"].decode() for row in reloaded.answers_by_length(lost.read_text().splitlines())]
    assert served == found.splitlines()

    output_of(
        "finetune", "--task", "sst2", "--init", bert, "--data-dir", sst2, "--output", run, *SMALL, "--epochs", "6"
    )
    asked = ["--model", run, "--noise", "nospace", "--output", figures]
    output_of("evaluate", *asked)
    without = json.loads(figures.read_text(encoding="utf-8"))["dev"]
    output_of("evaluate", *asked, "--restore-spaces", spaces)
    restored = json.loads(figures.read_text(encoding="utf-8"))["dev"]
    assert without["as it is"]["accuracy"] > 0.85 > without["nospace"]["accuracy"]
    assert restored["nospace"]["accuracy"] > without["nospace"]["accuracy"] + 0.1
    lines = tmp_path / "lines.txt"
    lines.write_text("w1goodw2\n", encoding="utf-8")
    output_of("predict", "--model", run, "--input", lines, "--output", output, "--restore-spaces", spaces)
    assert json.loads(output.read_text(encoding="utf-8"))["label"] == "positive"
    for asked, line in (
        (["--model", run, "--restore-spaces", run], "--restore-spaces: needs a model that finds words"),
        (["--model", spaces, "--dev", dev, "--restore-spaces", spaces], "needs a task that classifies texts"),
    ):
        told = output_of("evaluate", *map(str, asked), status=2)
        assert line in told, told


def write_letter_bert(folder):
    """A model whose vocabulary has the letters too, like that of every real BERT."""
    letters = "abcdefghijklmnopqrstuvwxyz0123456789"
    vocabulary = Vocabulary([*SPECIAL_TOKENS, *WORDS, *letters, *(f"##{letter}" for letter in letters)])
    config = without_dropout(vocab_size=len(vocabulary), max_position_embeddings=64, num_hidden_layers=1)
    write_random(folder, BertForPreTraining(config), vocabulary)


GOOD, BAD = WORDS[:3], WORDS[3:6]


def words_of_wic(random, number):
    """Both sentences have a good and a bad word, so only the marked one reveals the label."""
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
    """One of the passage's words, the good one, belongs in the gap."""
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
    ask_as_told(output_of("finetune", *given, *SMALL, "--epochs", "6"), run)
    results = json.loads((run / "results.json").read_text(encoding="utf-8"))
    best = results["splits"]["dev"][metric]
    assert best > 0.9 and best > results["baseline"]["dev"][metric]

    figures = tmp_path / "figures.json"
    output_of("evaluate", "--model", run / "model", "--data-dir", data, "--output", figures)
    again = json.loads(figures.read_text(encoding="utf-8"))["dev"]["as it is"][metric]
    assert again == pytest.approx(best, abs=1e-6)

    output_of("predict", "--model", run, "--split", "test", "--data-dir", data, "--output", tmp_path / "submission")
    lines = (tmp_path / "submission" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["idx"] for line in lines] == list(range(20))
    output_of("predict", "--model", run, "--input", data / name / "val.jsonl", "--output", tmp_path / "answers.jsonl")
    assert len((tmp_path / "answers.jsonl").read_text(encoding="utf-8").splitlines()) == (
        40 if task == "multirc" else 20
    )

    output_of("export", "--model", run, "--output", tmp_path / "served")
    model = FinetunedModel(str(run), {"folder": str(data)})
    reloaded = ReloadedExport(tmp_path / "served" / "1", serving_function(keras_bert.load(str(run))))
    exported = exported_answers(model.problem, "dev", reloaded)
    np.testing.assert_allclose(exported, model.evaluate.answers("dev")[0], atol=1e-4)
    assert model.problem.evaluate("dev", exported)[metric] == pytest.approx(best, abs=1e-6)
