"""The measures of rankings in plain Python."""

import math


def plain_scores(ranked, grades):
    """As trec_eval's ndcg_cut.10, recip_rank of ten, map_cut.100 and recall.N: loops over ranks, gains linear."""
    relevant = [grade for grade in grades if grade > 0]
    dcg = sum(max(grade, 0) / math.log2(rank + 1) for rank, grade in enumerate(ranked[:10], 1))
    best = sum(grade / math.log2(rank + 1) for rank, grade in enumerate(sorted(relevant, reverse=True)[:10], 1))
    scores = {"ndcg_at_10": dcg / best, "mrr_at_10": 0.0, "map_at_100": 0.0}
    found = 0
    for rank, grade in enumerate(ranked[:100], 1):
        if grade > 0:
            found += 1
            scores["map_at_100"] += found / rank / len(relevant)
            if found == 1 and rank <= 10:
                scores["mrr_at_10"] = 1 / rank
    for cut in (1, 10, 100):
        scores[f"recall_at_{cut}"] = sum(grade > 0 for grade in ranked[:cut]) / len(relevant)
    return scores
