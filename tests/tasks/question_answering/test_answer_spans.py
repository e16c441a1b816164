"""The questions of a split and where their answers are; lost answers are counted, named and never trained on."""

import json

import numpy as np
import pytest
import tensorflow_datasets as tfds
from own_tasks import qa_task
from squad_file import CAFE, GAME, paragraph, question, write_squad

from keras_bert.config.finetuning import TaskDataConfig
from keras_bert.core.errors import UserError
from keras_bert.tasks.question_answering.data import LOST, NONE, load_questions, with_unanswerable
from keras_bert.tasks.question_answering.task import CMRC, SQUAD, SQUAD_V2, SpanTask
from keras_bert.tasks.sources import TfdsSource


@pytest.fixture
def odd(tmp_path):
    """A file with an answer that is nowhere in its passage, one elsewhere than stated, and one that is missing."""
    questions = [
        question("lost", "Who?", CAFE, ("Jose", 39), ("Nobody", 3)),
        question("moved", "What?", CAFE, ("a", 20), "1921"),
        question("second", "When?", CAFE, ("1920", 31), "1921"),
        question("unanswered", "Why?", CAFE),
        question("blank", "So?", CAFE, " "),
        question("good", "Where?", CAFE, "Paris"),
    ]
    return write_squad(tmp_path / "odd.json", {"context": CAFE, "qas": questions})


def texts(answered):
    return [
        answered.passages[question.passage][start:end] if start >= 0 else None
        for question, (start, end) in zip(answered.questions, answered.spans)
    ]


def test_training_leaves_out_what_has_no_answer_and_says_so(odd):
    answered = load_questions(qa_task(train=odd, dev=odd, unanswerable=False), "train")
    assert [question.id for question in answered.questions] == ["moved", "second", "good"]
    assert texts(answered) == ["a", "1921", "Paris"]
    assert answered.spans[0, 0] == CAFE.index("was") + 1, "the nearest place to 20"
    assert answered.warnings == (
        f"{odd}: answers that are not in their passage: 4 (the first: 'lost')",
        f"{odd}: answers that are not at answer_start, taken from the nearest place: 1 (the first: 'moved')",
        f"{odd}: skipped questions without an answer to train on: 3 (the first: 'lost')",
    )


def test_unanswerable_questions_are_trained_on_where_the_task_has_them(odd):
    answered = load_questions(qa_task(train=odd, dev=odd, unanswerable=True), "train")
    assert [question.id for question in answered.questions] == ["moved", "second", "unanswered", "good"]
    assert answered.spans[2].tolist() == [NONE, NONE]


def test_evaluation_keeps_every_question(odd):
    answered = load_questions(qa_task(train=odd, dev=odd, unanswerable=True), "dev")
    assert len(answered) == 6 and answered.spans[0].tolist() == [LOST, LOST]
    with pytest.raises(UserError, match=r"needs an answer to every question.*questions without: 1 .*'unanswered'"):
        load_questions(qa_task(train=odd, dev=odd, unanswerable=False), "dev")


def test_whether_there_are_unanswerable_questions_is_seen_in_the_training_file(odd, tmp_path):
    plain = write_squad(tmp_path / "plain.json", paragraph(CAFE, ("1", "Who?", "José")))
    assert with_unanswerable(qa_task(train=odd, dev=plain)).unanswerable is True
    assert with_unanswerable(qa_task(train=plain, dev=odd)).unanswerable is False
    assert with_unanswerable(qa_task(train=odd, scoring="characters")).unanswerable is False
    assert with_unanswerable(qa_task(test=odd, unanswerable=False)).unanswerable is False


def test_a_file_without_answers_can_be_read_to_predict_on(tmp_path):
    hidden = {"context": CAFE, "qas": [{"id": "1", "question": "Who?"}, question("2", "When?", CAFE, "1921")]}
    path = write_squad(tmp_path / "a.json", hidden)
    task = qa_task(train=path, dev=path, test=path, unanswerable=True)
    assert load_questions(task, "test").spans is None
    for split in ("train", "dev"):
        with pytest.raises(UserError, match="needs 'answers' for every question. Received: '1' without"):
            load_questions(task, split)


def test_nothing_to_train_on_is_refused(tmp_path):
    path = write_squad(tmp_path / "a.json", paragraph(CAFE, ("1", "Who?", ("Nobody", 3))))
    with pytest.raises(UserError, match="needs questions to train on. Received: answers that are not in their passage"):
        load_questions(qa_task(train=path, dev=path, unanswerable=False), "train")


def test_one_file_is_parted_by_its_passages(tmp_path):
    """All questions on a passage are on one side, and every question is on exactly one."""
    passages = [paragraph(f"Passage {n} {CAFE}", *((f"{n}-{k}", "Who?", "José") for k in range(3))) for n in range(60)]
    path = write_squad(tmp_path / "a.json", *passages)
    task = qa_task(train=path, unanswerable=False, dev_share=0.3)
    sides = {split: load_questions(task, split) for split in ("train", "dev")}
    ids = {split: {question.id for question in side.questions} for split, side in sides.items()}
    assert len(ids["train"]) + len(ids["dev"]) == 180 and not ids["train"] & ids["dev"]
    assert 20 < len(ids["dev"]) < 90
    for side in sides.values():
        assert len(side.passages) * 3 == len(side.questions)
        assert all(
            text.startswith(f"Passage {q.id.split('-')[0]} ")
            for q in side.questions
            for text in [side.passages[q.passage]]
        )
        assert set(texts(side)) == {"José"}
    one = write_squad(tmp_path / "b.json", paragraph(CAFE, ("1", "Who?", "José")))
    with pytest.raises(UserError, match="needs enough passages to hold out a share of 0.1"):
        load_questions(qa_task(train=one, unanswerable=False), "dev")
        load_questions(qa_task(train=one, unanswerable=False), "train")


