"""KerasHub's BertBackbone opens the folders written here, and gives the same hidden states."""

import numpy as np
import pytest
from tiny import pretraining_batch, random_weights, without_dropout

from keras_bert.checkpoints.model_folder import write_model_folder
from keras_bert.models.encoder import BertEncoder
from keras_bert.models.pretraining import BertForPreTraining
from keras_bert.text.vocabulary import SPECIAL_TOKENS, Vocabulary

pytestmark = pytest.mark.parity("keras_hub")


@pytest.mark.parametrize("kind", [BertForPreTraining, BertEncoder])
def test_hidden_states_and_the_pooler(kind, tmp_path):
    """KerasHub computes gelu by tanh whatever the config says, so the weights are compared under `gelu_new`."""
    import keras_hub

    ours = kind(without_dropout(hidden_act="gelu_new"))
    random_weights(ours)
    vocabulary = Vocabulary([*SPECIAL_TOKENS, *(f"w{number}" for number in range(55))])
    folder = str(tmp_path / "model")
    write_model_folder(folder, ours, vocabulary, lower_case=True)
    theirs = keras_hub.models.BertBackbone.from_preset(folder)

    batch = pretraining_batch(ours.config)
    names = {"token_ids": "input_word_ids", "segment_ids": "input_type_ids", "padding_mask": "input_mask"}
    expected = theirs({name: batch[our_name] for name, our_name in names.items()})
    received = getattr(ours, "encoder", ours)(batch)
    real = batch["input_mask"].astype(bool)
    for name in ("sequence_output", "pooled_output"):
        rows = real if name == "sequence_output" else slice(None)
        np.testing.assert_allclose(received[name].numpy()[rows], expected[name].numpy()[rows], rtol=1e-5, atol=1e-5)
