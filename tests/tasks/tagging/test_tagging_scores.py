"""Entity scores against conlleval's rules, and scores of plain labels."""

import conlleval
import numpy as np
import pytest

from keras_bert.tasks.tagging.label_schemes import read_entities
from keras_bert.tasks.tagging.scores import entity_scores, label_scores


def entities_of(sentences):
    starts = np.concatenate([[0], np.cumsum([len(sentence) for sentence in sentences])])
    return read_entities([label for sentence in sentences for label in sentence], starts)


@pytest.mark.parametrize("prefixes, other", [("BI", "BI"), ("I", "BI"), ("BIES", "BI")])
def test_the_scores_are_conllevals(prefixes, other):
    random = np.random.default_rng(len(prefixes))

    def drawn(prefixes):
        return ["O", *(f"{prefix}-{type}" for prefix in prefixes for type in ("X", "Y"))]

    gold = [random.choice(drawn(prefixes), random.integers(1, 8)).tolist() for _ in range(200)]
    predicted = [
        [label if random.random() < 0.8 else random.choice(drawn(other)).item() for label in row] for row in gold
    ]
    scores = entity_scores(entities_of(gold), entities_of(predicted))
    expected = conlleval.scores(gold, predicted)
    for type, values in expected.items():
        ending = f"_{type}" if type else ""
        received = [scores[f"{name}{ending}"] for name in ("precision", "recall", "f1")]
        np.testing.assert_allclose(received, values, rtol=1e-12)
    assert 0.2 < scores["f1"] < 1 and len(expected) == 3


def test_one_scheme_may_be_scored_against_another():
    gold, predicted = [["I-X", "I-X", "O", "I-Y"]], [["B-X", "E-X", "O", "S-Y"]]
    scores = entity_scores(entities_of(gold), entities_of(predicted))
    assert scores["f1"] == scores["accuracy"] == 1.0


def test_a_type_that_only_one_side_has_and_none_at_all():
    scores = entity_scores(entities_of([["B-X", "O"]]), entities_of([["B-Y", "O"]]))
    assert scores["f1"] == scores["recall_X"] == scores["precision_Y"] == 0.0 and scores["accuracy"] == 0.5
    assert entity_scores(entities_of([["O"]]), entities_of([["O"]]))["f1"] == 0.0


def test_plain_labels():
    scores = label_scores(["A", "A", "B", "C"], ["A", "B", "B", "B"])
    assert scores["accuracy"] == 0.5
    assert scores["precision_A"] == 1.0 and scores["recall_A"] == 0.5 and scores["f1_A"] == pytest.approx(2 / 3)
    assert scores["precision_B"] == pytest.approx(1 / 3) and scores["recall_C"] == scores["precision_C"] == 0.0
