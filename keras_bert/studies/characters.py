"""The masked LM's loss per character, to compare models whose vocabularies cut text differently."""

import math

from keras_bert.config.pretraining import PretrainConfig
from keras_bert.core import files
from keras_bert.data.corpus.documents import Corpus
from keras_bert.data.corpus.held_out import VALIDATION, split_documents
from keras_bert.data.shards.shard_format import Meta, read_meta
from keras_bert.training.run_folder import RunFolder


def held_out_meta(run: str) -> Meta | None:
    """The meta.json of the held-out shards of a run's own text; None for shards of `prepare`, or streamed text."""
    path = files.join(RunFolder(run).data, "shards", VALIDATION, "meta.json")
    return read_meta(path) if files.exists(path) else None


def held_out_characters(run: str) -> int:
    """The number of characters in the held-out documents of a run's own text; reads all of the text."""
    config = PretrainConfig.from_file(files.join(run, "config.yaml"))
    documents = Corpus(config.data.files, config.data).documents()
    return sum(len(text) for text, held_out in split_documents(documents, config.data.validation_share) if held_out)


def bits_per_character(nats: float, meta: Meta, characters: int) -> float:
    """The loss in bits per character of the text.

    Args:
        nats: the loss, per piece.
        meta: the meta.json of the shards on which it was measured.
        characters: the number of characters of the text in these shards.
    """
    return nats / math.log(2) * meta["tokens"] / characters
