"""Random full rows for benchmarks of pretraining: a batch as a `ShardBatches` gives it, and as transformers takes it.

The model's config determines which tokens of a row are predicted: masked ones, permuted ones, those that a generator
replaces, or a decoder's.
"""

import os
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from keras_bert.config.corruption import CorruptionConfig
from keras_bert.config.objectives import NO_PAIR, ObjectiveConfig
from keras_bert.models.bert.config import DECODED, MASKED, PERMUTED, REPLACED
from keras_bert.models.kind import kind_of_config
from keras_bert.models.term import term_named

PREDICTIONS = {128: 20, 512: 77}
IGNORED = -100  # The label that transformers' losses ignore.
_CORRUPTIONS = {"t5": ["sentinels"]}  # Others have the default, BART's.


def objective_of(config):
    """The `ObjectiveConfig` that models of this kind are pretrained by."""
    pair = next(iter(kind_of_config(config).pretraining_heads), NO_PAIR)
    if config.predicts != DECODED:
        return ObjectiveConfig(config.predicts, pair)
    kinds = _CORRUPTIONS.get(config.model_type)
    corruption = CorruptionConfig(kinds) if kinds else CorruptionConfig()
    return ObjectiveConfig(DECODED, pair, packing="document", corruption=corruption)


def predictions_of(config, sequence_length):
    """How many tokens of a row are predicted: all of the decoder's, or about 15%."""
    if config.predicts == DECODED:
        from keras_bert.data.batches.corruption.corruption import most_targets

        return most_targets(objective_of(config).corruption, sequence_length)
    return PREDICTIONS.get(sequence_length, max(round(0.15 * sequence_length), 1))


def make_batch(config, batch_size, sequence_length, predictions):
    """A batch in NumPy."""
    rng = np.random.default_rng(0)

    def ids(width):
        return rng.integers(1000, config.vocab_size, (batch_size, width), "int32")

    segments = (np.arange(sequence_length) >= sequence_length // 2) & (config.type_vocab_size > 1)
    make_predictions, _ = _PREDICTED[config.predicts]
    pairs = [term_named(name).label for name in kind_of_config(config).pretraining_heads]
    return {
        "input_word_ids": ids(sequence_length),
        "input_mask": np.ones((batch_size, sequence_length), "int32"),
        "input_type_ids": np.tile(segments.astype("int32"), (batch_size, 1)),
        **make_predictions(config, rng, ids, sequence_length, predictions),
        **{label: rng.integers(0, 2, batch_size, "int32") for label in pairs},
        "example_weights": np.ones(batch_size, "float32"),
    }


def for_transformers(config, batch):
    """The arguments of transformers' model for pretraining, in NumPy, `labels` included."""
    _, of_predictions = _PREDICTED[config.predicts]
    pairs = [term_named(name).label for name in kind_of_config(config).pretraining_heads]
    return {
        "input_ids": batch["input_word_ids"],
        "attention_mask": batch["input_mask"],
        **of_predictions(batch),
        **{label.removesuffix("s"): batch[label] for label in pairs},
    }


def _masked(config, rng, ids, sequence_length, predictions):
    masked = ids(predictions)
    positions = [np.sort(rng.choice(sequence_length, predictions, False)) for _ in masked]
    return {
        "masked_lm_positions": np.stack(positions).astype("int32"),
        "masked_lm_ids": masked,
        "masked_lm_weights": np.ones(masked.shape, "float32"),
    }


def _masked_for_transformers(batch):
    labels = np.full(batch["input_word_ids"].shape, IGNORED)
    np.put_along_axis(labels, batch["masked_lm_positions"].astype("int64"), batch["masked_lm_ids"], axis=1)
    return {"token_type_ids": batch["input_type_ids"], "labels": labels}


def _permuted(config, rng, ids, sequence_length, predictions):
    masked = _masked(config, rng, ids, sequence_length, predictions)
    positions = masked["masked_lm_positions"].astype("int64")
    ranks = np.full((len(positions), sequence_length), -1, "int32")
    np.put_along_axis(ranks, positions, rng.permuted(np.tile(np.arange(predictions), (len(ranks), 1)), axis=1), axis=1)
    return {**masked, "permutation_ranks": ranks}


def _permuted_for_transformers(batch):
    ranks, places = batch["permutation_ranks"], np.arange(batch["input_word_ids"].shape[1])
    return {
        "token_type_ids": batch["input_type_ids"],
        # As in `layers.relative_attention.hidden_by_order`.
        "perm_mask": ((ranks[:, None] >= 0) & (ranks[:, :, None] <= ranks[:, None])).astype("float32"),
        "target_mapping": (batch["masked_lm_positions"][:, :, None] == places).astype("float32"),
        "labels": batch["masked_lm_ids"],
    }


def _replaced(config, rng, ids, sequence_length, predictions):
    masked = _masked(config, rng, ids, sequence_length, predictions)
    return {**masked, "replacement_draws": rng.random(masked["masked_lm_ids"].shape, "float32")}


def _replaced_for_transformers(batch):
    sys.exit("transformers: needs a model that it pretrains. It has no class of a generator with its discriminator.")


def _decoded(config, rng, ids, sequence_length, predictions):
    targets = ids(predictions)
    return {
        "decoder_input_ids": np.pad(targets[:, :-1], [(0, 0), (1, 0)], constant_values=config.decoder_start_token_id),
        "target_ids": targets,
        "target_weights": np.ones(targets.shape, "float32"),
    }


def _decoded_for_transformers(batch):
    return {"decoder_input_ids": batch["decoder_input_ids"], "labels": batch["target_ids"], "use_cache": False}


# By what a model predicts: features of a batch, and transformers' arguments for them.
_PREDICTED = {
    MASKED: (_masked, _masked_for_transformers),
    PERMUTED: (_permuted, _permuted_for_transformers),
    REPLACED: (_replaced, _replaced_for_transformers),
    DECODED: (_decoded, _decoded_for_transformers),
}
