"""A sample, of limited size, of the tokens that a run trains on."""

from collections.abc import Iterator

import numpy as np
import tensorflow as tf

from keras_bert.data.batches.raw_lines import RawLines
from keras_bert.data.batches.text_packing import split_lines
from keras_bert.data.shards.shard_files import ShardSet
from keras_bert.text.tokenizers import Tokenizer

# However large the corpus, no more shards than this are read.
_MOST_SHARDS = 64


def sample_of_shards(shards: ShardSet, most: int) -> Iterator[np.ndarray]:
    """Yields arrays of ids [n], at most `most` in all, the same number from the start of each of up to 64 shards.

    These are spread evenly over the set, because its shards are in the order of the files.
    """
    wanted = min(len(shards.names), _MOST_SHARDS)
    places = np.linspace(0, len(shards.names) - 1, wanted).round().astype(int)
    sizes = [shard["tokens"] for shard in shards.meta["shards"]]
    left = most
    # Small shards come first, so that larger ones can make up for what they lack.
    for number, place in enumerate(sorted(places, key=lambda place: sizes[place])):
        tokens = shards.read(shards.names[place])[0][: -(-left // (wanted - number))]
        left -= len(tokens)
        yield tokens


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
