"""Passages found for queries: the right ones, in the right order, for every form of vectors."""

import numpy as np
import pytest
from ranked import plain_scores
from tiny import without_dropout, write_random

import keras_bert
from keras_bert.models.bert.encoder import BertEncoder

RANDOM = np.random.default_rng(0)
PASSAGES = {f"p{place}": " ".join(f"w{word}" for word in RANDOM.integers(0, 50, 6)) for place in range(40)}
QUERIES = {f"q{place}": " ".join(f"w{word}" for word in RANDOM.integers(0, 50, 4)) for place in range(6)}
RELEVANT = {name: {f"p{place}": int(1 + place % 3) for place in RANDOM.permutation(40)[:12]} for name in QUERIES}


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return keras_bert.load(write_random(tmp_path_factory.mktemp("model") / "model", BertEncoder(without_dropout())))


def similarities(queries, passages, precision):
    """[queries, passages] of quantized vectors, in float64."""
    if precision == "binary":
        return -np.unpackbits(queries[:, None] ^ passages, axis=-1).sum(axis=-1).astype("float64")
    queries, passages = (
        rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in map(np.float64, (queries, passages))
    )
    return queries @ passages.T


@pytest.mark.parametrize(
    "config", [{}, {"precision": "float16"}, {"precision": "int8"}, {"precision": "binary", "size": 13}, {"size": 8}]
)
def test_the_scores_are_those_of_all_pairs(bert, config, monkeypatch):
    """Over several windows; int8 takes its ranges from all passages, and queries use the same ones."""
    vectors = [bert.encode(list(texts.values())) for texts in (QUERIES, PASSAGES)]
    passages = keras_bert.quantize_vectors(vectors[1], **config)
    queries = keras_bert.quantize_vectors(vectors[0], **config, ranges=passages.ranges).vectors
    found_all = similarities(queries, passages.vectors, config.get("precision"))
    monkeypatch.setattr("keras_bert.data.windows._MOST", 7)
    found = bert.evaluate_retrieval(QUERIES, PASSAGES, RELEVANT, **config, top_k=100)
    rows = []
    for row, (query, ranked) in zip(found_all, found.ranking.items(), strict=True):
        assert len(ranked) == 40
        ordered = [row[int(name[1:])] for name, _ in ranked]
        assert (np.diff(ordered) < 2e-3).all()  # Other batch sizes change a float's last bits, and thus a code.
        rows.append(plain_scores([RELEVANT[query].get(name, 0) for name, _ in ranked], RELEVANT[query].values()))
    assert found.scores == pytest.approx({name: np.mean([row[name] for row in rows]) for name in rows[0]})


def test_lists_and_titles_are_the_same_as_dicts(bert):
    """A list's ids are its indices; a passage is its title, a space and its text."""
    found = bert.evaluate_retrieval(QUERIES, PASSAGES, RELEVANT, top_k=10)
    passages = [dict(zip(("title", "text"), text.split(" ", 1), strict=True)) for text in PASSAGES.values()]
    relevant = [{int(name[1:]): grade for name, grade in RELEVANT[query].items()} for query in QUERIES]
    listed = bert.evaluate_retrieval(list(QUERIES.values()), passages, relevant, top_k=10)
    assert listed.scores == found.scores
    assert listed.ranking[2] == [(int(name[1:]), score) for name, score in found.ranking["q2"]]
    without_grades = bert.evaluate_retrieval(QUERIES, PASSAGES, {"q2": list(RELEVANT["q2"])}, top_k=10)
    [ranked] = without_grades.ranking.values()
    assert [name for name, _ in ranked] == [name for name, _ in found.ranking["q2"]]


@pytest.mark.parametrize("title", [None, float("nan")])
def test_a_missing_title_is_none(bert, title):
    """As pandas and JSON give it; "None" or "nan" would be read as words."""
    passages = {name: {"title": title, "text": text} for name, text in PASSAGES.items()}
    assert bert.evaluate_retrieval(QUERIES, passages, RELEVANT).ranking == (
        bert.evaluate_retrieval(QUERIES, PASSAGES, RELEVANT).ranking
    )


