"""What config.json says of a classifier, written and read again, and what is refused."""

import pytest

from keras_bert.config.finetuning import MULTI_LABEL, REGRESSION
from keras_bert.core.errors import UserError
from keras_bert.tasks.classification.head import ClassificationConfig
from keras_bert.tasks.question_answering.task import SpanExtractionConfig


@pytest.mark.parametrize("labels, kind", [(("no", "yes"), None), (("a",), MULTI_LABEL), (("x",), REGRESSION)])
def test_there_and_back(labels, kind):
    config = ClassificationConfig(labels, kind) if kind else ClassificationConfig(list(labels))
    assert ClassificationConfig.from_fields(config.to_fields(), len(labels), "config.json") == config


@pytest.mark.parametrize(
    "labels, kind, message",
    [
        (("a",), "single_label_classification", "labels: needs at least two labels"),
        (("a", "b"), REGRESSION, "labels: needs one label for regression"),
        ((), MULTI_LABEL, "labels: needs at least one label"),
        (("a", "a"), MULTI_LABEL, "labels: needs names that differ"),
        ((0, 1), MULTI_LABEL, "labels.0: needs text"),
        (("a", "b"), "ranking", "problem_type: needs one of single_label"),
    ],
)
def test_what_cannot_be_is_refused(labels, kind, message):
    with pytest.raises(ValueError, match=message):
        ClassificationConfig(labels, kind)


@pytest.mark.parametrize(
    "fields",
    [
        {"id2label": {"0": "a", "1": "b"}},
        {"id2label": {"1": "a", "2": "b", "3": "c"}},
        {"id2label": ["a", "b", "c"]},
        {"id2label": {"0": "a", "1": "a", "2": "b"}},
        {"problem_type": "ranking"},
        {"problem_type": "regression"},
    ],
)
def test_a_config_that_does_not_fit_is_named(fields):
    with pytest.raises(UserError, match="^somewhere/config.json: .*Received: "):
        ClassificationConfig.from_fields(fields, 3, "somewhere/config.json")


@pytest.mark.parametrize("head, outputs", [(ClassificationConfig, 3), (SpanExtractionConfig, 2)])
@pytest.mark.parametrize("size", [0, "8", True])
def test_a_size_that_is_no_number_is_named(head, outputs, size):
    fields = {"keras_bert": {"bilstm_size": size}}
    with pytest.raises(UserError, match="^config.json: keras_bert.bilstm_size: needs a whole number above 0. Received"):
        head.from_fields(fields, outputs, "config.json")
