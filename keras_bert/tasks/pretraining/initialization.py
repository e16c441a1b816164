"""The initial weights of a run's model: from its training text, which is counted once, or from another model."""

import contextlib
import dataclasses
import io
import json
import logging
from typing import NamedTuple

import keras
import numpy as np

from keras_bert.checkpoints.model_folder import ModelFolder
from keras_bert.config.initialization import CORPUS
from keras_bert.config.pretraining import PretrainConfig
from keras_bert.core import files, whole_files
from keras_bert.core.array_files import DamagedArrays, open_arrays
from keras_bert.core.errors import UserError
from keras_bert.data.corpus_vectors import FEWEST_OCCURRENCES, corpus_vectors, count_tokens
from keras_bert.inference.loading import model_tokenizer
from keras_bert.models.electra.pretraining import ElectraForPreTraining
from keras_bert.models.initial_weights import apply_initialization, set_new_words
from keras_bert.models.pretraining import BertForPreTraining
from keras_bert.models.tensor_names import ENCODER, model_parts
from keras_bert.tasks.pretraining.batch_sources import BatchSources, unigram_nats
from keras_bert.text.vocabulary import Vocabulary
from keras_bert.text.vocabulary_learning import cut_before

_log = logging.getLogger(__name__)

FILE = "text_statistics.npz"


class TextStatistics(NamedTuple):
    """Statistics of the training text.

    Attributes:
        counts: int64 [vocab], how often each piece occurs.
        vectors: float32 [vocab, embedding width], see `corpus_vectors`; [0, embedding width] if they are not needed.
    """

    counts: np.ndarray
    vectors: np.ndarray


def text_statistics(config: PretrainConfig, sources: BatchSources, folder: str) -> TextStatistics:
    """The statistics that the initial weights need, read from `FILE` or else counted and written there.

    Args:
        folder: the run's data folder.

    Raises:
        UserError: the vocabulary is smaller than the embeddings' width.
    """
    initialization, width = config.initialization, config.model.embedding_width
    vocab_size = len(sources.tokenizer.vocabulary)
    if (found := _read(config, folder)) is not None:
        return found
    sample, vectors = sources.sample(initialization.sample_tokens), np.zeros((0, width), np.float32)
    if initialization.word_embeddings == CORPUS:
        if width > vocab_size:
            raise UserError(
                f"initialization.word_embeddings: corpus needs a vocabulary of at least the embeddings' width, {width} "
                f"pieces. Received: {vocab_size}. Set initialization.word_embeddings=random."
            )
        _log.info("Counting co-occurrences of pieces to initialize the word embeddings.")
        counts, vectors = corpus_vectors(sample, vocab_size, width, initialization.window)
        _log.info(
            f"{vectors.any(axis=1).sum():,} of {vocab_size:,} pieces start from counts over {counts.sum():,} tokens; "
            f"those that occur fewer than {FEWEST_OCCURRENCES} times start at random."
        )
    else:
        counts = count_tokens(sample, vocab_size)
    # The members of a .npz have checksums.
    content = io.BytesIO()
    np.savez(content, counts=counts, vectors=vectors, made_of=_made_of(config))
    whole_files.write_file(files.join(folder, FILE), content.getvalue())
    return TextStatistics(counts, vectors)


def initialize(
    model: BertForPreTraining | ElectraForPreTraining, config: PretrainConfig, statistics: TextStatistics | None
) -> None:
    """Sets the initial weights of a new model; `statistics` is needed if `initialization.needs_text`."""
    nats, vectors = (unigram_nats(statistics.counts), statistics.vectors) if statistics else (None, None)
    initialization = config.initialization
    if isinstance(model, ElectraForPreTraining):
        if model.generator is not None:  # The discriminator's embeddings begin as the generator's.
            apply_initialization(model.generator, initialization, nats, vectors, config.training.seed)
            initialization = dataclasses.replace(initialization, word_embeddings="random", position_embeddings="random")
        initialization = dataclasses.replace(initialization, decoder_bias="zero")  # A discriminator has no such bias.
    apply_initialization(model, initialization, nats, vectors, config.training.seed)


def start_from(model: BertForPreTraining | ElectraForPreTraining, folder: ModelFolder, vocabulary: Vocabulary) -> None:
    """Loads another model's weights into a new model, and initializes the words that are new in its vocabulary."""
    if isinstance(model, ElectraForPreTraining):
        _start_discriminator_from(model, folder, vocabulary)
        return
    loaded = folder.load_into(model)
    _log.info("\n".join([f"Starting from the weights of {folder.name}.", *loaded.lines()]))
    if vocabulary.fingerprint == folder.vocabulary.fingerprint:
        return
    if not vocabulary.takes_new_words:
        raise UserError(
            f"vocabulary.file: needs {folder.vocabulary_file}, to whose pieces the weights of init belong. Received: "
            f"another {vocabulary.title.partition(' ')[2]}. Leave vocabulary.file out."
        )
    pieces = cut_before(vocabulary, model_tokenizer(folder))
    set_new_words(model, pieces)
    _log.info(
        f"{len(pieces):,} rows of the vocabulary are new; each starts as the mean of the pieces it was split into "
        "before."
    )


def _start_discriminator_from(model: ElectraForPreTraining, folder: ModelFolder, vocabulary: Vocabulary) -> None:
    """Loads a BERT's or an ELECTRA's weights: the encoder into the discriminator, and all that fit a generator's shapes
    into the generator.

    Raises:
        UserError: the discriminator needs other shapes, or the run's vocabulary differs.
    """
    if vocabulary.fingerprint != folder.vocabulary.fingerprint:
        raise UserError(
            f"vocabulary.file: needs {folder.vocabulary_file}, the vocabulary of init, for objective.tokens replaced. "
            "Received: another. Leave vocabulary.file out."
        )
    values = {name.attribute: value for part in folder.parts() for name, value in folder.read(part).items()}
    shares = []
    for role, target in (("generator", model.generator), ("discriminator", model)):
        found = {} if target is None else model_parts(target)
        weights = [(part, name.attribute, variable) for part, pairs in found.items() for name, variable in pairs]
        fitting = [one for one in weights if one[1] in values and values[one[1]].shape == tuple(one[2].shape)]
        for _, attribute, variable in fitting:
            if isinstance(variable, keras.Variable):  # The discriminator's tables may be sums; see its embeddings.
                variable.assign(values[attribute])
        if target is model and sum(part == ENCODER for part, *_ in fitting) < len(found[ENCODER]):
            raise UserError(
                f"init: needs a model with the discriminator's shapes. Received: {folder.name}, which has others. "
                "Leave the recipe's model out."
            )
        shares += [f"{len(fitting)} of {len(weights)} tensors of the {role}"] if weights else []
    _log.info(f"Starting from the weights of {folder.name}: {', '.join(shares)}; the others are new.")


def _made_of(config: PretrainConfig) -> str:
    initialization, width = config.initialization, config.model.embedding_width
    return json.dumps([initialization.word_embeddings, initialization.sample_tokens, initialization.window, width])


def _read(config: PretrainConfig, folder: str) -> TextStatistics | None:
    """The statistics in `FILE`, or None if it is missing, damaged or made with other initialization."""
    path = files.join(folder, FILE)
    if not files.exists(path):
        return None
    with contextlib.suppress(DamagedArrays), open_arrays(path) as arrays:
        if str(arrays["made_of"]) == _made_of(config):
            return TextStatistics(arrays["counts"], arrays["vectors"])
    return None
