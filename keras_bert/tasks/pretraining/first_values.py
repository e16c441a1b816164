"""What a run's training text says of the first values of its model: counted once, and kept in the run's data."""

import io
import json
import zipfile
import zlib
from typing import NamedTuple

import numpy as np

from keras_bert import files, whole_files
from keras_bert.checkpoints.model_folder import ModelFolder
from keras_bert.config.initialization import CORPUS
from keras_bert.config.pretraining import PretrainConfig
from keras_bert.data.statistics.corpus_vectors import FEWEST_OCCURRENCES, corpus_vectors, count_tokens
from keras_bert.errors import UserError
from keras_bert.inference.loading import model_tokenizer
from keras_bert.models.first_values import set_first_values, set_new_words
from keras_bert.models.pretraining import BertForPreTraining
from keras_bert.tasks.pretraining.batch_sources import BatchSources, unigram_nats
from keras_bert.text.vocabulary import Vocabulary
from keras_bert.text.vocabulary_extension import cut_before

FILE = "first_values.npz"


class TextValues(NamedTuple):
    """What the text says: counts int64 [vocab]; vectors float32 [vocab, hidden], [0, hidden] where none are wanted."""

    counts: np.ndarray
    vectors: np.ndarray


def text_values(config: PretrainConfig, sources: BatchSources, folder: str, report) -> TextValues:
    """What the model's first values need of the training text: read from `FILE`, or counted and written there.

    Args:
        config: of the run.
        sources: of the run.
        folder: of the run's data.
        report: takes one line of text at a time.

    Raises:
        UserError: the vocabulary is too small for the model's width.
    """
    settings, vocab_size, width = config.initialization, len(sources.tokenizer.vocabulary), config.model.hidden_size
    if (found := _read(config, folder)) is not None:
        return found
    sample, vectors = sources.sample(settings.sample_tokens), np.zeros((0, width), np.float32)
    if settings.word_embeddings == CORPUS:
        if width > vocab_size:
            raise UserError(
                f"initialization.word_embeddings: corpus needs a vocabulary of model.hidden_size ({width}) pieces or "
                f"more. Received: one of {vocab_size}. Set initialization.word_embeddings=random."
            )
        report("Counting which pieces stand together, for the first values of the word embeddings.")
        counts, vectors = corpus_vectors(sample, vocab_size, width, settings.window)
        report(
            f"{vectors.any(axis=1).sum():,} of {vocab_size:,} pieces start from counts over {counts.sum():,} tokens; "
            f"those that occur fewer than {FEWEST_OCCURRENCES} times start at random."
        )
    else:
        counts = count_tokens(sample, vocab_size)
    # The parts of a .npz carry checksums.
    content = io.BytesIO()
    np.savez(content, counts=counts, vectors=vectors, made_of=_made_of(config))
    with whole_files.atomic_write(files.join(folder, FILE), "wb") as stream:
        stream.write(content.getvalue())
    return TextValues(counts, vectors)


def begin(model: BertForPreTraining, config: PretrainConfig, values: TextValues | None) -> None:
    """Gives a new model its first values; `values` where they need the text."""
    nats, vectors = (unigram_nats(values.counts), values.vectors) if values else (None, None)
    set_first_values(model, config.initialization, nats, vectors, config.training.seed)


def go_on_from(model: BertForPreTraining, folder: ModelFolder, vocabulary: Vocabulary, report) -> None:
    """Gives a new model the weights of another, and words that this one's vocabulary lacks their first values.

    Args:
        model: a `BertForPreTraining`.
        folder: of the other.
        vocabulary: of the run.
        report: takes one line of text at a time.
    """
    loaded = folder.load_into(model)
    report("\n".join([f"Going on from the weights of {folder.name}.", *loaded.lines()]))
    if vocabulary.fingerprint == Vocabulary.from_file(folder.vocabulary_file).fingerprint:
        return
    pieces = cut_before(vocabulary, model_tokenizer(folder))
    set_new_words(model, pieces)
    report(
        f"{len(pieces):,} rows of the vocabulary are new and begin as the mean of the pieces that they were cut into."
    )


def _made_of(config):
    settings = config.initialization
    return json.dumps([settings.word_embeddings, settings.sample_tokens, settings.window, config.model.hidden_size])


def _read(config, folder):
    """The `TextValues`; None where they are not there, are damaged or were made of other settings."""
    path = files.join(folder, FILE)
    if not files.exists(path):
        return None
    with files.open_file(path) as stream:
        try:
            with np.load(io.BytesIO(stream.read())) as arrays:
                if str(arrays["made_of"]) == _made_of(config):
                    return TextValues(arrays["counts"], arrays["vectors"])
        except (ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error):
            pass
    return None
