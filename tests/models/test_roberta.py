"""RoBERTa: BERT with other positions, a byte-level vocabulary, and its own names in files.

That it computes what transformers does, and is written as transformers writes it, is in test_transformers_folders.py.
"""

import dataclasses
import json
import os

import keras
import numpy as np
import pytest
import tensorflow as tf
from goldens import COMMITTED
from tiny import SIZES, pretraining_batch, random_weights

import keras_bert
from keras_bert.core.errors import UserError
from keras_bert.export.network import encode
from keras_bert.export.serving_function import serving_function
from keras_bert.models.bert.config import BertConfig
from keras_bert.models.bert.encoder import BertEncoder
from keras_bert.models.pretraining import BertForPreTraining
from keras_bert.models.roberta.kind import RobertaConfig

TINY = {**SIZES, "vocab_size": 280, "num_attention_heads": 2}


def folder(name):
    return os.path.join(COMMITTED, name)


def test_files_count_the_positions_that_no_token_has(tmp_path):
    """Otherwise rows could be two tokens too long, and read beyond the table."""
    config = RobertaConfig(**TINY)
    config.to_file(tmp_path / "config.json")
    fields = json.loads((tmp_path / "config.json").read_text())
    assert fields["max_position_embeddings"] == 26 and BertConfig.from_file(tmp_path / "config.json") == config
    assert BertConfig.from_mapping({**TINY, "model_type": "roberta"}) == config
    encoder = BertEncoder(config)
    assert encoder.embeddings.position_embeddings.shape == (26, 16)
    ids = np.full((1, 25), 5, "int32")
    with pytest.raises(ValueError, match=r"at most max_position_embeddings \(24\) tokens. Received: 25"):
        encoder({"input_word_ids": ids, "input_mask": ids, "input_type_ids": 0 * ids})


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"max_position_embeddings": 2}, "needs more than 2, the rows before the first token's. Received: 2"),
        ({"is_decoder": True}, "is_decoder True is not supported; RoBERTa has False"),
        ({"architectures": ["BertModel"]}, "the architecture 'BertModel' is not supported; a RoBERTa is needed"),
    ],
)
def test_what_is_not_supported_is_one_line(fields, message, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "roberta", **fields}))
    with pytest.raises(UserError) as error:
        BertConfig.from_file(tmp_path / "config.json")
    assert message in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("model_type", ["roberta", "xlm-roberta", "camembert", "roberta-prelayernorm"])
def test_the_masked_lm_has_gelu_whatever_the_blocks_have(model_type):
    """As in transformers, which would predict other tokens from the same folder."""
    config = BertConfig.from_mapping({**TINY, "model_type": model_type, "hidden_act": "relu"})
    model = BertForPreTraining(config)
    random_weights(model)
    head, table = model.mlm_head, model.encoder.embeddings.word_embeddings
    states = np.random.default_rng(0).normal(size=(1, 3, 16)).astype("float32")
    transformed = head.layer_norm(keras.activations.gelu(head.transform(states), approximate=False))
    np.testing.assert_allclose(head(states, table), transformed @ table.numpy().T + head.bias.numpy(), atol=1e-4)


def test_serving_computes_what_the_encoder_does():
    encoder = BertEncoder(RobertaConfig(**TINY))
    random_weights(encoder)
    batch = pretraining_batch(encoder.config)
    names = ("input_word_ids", "input_mask", "input_type_ids")
    inputs = {name: tf.constant(batch[name]) for name in names}
    served, expected = encode(encoder, inputs), encoder(inputs)
    real = batch["input_mask"] > 0
    np.testing.assert_allclose(served["sequence_output"][real], expected["sequence_output"][real], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(served["pooled_output"], expected["pooled_output"], rtol=1e-4, atol=1e-5)
    again = keras.models.model_from_json(encoder.to_json())
    assert type(again) is BertEncoder and dataclasses.asdict(again.config) == dataclasses.asdict(encoder.config)


def test_a_classifier_without_the_pooler_of_its_encoder_is_found_by_its_own_names():
    """transformers keeps the dense layer in the head; a pooler that stands beside it is not used."""
    loaded = keras_bert.load(folder("roberta_classes"))
    assert not loaded.report.made_new and loaded.predict(["The cat, hé."])[0].label in ("against", "neutral", "for")
    assert BertForPreTraining(loaded.config).encoder.pooler is None


@pytest.mark.parametrize("name", ["roberta", "xlm-roberta", "camembert"])
def test_its_mask_takes_the_space_before_it(name):
    """Otherwise two spaces would precede the masked word, and in training it had one."""
    loaded = keras_bert.load(folder(name))
    answers = loaded.fill(["The [MASK], he", "The[MASK], he", "The <mask>, he"])
    assert answers[0].candidates == answers[1].candidates == answers[2].candidates
    assert "▁" not in answers[0].filled
    received = serving_function(loaded)(["The [MASK], he", "The <mask>, he"])
    for row in range(2):
        pieces = [piece.decode() for piece in received["pieces"][row][0]]
        assert pieces == [piece for piece, _ in answers[0].candidates[0]]


@pytest.mark.parametrize("name", ["roberta_encoder", "xlm-roberta_encoder"])
def test_pairs_have_two_separators_and_one_segment(name):
    loaded = keras_bert.load(folder(name))
    inputs = loaded.preprocessor(length="longest")((["the cat"], ["hé"]))
    ids, vocabulary = inputs["input_word_ids"][0].numpy().tolist(), loaded.tokenizer.vocabulary
    first, second = loaded.tokenizer(["the cat", "hé"]).to_list()
    start, end = vocabulary.cls_id, vocabulary.sep_id
    assert (start, end) == (0, 2)
    assert ids == [start, *first, end, end, *second, end]
    assert loaded.encode(["the cat"]).shape == (1, 8)
