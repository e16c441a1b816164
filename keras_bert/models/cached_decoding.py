"""One token at a time through a causal encoder, with the keys and values of the tokens before it kept.

A row has a fixed width from the start, so that a step is traced once. What is beyond the last token is masked, and
written over when its token is known.
"""

from typing import TypeAlias

from keras import ops

from keras_bert.models.encoder import FLOAT16_PADDING_BIAS, PADDING_BIAS, BertEncoder
from keras_bert.models.tensors import Tensor

# For each block, keys and values [batch, heads, width, head_size].
Cache: TypeAlias = list[tuple[Tensor, Tensor]]


def begin(encoder: BertEncoder, word_ids: Tensor) -> tuple[Tensor, Cache]:
    """Reads whole rows.

    Args:
        encoder: a causal encoder.
        word_ids: int32 [batch, width], with anything after the last token.

    Returns: (the last hidden states [batch, width, hidden], the cache); those after the last token are not valid.
    """
    places = ops.arange(ops.shape(word_ids)[1], dtype="int32")
    return _read(encoder, encoder.embeddings(word_ids, ops.zeros_like(word_ids)), places, None)


def extend(encoder: BertEncoder, word_ids: Tensor, place: Tensor, cache: Cache) -> tuple[Tensor, Cache]:
    """Reads one more token of each row.

    Args:
        encoder: the encoder.
        word_ids: int32 [batch, width], with the new tokens.
        place: int32 scalar, the position of the new tokens.
        cache: valid up to that position.

    Returns: (the last hidden states at that position, [batch, 1, hidden]; the cache with them).
    """
    # Embedding the whole row is a small part of a step, and needs nothing new of the embeddings.
    embedded = encoder.embeddings(word_ids, ops.zeros_like(word_ids))
    places = ops.reshape(place, (1,))
    return _read(encoder, ops.take(embedded, places, axis=1), places, cache)


def _read(encoder: BertEncoder, hidden: Tensor, places: Tensor, cache: Cache | None) -> tuple[Tensor, Cache]:
    """The tokens at `places` [n], embedded, through all blocks: [batch, n, hidden]."""
    width = ops.shape(cache[0][0])[2] if cache else ops.shape(hidden)[1]
    columns = ops.arange(width, dtype="int32")
    bias = FLOAT16_PADDING_BIAS if encoder.compute_dtype == "float16" else PADDING_BIAS
    attention_bias = ops.cast(columns[None, :] > places[:, None], "float32")[None, None] * bias
    is_new = ops.equal(columns, places[-1])[None, None, :, None]
    read: Cache = []
    for number, block in enumerate(encoder.blocks):
        query, key, value = block.attention.project(hidden)
        if cache:
            before = cache[number]
            key, value = ops.where(is_new, key, before[0]), ops.where(is_new, value, before[1])
        read.append((key, value))
        attended, _ = block.attention.attend(query, key, value, attention_bias)
        hidden = block.after_attention(hidden, attended)
    return hidden, read
