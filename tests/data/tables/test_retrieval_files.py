"""BEIR's folders: what is read, and how faults are located."""

import json

import pytest

from keras_bert.core.errors import UserError
from keras_bert.data.tables.retrieval_files import read_retrieval_set, write_run

CORPUS = [{"_id": "d1", "title": "Cats", "text": "They sat."}, {"_id": 2, "title": "", "text": "A dog."}]
QUERIES = [{"_id": "q1", "text": "Who sat?", "metadata": {}}, {"_id": "q2", "text": "Who slept?"}]
GRADES = ["q1\td1\t2", "q1\t2\t0"]


def write_folder(folder, corpus=CORPUS, queries=QUERIES, grades=GRADES, header="query-id\tcorpus-id\tscore"):
    (folder / "qrels").mkdir(parents=True)
    for name, rows in (("corpus", corpus), ("queries", queries)):
        (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (folder / "qrels" / "test.tsv").write_text("".join(f"{line}\n" for line in (header, *grades)))
    return str(folder)


def test_a_folder_is_read(tmp_path):
    """The title goes before the text, an id may be a number, and queries without judgements are left out."""
    found = read_retrieval_set(write_folder(tmp_path / "beir"))
    assert found.queries == {"q1": "Who sat?"} and found.grades == {"q1": {"d1": 2.0, "2": 0.0}}
    assert len(found.passages) == 2
    for _ in range(2):
        assert list(found.passages.items()) == [("d1", "Cats They sat."), ("2", "A dog.")]


def test_some_passages_may_lack_a_title(tmp_path):
    """A user's files may mix both; a column missing in some rows is refused where it would be a label."""
    corpus = [CORPUS[0], {"_id": "d2", "text": "A dog."}]
    found = read_retrieval_set(write_folder(tmp_path / "beir", corpus, grades=["q1\td2\t1"]))
    assert list(found.passages.items()) == [("d1", "Cats They sat."), ("d2", "A dog.")]


def test_white_space_around_ids_does_not_count(tmp_path):
    """Otherwise judgements, whose cells have none, would name no passage."""
    corpus, queries = [{"_id": " d1 ", "text": "They sat."}], [{"_id": "q1\n", "text": "Who sat?"}]
    found = read_retrieval_set(write_folder(tmp_path / "beir", corpus, queries, ["q1\td1\t1"]))
    assert found.grades == {"q1": {"d1": 1.0}} and found.queries == {"q1": "Who sat?"}
    assert list(found.passages.items()) == [("d1", "They sat.")]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"grades": ["q1\td1\t1", "q1\td9\t1"]}, "test.tsv line 3: needs an _id of corpus.jsonl. Received: 'd9'"),
        ({"grades": ["q9\td1\t1"]}, "test.tsv line 2: needs an _id of queries.jsonl. Received: 'q9'"),
        ({"grades": ["q1\td1\thigh"]}, "test.tsv line 2: needs a number as score. Received: 'high'"),
        ({"grades": ["q1\td1\tnan"]}, "test.tsv line 2: needs a number as score"),
        ({"grades": ["q1\td1\t1", "q1\td1\t2"]}, "test.tsv line 3: needs one grade for query 'q1' and passage 'd1'"),
        ({"grades": ["q1\td1\t0"]}, "test.tsv: needs a relevant passage, with a score above 0. Received: none"),
        ({"grades": []}, "test.tsv: needs a relevant passage"),
        ({"header": "a\tb\tc"}, "test.tsv line 1: needs a column 'query-id'"),
        ({"corpus": []}, "corpus.jsonl: needs a table. Received: an empty file"),
        ({"corpus": [*CORPUS, CORPUS[0]]}, "corpus.jsonl line 3: needs an _id of its own. Received: 'd1'"),
        ({"corpus": [{"_id": " ", "text": ""}]}, 'corpus.jsonl line 1: needs a text as _id. Received: " "'),
        ({"corpus": [CORPUS[0], {**CORPUS[0], "_id": "d1 "}]}, "corpus.jsonl line 2: needs an _id of its own"),
        ({"corpus": [{"_id": None, "text": ""}]}, "corpus.jsonl line 1: needs a text as _id. Received: null"),
        ({"queries": []}, "queries.jsonl: needs a table. Received: an empty file"),
        ({"queries": [{"_id": "q1", "text": " "}]}, "queries.jsonl line 1: needs a query. Received: an empty text"),
        ({"queries": [*QUERIES, QUERIES[1]]}, "queries.jsonl line 3: needs an _id of its own. Received: 'q2'"),
        ({"queries": [{"_id": "q1"}]}, "queries.jsonl line 1: needs a JSON object with '_id', 'text'"),
    ],
)
def test_a_wrong_row_is_named(tmp_path, given, message):
    with pytest.raises(UserError, match=message):
        read_retrieval_set(write_folder(tmp_path / "beir", **given))


def test_a_passage_without_text_is_named_when_it_is_read(tmp_path):
    found = read_retrieval_set(write_folder(tmp_path / "beir", [*CORPUS, {"_id": "d3", "title": "", "text": 7}]))
    with pytest.raises(UserError, match="corpus.jsonl line 3: needs text in the field 'text'. Received: 7"):
        list(found.passages.items())


@pytest.mark.parametrize("title", [0, False, []])
def test_a_title_that_is_no_text_is_named_when_it_is_read(tmp_path, title):
    """It would count as no title, which only null does."""
    corpus = [{"_id": "d1", "title": None, "text": "They sat."}, {"_id": "d2", "title": title, "text": "A dog."}]
    found = read_retrieval_set(write_folder(tmp_path / "beir", corpus, grades=["q1\td1\t1"]))
    with pytest.raises(UserError, match="corpus.jsonl line 2: needs text in the field 'title'. Received: "):
        list(found.passages.items())


def test_missing_files_are_named(tmp_path):
    folder = write_folder(tmp_path / "beir")
    with pytest.raises(UserError, match=r"qrels/dev.tsv: needs a file. Received: none. The splits are test\."):
        read_retrieval_set(folder, "dev")
    (tmp_path / "beir" / "corpus.jsonl").unlink()
    with pytest.raises(UserError, match="needs corpus.jsonl, queries.jsonl and qrels/SPLIT.tsv. Received: q"):
        read_retrieval_set(folder)
    with pytest.raises(UserError, match="Received: no folder"):
        read_retrieval_set(str(tmp_path / "absent"))


def test_a_run_has_trecs_columns(tmp_path):
    """trec_eval sorts by score, so the score must fall with the rank."""
    path = tmp_path / "found.trec"
    write_run(str(path), {"q1": [("d1", 0.5), (2, 0.25)], "q2": [("d1", -1e-9)]})
    assert path.read_text().splitlines() == [
        "q1 Q0 d1 1 0.5 keras_bert",
        "q1 Q0 2 2 0.25 keras_bert",
        "q2 Q0 d1 1 -1e-09 keras_bert",
    ]
    with pytest.raises(UserError, match="needs ids without spaces for TREC's columns. Received: 'd 1'"):
        write_run(str(path), {"q1": [("d 1", 0.5)]})
