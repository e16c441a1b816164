"""Where the batches of a pretraining run come from: prepared shards or raw text."""

import dataclasses
import functools
import logging
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import tensorflow as tf

from keras_bert.config.objectives import MaskingConfig, ObjectiveConfig, PhaseConfig
from keras_bert.config.pretraining import PretrainConfig
from keras_bert.core import files
from keras_bert.core.errors import TooLittleText
from keras_bert.data.batches.raw_lines import RawLines, split_lines
from keras_bert.data.batches.shard_batches import ShardBatches
from keras_bert.data.batches.text_batches import TextBatches
from keras_bert.data.corpus.held_out import SIDES, TRAIN, VALIDATION
from keras_bert.data.shards.shard_files import ShardSet
from keras_bert.tasks.pretraining.data import (
    prepare_run_data,
    require_no_chinese_words,
    require_word_marks,
    run_collocations,
    run_vocabulary,
    shards_folder,
)
from keras_bert.tasks.pretraining.run_text import corpus_of, remove_other_data
from keras_bert.text.tokenizer_files import TokenizerSettings
from keras_bert.text.tokenizers import Tokenizer, make_tokenizer

_log = logging.getLogger(__name__)


def sample_of_shards(shards: ShardSet, most: int) -> Iterator[np.ndarray]:
    """Yields arrays of ids [n], at most `most` in all, spread over the shards by `ShardSet.sample`."""
    for name, count in shards.sample(most):
        yield shards.read(name)[0][:count]


