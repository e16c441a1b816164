"""The measures of rankings, compared with trec_eval's definitions in plain Python."""

import math
import os

import numpy as np
import pytest
from goldens import load_arrays, under
from ranked import plain_scores

from keras_bert.inference.ranking import average_precision, ndcg, recall, reciprocal_rank, retrieval_scores


def test_the_scores_are_those_of_their_definitions():
    """With grades, also below 0; more relevant passages than ranks; rankings that lack some or have fewer than ten."""
    random = np.random.default_rng(0)
    judged = []
    for _ in range(200):
        grades = random.choice([-1, 0, 0, 0, 1, 2, 3], random.integers(1, 150))
        if not (grades > 0).any():
            grades[0] = 1
        unjudged = np.zeros(random.integers(0, 60))
        judged.append((random.permutation([*random.permutation(grades)[: random.integers(1, 90)], *unjudged]), grades))
    expected = [plain_scores(list(ranked), list(grades)) for ranked, grades in judged]
    found = retrieval_scores(judged, 100)
    assert found == pytest.approx({name: np.mean([row[name] for row in expected]) for name in expected[0]}, rel=1e-12)


@pytest.mark.parity
def test_the_scores_are_those_of_sentence_transformers(goldens):
    """For grades 0 and 1 and at most 100 relevant passages; beyond that its MAP differs."""
    arrays = load_arrays(os.path.join(goldens, "retrieval.npz"))
    assert arrays["relevant"].sum(axis=1).max() <= 100
    gains = np.take_along_axis(arrays["relevant"], arrays["ranked"], axis=1)
    found = retrieval_scores(zip(gains, arrays["relevant"]), 100)
    assert found == pytest.approx({name: float(value) for name, value in under("scores/", arrays).items()})


def test_known_values():
    """Two of three relevant passages at ranks 2 and 4; the ideal ranking also has the one that is missing."""
    gains, grades = np.array([0.0, 2, 0, 1]), np.array([1.0, 2, 3, 0])
    assert reciprocal_rank(gains) == 0.5
    assert recall(gains, grades, 1) == 0 and recall(gains, grades, 3) == pytest.approx(1 / 3)
    assert average_precision(gains, grades) == pytest.approx((1 / 2 + 2 / 4) / 3)
    best = 3 + 2 / math.log2(3) + 1 / 2
    assert ndcg(gains, grades) == pytest.approx((2 / math.log2(3) + 1 / math.log2(5)) / best)


def test_what_the_rankings_cannot_show_is_left_out():
    """With ten passages ranked, recall at 100 would be recall at 10 under another name."""
    judged = [([1, 0], [1, 1]), ([0], [0])]
    assert list(retrieval_scores(judged, 20)) == ["ndcg_at_10", "mrr_at_10", "recall_at_1", "recall_at_10"]
    assert "recall_at_1000" in retrieval_scores(judged, 1000)
    assert retrieval_scores(judged, 20)["recall_at_10"] == 0.5  # The query without a relevant passage does not count.
