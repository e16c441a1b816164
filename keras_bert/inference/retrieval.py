"""Searches passages for queries by a model's vectors, reranks the results, and scores both rankings."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import numbers
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse

from keras_bert.config.inference import BINARY, INT8, RetrievalConfig, check_quantization
from keras_bert.core.errors import UserError
from keras_bert.core.terminal_bar import terminal_bar
from keras_bert.data.tables.retrieval_files import RetrievalSet, with_title
from keras_bert.data.windows import windows
from keras_bert.inference.quantization import SpooledVectors, quantize_vectors, shorten
from keras_bert.inference.ranking import retrieval_scores
from keras_bert.inference.search import Vectors, cosines, dot_products, equal_bits, nearest
from keras_bert.inference.text_embedding import Embedder
from keras_bert.inference.texts import as_list, require_numbers, text_list

# `{query's id: [(passage's id, score)]}`, the best first.
Ranking: TypeAlias = dict[Any, list[tuple[Any, float]]]
# Function (query, passages) -> [(index of the passage, score)], the best first; see `LoadedModel.rank`.
Rank: TypeAlias = Callable[[str, Sequence[str]], list[tuple[int, float]]]

# A passage as a text, or as its title and its text.
Passage: TypeAlias = str | Mapping[str, str]


@dataclasses.dataclass
class RetrievalResult:
    """The passages found, and the scores of the ranking.

    Attributes:
        scores: `ndcg_at_10`, `mrr_at_10`, `map_at_100`, `recall_at_1`, `recall_at_10` and so on, as far as `top_k`
            allows: means over the queries that have a relevant passage, from 0 to 1. A grade is itself the gain of
            nDCG, as in trec_eval and BEIR.
        ranking: `{query's id: [(passage's id, score)]}`, the best first, equal scores in the order of the passages.
        reranked: the same for a reranker's order; None without one.
    """

    scores: dict[str, float]
    ranking: Ranking
    reranked: RetrievalResult | None = None


def evaluate_retrieval(
    embedder: Embedder, asked: RetrievalSet, config: RetrievalConfig, rank: Rank | None = None
) -> RetrievalResult:
    """Searches exactly: compares vectors by cosine, binary ones by equal bits, sparse ones by dot product.

    Never holds all passages or all their vectors in memory; for `int8`, whose codes depend on the range of all
    vectors, the vectors wait in a temporary file.

    Args:
        embedder: gives one vector per text.
        rank: reranks the passages found for a query.

    Raises:
        UserError: the vectors do not have `config.size` dimensions, or one is not finite.
    """
    judged = [query for query, grades in asked.grades.items() if any(grade > 0 for grade in grades.values())]
    texts = [asked.queries[query] for query in judged]
    with contextlib.ExitStack() as files:
        parts = list(_vectors(embedder, texts, config.query_prefix))
        is_sparse = scipy.sparse.issparse(parts[0])
        queries = scipy.sparse.vstack(parts, "csr") if is_sparse else np.concatenate(parts)
        width = queries.shape[1]
        check_quantization(width, config.precision, config.size, False, is_sparse)
        bar = files.enter_context(terminal_bar("Embedded", "passages", total=len(asked.passages)))
        blocks = _vectors(embedder, (text for _, text in asked.passages.items()), config.passage_prefix, bar)
        blocks = (shorten(block, config.size) for block in blocks)
        ranges = None
        if config.precision == INT8:
            spooled = SpooledVectors(files.enter_context(tempfile.TemporaryFile()))
            for block in blocks:
                spooled.append(block)
            ranges, blocks = spooled.ranges, spooled.blocks()

        def quantized(vectors: Vectors) -> Vectors:
            return quantize_vectors(vectors, config.precision, ranges=ranges).vectors

        dense = equal_bits(config.size or width) if config.precision == BINARY else cosines
        similarity = dot_products if is_sparse else dense
        depth = config.top_k + config.skip_same_id
        places, scores = nearest(quantized(shorten(queries, config.size)), map(quantized, blocks), depth, similarity)
    ids = list(asked.passages)
    ranking: Ranking = {}
    for query, row, values in zip(judged, places, scores.tolist(), strict=True):
        found = [(ids[place], score) for place, score in zip(row, values, strict=True)]
        if config.skip_same_id:
            found = [(passage, score) for passage, score in found if passage != query]
        ranking[query] = found[: config.top_k]
    result = _result(ranking, asked, config)
    if rank:
        result.reranked = _result(_reranked(ranking, asked, rank), asked, config)
    return result


def _vectors(embedder: Embedder, texts: Iterable[str], prefix: str, bar: Any = None) -> Iterator[Vectors]:
    """Yields the vectors of texts in order, in float32 blocks [rows, width]."""
    for window in windows(texts, len):
        embedder.after_batch = functools.partial(bar.partly, n=len(window)) if bar else None
        vectors = embedder([prefix + text for text in window]).vectors
        require_numbers([np.asarray(vectors.data)] if scipy.sparse.issparse(vectors) else vectors, "texts")
        embedder.after_batch = None
        if bar:
            bar.update(len(window))
        yield vectors


def _reranked(ranking: Ranking, asked: RetrievalSet, rank: Rank) -> Ranking:
    """The ranking sorted by a reranker. Only the texts of the passages found are in memory."""
    wanted = {passage for found in ranking.values() for passage, _ in found}
    texts = {name: text for name, text in asked.passages.items() if name in wanted}
    reranked: Ranking = {}
    for query, found in terminal_bar("Reranked", "queries", len(ranking), ranking.items()):
        ordered = rank(asked.queries[query], [texts[passage] for passage, _ in found])
        reranked[query] = [(found[index][0], score) for index, score in ordered]
    return reranked


def _result(ranking: Ranking, asked: RetrievalSet, config: RetrievalConfig) -> RetrievalResult:
    judged = []
    for query, found in ranking.items():
        grades = asked.grades[query]
        judged.append(([grades.get(passage, 0.0) for passage, _ in found], list(grades.values())))
    return RetrievalResult(retrieval_scores(judged, config.top_k), ranking)


def retrieval_set(
    queries: Mapping[Any, str] | Sequence[str],
    passages: Mapping[Any, Passage] | Sequence[Passage],
    relevant: Mapping[Any, Any] | Sequence[Any],
) -> RetrievalSet:
    """The `RetrievalSet` of values in memory; see `LoadedModel.evaluate_retrieval`.

    Raises:
        UserError: there are no passages, an id in `relevant` is unknown, a grade is not a number, or no passage is
            relevant.
        ValueError: a query or a passage is not a text.
    """
    named = _by_id(queries)
    asked = dict(zip(named, text_list(named.values()), strict=True))
    named = _by_id(passages)
    texts = dict(zip(named, text_list(map(_joined, named.values())), strict=True))
    if not texts:
        raise UserError("passages: needs one at least. Received: none. Give the texts to search.")
    grades: dict[Any, dict[Any, float]] = {}
    for query, judged in _by_id(relevant).items():
        if isinstance(judged, str | bytes) or not isinstance(judged, Iterable):
            raise UserError(f"relevant: needs a list of ids for each query, or {{id: grade}}. Received: {judged!r}.")
        grades[query] = dict(judged) if isinstance(judged, Mapping) else dict.fromkeys(judged, 1.0)
        for name, known, what in ((query, asked, "query"), *((one, texts, "passage") for one in grades[query])):
            if name not in known:
                raise UserError(f"relevant: needs the id of a {what}. Received: {name!r}. Give one of those given.")
        for grade in grades[query].values():
            if not isinstance(grade, numbers.Real | np.bool_) or not math.isfinite(grade):
                raise UserError(f"relevant: needs numbers as grades. Received: {grade!r} for {query!r}. Correct it.")
    if not any(grade > 0 for judged in grades.values() for grade in judged.values()):
        raise UserError("relevant: needs a relevant passage for a query. Received: none. Give some.")
    return RetrievalSet(asked, texts, grades)


def _by_id(values: Mapping[Any, Any] | Sequence[Any]) -> Mapping[Any, Any]:
    """Values by id; a list's ids are its indices."""
    return values if isinstance(values, Mapping) else dict(enumerate(as_list(values)))


def _joined(passage: Passage) -> Any:
    if not isinstance(passage, Mapping):
        return passage
    title = passage.get("title")
    is_missing = title is None or isinstance(title, float) and title != title  # NaN, from a table's empty cell.
    return with_title(*text_list(["" if is_missing else title, passage.get("text")]))
