"""A tiny BART and pairs of texts that it can learn in seconds."""

import json

import keras
import numpy as np

from keras_bert.checkpoints.writing import write_model_folder
from keras_bert.models.bart.kind import BartConfig
from keras_bert.models.encoder_decoder import EncoderDecoder
from keras_bert.text.vocabulary_learning import learn_byte_pieces

WORDS = ("red", "blue", "green", "cat", "dog", "bird")


def pairs(count, seed=0):
    """[(text, what to write)]: a color among other words, and the color alone, with a full stop."""
    random = np.random.default_rng(seed)
    for _ in range(count):
        color, animal = WORDS[random.integers(3)], WORDS[3 + random.integers(3)]
        yield " ".join([color, animal, *["so"] * random.integers(1, 4)]), f"{color}."


def write_pairs(path, count, seed=0):
    """A JSON-lines table with the columns `text` and `target`; returns the path."""
    rows = ({"text": text, "target": target} for text, target in pairs(count, seed))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def write_tiny_bart(folder, **changes):
    """A BART with random weights, as its folder; returns the path."""
    vocabulary = learn_byte_pieces([" ".join(WORDS), " ".join(f"a {word} so." for word in WORDS)] * 3, 290)
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    decoder = {"decoder_layers": 1, "decoder_attention_heads": 2, "decoder_ffn_dim": 32}
    rates = dict.fromkeys(("hidden_dropout_prob", "attention_probs_dropout_prob", "activation_dropout"), 0.0)
    config = BartConfig(**{"vocab_size": len(vocabulary), "max_position_embeddings": 32, **sizes, **decoder, **rates})
    keras.utils.set_random_seed(0)
    write_model_folder(str(folder), EncoderDecoder(config), vocabulary, lower_case=False)
    return str(folder)
