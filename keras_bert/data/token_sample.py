"""A bounded sample of the tokens that a run trains on."""

from collections.abc import Iterator

import numpy as np
import tensorflow as tf

from keras_bert.data.raw_lines import RawLines
from keras_bert.data.shards import ShardSet
from keras_bert.data.text_packing import split_lines
from keras_bert.text.tokenizer import WordPieceTokenizer

# Of a corpus of any size, so many are read.
_MOST_SHARDS = 64


def sample_of_shards(shards: ShardSet, most: int) -> Iterator[np.ndarray]:
    """Yields arrays of ids [n], `most` in all or fewer: as many from the beginning of each of some shards.

    These are spread evenly over the set, because its shards follow the order of the files.
    """
    wanted = min(len(shards.names), _MOST_SHARDS)
    places = np.linspace(0, len(shards.names) - 1, wanted).round().astype(int)
    sizes = [shard["tokens"] for shard in shards.meta["shards"]]
    left = most
    # What a small shard lacks the larger ones give.
    for number, place in enumerate(sorted(places, key=lambda place: sizes[place])):
        tokens = shards.read(shards.names[place])[0][: -(-left // (wanted - number))]
        left -= len(tokens)
        yield tokens


def sample_of_lines(lines: RawLines, tokenizer: WordPieceTokenizer, most: int) -> Iterator[np.ndarray]:
    """Yields arrays of ids [n], `most` in all or fewer, from the beginning of a text that is read as it is."""

    def tokens(chunk, texts, documents):
        return tokenizer(split_lines(texts)[0]).values

    chunks = lines.chunks(validation=False).map(tokens, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
    left = most
    for ids in chunks.as_numpy_iterator():
        yield ids[:left]
        left -= len(ids)
        if left <= 0:
            return