def test_prefixes_are_read_with_the_texts(bert):
    found = bert.evaluate_retrieval(QUERIES, PASSAGES, RELEVANT, query_prefix="w1 w2 ", passage_prefix="w3 ")
    queries = {name: f"w1 w2 {text}" for name, text in QUERIES.items()}
    passages = {name: f"w3 {text}" for name, text in PASSAGES.items()}
    assert found.ranking == bert.evaluate_retrieval(queries, passages, RELEVANT).ranking
    assert found.ranking != bert.evaluate_retrieval(QUERIES, PASSAGES, RELEVANT).ranking


def test_equal_passages_keep_their_order(bert):
    """Otherwise a run would depend on the size of the windows."""
    found = bert.evaluate_retrieval(["w1"], ["w2 w3"] * 30, [[29]], precision="int8", top_k=10)
    assert [place for place, _ in found.ranking[0]] == list(range(10)) and found.scores["ndcg_at_10"] == 0


def test_a_query_need_not_find_itself(bert):
    texts = dict(list(PASSAGES.items())[:20])
    options = {"queries": texts, "passages": texts, "relevant": {"p0": ["p7"]}, "top_k": 10}
    assert bert.evaluate_retrieval(**options).ranking["p0"][0][0] == "p0"
    found = bert.evaluate_retrieval(**options, skip_same_id=True).ranking["p0"]
    assert len(found) == 10 and "p0" not in dict(found)


def test_a_reranker_sorts_what_was_found(bert):
    class Backwards:
        def rank(self, query, passages):
            assert query in QUERIES.values() and set(passages) <= set(PASSAGES.values())
            return [(index, float(index)) for index in reversed(range(len(passages)))]

    found = bert.evaluate_retrieval(QUERIES, PASSAGES, RELEVANT, top_k=12, reranker=Backwards())
    for query, ranked in found.ranking.items():
        assert [name for name, _ in found.reranked.ranking[query]] == [name for name, _ in ranked[::-1]]
    rows = [
        plain_scores([RELEVANT[query].get(name, 0) for name, _ in ranked], RELEVANT[query].values())
        for query, ranked in found.reranked.ranking.items()
    ]
    assert found.reranked.scores["ndcg_at_10"] == pytest.approx(np.mean([row["ndcg_at_10"] for row in rows]))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"relevant": {"q0": ["p99"]}}, "relevant: needs the id of a passage. Received: 'p99'"),
        ({"relevant": {"q99": ["p0"]}}, "relevant: needs the id of a query. Received: 'q99'"),
        ({"relevant": {"q0": "p0"}}, "relevant: needs a list of ids for each query, or {id: grade}. Received: 'p0'"),
        ({"relevant": {"q0": 0}}, "relevant: needs a list of ids for each query, or {id: grade}. Received: 0"),
        ({"relevant": {"q0": {"p0": "1"}}}, "relevant: needs numbers as grades. Received: '1' for 'q0'"),
        ({"relevant": {"q0": {"p0": 1, "p1": float("nan")}}}, "relevant: needs numbers as grades. Received: nan"),
        ({"relevant": {"q0": {"p0": 0}}}, "relevant: needs a relevant passage for a query. Received: none"),
        ({"passages": {}, "relevant": {}}, "passages: needs one at least. Received: none"),
        ({"passages": "w1"}, "texts: needs a list of texts"),
        ({"passages": {"p0": {"title": "w1", "text": None}}}, "texts: needs strings. Received: None"),
        ({"passages": {"p0": {"title": 5, "text": "w1"}}}, "texts: needs strings. Received: 5"),
        ({"size": 17}, "size: needs 1 to 16"),
        ({"top_k": 5}, "top_k: needs 10 or more. Received: 5"),
        ({"pooling": "tokens"}, "pooling: needs one of mean, cls, max, last4"),
    ],
)
def test_what_cannot_be_searched_is_refused(bert, given, message):
    values = {"queries": QUERIES, "passages": PASSAGES, "relevant": RELEVANT, **given}
    with pytest.raises((keras_bert.UserError, ValueError), match=message):
        bert.evaluate_retrieval(**values)
