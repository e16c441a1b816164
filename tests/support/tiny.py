"""Small models and batches that the tests share."""

import struct

import keras
import numpy as np

from keras_bert.checkpoints.writing import write_model_folder
from keras_bert.config.training import OptimizerConfig
from keras_bert.models.bert.config import BertConfig
from keras_bert.models.pretraining import BertForPreTraining
from keras_bert.models.tensor_names import model_variables
from keras_bert.text.sentencepiece_vocabulary import SentencePieceVocabulary
from keras_bert.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from keras_bert.training.optimizer import make_optimizer

# As many rows as `tiny_config` has.
VOCABULARY = Vocabulary([*SPECIAL_TOKENS, *(f"w{number}" for number in range(55))])
SIZES = {
    "vocab_size": 60,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 32,
    "max_position_embeddings": 24,
}
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


def sentencepiece_vocabulary(pieces=()):
    """The special tokens and these pieces; a text is split into the fewest."""
    types = {"<pad>": 3, "<unk>": 2, **dict.fromkeys(SPECIAL_TOKENS[2:], 3)}

    def message(piece):
        text = piece.encode()
        # A text follows, of this length; a float follows, the score; a number follows, the type.
        content = bytes((0x0A, len(text))) + text + b"\x15" + struct.pack("<f", -1.0)
        content += bytes((0x18, types.get(piece, 1)))
        return bytes((0x0A, len(content))) + content

    return SentencePieceVocabulary(b"".join(map(message, (*types, *pieces))))


def tiny_config(**changes):
    return BertConfig(**{**SIZES, **changes})


def without_dropout(**changes):
    return tiny_config(**NO_DROPOUT, **changes)


def pretraining_batch(config, batch=4, seq=12, predictions=3, seed=0):
    """A `ShardBatches`-like batch of NumPy arrays: padding of several lengths, both segments, some weights 0."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(6, seq + 1, batch)
    mask = (np.arange(seq) < lengths[:, None]).astype("int32")
    return {
        "input_word_ids": rng.integers(1, config.vocab_size, (batch, seq)).astype("int32") * mask,
        "input_mask": mask,
        "input_type_ids": (np.arange(seq) >= 4).astype("int32") * mask,
        "masked_lm_positions": np.stack([np.sort(rng.choice(6, predictions, False)) for _ in range(batch)]).astype(
            "int32"
        ),
        "masked_lm_ids": rng.integers(1, config.vocab_size, (batch, predictions)).astype("int32"),
        "masked_lm_weights": (np.arange(predictions) < rng.integers(1, predictions + 1, (batch, 1))).astype("float32"),
        "next_sentence_labels": rng.integers(0, 2, batch).astype("int32"),
        "example_weights": np.ones(batch, "float32"),
    }


def random_weights(model, seed=0, scale=0.2):
    """Gives every variable of a `BertForPreTraining` random values, biases and LayerNorm too.

    Returns `{Hugging Face name: array in Hugging Face's orientation}`.
    """
    rng = np.random.default_rng(seed)
    tensors = {}
    for name, variable in model_variables(model):
        value = rng.normal(0.0, scale, variable.shape).astype("float32")
        value += name.attribute.endswith("gamma")
        variable.assign(value)
        tensors[name.huggingface.name] = value.T if name.huggingface.transposed else value
    return tensors


def write_random(path, model, vocabulary=VOCABULARY, lower_case=True, **options):
    """Gives a model random weights and writes its folder; returns the path."""
    random_weights(model)
    write_model_folder(str(path), model, vocabulary, lower_case=lower_case, **options)
    return str(path)


def random_model(**changes):
    """A `BertForPreTraining` without dropout, with random weights."""
    model = BertForPreTraining(without_dropout(**changes))
    random_weights(model)
    return model


def model_and_optimizer(strategy, config, steps, dtype="float32"):
    """A pretraining model, always with the same values, and an optimiser for that many steps."""
    keras.utils.set_random_seed(0)
    with strategy.scope():
        model = BertForPreTraining(config, dtype=dtype)
        optimizer = make_optimizer(OptimizerConfig(learning_rate=1e-2, warmup_steps=3), steps)
        optimizer.build(model.trainable_variables)
    return model, optimizer
