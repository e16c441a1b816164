"""Where the batches of a pretraining run come from: shards, or text as it is."""

import dataclasses
import functools
from collections.abc import Callable, Iterator

import numpy as np

from keras_bert import files
from keras_bert.data.batches.raw_lines import RawLines
from keras_bert.data.batches.shard_batches import ShardReader
from keras_bert.data.batches.text_batches import TextReader
from keras_bert.data.corpus.held_out import TRAIN, VALIDATION
from keras_bert.data.shards.shard_files import ShardSet
from keras_bert.data.statistics.token_sample import sample_of_lines, sample_of_shards
from keras_bert.tasks.pretraining.data import prepare_run_data, shards_folder
from keras_bert.tasks.pretraining.run_vocabulary import run_vocabulary
from keras_bert.text.tokenizer import WordPieceTokenizer

# Of the validation masks and pairs: fixed, so that runs with different seeds are measured on the same questions.
VALIDATION_SEED = 20181011


@dataclasses.dataclass
class PretrainingReaders:
    """What a run reads.

    Attributes:
        tokenizer: the run's `WordPieceTokenizer`.
        training, validation: lists of readers, one a phase.
        unigram_nats: float32 [vocab], -log p of each token in the training text; None where it was not counted.
        sample: function (tokens) -> iterator of arrays of ids [n], so many in all at the most, of the training text.
    """

    tokenizer: WordPieceTokenizer
    training: list
    validation: list
    unigram_nats: np.ndarray | None
    sample: Callable[[int], Iterator[np.ndarray]]


def open_readers(config, folder, report, worker=0):
    """The `PretrainingReaders` of a `PretrainConfig`; vocabulary and shards are made in `folder` if absent.

    `report` takes one line of text at a time, the last of them on the training examples. `worker` is the number of
    this process among those of the run: each has its own plans, so that none reads or removes another's.
    """
    if config.data.source == "text":
        readers = _text_readers(config, folder, report)
    else:
        readers = _shard_readers(config, folder, report, worker)
    described = "; ".join(_describe(reader, phase) for reader, phase in zip(readers.training, config.phases))
    report(f"Training examples: {described}.")
    return readers


def _shard_readers(config, folder, report, worker):
    tokenizer = prepare_run_data(config, folder, report)
    vocabulary = tokenizer.vocabulary
    training, validation = (
        ShardSet.open(shards_folder(config, folder, side), vocabulary) for side in (TRAIN, VALIDATION)
    )

    def reader(shards, phase, seed, masking):
        return ShardReader(
            shards, vocabulary, phase, config.objective, masking, seed,
            files.join(folder, "plans", f"worker-{worker}"), config.data.shards_per_group,
        )  # fmt: skip

    return PretrainingReaders(
        tokenizer,
        [reader(training, phase, config.training.seed, _of_phase(config.masking, phase)) for phase in config.phases],
        [reader(validation, phase, VALIDATION_SEED, _of_validation(config.masking)) for phase in config.phases],
        unigram_nats(training.token_counts()),
        functools.partial(sample_of_shards, training),
    )


def _text_readers(config, folder, report):
    config.require_text()
    lines = RawLines(config.data.files, config.data.validation_share)
    vocabulary = run_vocabulary(config, folder, lines.training_texts, report)
    tokenizer = WordPieceTokenizer(vocabulary, config.vocabulary.lower_case)

    def reader(phase, seed, masking, validation):
        return TextReader(lines, tokenizer, phase, config.objective, masking, seed, validation)

    return PretrainingReaders(
        tokenizer,
        [reader(phase, config.training.seed, _of_phase(config.masking, phase), False) for phase in config.phases],
        [reader(phase, VALIDATION_SEED, _of_validation(config.masking), True) for phase in config.phases],
        None,
        functools.partial(sample_of_lines, lines, tokenizer),
    )


def _of_phase(masking, phase):
    return masking if phase.masking_share is None else dataclasses.replace(masking, share=phase.masking_share)


def _of_validation(masking):
    return dataclasses.replace(masking, share=masking.validation_share, refresh="never")


def _describe(reader, phase):
    parts = [] if reader.examples_per_epoch is None else [f"{reader.examples_per_epoch:,} an epoch"]
    parts += [f"at most {phase.sequence_length} tokens", f"{reader.padding_share:.1%} padding"]
    if reader.next_share is not None:
        parts.append(f"{reader.next_share:.1%} with the next sentence")
    return ", ".join(parts)


def unigram_nats(counts: np.ndarray) -> np.ndarray:
    """-log p of each token, float32 [vocab], from how often each occurs; one is added so that none is infinite."""
    counts = counts.astype("float64") + 1.0
    return (np.log(counts.sum()) - np.log(counts)).astype("float32")