def test_the_benchmarks_files_are_found_by_their_names(tmp_path):
    for task, name in (
        (SQUAD, "squad/dev-v1.1.json"),
        (SQUAD_V2, "squad_v2/dev-v2.0.json"),
        (CMRC, "cmrc2018_dev.json"),
    ):
        path = write_squad(tmp_path / task.name / name, paragraph(GAME, (task.name, "谁？", "光荣")))
        answered = load_questions(task, "dev", str(tmp_path / task.name))
        assert answered.origin == path and answered.questions[0].id == task.name
    with pytest.raises(UserError, match="needs .*train-v1.1.json, for the split 'train' of squad"):
        load_questions(SQUAD, "train", str(tmp_path / "squad"))
    with pytest.raises(UserError, match="squad: needs one of its splits train, dev. Received: 'test'"):
        load_questions(SQUAD, "test", str(tmp_path / "squad"))


def test_options_that_do_not_fit_are_refused():
    for options, told in (
        ({"scoring": "bytes"}, "scoring: needs one of words, characters"),
        ({"dev_share": 1.0}, "dev_share"),
    ):
        with pytest.raises(ValueError, match=told):
            TaskDataConfig(train="a.json", **options)
    with pytest.raises(UserError, match="scoring: needs words"):
        qa_task(train="a.json", scoring="characters", unanswerable=True)
    with pytest.raises(ValueError, match="unanswerable"):
        SpanTask("x", {}, scoring="characters", unanswerable=True)
    with pytest.raises(ValueError, match="max_answer_length"):
        SpanTask("x", {}, max_answer_length=0)


def test_tfds_gives_the_same_questions(tmp_path):
    path = write_squad(
        tmp_path / "squad/dev-v1.1.json",
        paragraph(CAFE, ("1", "Who?", "José", "José Núñez-Ortega"), ("2", "When?", "1921")),
        paragraph(GAME, ("3", "谁？", "光荣")),
    )
    ours = load_questions(SQUAD, "dev", str(tmp_path))
    features = tfds.features.FeaturesDict(
        {
            "id": np.str_,
            "title": tfds.features.Text(),
            "context": tfds.features.Text(),
            "question": tfds.features.Text(),
            "answers": tfds.features.Sequence({"text": tfds.features.Text(), "answer_start": np.int32}),
        }
    )
    examples = [
        {
            "id": question.id,
            "title": "t",
            "context": ours.passages[question.passage],
            "question": question.text,
            "answers": {
                "text": [answer.text for answer in question.answers],
                "answer_start": [answer.start for answer in question.answers],
            },
        }
        for question in ours.questions
    ]
    builder = tfds.dataset_builders.store_as_tfds_dataset(
        name="squad",
        config="v1.1",
        version="3.0.0",
        data_dir=str(tmp_path / "tfds"),
        features=features,
        split_datasets={"validation": list(enumerate(examples))},
    )
    theirs = load_questions(SQUAD, "dev", TfdsSource(str(builder.data_path)))
    assert path == ours.origin and theirs.origin == "squad/v1.1/3.0.0 validation"
    assert sorted(theirs.questions, key=lambda question: question.id) == [
        question._replace(passage=theirs.passages.index(ours.passages[question.passage])) for question in ours.questions
    ]
    assert sorted(texts(theirs)) == sorted(texts(ours)) and len(theirs.passages) == 2
    lines = tmp_path / "dev.jsonl"
    lines.write_text("".join(json.dumps(example) + "\n" for example in examples), encoding="utf-8")
    parts = tmp_path / "parts"
    parts.mkdir()
    (parts / "0.jsonl").write_bytes(lines.read_bytes())
    for source in (f"tfds:{builder.data_path}:validation", str(parts), str(parts / "*"), str(lines)):
        own = load_questions(qa_task(train=source, dev=source, unanswerable=False), "dev")
        assert sorted(texts(own)) == sorted(texts(ours)) and len(own.passages) == 2
    lines.write_text(json.dumps({**examples[0], "answers": ["José"]}))
    with pytest.raises(UserError, match="dev.jsonl line 1: needs answers with lists of text and answer_start"):
        load_questions(qa_task(train=source, dev=source, unanswerable=False), "dev")
    with pytest.raises(UserError, match="cmrc: needs its files"):
        load_questions(CMRC, "dev", TfdsSource(str(tmp_path / "tfds")))


@pytest.mark.parametrize(
    ("texts", "starts", "message"),
    [
        (["Mary"], ["0"], "needs an answer_start that is a whole number. Received: '0'."),
        (["Mary"], [0.5], "needs an answer_start that is a whole number. Received: 0.5."),
        ([None], [0], "needs answers that are text. Received: None."),
        (["Mary", "here"], [0], "needs an answer_start for each answer. Received: 1 of 2."),
    ],
)
def test_answers_in_a_table_have_texts_and_starts(texts, starts, message, tmp_path):
    row = {"id": "1", "question": "Who?", "context": "Mary sat here.", "answers": None}
    path = tmp_path / "dev.jsonl"
    task = qa_task(train=str(path), dev=str(path), unanswerable=False)
    path.write_text(json.dumps({**row, "answers": {"text": ["sat"], "answer_start": [5.0]}}), encoding="utf-8")
    [start] = (answer.start for answer in load_questions(task, "dev").questions[0].answers)
    assert start == 5 and isinstance(start, int), "tables have whole numbers as 5.0 too"
    path.write_text(json.dumps({**row, "answers": {"text": texts, "answer_start": starts}}), encoding="utf-8")
    with pytest.raises(UserError, match=f"dev.jsonl line 1: {message}"):
        load_questions(task, "dev")
