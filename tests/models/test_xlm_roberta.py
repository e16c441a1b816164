"""XLM-RoBERTa and CamemBERT: RoBERTa's class under other names, over a SentencePiece vocabulary.

That they compute what transformers does, and are written as transformers writes them, is in
test_transformers_folders.py.
"""

import json
import os

import numpy as np
import pytest
import tensorflow as tf
from goldens import COMMITTED, read_tensors

import keras_bert
from keras_bert.checkpoints.writing import convert_folder
from keras_bert.core.errors import UserError
from keras_bert.export.saved_model import write_version
from keras_bert.export.serving_function import serving_function
from keras_bert.models.bert.config import BertConfig
from keras_bert.text.fairseq_vocabulary import CAMEMBERT, XLM_ROBERTA

FOLDERS = {
    "xlm-roberta": ("XLMRobertaForMaskedLM", "XLMRobertaTokenizer"),
    "camembert": ("CamembertForMaskedLM", "CamembertTokenizer"),
}
TEXTS = ["The cat, hé.", " the\tcat", ""]


def folder(name):
    return os.path.join(COMMITTED, name)


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_is_converted_under_its_own_names(name, tmp_path):
    """Each tensor bit for bit, the model's type, its class and its tokenizer's."""
    opened = keras_bert.open_model_folder(folder(name))
    assert not convert_folder(opened, "huggingface", str(tmp_path / "again"), opened.vocabulary)
    ours, theirs = read_tensors(str(tmp_path / "again")), read_tensors(folder(name))
    assert ours.keys() == theirs.keys()
    for tensor, expected in theirs.items():
        assert ours[tensor].tobytes() == expected.tobytes(), tensor
    architecture, tokenizer = FOLDERS[name]
    fields = json.loads((tmp_path / "again" / "config.json").read_text("utf-8"))
    assert (fields["model_type"], fields["architectures"]) == (name, [architecture])
    fields = json.loads((tmp_path / "again" / "tokenizer_config.json").read_text("utf-8"))
    assert fields["tokenizer_class"] == tokenizer
    again = keras_bert.load(tmp_path / "again")
    first = keras_bert.load(folder(name))
    assert again.tokenizer.vocabulary.dictionary is (XLM_ROBERTA if name == "xlm-roberta" else CAMEMBERT)
    assert again.tokenizer(TEXTS).to_list() == first.tokenizer(TEXTS).to_list()
    np.testing.assert_array_equal(again.encode(TEXTS), first.encode(TEXTS))


def test_an_export_has_the_model_of_its_tokenizer(tmp_path):
    """It takes strings in a process that has no vocabulary file."""
    loaded = keras_bert.load(folder("xlm-roberta_classes"))
    expected = [answer.probabilities for answer in loaded.predict(TEXTS[:2])]
    write_version(str(tmp_path), serving_function(loaded))
    served = tf.saved_model.load(str(tmp_path / "1")).signatures["serving_default"]
    received = served(text=tf.constant(TEXTS[:2]))["probabilities"].numpy()
    labels = loaded.head.labels
    np.testing.assert_allclose(received, [[row[label] for label in labels] for row in expected], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("model_type", ["longformer", "xlm-roberta-xl"])
def test_relatives_that_compute_otherwise_are_refused_in_one_line(model_type, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": model_type}), "utf-8")
    with pytest.raises(UserError) as error:
        BertConfig.from_file(tmp_path / "config.json")
    told = str(error.value)
    assert f"model_type {model_type!r} is not supported" in told and "\n" not in told
    assert "a RoBERTa or an XLM-RoBERTa or a CamemBERT" in told


def test_a_bert_with_its_tokenizer_opens(tmp_path):
    """Multilingual sentence encoders that were distilled into a BERT are such models."""
    vocabulary = keras_bert.load(folder("xlm-roberta_encoder")).tokenizer.vocabulary
    config = keras_bert.BertConfig(len(vocabulary), 8, 1, 2, 16, max_position_embeddings=24)
    keras_bert.write_model_folder(tmp_path / "bert", keras_bert.BertEncoder(config), vocabulary, lower_case=False)
    fields = json.loads((tmp_path / "bert" / "config.json").read_text("utf-8"))
    assert fields["model_type"] == "bert" and fields["pad_token_id"] == 1
    loaded = keras_bert.load(tmp_path / "bert")
    assert loaded.tokenizer.vocabulary.dictionary is XLM_ROBERTA
    assert loaded.encode(TEXTS).shape == (3, 8)


def test_a_distilled_roberta_of_fewer_layers_opens(tmp_path):
    """distilroberta-base is a RoBERTa of 6 layers."""
    config = BertConfig.from_mapping(
        {"model_type": "roberta", "num_hidden_layers": 6, "hidden_size": 8, "num_attention_heads": 2, "vocab_size": 268}
    )
    loaded = keras_bert.load(folder("roberta_encoder"))
    encoder = keras_bert.BertEncoder(config)
    settings = {"lower_case": False, "prefix_space": False}
    keras_bert.write_model_folder(tmp_path / "distil", encoder, loaded.tokenizer.vocabulary, **settings)
    again = keras_bert.load(tmp_path / "distil")
    assert again.config.num_hidden_layers == 6 and not again.report.made_new
    assert again.encode(TEXTS).shape == (3, 8)
