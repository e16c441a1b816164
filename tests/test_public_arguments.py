"""Arguments of the wrong type or out of range, from Python: one line that names the argument."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from served import write_served

import keras_bert
from keras_bert import AlbertConfig, BertConfig
from keras_bert.core.settings import Positive, checked

TEXTS = ["the cat"]


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return keras_bert.load(write_served(tmp_path_factory.mktemp("arguments") / "model", "masked_lm"))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda bert: keras_bert.Preprocessor("bert"), "tokenizer: needs a Tokenizer. Received: 'str'."),
        (
            lambda bert: keras_bert.Preprocessor(bert.tokenizer, None),
            "max_length: needs a whole number. Received: None",
        ),
        (
            lambda bert: keras_bert.Preprocessor(bert.tokenizer, 16.5),
            "max_length: needs a whole number. Received: 16.5",
        ),
        (lambda bert: keras_bert.Preprocessor()(TEXTS), "tokenizer: needs one to read texts. Received: None."),
        (lambda bert: keras_bert.encoder_inputs([[1]], bert.tokenizer), "vocabulary: needs a Vocabulary. Received: 'W"),
        (lambda bert: bert.embedder(batch_tokens=0), "batch_tokens: needs a value above 0. Received: 0."),
        (lambda bert: bert.embedder(max_length="x"), "max_length: needs a whole number. Received: 'x'."),
        (lambda bert: bert.fill(["[MASK]"], "x"), "top_k: needs a whole number. Received: 'x'."),
        # A text would be true, and lower-case.
        (lambda bert: keras_bert.load(bert.path, lower_case="no"), "lower_case: needs true or false. Received: 'no'."),
        (lambda bert: keras_bert.PooledEncoder(bert), "encoder: needs a ConfiguredEncoder. Received: 'LoadedModel'."),
        (lambda bert: keras_bert.TextEmbedder(bert.encoder, "bert"), "tokenizer: needs a Tokenizer. Received: 'str'."),
        (lambda bert: keras_bert.BertEncoder("bert"), "config: needs a BertConfig. Received: 'str'."),
        (lambda bert: keras_bert.BertForPreTraining("bert"), "config: needs a model's config, such as a BertConfig."),
        (
            lambda bert: keras_bert.WordPieceTokenizer(bert.tokenizer.vocabulary, max_characters_per_word=-1),
            "max_characters_per_word: needs a value above 0. Received: -1.",
        ),
        (lambda bert: keras_bert.learn_vocabulary(TEXTS, 99, unused=-1), "unused: needs 0 or more. Received: -1."),
        (
            lambda bert: keras_bert.WarmupDecay(1e-3, 1, 9, "steep"),
            "decay: needs one of linear, cosine, polynomial, con",
        ),
        (
            lambda bert: keras_bert.write_model_folder("absent/model", bert.model, bert.tokenizer, True),
            "vocabulary: needs a Vocabulary. Received: 'WordPieceTokenizer'.",
        ),
        (
            lambda bert: keras_bert.write_model_folder("absent/model", "bert", bert.tokenizer.vocabulary, True),
            "model: needs a model with an encoder, such as a BertForPreTraining. Received: 'str'.",
        ),
        (
            lambda bert: keras_bert.EncoderBlock(16, 3, 32),
            "hidden_size: needs a multiple of num_attention_heads (3), the nearest being 15 or 18. Received: 16.",
        ),
        (lambda bert: keras_bert.SelfAttention(16, 0), "num_attention_heads: needs a value above 0. Received: 0."),
        (lambda bert: keras_bert.BertEmbeddings(60, 16.5), "hidden_size: needs a whole number. Received: 16.5."),
        (lambda bert: keras_bert.Pooler("x"), "hidden_size: needs a whole number. Received: 'x'."),
        (lambda bert: keras_bert.MaskedLMHead("x", 16), "vocab_size: needs a whole number. Received: 'x'."),
        (lambda bert: keras_bert.NextSentenceHead("x"), "hidden_size: needs a whole number. Received: 'x'."),
        (lambda bert: keras_bert.ClassificationHead(0, 16), "num_labels: needs a value above 0. Received: 0."),
        (lambda bert: keras_bert.register(5), "kind: needs a TaskKind. Received: 'int'."),
        (lambda bert: keras_bert.register_model_kind(5), "kind: needs a ModelKind. Received: 'int'."),
    ],
)
def test_the_argument_is_named(bert, call, message):
    with pytest.raises(ValueError) as refused:
        call(bert)
    assert message in str(refused.value)


def test_sizes_of_vectors_are_whole_numbers():
    for size in ("x", 1.5, 3):
        with pytest.raises(
            keras_bert.UserError, match=f"size: needs 1 to 2, the width of the vectors. Received: {size}"
        ):
            keras_bert.quantize_vectors([[1.0, 2.0]], size=size)


def test_values_that_are_equivalent_are_converted_and_other_annotations_are_left_alone():
    @checked
    def given(
        config: BertConfig | None, count: Positive[int], share: float = 0.5, texts: Sequence[str] = (), **more: Any
    ):
        return config, count, share, texts, more

    config = AlbertConfig()
    assert given(config, np.int64(3), 1, 5, more=2) == (config, 3, 1.0, 5, {"more": 2})
    assert given(None, count="4") == (None, 4, 0.5, (), {})
