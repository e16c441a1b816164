"""Where the batches of a pretraining run come from: shards, or text as it is."""

import dataclasses
import functools
from collections.abc import Callable, Iterator

import numpy as np

from keras_bert import files
from keras_bert.data.batches.raw_lines import RawLines
from keras_bert.data.batches.shard_batches import ShardBatches
from keras_bert.data.batches.text_batches import TextBatches
from keras_bert.data.corpus.held_out import TRAIN, VALIDATION
from keras_bert.data.shards.shard_files import ShardSet
from keras_bert.data.statistics.token_sample import sample_of_lines, sample_of_shards
from keras_bert.tasks.pretraining.data import prepare_run_data, shards_folder
from keras_bert.tasks.pretraining.run_vocabulary import run_vocabulary
from keras_bert.text.tokenizer import WordPieceTokenizer

# Of the validation masks and pairs: fixed, so that runs with different seeds are measured on the same questions.
VALIDATION_SEED = 20181011


@dataclasses.dataclass
class BatchSources:
    """What a run reads.

    Attributes:
        tokenizer: the run's `WordPieceTokenizer`.
        training, validation: lists of sources, one a phase.
        unigram_nats: float32 [vocab], -log p of each token in the training text; None where it was not counted.
        sample: function (tokens) -> iterator of arrays of ids [n], so many in all at the most, of the training text.
    """

    tokenizer: WordPieceTokenizer
    training: list
    validation: list
    unigram_nats: np.ndarray | None
    sample: Callable[[int], Iterator[np.ndarray]]


def open_batch_sources(config, folder, report, worker=0):
    """The `BatchSources` of a `PretrainConfig`; vocabulary and shards are made in `folder` if absent.

    `report` takes one line of text at a time, the last of them on the training examples. `worker` is the number of
    this process among those of the run: each has its own plans, so that none reads or removes another's.
    """
    if config.data.source == "text":
        sources = _text_sources(config, folder, report)
    else:
        sources = _shard_sources(config, folder, report, worker)
    described = "; ".join(_describe(source, phase) for source, phase in zip(sources.training, config.phases))
    report(f"Training examples: {described}.")
    return sources


def _shard_sources(config, folder, report, worker):
    tokenizer = prepare_run_data(config, folder, report)
    vocabulary = tokenizer.vocabulary
    training, validation = (
        ShardSet.open(shards_folder(config, folder, side), vocabulary) for side in (TRAIN, VALIDATION)
    )

    def source(shards, phase, seed, masking):
        return ShardBatches(
            shards, vocabulary, phase, config.objective, masking, seed,
            files.join(folder, "plans", f"worker-{worker}"), config.data.shards_per_group,
        )  # fmt: skip

    return BatchSources(
        tokenizer,
        [source(training, phase, config.training.seed, _of_phase(config.masking, phase)) for phase in config.phases],
        [source(validation, phase, VALIDATION_SEED, _of_validation(config.masking)) for phase in config.phases],
        unigram_nats(training.token_counts()),
        functools.partial(sample_of_shards, training),
    )


def _text_sources(config, folder, report):
    config.require_text()
    lines = RawLines(config.data.files, config.data.validation_share)
    vocabulary = run_vocabulary(config, folder, lines.training_texts, report)
    tokenizer = WordPieceTokenizer(vocabulary, config.vocabulary.lower_case)

    def source(phase, seed, masking, validation):
        return TextBatches(lines, tokenizer, phase, config.objective, masking, seed, validation)

    return BatchSources(
        tokenizer,
        [source(phase, config.training.seed, _of_phase(config.masking, phase), False) for phase in config.phases],
        [source(phase, VALIDATION_SEED, _of_validation(config.masking), True) for phase in config.phases],
        None,
        functools.partial(sample_of_lines, lines, tokenizer),
    )


def _of_phase(masking, phase):
    return masking if phase.masking_share is None else dataclasses.replace(masking, share=phase.masking_share)


def _of_validation(masking):
    return dataclasses.replace(masking, share=masking.validation_share, refresh="never")


def _describe(source, phase):
    parts = [] if source.examples_per_epoch is None else [f"{source.examples_per_epoch:,} an epoch"]
    parts += [f"at most {phase.sequence_length} tokens", f"{source.padding_share:.1%} padding"]
    if source.next_share is not None:
        parts.append(f"{source.next_share:.1%} with the next sentence")
    return ", ".join(parts)


def unigram_nats(counts: np.ndarray) -> np.ndarray:
    """-log p of each token, float32 [vocab], from how often each occurs; one is added so that none is infinite."""
    counts = counts.astype("float64") + 1.0
    return (np.log(counts.sum()) - np.log(counts)).astype("float32")
