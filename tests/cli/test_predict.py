"""predict as a user runs it: every kind, from a file or stdin to a file or stdout, window by window."""

import inspect
import io
import itertools
import json
import re
import shutil
import sys

import pytest
from click.testing import CliRunner
from command_line import give
from served import write_served
from squad_file import paragraph, write_squad

from keras_bert.core import files
from keras_bert.core.errors import UserError
from keras_bert.tasks.answer_files import json_objects, require_unread, text_output
from keras_bert.tasks.classification.head import ClassificationConfig
from keras_bert.tasks.few_shot.task import FewShotConfig
from keras_bert.tasks.finetuned_model import FinetunedModel, predict, splits_like
from keras_bert.tasks.question_answering.task import CMRC, QUESTION_ANSWERING

READER = {"max_length": 24, "stride": 7, "max_question_length": 9, "max_answer_length": 5, "unanswerable": False}
WORDS = "the N\ncat N\n\nsat V\n\ncat N\nthe N\nsat V\n"
CHOICES = [
    {"id": "a", "question": "the", "choices": ["cat", "sat"]},
    {"id": "b", "question": "cat", "choices": ["a", "b", "the"]},
]


def lines(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Function (kind, **what its config.json says of its task) -> the model's folder, made once."""
    made = {}

    def make(kind, **task):
        key = (kind, *map(str, task.items()))
        if key not in made:
            made[key] = write_served(tmp_path_factory.mktemp(kind) / "model", kind, **task)
        return made[key]

    return make


@pytest.fixture
def small_windows(monkeypatch):
    """A few examples make several windows."""
    for module in ("data.windows", "tasks.tagging.tagged_words"):
        monkeypatch.setattr(f"keras_bert.{module}._CHARACTERS_AT_ONCE", 5)


@pytest.mark.parametrize("task", QUESTION_ANSWERING)
def test_questions_without_answers_are_taken_whatever_the_model_was_trained_on(model, tmp_path, task):
    """Questions would be refused for lacking the very answers that are asked for."""
    scoring = QUESTION_ANSWERING[task].scoring
    path = model("answering", task=task, scoring=scoring, **{**READER, "unanswerable": task == "squad_v2"})
    asked = {"context": "the cat sat", "qas": [{"id": "1", "question": "who"}]}
    file = write_squad(tmp_path / "asked.json", asked, paragraph("the cat", ("2", "what", "cat")))
    problem = FinetunedModel(path, asked=file).problem
    [window] = problem.windows("input")
    asked = [(question.id, question.text, window.passages[question.passage]) for question in window.questions]
    assert asked == [("1", "who", "the cat sat"), ("2", "what", "the cat")]


@pytest.mark.slow
def test_a_reader_writes_a_folder_and_nothing_else(model, tmp_path, small_windows):
    path = model("answering", task="squad", scoring="words", **READER)
    hidden = [
        {"context": f"the cat {n} sat", "qas": [{"id": f"{n}{letter}", "question": "who"} for letter in "ab"]}
        for n in range(5)
    ]
    file, output = write_squad(tmp_path / "asked.json", *hidden), tmp_path / "out"
    assert give("predict", "--model", path, "--input", file, "--output", output).exit_code == 0
    answers, best = (json.loads((output / name).read_text()) for name in ("predictions.json", "nbest.json"))
    assert list(answers) == list(best) == [f"{n}{letter}" for n in range(5) for letter in "ab"]
    assert all(
        answer in f"the cat {name[0]} sat" and best[name][0]["text"] == answer for name, answer in answers.items()
    )

    refused = give("predict", "--model", path, "--input", file, "--output", "-", status=2)
    assert "--output: needs a folder" in refused.output
    (tmp_path / "old.txt").touch()
    refused = give("predict", "--model", path, "--input", file, "--output", tmp_path / "old.txt", status=2)
    assert "old.txt: needs a folder" in refused.output
    write_squad(tmp_path / "twice.json", *hidden, hidden[0])
    refused = give(
        "predict", "--model", path, "--input", tmp_path / "twice.json", "--output", tmp_path / "none", status=2
    )
    assert "Received: '0a' twice" in refused.output and not list((tmp_path / "none").iterdir())


@pytest.mark.slow
def test_a_tagger_from_what_comes_in_to_what_goes_out(model, tmp_path, small_windows):
    path = model("features", task="tokens", max_length=20)
    (tmp_path / "words.txt").write_text(WORDS)
    said = give("predict", "--model", path, "--input", tmp_path / "words.txt", "--output", tmp_path / "out").output
    assert f"Written: {tmp_path}/out, 3 examples." in said
    expected = (tmp_path / "out").read_text()
    assert [line.rpartition(" ")[0] for line in expected.splitlines()] == WORDS.splitlines()
    out = give("predict", "--model", path, "--input", "-", "--output", "-", stdin=WORDS)
    assert out.stdout == expected
    # Words alone, without a column of labels.
    alone = "".join(f"{line.partition(' ')[0]}\n" for line in WORDS.splitlines())
    out = give("predict", "--model", path, "--input", "-", "--output", "-", stdin=alone)
    assert [line.split() for line in out.stdout.splitlines()] == [
        [cells[0], cells[-1]] if cells else [] for cells in map(str.split, expected.splitlines())
    ]


def test_entities_from_what_comes_in_are_in_the_scheme_of_all_of_it(model, small_windows):
    """Only the last window shows the scheme of the labels; the first ones do not."""
    path = model("tagging", task="ner", max_length=20)
    told = "the O\n\ncat O\n\nsat S-X\n"
    out = give("predict", "--model", path, "--input", "-", "--output", "-", stdin=told)
    labels = {line.split()[2] for line in out.stdout.splitlines() if line}
    assert labels <= {"O", "B-X", "E-X", "S-X", "I-X"} and not any(label in ("B-X", "I-X") for label in labels)
    refused = give("predict", "--model", path, "--input", "-", "--output", "-", stdin="", status=2)
    assert refused.output == "Error: stdin: needs words in columns, one per line. Received: none.\n"


def test_choices_from_what_comes_in_to_what_goes_out(model, tmp_path, small_windows):
    path = model("choice", task="choice", max_length=20)
    out = give("predict", "--model", path, "--input", "-", "--output", "-", stdin=lines(*CHOICES))
    answers = [json.loads(line) for line in out.stdout.splitlines()]
    assert [answer["choices"] for answer in answers] == [row["choices"] for row in CHOICES]
    assert [len(answer["probabilities"]) for answer in answers] == [2, 3]
    assert not (tmp_path / "-").exists()


@pytest.mark.slow
def test_texts_by_windows_are_answered_as_at_once(model, tmp_path, monkeypatch):
    path = str(tmp_path / "my model")
    shutil.copytree(model("single", task="text", max_length=20, texts=["review"], label="stars"), path)
    table, texts = tmp_path / "a b [1] \u4e2d.jsonl", [f"the cat {n} " * (n % 3) for n in range(40)]
    table.write_text(lines(*({"review": text} for text in texts)))
    found = []
    for characters in (10, 10**6):
        monkeypatch.setattr("keras_bert.data.windows._CHARACTERS_AT_ONCE", characters)
        said = give("predict", "--model", path, "--input", table, "--output", tmp_path / "out")
        assert f"evaluate --model '{path}'" in said.output  # As a user would type it.
        found.append([json.loads(line) for line in (tmp_path / "out").read_text().splitlines()])
    assert [row["review"] for row in found[0]] == texts
    for one, other in zip(*found, strict=True):
        assert one["label"] == other["label"] and one["probabilities"] == pytest.approx(
            other["probabilities"], abs=1e-5
        )


@pytest.mark.parametrize(
    ("kind", "texts", "fields"),
    [
        ("single", ["label"], ["answer_label", "probability", "probabilities"]),
        ("multi", ["labels"], ["answer_labels", "probabilities"]),
        ("regression", ["score"], ["answer_score"]),
        ("pair", ["probability", "answer_probability"], ["label", "answer_answer_probability", "probabilities"]),
    ],
)
def test_no_answer_takes_the_place_of_a_text(model, tmp_path, kind, texts, fields):
    """A column of texts with the name of an answer would be missing from the file of answers."""
    path = model(kind, task="text", max_length=20, texts=texts, label="stars")
    (tmp_path / "in.jsonl").write_text(lines({name: f"the {name}" for name in texts}))
    out = give("predict", "--model", path, "--input", tmp_path / "in.jsonl", "--output", "-")
    [answer] = map(json.loads, out.stdout.splitlines())
    assert list(answer) == [*texts, *fields] and [answer[name] for name in texts] == [f"the {name}" for name in texts]


MIXED = pytest.mark.skipif(
    "mix_stderr" in inspect.signature(CliRunner).parameters, reason="click 8.1 mixes the streams of a command"
)


@pytest.mark.parametrize("output", [pytest.param("-", marks=MIXED), "out"])
def test_what_should_be_known_is_told_beside_the_answers(model, tmp_path, monkeypatch, output):
    """Notes, such as rows skipped, would be lost on users who write answers to stdout."""

    def answered(finetuned, splits, output):
        finetuned.problem.notes.append("3 rows were skipped.")
        return [output], 0

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("keras_bert.tasks.finetuned_model.predict", answered)
    path = model("single", task="text", max_length=20, texts=["review"], label="stars")
    out = give("predict", "--model", path, "--input", "-", "--output", output, stdin="the cat\n")
    assert "3 rows were skipped." in (out.stderr if output == "-" else out.stdout)
    assert output != "-" or not out.stdout


def endless(kind):
    """The bytes of a file without an end."""
    yield b'{"data": [{"paragraphs": [' if kind == "answering" else b""
    for number in itertools.count():
        yield {
            "single": b'{"text": "the cat"}\n' * 100,
            "features": b"the N\ncat V\n\n" * 100,
            "choice": b'{"question": "the", "choices": ["cat", "sat"]}\n' * 100,
            "answering": b'{"context": "the cat", "qas": [{"id": "%d", "question": "who"}]},' % number,
        }[kind]


@pytest.mark.parametrize(
    "kind, task",
    [
        ("single", {"task": "text", "texts": ["text"], "label": "label"}),
        ("features", {"task": "tokens"}),
        ("choice", {"task": "choice"}),
        ("answering", {"task": "squad", "scoring": "words", **READER}),
    ],
)
def test_of_a_file_of_any_size_a_window_is_read_at_a_time(model, monkeypatch, kind, task):
    """This file has no end: reading all of it first would never give an answer."""
    for module in ("corpus.text_lines", "tables.tables"):
        monkeypatch.setattr(f"keras_bert.data.{module}.read_chunks", lambda path: endless(kind))
    monkeypatch.setattr("keras_bert.data.tables.tables.table_files", lambda source: (source, [source]))
    monkeypatch.setattr("keras_bert.data.windows._MOST", 50)
    name = {"features": "words.txt", "answering": "a.json"}.get(kind, "a.jsonl")
    problem = FinetunedModel(model(kind, **{"max_length": 20, **task}), asked=name).problem
    windows = problem.windows("input")
    assert len(next(windows)) and len(next(windows))


class Counted:
    """A problem for which nothing is computed."""

    answers_ending = ".jsonl"

    def __init__(self, kind, *splits):
        self.splits, self._kind = splits, kind
        self.problem = self

    def output_kind(self, split):
        return self._kind

    def windows(self, split):
        raise AssertionError("computed")


def test_an_exact_name_is_one_split_and_several_have_files_of_their_own():
    """CMRC's dev and its trial would share a file, where the last overwrites the other."""
    from keras_bert.tasks.finetuned_model import _places

    assert splits_like(Counted("folder", *CMRC.splits), "dev") == ["dev"]
    both = ["dev_matched", "dev_mismatched"]
    assert splits_like(Counted("file", "train", *both), "dev") == both
    assert _places(Counted("file", *both), both, "out") == {split: f"out/{split}.jsonl" for split in both}
    assert _places(Counted("folder", *both), both, "out") == {split: f"out/{split}" for split in both}


def test_an_empty_name_is_no_split():
    """With the variable unset, `evaluate --split "$SPLIT"` would score the training examples too."""
    with pytest.raises(UserError, match="split: needs one of train, dev. Received: ''"):
        splits_like(Counted("file", "train", "dev"), "")


def test_outputs_that_cannot_be_are_refused_before_anything_is_computed(tmp_path):
    (tmp_path / "file").write_text("x")
    for kind, splits, output, told in (
        ("folder", ["dev"], "-", "--output: needs a folder"),
        ("folder", ["dev"], str(tmp_path / "file"), "file: needs a folder"),
        ("file", ["dev"], str(tmp_path), "needs a file to write"),
        ("file", ["dev_a", "dev_b"], "-", "--output: needs a folder"),
        ("file", ["dev"], "x" * 250, "cannot be written .File name too long."),  # With the .partial it has meanwhile.
    ):
        with pytest.raises(UserError, match=told):
            predict(Counted(kind, *splits), splits, output)


@pytest.mark.parametrize(
    ("written", "read", "named"),
    [
        (["in.txt"], ["in.txt"], "in.txt"),
        (["./sub/../in.txt"], ["file://{}/in.txt"], "in.txt"),
        (["in.txt"], ["link.txt"], "in.txt"),
        (["ram://answers/a/b"], ["ram://answers/a"], "ram://answers/a"),
        (["sub/old.txt"], [None, "."], "{}"),  # A file already in a data folder or a model.
        (["sub/old.txt"], ["s*/*.txt"], "sub/old.txt"),  # A second run would answer the answers too.
        (["."], ["in.txt"], "in.txt"),  # A reader's answers, in the folder of its questions.
        (["new.npz", None, "sub/../new.npz"], [], "another output"),
    ],
)
def test_nothing_that_is_read_is_written(tmp_path, monkeypatch, written, read, named):
    """The only copy of the input would be lost."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    for name in ("in.txt", "sub/old.txt", "ram://answers/a/b"):
        with files.open_file(name, "w") as stream:
            stream.write("the cat")
    (tmp_path / "link.txt").symlink_to("in.txt")
    named = named.format(tmp_path)
    with pytest.raises(
        UserError, match=rf"needs a place of its own. Received: that of \S*{re.escape(named)}[.,]?.*Give"
    ):
        require_unread(written, [path and path.format(tmp_path) for path in read])


def test_other_places_are_written(tmp_path):
    """Answers may be written beside a model or its data."""
    (tmp_path / "in.txt").write_text("the cat")
    new, old = str(tmp_path / "new.txt"), str(tmp_path / "in.txt")
    require_unread([new, "-", None, str(tmp_path / "model.npz")], [old, "-", None, str(tmp_path / "absent"), "hf:NAME"])
    require_unread([new, str(tmp_path / "answers")], [str(tmp_path)])


def test_commands_refuse_to_write_what_they_read(model, tmp_path, monkeypatch):
    """Refused before the model is loaded, even if only the run's recipe names the file."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(model("single", task="text", max_length=20, texts=["text"], label="label"), "run/model")
    (tmp_path / "texts.jsonl").write_text(lines({"text": "the cat", "label": "yes"}))
    (tmp_path / "run" / "config.yaml").write_text("task: text\ndata: {dev: texts.jsonl, label: label}\n")
    before = (tmp_path / "texts.jsonl").read_bytes()
    monkeypatch.setattr("keras_bert.inference.loading.load_folder", None)
    monkeypatch.setattr("keras_bert.tasks.finetuned_model.load_folder", None)
    for command in (
        ["predict", "--input", "texts.jsonl", "--output", "texts.jsonl"],
        ["predict", "--split", "dev", "--output", "texts.jsonl"],
        ["evaluate", "--output", "texts.jsonl"],
        ["evaluate", "--picture", "texts.jsonl"],
        ["embed", "--input", "texts.jsonl", "--output", "texts.jsonl"],
        ["embed", "--input", "texts.jsonl", "--output", "a.npz", "--index", "texts.jsonl"],
        ["embed", "--input", "texts.jsonl", "--output", "run/model/vocab.txt"],
    ):
        refused = give(*command, "--model", "run", status=2)
        assert "needs a place of its own" in refused.output, refused.output
    picture = ["--task", "text", "--init", "run", "--train", "texts.jsonl", "--label", "label"]
    refused = give("finetune", *picture, "--picture", "texts.jsonl", "--set", "input.max_length=20", status=2)
    assert "needs a place of its own" in refused.output, refused.output
    assert (tmp_path / "texts.jsonl").read_bytes() == before


def test_what_goes_out_is_utf8_whatever_the_locale(monkeypatch):
    out = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out, encoding="ascii"))
    with text_output("-") as write:
        write(["\u4e2d\n"])
        assert out.getvalue() == b"\xe4\xb8\xad\n"  # At once, for a reader that waits for it.


