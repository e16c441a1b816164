"""Entity scores by conlleval's rules, and scores of plain labels."""

import conlleval
import numpy as np
import pytest

from keras_bert.tasks.tagging.label_schemes import read_entities
from keras_bert.tasks.tagging.scores import entity_counts, entity_scores, label_scores


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
    assert scores["accuracy"] == conlleval.accuracy(gold, predicted)
    assert 0.2 < scores["f1"] < 1 and len(expected) == 3
    starts = np.cumsum([0, *map(len, gold)])
    parts = entity_counts(entities_of(gold), entities_of(predicted), starts)
    np.testing.assert_allclose(parts[:, 0].sum() / parts[:, 1].sum(), scores["f1"])
    for number in (0, 7, 199):  # On its own, a sentence has the same entities.
        alone = entity_scores(*(entities_of(side[number : number + 1]) for side in (gold, predicted)))
        np.testing.assert_allclose(parts[number, 0] / max(parts[number, 1], 1), alone["f1"])


# (gold, predicted, what conlleval.pl prints: accuracy, precision, recall, FB1). Where I begins an entity, its accuracy
# counts the label as it stands; the entities are the same as those of B. The cases are those on which seqeval's tests
# compare the two programs: a wrong start, a shifted end, a wrong type, I for B, IOB1, and many sentences.
PRINTED = [
    ("B-ORG I-ORG", "I-ORG I-ORG", (50.00, 100.00, 100.00, 100.00)),
    ("I-ORG I-ORG", "B-ORG I-ORG", (50.00, 100.00, 100.00, 100.00)),
    ("I-A I-A B-A O I-B", "I-A I-A B-A O I-B", (100.00, 100.00, 100.00, 100.00)),
    ("B-A I-A B-A O B-B", "I-A I-A B-A O I-B", (60.00, 100.00, 100.00, 100.00)),
    ("B-A I-B I-B O", "B-A B-B I-B O", (75.00, 100.00, 100.00, 100.00)),
    ("O O O B-A I-A I-A O | B-B I-B O", "O O B-A I-A I-A I-A O | B-B I-B O", (80.00, 50.00, 50.00, 50.00)),
    ("O O O B-A I-A O B-C | B-B I-B O B-B", "O O B-A I-A I-A O O | B-B I-B O B-A", (63.64, 33.33, 25.00, 28.57)),
    ("B-A | I-A", "I-A | I-A", (50.00, 100.00, 100.00, 100.00)),
]


@pytest.mark.parametrize("gold, predicted, printed", PRINTED)
def test_what_conlleval_prints(gold, predicted, printed):
    """Other authors' tables print this script's figures, with which ours must be comparable."""
    sides = [[sentence.split() for sentence in side.split("|")] for side in (gold, predicted)]
    scores = entity_scores(*map(entities_of, sides))
    figures = [round(100 * scores[name], 2) for name in ("accuracy", "precision", "recall", "f1")]
    assert figures == list(printed)


def test_entities_of_one_scheme_may_be_scored_against_another():
    gold, predicted = entities_of([["I-X", "I-X", "O", "I-Y"]]), entities_of([["B-X", "E-X", "O", "S-Y"]])
    scores = entity_scores(gold, predicted)
    assert scores["f1"] == 1.0 and scores["accuracy"] == 0.25
    assert entity_scores(gold, predicted.in_scheme("iob1"))["accuracy"] == 1.0


def test_sentences_without_words_count_nothing():
    """They must neither mark other words as first ones nor, alone, raise an IndexError."""
    whole = entity_scores(entities_of([["B-X"], ["I-X", "O"]]), entities_of([["B-X"], ["I-X", "O"]]))
    for empty in ([["B-X"], [], ["I-X", "O"]], [[], ["B-X"], ["I-X", "O"], []]):
        assert entity_scores(entities_of(empty), entities_of(empty)) == whole
        assert entities_of(empty).at_start.tolist() == [True, True, False]
    assert entity_scores(entities_of([[]]), entities_of([[]]))["accuracy"] == 0.0


def test_a_type_that_only_one_side_has_and_none_at_all():
    scores = entity_scores(entities_of([["B-X", "O"]]), entities_of([["B-Y", "O"]]))
    assert scores["f1"] == scores["recall_X"] == scores["precision_Y"] == 0.0 and scores["accuracy"] == 0.5
    assert entity_scores(entities_of([["O"]]), entities_of([["O"]]))["f1"] == 0.0


def test_plain_labels():
    scores = label_scores(["A", "A", "B", "C"], ["A", "B", "B", "B"])
    assert scores["accuracy"] == 0.5
    assert scores["precision_A"] == 1.0 and scores["recall_A"] == 0.5 and scores["f1_A"] == pytest.approx(2 / 3)
    assert scores["precision_B"] == pytest.approx(1 / 3) and scores["recall_C"] == scores["precision_C"] == 0.0
