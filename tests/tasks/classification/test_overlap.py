"""The baseline of pairs of texts: the share of pieces that they have in common."""

import types

import numpy as np
import pytest

from keras_bert.data.batches.token_rows import TokenRows
from keras_bert.tasks.classification.overlap import fitted_threshold, shared_pieces
from keras_bert.tasks.classification.problem import SequenceProblem
from keras_bert.tasks.finetuning.results import results_lines

CLS, SEP = 2, 3


def test_shared_pieces_are_counted_once_each_and_without_special_tokens():
    """Only one text has [CLS] and both have [SEP]: counting either would change every share."""
    random = np.random.default_rng(1)
    texts = [[random.integers(4, 12, random.integers(0, 9)).tolist() for _ in range(2)] for _ in range(50)]
    rows = [[CLS, *first, SEP, *second, SEP] for first, second in texts]
    lengths = [len(row) for row in rows]
    starts = np.cumsum([0, *lengths])
    ids = np.concatenate(rows).astype(np.uint16)  # As the rows of small vocabularies are kept.
    found = shared_pieces(TokenRows(ids, starts, np.array([len(first) + 2 for first, _ in texts]), {}), (CLS, SEP))
    expected = [len({*one} & {*other}) / max(len({*one} | {*other}), 1) for one, other in texts]
    np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize("alike", [0, 1])
def test_the_threshold_has_the_most_right_answers_whichever_class_is_the_more_alike(alike):
    """In QNLI and RTE the first class is entailment, in MRPC the second is the paraphrase."""
    random = np.random.default_rng(alike)
    labels = random.integers(2, size=60)
    shares = np.round(np.clip(random.normal(0.4 + 0.2 * (labels == alike), 0.2), 0, 1), 1)
    threshold, label = fitted_threshold(shares, labels)

    def right(threshold, label):
        return np.sum(np.where(shares >= threshold, label, 1 - label) == labels)

    assert label == alike
    assert right(threshold, label) == max(right(one, other) for one in np.unique(shares) for other in (0, 1))


def test_single_texts_have_no_baseline_and_are_not_read_for_it():
    """The training split would be tokenized and laid out for nothing."""
    head = types.SimpleNamespace(problem_type="single_label_classification", num_labels=2)
    problem = types.SimpleNamespace(task=types.SimpleNamespace(texts=("text",)), head=head)  # Lays out nothing.
    assert SequenceProblem.overlap_baseline(problem, "dev") == {}


def test_a_split_without_the_baseline_has_a_dash_in_its_column():
    """Only some splits may have examples of several rows: a row one cell short would break the whole table."""
    scores = {"one": {"accuracy": 0.75}, "other": {"accuracy": 0.5}}
    results = {"task": "mrpc", "per_cent": False, "splits": scores, "baseline": scores}
    header, one, other = results_lines({**results, "overlap": {"one": {"accuracy": 0.625}, "other": {}}})
    assert header.endswith("shared pieces")
    assert (one.split()[-1], other.split()[-1]) == ("62.50", "-")
