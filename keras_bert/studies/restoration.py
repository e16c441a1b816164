"""How much a pretrained model restores of held-out text that was corrupted as in its training."""

import dataclasses
import itertools
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from keras_bert.config.corruption import ROTATION, CorruptionConfig
from keras_bert.config.pretraining import PretrainConfig
from keras_bert.data.batches.predictions import make_predictions
from keras_bert.inference.loading import load
from keras_bert.models.bert.config import DECODED, MASKED
from keras_bert.models.term import term_named
from keras_bert.tasks.pretraining.batch_sources import VALIDATION_SEED, decoder_start, open_batch_sources
from keras_bert.text.vocabulary import Vocabulary
from keras_bert.training.run_folder import RunFolder

# The columns of the ablation's table.
LOST, NATS, MOVED = "share of lost tokens restored", "nats of a lost token", "share of breaks restored"

Batch = dict[str, npt.NDArray]


class Destroyed(NamedTuple):
    """The labels of a batch that have to be restored, as bool [batch, predictions].

    Attributes:
        lost: tokens that the encoder does not read.
        moved: tokens that it reads, but not directly after the token before them, which it also reads.
    """

    lost: npt.NDArray[np.bool_]
    moved: npt.NDArray[np.bool_]


def restoration(run: str) -> dict[str, float]:
    """How much a run's model restores of held-out rows; a decoder predicts each token after the true ones before it.

    Args:
        run: the folder of a finished pretraining run.

    Returns: `LOST`, `NATS` and `MOVED`, without those for which there is nothing to restore; {} for a model that
        predicts neither masked nor decoded tokens.
    """
    config = PretrainConfig.from_file(RunFolder(run).config_file)
    batches_of = {MASKED: _masked, DECODED: _decoded}.get(config.objective.tokens)
    if batches_of is None:
        return {}
    loaded, sums = load(run), Counter[str]()
    term = term_named(config.objective.terms[0])
    for batch, destroyed in batches_of(config, run, loaded.tokenizer.vocabulary):
        found = term.metrics(loaded.model(batch)[term.output], term.labels(batch))
        nats, is_right = found["loss"].numpy(), found["accuracy"].numpy()
        sums.update(lost=destroyed.lost.sum(), moved=destroyed.moved.sum())
        sums.update(nats=nats[destroyed.lost].sum(), found=is_right[destroyed.lost].sum())
        sums.update(ordered=is_right[destroyed.moved].sum())
    of = {LOST: ("found", "lost"), NATS: ("nats", "lost"), MOVED: ("ordered", "moved")}
    return {name: float(sums[part] / sums[all_]) for name, (part, all_) in of.items() if sums[all_]}


def _rows(config: PretrainConfig, run: str) -> Iterator[Batch]:
    """The batches of one validation, with the rows of the last phase."""
    wanted = -(-config.training.evaluation_examples // config.phases[-1].batch_size)
    sources = open_batch_sources(config, RunFolder(run).data, has_begun=True)
    return sources.validation[-1].all_batches().take(wanted).as_numpy_iterator()


def _masked(config: PretrainConfig, run: str, vocabulary: Vocabulary) -> Iterator[tuple[Batch, Destroyed]]:
    for batch in _rows(config, run):
        read = np.take_along_axis(batch["input_word_ids"], batch["masked_lm_positions"], axis=1)
        lost = (read != batch["masked_lm_ids"]) & (batch["masked_lm_weights"] > 0)
        yield batch, Destroyed(lost, np.zeros_like(lost))


def _decoded(config: PretrainConfig, run: str, vocabulary: Vocabulary) -> Iterator[tuple[Batch, Destroyed]]:
    """Corrupts rows whose ids are first made unique by adding a multiple of the vocabulary's size for each place."""
    objective, size = config.objective, len(vocabulary)
    start = decoder_start(config)
    corrupt = make_predictions(objective, config.masking, 0, vocabulary, VALIDATION_SEED, decoder_start=start)
    # Where the whole text is predicted, the targets are the rows.
    whole = dataclasses.replace(objective, corruption=CorruptionConfig([ROTATION]))
    numbers = itertools.count()
    for batch in _rows(dataclasses.replace(config, objective=whole), run):
        rows, lengths = batch["target_ids"], batch["target_weights"].sum(axis=1).astype("int32")
        marks = size * np.arange(1, rows.shape[1] + 1, dtype="int32")
        ids = np.fromiter(itertools.islice(numbers, len(rows)), "int64")
        made = {name: value.numpy() for name, value in corrupt(rows + marks, tf.constant(lengths), ids, 0).items()}
        destroyed = destroyed_by(made["input_word_ids"], made["target_ids"], size)
        for name in ("input_word_ids", "decoder_input_ids", "target_ids"):
            made[name] %= size
        yield {**batch, **made}, destroyed


def destroyed_by(read: npt.NDArray, targets: npt.NDArray, vocab_size: int) -> Destroyed:
    """What a corruption has destroyed in rows in which no two tokens of the text are equal.

    Args:
        read: int [batch, seq], what the encoder reads.
        targets: int [batch, targets], what the decoder predicts. Ids of at least `vocab_size` are tokens of the text.
    """
    is_text = targets >= vocab_size
    found = (targets[:, :, None] == read[:, None, :]) & is_text[:, :, None]
    places = np.where(found.any(axis=-1), found.argmax(axis=-1), -1)
    places[:, 0] = np.where(is_text[:, 0], places[:, 0], 0)  # [CLS], which begins both.
    before = np.pad(places[:, :-1], [(0, 0), (1, 0)], constant_values=-1)
    moved = is_text & (places >= 0) & (before >= 0) & (places != before + 1)
    return Destroyed(is_text & (places < 0), moved)
