"""DistilBERT, where its training and its folders differ from BERT's; that it computes what transformers does is in
test_transformers_folders.py."""

import json

import numpy as np
import pytest
from tiny import VOCABULARY, pretraining_batch, random_weights

import keras_bert
from keras_bert.checkpoints.writing import write_model_folder
from keras_bert.core.errors import UserError
from keras_bert.models.distilbert.encoder import DistilbertBlock, DistilbertEncoder
from keras_bert.models.distilbert.kind import DistilbertConfig
from keras_bert.models.pretraining import BertForPreTraining
from keras_bert.models.roberta.kind import RobertaConfig

SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48}
CONFIG = DistilbertConfig(vocab_size=len(VOCABULARY), **SIZES, max_position_embeddings=24)


def test_there_are_no_segments_to_see_or_to_train():
    encoder = DistilbertEncoder(CONFIG)
    random_weights(encoder)
    batch = pretraining_batch(CONFIG)
    others = {**batch, "input_type_ids": 1 - batch["input_type_ids"]}
    np.testing.assert_array_equal(encoder(others)["sequence_output"], encoder(batch)["sequence_output"])
    assert not [variable.path for variable in encoder.trainable_variables if "token_type" in variable.path]


def test_attention_is_added_without_dropout():
    """As in transformers, which has none between attention and its residual connection."""
    block = DistilbertBlock(16, 2, 48, hidden_dropout_rate=0.9)
    states = np.random.default_rng(0).normal(size=(2, 5, 16)).astype("float32")
    block.build(states.shape)
    np.testing.assert_array_equal(block.with_attended(states, states, True), block.with_attended(states, states))
    assert not np.array_equal(block.fed_forward(states, True), block.fed_forward(states))


@pytest.mark.parametrize("changes", [{"type_vocab_size": 2}, {"attention": "causal"}, {"tie_word_embeddings": False}])
def test_what_no_distilbert_has_is_refused(changes):
    (name,) = changes
    with pytest.raises((UserError, ValueError), match=f"{name}: needs .* for a DistilBERT"):
        DistilbertConfig(**SIZES, **changes)


@pytest.mark.parametrize("config", [CONFIG, RobertaConfig(len(VOCABULARY), **SIZES, pad_token_id=0)])
def test_transformers_tokenizer_gives_a_model_of_one_segment_no_segments(config, tmp_path):
    """BERT's would give a pair's second text segment 1, for which the model has no embedding."""
    folder = tmp_path / "model"
    write_model_folder(folder, BertForPreTraining(config), VOCABULARY, lower_case=True)
    fields = json.loads((folder / "tokenizer_config.json").read_text("utf-8"))
    assert fields["tokenizer_class"] == "BertTokenizer" and fields["model_input_names"] == [
        "input_ids",
        "attention_mask",
    ]


@pytest.mark.parametrize("name", ["DistilBertTokenizer", "DistilBertTokenizerFast", "ElectraTokenizerFast"])
def test_classes_that_compute_what_berts_tokenizer_does_are_read(name, tmp_path):
    """transformers 4 writes them for a fine-tuned model."""
    folder = tmp_path / "model"
    write_model_folder(folder, BertForPreTraining(CONFIG), VOCABULARY, lower_case=False)
    file = folder / "tokenizer_config.json"
    file.write_text(json.dumps({**json.loads(file.read_text("utf-8")), "tokenizer_class": name}), "utf-8")
    assert not keras_bert.load(folder).tokenizer.lower_case