def test_two_commands_with_one_output_do_not_mix(tmp_path):
    """They used to write into one temporary file, which got its name while the second still wrote into it."""
    path = tmp_path / "answers"
    with text_output(str(path)) as write:
        write(["the first's\n"])
        with pytest.raises(UserError, match="answers: in use by process .* or give another --output."):
            text_output(str(path)).__enter__()
    assert path.read_text() == "the first's\n" and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("parts", [[], [{}], [{"a": 1}, {"b": [{"c": "\u4e2d"}], "d": []}, {}, {"e": {}}]])
def test_json_in_parts_is_the_json_of_the_whole(tmp_path, parts):
    with json_objects(str(tmp_path), ["x.json"]) as members:
        for part in parts:
            members["x.json"](part)
    whole = {name: value for part in parts for name, value in part.items()}
    assert (tmp_path / "x.json").read_text() == json.dumps(whole, ensure_ascii=False, indent=1) + "\n"


def test_a_split_without_a_submission_is_json_lines(model, tmp_path):
    """GLUE's dev, or a user's own test file, would end in a fault after everything was computed."""
    home = tmp_path / "glue" / "SST-2"
    home.mkdir(parents=True)
    (home / "dev.tsv").write_text("sentence\tlabel\nthe cat\t1\nsat\t0\n")
    (tmp_path / "test.csv").write_text("text,more\nthe cat,1\nsat,2\n")
    head = ClassificationConfig(("negative", "positive"))
    glue = model("single", task="sst2", max_length=20, head=head)
    own = model("single", task="text", max_length=20, texts=["text"], label="label")
    for path, given, name in (
        (glue, ["--split", "dev", "--data-dir", tmp_path / "glue"], "sentence"),
        (own, ["--split", "test", "--test", tmp_path / "test.csv"], "text"),
    ):
        result = give("predict", "--model", path, *given, "--output", "-")
        assert [json.loads(line)[name] for line in result.stdout.splitlines()] == ["the cat", "sat"]


