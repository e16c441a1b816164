"""Every layer is made again from its config."""

import json

import keras
import pytest

from keras_bert.layers.bilstm import BiLstm
from keras_bert.layers.crf import CrfTaggingHead
from keras_bert.layers.dropout import Dropout
from keras_bert.layers.embeddings import BertEmbeddings, WordEmbeddings
from keras_bert.layers.encoder_block import EncoderBlock, SelfAttention
from keras_bert.layers.heads import ClassificationHead, MaskedLMHead, NextSentenceHead, Pooler, SpanBoundaryHead
from keras_bert.models.albert.encoder import AlbertEmbeddings
from keras_bert.models.bart.embeddings import BartEmbeddings, PositionedEmbeddings
from keras_bert.models.bart.kind import BartConfig
from keras_bert.models.elmo.encoder import ElmoBlock
from keras_bert.models.recurrent.encoder import Recurrence
from keras_bert.tasks.sentence_vectors.network import PairSimilarity
from keras_bert.tasks.span_pairs.network import SpanPairHead
from keras_bert.tasks.tagging.feature_network import LstmTaggingHead, ScalarMix

LAYERS = {
    AlbertEmbeddings: {"vocab_size": 10, "hidden_size": 4, "output_size": 8, "dropout_rate": 0.2, "sinusoidal": True},
    BertEmbeddings: {"vocab_size": 10, "hidden_size": 4, "type_vocab_size": 3},
    BiLstm: {"hidden_size": 8, "lstm_size": 4},
    ClassificationHead: {"num_labels": 3, "hidden_size": 8, "dropout_prob": 0.4},
    CrfTaggingHead: {"num_labels": 1, "hidden_size": 8, "forbidden": [[False, True], [True, False]]},
    Dropout: {"rate": 0.3},
    ElmoBlock: {"width": 4, "is_residual": True},
    WordEmbeddings: {"vocab_size": 10, "width": 4, "dropout_rate": 0.3},
    EncoderBlock: {"hidden_size": 8, "num_attention_heads": 2, "intermediate_size": 16, "hidden_act": "relu"},
    LstmTaggingHead: {"num_labels": 3, "num_layers": 2, "hidden_size": 8, "is_weighted": True, "lstm_size": 4},
    MaskedLMHead: {"vocab_size": 10, "hidden_size": 8, "embedding_size": 4, "tied": False},
    NextSentenceHead: {"hidden_size": 8, "initializer_range": 0.1},
    PairSimilarity: {},
    Pooler: {"hidden_size": 8, "initializer_range": 0.1},
    Recurrence: {"hidden_size": 8, "block": "lstm"},
    ScalarMix: {"num_layers": 2},
    SelfAttention: {"hidden_size": 8, "num_attention_heads": 2, "dropout_rate": 0.3},
    SpanBoundaryHead: {"vocab_size": 10, "hidden_size": 8, "hidden_act": "relu"},
    SpanPairHead: {"num_labels": 2, "hidden_size": 8, "reads_cls": False, "dropout_prob": 0.4},
}


@pytest.mark.parametrize("kind", LAYERS)
def test_a_config_makes_the_same_layer(kind):
    """Otherwise a model saved by Keras would open with other sizes than it was trained with."""
    layer = kind(**LAYERS[kind], name="layer", dtype=keras.DTypePolicy("mixed_bfloat16"))
    config = layer.get_config()
    assert {key: config[key] for key in LAYERS[kind]} == LAYERS[kind]
    again = kind.from_config(json.loads(json.dumps(config)))
    assert again.get_config() == config
    assert again.dtype_policy == layer.dtype_policy and again.name == "layer"


@pytest.mark.parametrize("kind", [BartEmbeddings, PositionedEmbeddings])
def test_the_config_of_barts_embeddings_has_that_of_the_model(kind):
    """Without it, saving ends in an AttributeError or in an object that JSON does not know."""
    layer = kind(BartConfig(vocab_size=10, hidden_size=12, scale_embedding=True), name="layer", dtype="mixed_bfloat16")
    again = kind.from_config(json.loads(json.dumps(layer.get_config())))
    assert again.get_config() == layer.get_config()
    assert again.config == layer.config and again.name == "layer" and again.dtype_policy == layer.dtype_policy


@pytest.mark.parametrize("given", ["attention_of", "ffn_of", "attention"])
def test_a_block_with_layers_of_others_has_no_config(given):
    """A block made from its config would silently have layers of its own."""
    sizes = LAYERS[EncoderBlock]
    block = EncoderBlock(**sizes)
    layer = block.attention if given == "attention" else block
    with pytest.raises(NotImplementedError, match="EncoderBlock: needs layers of its own for a config. Received: "):
        EncoderBlock(**sizes, **{given: layer}).get_config()
