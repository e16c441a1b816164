"""`positions: sinusoidal`: a table that is not trained, and is stored as any other."""

import dataclasses
import json

import numpy as np
import pytest
from tiny import VOCABULARY, tiny_config

from keras_bert.checkpoints.model_folder import open_model_folder
from keras_bert.checkpoints.writing import write_model_folder
from keras_bert.core.errors import UserError
from keras_bert.inference.loading import load
from keras_bert.layers.embeddings import sinusoids
from keras_bert.models.albert.kind import AlbertConfig
from keras_bert.models.bert.config import BertConfig
from keras_bert.models.pretraining import BertForPreTraining

CONFIGS = [
    tiny_config(positions="sinusoidal"),
    AlbertConfig(**{**dataclasses.asdict(tiny_config(positions="sinusoidal")), "embedding_size": 8}),
]


@pytest.mark.parametrize("config", CONFIGS)
def test_the_table_is_fixed_and_survives_files(config, tmp_path):
    model = BertForPreTraining(config)
    table = model.encoder.embeddings.position_embeddings
    assert all(variable is not table for variable in model.trainable_variables)
    expected = sinusoids(24, config.embedding_width)
    np.testing.assert_allclose(np.array(table), expected * 0.02 / np.sqrt(0.5), rtol=1e-6)
    folder = str(tmp_path / "model")
    write_model_folder(folder, model, VOCABULARY, lower_case=True)
    again = load(folder)
    assert again.config == config and not again.report.made_new and not again.report.unused
    np.testing.assert_array_equal(again.encoder.embeddings.position_embeddings, table)
    assert len(again.model.trainable_variables) == len(model.trainable_variables)


def test_learned_positions_are_not_mentioned_in_files(tmp_path):
    folder = str(tmp_path / "model")
    write_model_folder(folder, BertForPreTraining(tiny_config()), VOCABULARY, lower_case=True)
    assert "positions" not in json.loads((tmp_path / "model" / "config.json").read_text("utf-8"))
    assert open_model_folder(folder).config.positions == "learned"


def test_other_values_are_refused():
    with pytest.raises(UserError, match="positions: needs one of learned, sinusoidal"):
        BertConfig.from_mapping({"positions": "rotary"})
