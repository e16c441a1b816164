"""Models whose folders on the hub differ from those that this package writes open by their names there."""

import os

import numpy as np
import pytest
from goldens import COMMITTED
from hub_server import load_from_hub

import keras_bert

TEXTS = ["The cat, hé.", " the\tcat", " a café", ""]
OF_BYTES, WITH_JSON = ("vocab.json", "merges.txt"), ("tokenizer.json",)


@pytest.mark.parametrize(
    "name, folder, vocabulary_files, others, more",
    [
        # Both files of the vocabulary are fetched, and ids are those of tokenizer.json.
        ("FacebookAI/roberta-base", "roberta_encoder", OF_BYTES, (), {"tf_model.h5": b"", "dict.txt": b""}),
        # It names no class for its tokenizer.
        (
            "FacebookAI/xlm-roberta-base",
            "xlm-roberta_encoder",
            ("sentencepiece.bpe.model",),
            WITH_JSON,
            {"tokenizer_config.json": b'{"model_max_length": 512}', "flax_model.msgpack": b""},
        ),
        # It has no tokenizer_config.json.
        ("xlnet/xlnet-base-cased", "xlnet_encoder", ("spiece.model",), WITH_JSON, {"rust_model.ot": b""}),
        # It names no class for its tokenizer.
        (
            "facebook/bart-base",
            os.path.join("encoder_decoders", "bart_model"),
            OF_BYTES,
            (),
            {"tokenizer_config.json": b'{"model_max_length": 1024}', "rust_model.ot": b""},
        ),
    ],
)
def test_it_opens_by_its_name(name, folder, vocabulary_files, others, more, tmp_path, monkeypatch):
    local = keras_bert.load(os.path.join(COMMITTED, folder))
    local.tokenizer.vocabulary.to_file(str(tmp_path / vocabulary_files[0]))
    files = {file: (tmp_path / file).read_bytes() for file in vocabulary_files}
    for file in ("config.json", "model.safetensors", *others):
        with open(os.path.join(COMMITTED, folder, file), "rb") as stream:
            files[file] = stream.read()
    fetched = load_from_hub(name, {**files, **more}, tmp_path, monkeypatch)
    assert fetched.folder.vocabulary_file.endswith(vocabulary_files[0]) and not fetched.tokenizer.lower_case
    assert fetched.tokenizer(TEXTS).to_list() == local.tokenizer(TEXTS).to_list()
    np.testing.assert_array_equal(fetched.encode(TEXTS), local.encode(TEXTS))
