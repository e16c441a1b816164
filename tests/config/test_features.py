"""Which layers each choice of features takes, and what is refused."""

import pytest

from keras_bert.config.features import FEATURES, TAGGING_TASKS, feature_layers
from keras_bert.config.finetuning import FinetuneConfig
from keras_bert.core.errors import UserError
from keras_bert.tasks.tagging.task import TAGGING


def test_the_layers_are_those_of_the_papers_table_7():
    """In BERT-base, `hidden_states[0]` is the embeddings and 12 the last layer; all twelve leave out the embeddings."""
    taken = [feature_layers(kind, 12) for kind in FEATURES]
    last_four = [9, 10, 11, 12]
    assert taken == [[0], [11], [12], last_four, last_four, list(range(1, 13))]


@pytest.mark.parametrize("kind, layers", [("second_to_last", 1), ("concat_last4", 3), ("weighted_last4", 3)])
def test_a_model_with_too_few_layers_is_refused(kind, layers):
    with pytest.raises(UserError, match=f"Features {kind}: need a model with at least [24] layers. Received: one with"):
        feature_layers(kind, layers)
    assert len(feature_layers(kind, 4)) in (1, 4)


def test_only_taggers_take_features():
    assert TAGGING_TASKS == tuple(TAGGING)
    with pytest.raises(UserError, match=r"features: needs a tagging task \(ner, pos, tokens\). Received: 'sst2'"):
        FinetuneConfig.from_mapping({"task": "sst2", "features": {"kind": "last"}})
    assert FinetuneConfig.from_mapping({"task": "pos", "features": {"kind": "last"}}).features.lstm_size == 768