def sample_of_lines(lines: RawLines, tokenizer: Tokenizer, most: int) -> Iterator[np.ndarray]:
    """Yields arrays of ids [n], at most `most` in all, from the start of a raw text."""

    def tokens(chunk: tf.Tensor, texts: tf.Tensor, documents: tf.Tensor) -> tf.Tensor:
        return tokenizer(split_lines(texts)[0]).values

    chunks = lines.chunks(validation=False).map(tokens, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
    left = most
    for ids in chunks.as_numpy_iterator():
        yield ids[:left]
        left -= len(ids)
        if left <= 0:
            return


# Seed of the validation masks and pairs, fixed so that runs with different seeds are measured on the same predictions.
VALIDATION_SEED = 20181011


@dataclasses.dataclass
class BatchSources:
    """What a run reads.

    Attributes:
        tokenizer: the run's tokenizer.
        training, validation: one source per phase.
        unigram_nats: float32 [vocab], -log p of each token in the training text; None for raw text, which is not
            counted.
        sample: function (most) -> iterator over arrays of ids [n] of the training text, at most `most` ids in all.
    """

    tokenizer: Tokenizer
    training: Sequence[ShardBatches | TextBatches]
    validation: Sequence[ShardBatches | TextBatches]
    unigram_nats: np.ndarray | None
    sample: Callable[[int], Iterator[np.ndarray]]


def open_batch_sources(config: PretrainConfig, folder: str, worker: int = 0, has_begun: bool = False) -> BatchSources:
    """The `BatchSources` of a recipe; makes vocabulary and shards first if they are missing or made from other text.

    Args:
        folder: the run's data folder.
        worker: this process's number in the run. Each process has its own plans, so none reads or removes another's.
            Process 0 makes the data before the others read them.
        has_begun: whether the run has learned from the data in the folder, which are then kept.
    """
    is_settled = has_begun or worker > 0
    if config.data.source == "text":
        sources = _text_sources(config, folder, is_settled)
    else:
        sources = _shard_sources(config, folder, worker, is_settled)
    label = next((term.zero_label for term in config.objective.trained if term.pairs), "")
    described = "; ".join(_describe(source, phase, label) for source, phase in zip(sources.training, config.phases))
    _log.info(f"Training examples: {described}.")
    for source in sources.training:
        _ = source.batches_per_epoch  # Raises now if a phase has too little text, and not when it begins.
    return sources


def _shard_sources(config: PretrainConfig, folder: str, worker: int, is_settled: bool) -> BatchSources:
    tokenizer = prepare_run_data(config, folder, is_settled)
    vocabulary = tokenizer.vocabulary
    # Counting the training tokens checks their files too, so that no start reads them twice.
    both = shards_folder(config, folder)
    shards = {side: ShardSet.open(files.join(both, side), vocabulary, verify=side != TRAIN) for side in SIDES}
    if not shards[VALIDATION].meta["documents"]:
        raise TooLittleText(
            f"{shards[VALIDATION].folder}: needs documents that are held out. Received: none, because all of the text "
            "is one document. Put blank lines between documents, or give more of them."
        )
    counts = shards[TRAIN].token_counts()
    require_word_marks(shards[TRAIN], counts, config.masking, vocabulary)
    collocations = run_collocations(config, folder, vocabulary)
    plans, group = files.join(folder, "plans", f"worker-{worker}"), config.data.shards_per_group

    training, validation = (
        [
            ShardBatches(
                shards[side],
                vocabulary,
                phase,
                *_ways(config, phase, side),
                plans,
                group,
                counts,
                side,
                decoder_start(config),
                collocations,
            )
            for phase in config.phases
        ]
        for side in (TRAIN, VALIDATION)
    )
    sample = functools.partial(sample_of_shards, shards[TRAIN])
    return BatchSources(tokenizer, training, validation, unigram_nats(counts), sample)


def _text_sources(config: PretrainConfig, folder: str, is_settled: bool) -> BatchSources:
    if not is_settled:
        remove_other_data(config, corpus_of(config), folder)
    lines = RawLines(config.data.files, config.data.validation_share)
    if not is_settled:  # Checked before a vocabulary is learned.
        for is_validation in (False, True):
            lines.require_text(is_validation)
    vocabulary = run_vocabulary(config, folder, lines.training_texts)
    chosen = config.vocabulary
    tokenizer = make_tokenizer(vocabulary, TokenizerSettings(chosen.lower_case, prefix_space=chosen.prefix_space))
    sample = functools.partial(sample_of_lines, lines, tokenizer)
    require_no_chinese_words(lines.names, sample, config.masking, vocabulary)

    training, validation = (
        [
            TextBatches(lines, tokenizer, phase, *_ways(config, phase, side), side == VALIDATION, decoder_start(config))
            for phase in config.phases
        ]
        for side in (TRAIN, VALIDATION)
    )
    return BatchSources(tokenizer, training, validation, None, sample)


def _ways(config: PretrainConfig, phase: PhaseConfig, side: str) -> tuple[ObjectiveConfig, MaskingConfig, int]:
    """(what is predicted, how it is masked, the seed) in the batches of a phase, to train or to validate on."""
    objective, masking = config.objective, config.masking
    if side == VALIDATION:
        packing = "full" if objective.packing == "filled" else objective.packing
        objective = dataclasses.replace(objective, packing=packing, memory_length=0)
        share, unit = masking.validation_share, masking.validation_unit
        masking = dataclasses.replace(masking, share=share, unit=unit, random_from="vocabulary", refresh="never")
        return objective, masking, VALIDATION_SEED
    if phase.masking_share is not None:
        masking = dataclasses.replace(masking, share=phase.masking_share)
    return config.phase_objective(phase), masking, config.training.seed


def decoder_start(config: PretrainConfig) -> int | None:
    """The id from which the model's decoder predicts the first token; None for a model without a decoder."""
    return getattr(config.model, "decoder_start_token_id", None)


def _describe(source: ShardBatches | TextBatches, phase: PhaseConfig, zero_label: str) -> str:
    parts = [] if source.examples_per_epoch is None else [f"{source.examples_per_epoch:,} an epoch"]
    parts += [f"at most {phase.sequence_length} tokens", f"{source.padding_share:.1%} padding"]
    if source.next_share is not None:
        parts.append(f"{source.next_share:.1%} {zero_label}")
    return ", ".join(parts)


def unigram_nats(counts: np.ndarray) -> np.ndarray:
    """-log p of each token, float32 [vocab], from its number of occurrences, plus one so that none is infinite."""
    counts = counts.astype("float64") + 1.0
    return (np.log(counts.sum()) - np.log(counts)).astype("float32")