SHOWN = [
    ("pair", ["the cat", "sat"], r"the cat\nsat\n  → (yes|no) 0\.\d{3}  (yes|no) 0\.\d{3}\n"),
    ("answering", ["who", "the cat sat"], r"who\n  → (.+) 0\.\d{3}\n(    .+ 0\.\d{3}\n)+"),
    ("single", ["the", "a cat"], r"(.+\n  → (\w+ 0\.\d{3}(  )?){3}\n){2}"),
    ("multi", ["the cat"], r"the cat\n  → b 0\.\d{3}\n    a 0\.\d{3}\n"),
    ("regression", ["the"], r"the\n  → -?\d\.\d{3}\n"),
    ("tagging", ["the 中!"], r"the 中!\n  → the  .+\n    中    .+\n    !    .+\n"),
    ("segment", ["thecat"], r"thecat\n  → [thecat ]+\n"),
    ("choice", ["the", "cat", "sat"], r"the\n  → (cat|sat) 0.+\n    (cat|sat) 0.+\n"),
    ("choice", ["the", "cat", "cat"], r"the\n  → cat 0\.500\n    cat 0\.500\n"),
]


@pytest.mark.parametrize(
    ("kind", "texts", "shown"), [SHOWN[0], *(pytest.param(*case, marks=pytest.mark.slow) for case in SHOWN[1:])]
)
def test_texts_of_the_command_line_are_answered_on_the_screen(model, kind, texts, shown):
    """A single text would need a file or a pipe, and get its answer as JSON."""
    reading = {"answering": READER}.get(kind, {"max_length": 24})
    result = give("predict", "--model", model(kind, **reading), *texts)
    assert re.fullmatch(shown, result.stdout), result.output


