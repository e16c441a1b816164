"""IOB1, BIO and BIOES: entities as conlleval sees them, conversion, and what breaks a scheme."""

import conlleval
import numpy as np
import pytest

from keras_bert.tasks.tagging.label_schemes import UnknownLabel, learned_scheme, read_entities, scheme_labels


def random_sentences(prefixes, seed, count=300):
    random = np.random.default_rng(seed)
    labels = ["O", *(f"{prefix}-{type}" for prefix in prefixes for type in ("X", "Y"))]
    return [random.choice(labels, random.integers(1, 8)).tolist() for _ in range(count)]


def entities_of(sentences):
    starts = np.concatenate([[0], np.cumsum([len(sentence) for sentence in sentences])])
    return read_entities([label for sentence in sentences for label in sentence], starts)


def spans_of(entities):
    return {(first, last, entities.types[type]) for first, last, type in entities.spans().tolist()}


@pytest.mark.parametrize("prefixes", ["BI", "I", "IE", "BIES", "ES"])
def test_entities_are_those_of_conlleval(prefixes):
    """With any labels in any order, so that every change from one to another occurs, across sentence ends too."""
    sentences = random_sentences(prefixes, seed=len(prefixes))
    assert spans_of(entities_of(sentences)) == conlleval.chunks(sentences)


@pytest.mark.parametrize(
    "labels, expected",
    [
        ("O I-X I-X O", {(1, 3, "X")}),
        ("I-X I-Y", {(0, 1, "X"), (1, 2, "Y")}),
        ("I-X B-X", {(0, 1, "X"), (1, 2, "X")}),
        ("B-X I-Y I-Y", {(0, 1, "X"), (1, 3, "Y")}),
        ("B-X E-X I-X", {(0, 2, "X"), (2, 3, "X")}),
        ("S-X S-X", {(0, 1, "X"), (1, 2, "X")}),
        ("B-X I-X E-X", {(0, 3, "X")}),
    ],
)
def test_entities_by_hand(labels, expected):
    assert spans_of(entities_of([labels.split()])) == expected


def test_an_entity_ends_with_its_sentence():
    assert spans_of(entities_of([["I-X"], ["I-X"]])) == {(0, 1, "X"), (1, 2, "X")}


@pytest.mark.parametrize("scheme", ["bio", "iob1", "bioes"])
def test_a_scheme_keeps_the_entities_and_is_not_broken(scheme):
    sentences = random_sentences("BIES", seed=7)
    entities = entities_of(sentences)
    labels = entities.labels(scheme)
    starts = np.append(np.flatnonzero(entities.at_start), len(labels))
    again = read_entities(labels, starts)
    assert spans_of(again) == spans_of(entities)
    assert not len(again.breaks(scheme)) and again.scheme() == scheme
    assert again.labels(scheme) == labels


def test_schemes_by_hand():
    entities = entities_of([["B-X", "I-X", "B-X", "B-Y", "O"]])
    assert entities.labels("bio") == ["B-X", "I-X", "B-X", "B-Y", "O"]
    assert entities.labels("iob1") == ["I-X", "I-X", "B-X", "I-Y", "O"]
    assert entities.labels("bioes") == ["B-X", "E-X", "S-X", "S-Y", "O"]


@pytest.mark.parametrize(
    "labels, scheme, broken",
    [
        ("O I-X I-X", "bio", [1]),
        ("B-X I-Y", "bio", [1]),
        ("B-X E-X", "bio", [1]),
        ("B-X I-X", "iob1", [0]),
        ("I-X B-X B-X", "iob1", []),
        ("I-X B-Y", "iob1", [1]),
        ("B-X O", "bioes", [0]),
        ("B-X I-X", "bioes", [1]),
        ("I-X E-X", "bioes", [0]),
        ("B-X E-Y", "bioes", [0, 1]),
        ("S-X E-X", "bioes", [1]),
        ("B-X I-X E-X S-X O", "bioes", []),
    ],
)
def test_what_breaks_a_scheme(labels, scheme, broken):
    assert entities_of([labels.split()]).breaks(scheme).tolist() == broken


def test_a_few_wrong_labels_do_not_change_the_scheme():
    good = entities_of([["B-X", "I-X", "O", "B-Y"]] * 5 + [["I-X"]])
    assert good.scheme() == "bio" and good.breaks("bio").tolist() == [20]
    assert entities_of([["O"]]).scheme(otherwise="iob1") == "iob1"


def test_what_is_no_label_of_an_entity():
    for label in ("PER", "X-PER", "B-", "-", "", "o"):
        with pytest.raises(UnknownLabel) as problem:
            entities_of([["O", "B-X"], [label]])
        assert problem.value.word == 2


def test_a_type_may_hold_a_dash():
    assert spans_of(entities_of([["B-a-b", "I-a-b"]])) == {(0, 2, "a-b")}


def test_a_head_has_both_labels_of_every_type():
    assert scheme_labels(("X", "Y"), "bio") == ("O", "B-X", "I-X", "B-Y", "I-Y")
    assert scheme_labels(("X",), "bioes") == ("O", "B-X", "I-X", "E-X", "S-X")
    assert [learned_scheme(scheme_labels(("X",), scheme)) for scheme in ("bio", "bioes")] == ["bio", "bioes"]
