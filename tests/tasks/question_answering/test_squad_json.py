"""SQuAD's JSON as published, and broken files, which are refused in one line that names place and id."""

import gzip
import json

import pytest
from squad_file import CAFE, GAME, paragraph, question, write_squad

from keras_bert.core.errors import UserError
from keras_bert.tasks.question_answering.squad_json import Answer, read_squad


def refusal(path):
    with pytest.raises(UserError) as error:
        read_squad(path)
    message = str(error.value)
    assert message.startswith(str(path)) and "\n" not in message
    return message


def test_questions_passages_and_answers_in_their_order(tmp_path):
    first = paragraph(CAFE, ("1", "Who?", "José Núñez-Ortega", "José"), ("2", "When?", "1921"))
    second = paragraph(GAME, ("3", "谁？", "光荣"))
    path = write_squad(tmp_path / "a.json", first, second)
    read = read_squad(path)
    assert read.passages == [CAFE, GAME] and read.origin == path
    assert [question.id for question in read.questions] == ["1", "2", "3"]
    assert [question.passage for question in read.questions] == [0, 0, 1]
    assert read.questions[0].answers == (Answer("José Núñez-Ortega", 39), Answer("José", 39))


def test_a_file_may_be_compressed_and_begin_with_a_mark(tmp_path):
    plain = write_squad(tmp_path / "a.json", paragraph(CAFE, ("1", "Who?", "José")))
    packed = tmp_path / "b.json.gz"
    packed.write_bytes(gzip.compress(b"\xef\xbb\xbf" + open(plain, "rb").read()))
    assert read_squad(packed).questions == read_squad(plain).questions


def test_no_answer_is_another_thing_than_none_told(tmp_path):
    impossible = question("2", "Why?", is_impossible=True, plausible_answers=[{"text": "x", "answer_start": 0}])
    hidden = {"id": "3", "question": "How?", "is_impossible": False}
    path = write_squad(tmp_path / "a.json", {"context": CAFE, "qas": [question("1", "So?"), impossible, hidden]})
    assert [question.answers for question in read_squad(path).questions] == [(), (), None]


def set_at(content, keys, value):
    for key in keys[:-1]:
        content = content[key]
    if value is None:
        del content[keys[-1]]
    else:
        content[keys[-1]] = value


PARAGRAPH = ("data", 0, "paragraphs", 0)
QUESTION = (*PARAGRAPH, "qas", 1)
BROKEN = [
    (("data",), None, "needs 'data'. Received: 'version'"),
    (("data",), {}, "'data' needs a list. Received: an object"),
    (("data", 0), "x", 'data[0]: needs an object. Received: "x"'),
    (("data", 0, "paragraphs"), None, "data[0]: needs 'paragraphs'. Received: 'title'"),
    ((*PARAGRAPH, "context"), None, "data[0].paragraphs[0]: needs 'context'. Received: 'qas'"),
    ((*PARAGRAPH, "context"), 7, "'context' needs text. Received: 7"),
    ((*PARAGRAPH, "context"), "a\ud83d", "paragraphs[0].context: needs text. Received: half a surrogate pair"),
    ((*PARAGRAPH, "qas"), [], "needs at least one question. Received: none"),
    ((*QUESTION, "id"), None, "data[0].paragraphs[0].qas[1]: needs 'id'"),
    ((*QUESTION, "id"), 2, "data[0].paragraphs[0].qas[1]: 'id' needs text. Received: 2"),
    ((*QUESTION, "id"), "1", "needs a unique id for every question. Received: '1' twice"),
    ((*QUESTION, "question"), None, "qas[1] (id '2'): needs 'question'"),
    ((*QUESTION, "answers", 0, "answer_start"), None, "(id '2').answers[0]: needs 'answer_start'. Received: 'text'"),
    ((*QUESTION, "answers", 0, "answer_start"), True, "'answer_start' needs a whole number. Received: true"),
    ((*QUESTION, "answers", 0, "text"), None, "(id '2').answers[0]: needs 'text'"),
    ((*QUESTION, "answers"), "1921", "(id '2'): 'answers' needs a list. Received: \"1921\""),
    ((*QUESTION, "is_impossible"), True, "(id '2'): needs no answers where is_impossible is true. Received: 1"),
    (QUESTION, question("2", "When?", is_impossible=False), "(id '2'): needs an answer where is_impossible is false"),
    ((*QUESTION, "is_impossible"), "no", "(id '2'): 'is_impossible' needs true or false. Received: \"no\""),
]


@pytest.mark.parametrize("keys, value, told", BROKEN)
def test_a_broken_field_is_named_by_its_place(tmp_path, keys, value, told):
    path = write_squad(tmp_path / "a.json", paragraph(CAFE, ("1", "Who?", "José"), ("2", "When?", "1921")))
    content = json.load(open(path, encoding="utf-8"))
    set_at(content, keys, value)
    (tmp_path / "a.json").write_text(json.dumps(content), encoding="utf-8")
    assert told in refusal(path)


@pytest.mark.parametrize(
    "content, told",
    [
        (b'{"data": [\n{"title": "t",}]}', "line 2 column 1"),
        (b"", "line 1 column 1: needs JSON of SQuAD's format. Received: no JSON. Give that, or JSON lines"),
        (b"id,question\n1,Who?\n", "Received: no JSON."),
        (b"[]", "needs an object with 'data'. Received: a list"),
        (b'{"data": [\n"caf\xe9"]}', "line 2: needs JSON in UTF-8 text. Received: not UTF-8"),
        (b'{"a\0": 1}', "Received: binary, not text"),
        (b"\x1f\x8b\x08\x00cut off", "cannot be read"),
        (b"[" * 100_000, "too deep"),
        (None, "No such file"),
    ],
)
def test_what_is_no_json_is_named_by_its_line(tmp_path, content, told):
    path = tmp_path / "a.json"
    if content is not None:
        path.write_bytes(content)
    assert told in refusal(path)
