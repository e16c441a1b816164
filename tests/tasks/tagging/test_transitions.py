"""Which labels may follow each other, against those that follow each other in real entities."""

import itertools

import numpy as np
import pytest

from keras_bert.tasks.tagging.label_schemes import forbidden_transitions, read_entities, scheme_labels


@pytest.mark.parametrize("scheme", ["bio", "bioes"])
def test_a_sequence_is_allowed_if_and_only_if_it_breaks_nothing(scheme):
    """Otherwise labels of the training file would have probability 0, or broken ones would come out."""
    labels = scheme_labels(("X", "Y"), scheme)
    forbidden = forbidden_transitions(labels, scheme)
    edge = len(labels)
    for length in (1, 2, 3):
        for sequence in itertools.product(range(len(labels)), repeat=length):
            allowed = not any(forbidden[pair] for pair in itertools.pairwise((edge, *sequence, edge)))
            entities = read_entities([labels[number] for number in sequence], [0, length])
            assert allowed == (len(entities.breaks(scheme)) == 0), sequence


def test_words_have_the_scheme_without_outside():
    forbidden = forbidden_transitions(("B", "I", "E", "S"), "bioes")
    assert np.argwhere(~forbidden[:-1, :-1]).tolist() == [
        [0, 1],
        [0, 2],
        [1, 1],
        [1, 2],
        [2, 0],
        [2, 3],
        [3, 0],
        [3, 3],
    ]
    assert (~forbidden[-1]).nonzero()[0].tolist() == [0, 3, 4] and (~forbidden[:, -1]).nonzero()[0].tolist() == [
        2,
        3,
        4,
    ]


def test_other_labels_may_follow_each_other_in_any_order():
    assert not forbidden_transitions(("NOUN", "I-X", "O"), None).any()