@pytest.mark.parametrize(
    ("kind", "arguments", "message"),
    [
        ("pair", ["the"], "TEXT: needs pairs of texts, one after the other. Received: 1 of them."),
        ("choice", ["the", "cat"], "TEXT: needs a context and two choices or more. Received: 2 of them."),
        ("choice", ["the", "cat", " "], "TEXT: needs a text for each choice. Received: ['cat', ' ']."),
        ("masked_lm", ["the"], "needs a fine-tuned model. Received: one without a task's head. Fine-tune it with"),
        ("pair", ["the", "--text", "a"], "--text: goes with a file of examples. Received: TEXT too."),
        ("pair", ["the", "--output", "a"], "--output: goes with a file of examples. Received: TEXT too."),
        ("pair", [], "TEXT: needs a text to answer, --input a file of them, or --split a split"),
        ("pair", ["--input", "a"], "--output: needs a file or folder for the answers, or - for stdout."),
    ],
)
def test_texts_that_cannot_be_answered_are_one_line(model, kind, arguments, message):
    result = give("predict", "--model", model(kind, max_length=24), *arguments, status=2)
    assert message in result.output


@pytest.mark.parametrize(
    ("kind", "task", "columns", "message"),
    [
        ("pair", "text", ["a"], "text: needs pairs of texts, as in training. Received: single texts, a. Give two"),
        ("single", "text", ["a", "b"], "text: needs single texts, as in training. Received: pairs of texts, a, b."),
        ("pair", "few-shot", ["a"], "few-shot: needs pairs of texts, as in training."),
        ("regression", "rerank", ["a"], "needs the names of two columns, the query's and the passage's. Received: a."),
        ("pair", "rte", [], "rte: needs single texts, as in training. Received: pairs of texts, "),
    ],
)
def test_a_model_of_pairs_reads_no_single_texts_nor_the_reverse(model, tmp_path, kind, task, columns, message):
    """It would answer them as rows of a form that it never saw in training."""
    (tmp_path / "in.csv").write_text("a,b\nthe cat,sat\n")
    head = FewShotConfig(("no", "yes")) if task == "few-shot" else None
    trained = {"task": "text" if task == "rte" else task, "pair": kind == "pair" and task != "rte"}
    if task == "rte":
        head = ClassificationConfig(("entailment", "not_entailment"))
    path = model(kind, head=head, max_length=24, texts=["a", "b"][: 1 + trained["pair"]], **trained)
    given = [word for name in columns for word in ("--text", name)]
    asked = ["predict", "--model", path, "--task", task, "--input", tmp_path / "in.csv", "--output", "-", *given]
    assert message in give(*asked, status=2).output
