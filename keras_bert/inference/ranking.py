"""Scores rankings by the measures of trec_eval, which BEIR reports too (Thakur et al. 2021).

The gains of a ranking, float [ranks], are the grades of its items, the best rank first; unjudged items have grade 0. A
grade above 0 is relevant, and is itself the gain (Järvelin and Kekäläinen 2002). Others use 2^grade - 1 (Burges et al.
2005), which is the same for grades of 0 and 1.
"""

from collections.abc import Iterable, Sequence

import numpy as np

DEPTH = 10  # The depth of MRR and nDCG.
_RECALL_DEPTHS = (1, 10, 100, 1000)
_PRECISION_DEPTH = 100


def reciprocal_rank(gains: np.ndarray) -> float:
    """1 / the rank of the first relevant item within `DEPTH`; 0 without one."""
    relevant = np.flatnonzero(gains[:DEPTH])
    return 1.0 / (1 + int(relevant[0])) if len(relevant) else 0.0


def ndcg(gains: np.ndarray, grades: np.ndarray) -> float:
    """A ranking's discounted gain within `DEPTH`, as a share of the best ranking's.

    Args:
        grades: float [judged], all grades of the query, of ranked items or not; at least one is above 0.
    """
    return _discounted(gains) / _discounted(np.sort(grades)[::-1])


def recall(gains: np.ndarray, grades: np.ndarray, depth: int) -> float:
    """The share of relevant items found within the depth; `grades` as for `ndcg`."""
    return np.count_nonzero(gains[:depth]) / np.count_nonzero(grades)


def average_precision(gains: np.ndarray, grades: np.ndarray) -> float:
    """The mean, over all relevant items, of the precision at their ranks; 0 for items not among the first 100.

    `grades` as for `ndcg`. sentence-transformers divides by at most 100, so it differs if more are relevant.
    """
    ranks = np.flatnonzero(gains[:_PRECISION_DEPTH]) + 1
    return float(np.sum(np.arange(1, len(ranks) + 1) / ranks)) / np.count_nonzero(grades)


def retrieval_scores(judged: Iterable[tuple[Sequence[float], Sequence[float]]], depth: int) -> dict[str, float]:
    """The means over queries of `ndcg_at_10`, `mrr_at_10`, `map_at_100` and of `recall_at_1`, `_10`, `_100`, `_1000`.

    Leaves out MAP and recall beyond `depth`, and queries without relevant items.

    Args:
        judged: for each query, the gains of its ranking and all its grades, as for `ndcg`; at least one query has a
            relevant item. Grades below 0 count as 0.
        depth: the depth of the rankings.
    """
    rows = []
    for ranked, all_grades in judged:
        gains, grades = (np.maximum(np.asarray(values, "float64"), 0.0) for values in (ranked, all_grades))
        if not grades.any():
            continue
        row = {"ndcg_at_10": ndcg(gains, grades), "mrr_at_10": reciprocal_rank(gains)}
        if depth >= _PRECISION_DEPTH:
            row["map_at_100"] = average_precision(gains, grades)
        row |= {f"recall_at_{cut}": recall(gains, grades, cut) for cut in _RECALL_DEPTHS if cut <= depth}
        rows.append(row)
    return {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}


def _discounted(gains: np.ndarray) -> float:
    gains = gains[:DEPTH]
    return float(gains @ (1 / np.log2(np.arange(len(gains)) + 2)))
