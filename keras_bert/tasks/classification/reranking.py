"""Reranking (Nogueira and Cho 2019): scores how relevant a passage is to a query, both in one row."""

import dataclasses
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from keras_bert.config.finetuning import REGRESSION, TaskDataConfig
from keras_bert.core.errors import UserError
from keras_bert.inference.ranking import ndcg, reciprocal_rank
from keras_bert.tasks.classification.answers import TextWindow
from keras_bert.tasks.classification.data import own_table
from keras_bert.tasks.classification.head import ClassificationConfig
from keras_bert.tasks.classification.problem import SequenceProblem, TextLayout
from keras_bert.tasks.task import Task

_METRICS = ("mrr_at_10", "ndcg_at_10")


@dataclasses.dataclass(frozen=True)
class RerankTask(Task):
    """Pairs of a query and a passage; a label from 0 to 1 says how relevant the passage is."""

    def side_key(self, texts: Sequence[str]) -> str:
        """The query, so that all its passages are on one side."""
        return texts[0]


def rerank_table(data: TaskDataConfig, head: ClassificationConfig | None) -> RerankTask:
    """The task of a recipe's tables.

    Raises:
        UserError: as `own_table`; or there are not two columns, or the trained model's head is no regression.
    """
    if head is not None and head.problem_type != REGRESSION:
        raise UserError(
            f"task: rerank needs a model with one score per pair. Received: one for {head.problem_type}. "
            "Give another --task."
        )
    table = own_table(dataclasses.replace(data, kind=REGRESSION), None)
    if (head or data.train or data.dev) and len(data.texts) != 2:
        raise UserError(
            "data.texts (--text): needs the names of two columns, the query's and the passage's. "
            f"Received: {', '.join(data.texts) or 'none'}."
        )
    return RerankTask(**{**vars(table), "name": "rerank", "metrics": _METRICS, "label_range": (0.0, 1.0)})


@dataclasses.dataclass(kw_only=True)
class RankingLayout(TextLayout):
    """Examples with their queries.

    Attributes:
        queries: int64 [examples], the number of each example's query; equal queries share one.
    """

    queries: np.ndarray


class RerankProblem(SequenceProblem):
    """Passages to rank. The answers are float64 [examples, 1], the logits."""

    def _new_head(self) -> ClassificationConfig:
        return dataclasses.replace(super()._new_head(), logistic=True)

    def lay_out(self, windows: Iterable[TextWindow]) -> RankingLayout:
        numbers: dict[str, int] = {}
        queries: list[int] = []

        def noted() -> Iterator[TextWindow]:
            for window in windows:
                queries.extend(numbers.setdefault(query, len(numbers)) for query in window.texts[0])
                yield window

        layout = super().lay_out(noted())
        return RankingLayout(**vars(layout), queries=np.asarray(queries))

    def evaluate(self, split: str, answers: np.ndarray) -> dict[str, float]:
        return ranking_scores(self.layout(split).queries, self._labels(split), answers[:, 0])

    def baseline(self, split: str) -> dict[str, float]:
        """The metrics of a constant score for all passages."""
        labels = self._labels(split)
        return ranking_scores(self.layout(split).queries, labels, np.zeros(len(labels)))


def ranking_scores(queries: np.ndarray, labels: np.ndarray, scores: np.ndarray) -> dict[str, float]:
    """The mean reciprocal rank and normalized discounted cumulative gain at 10, averaged over the queries.

    A label is a passage's grade (`inference/ranking.py`). In a tie, the less relevant passage ranks first, so that a
    constant score gains nothing from the file's order. Queries without a relevant passage do not count; if no query
    has one, both are 0.

    Args:
        queries: int [examples], equal for the passages of a query.
        labels: float [examples], 0 or more.
        scores: float [examples]; higher scores rank first.
    """
    labels = np.asarray(labels, "float64")
    order = np.lexsort((labels, -scores, queries))
    starts = np.flatnonzero(np.diff(queries[order])) + 1
    found = [(reciprocal_rank(gains), ndcg(gains, gains)) for gains in np.split(labels[order], starts) if gains.any()]
    means = np.mean(found, axis=0) if found else np.zeros(len(_METRICS))
    return dict(zip(_METRICS, means.tolist(), strict=True))
