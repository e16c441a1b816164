"""What the weights of a new model begin as in place of BERT's normal noise."""

import keras
import numpy as np
from keras import ops

from keras_bert.config.initialization import CORPUS, MIMETIC, SINUSOIDAL, UNIGRAM, InitializationConfig
from keras_bert.models.pretraining import BertForPreTraining

# Shares of noise and of the identity in the product of query and key. Trockman and Kolter 2023 (section 3) have 0.7 and
# 0.7 for images; with less noise, equal words find each other across sentences (docs/pretraining.md#initialization).
_NOISE, _IDENTITY = 0.3, 0.7
_LONGEST_WAVE = 10_000.0


def set_first_values(
    model: keras.Model,
    initialization: InitializationConfig,
    unigram_nats: np.ndarray | None,
    vectors: np.ndarray | None,
    seed: int,
) -> None:
    """Gives the weights that `initialization` names their values; all others keep those they have.

    Args:
        model: a new `BertForPreTraining`, or any model with an `encoder` where those values are of the encoder alone.
        initialization: how each of them begins.
        unigram_nats: [vocab], -log p of each piece in the training text; where its decoder bias begins as the unigram.
        vectors: [vocab, hidden] of `data.statistics.corpus_vectors`; where its word embeddings begin as those.
        seed: int, of the noise in mimetic attention.
    """
    deviation, embeddings = model.encoder.config.initializer_range, model.encoder.embeddings
    if initialization.word_embeddings == CORPUS:
        table = embeddings.word_embeddings
        table.assign(_scaled(vectors, deviation, ops.convert_to_numpy(table)))
    if initialization.position_embeddings == SINUSOIDAL:
        table = embeddings.position_embeddings
        table.assign(sinusoids(*table.shape) * (deviation / np.sqrt(0.5)))
    if initialization.decoder_bias == UNIGRAM:
        assert unigram_nats is not None
        model.mlm_head.bias.assign(-unigram_nats)
    if initialization.attention == MIMETIC:
        for layer, block in enumerate(model.encoder.blocks):
            attention = block.attention
            query, key = mimetic_kernels(attention.hidden_size, attention.num_attention_heads, (seed, layer))
            attention.query.kernel.assign(query)
            attention.key.kernel.assign(key)
            for projection in (attention.query, attention.key):
                projection.bias.assign(ops.zeros_like(projection.bias))


def set_new_words(model: BertForPreTraining, pieces: dict[int, list[int]]) -> None:
    """Gives words that are new to a trained model the mean of the pieces it knew them by.

    Args:
        model: with the weights of the older vocabulary.
        pieces: `{row: rows whose mean it gets}`, of the word embeddings and of the decoder's bias.
    """
    for variable in (model.encoder.embeddings.word_embeddings, model.mlm_head.bias):
        before = ops.convert_to_numpy(variable)
        after = np.array(before)
        for row, ids in pieces.items():
            after[row] = before[ids].mean(axis=0)
        variable.assign(after)


def _scaled(vectors, deviation, others):
    """[vocab, hidden]: the vectors, centred and scaled to a standard deviation; the row of `others` where one is 0."""
    is_known = vectors.any(axis=1)
    known = vectors[is_known] - vectors[is_known].mean(axis=0)
    table = np.array(others)
    table[is_known] = known * (deviation / max(known.std(), np.finfo(np.float32).tiny))
    return table


def sinusoids(positions: int, width: int) -> np.ndarray:
    """[positions, width] float32: sines in the even columns, cosines in the odd (Vaswani et al. 2017, section 3.5)."""
    waves = _LONGEST_WAVE ** (-np.arange(0, width, 2) / width)
    angles = np.arange(positions)[:, None] * waves
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(positions, -1)[:, :width].astype(np.float32)


def mimetic_kernels(width: int, heads: int, seed: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Kernels of queries and keys, float32 [width, width], whose product is near the identity in every head.

    A head's is the best approximation of noise + identity that its rank allows, halved between the two.
    """
    generator, size = np.random.default_rng(np.random.SeedSequence(seed)), width // heads
    query, key = np.empty((2, width, width), np.float32)
    for head in range(heads):
        noise = generator.normal(0.0, width**-0.5, (width, width))
        left, singular_values, right = np.linalg.svd(_NOISE * noise + _IDENTITY * np.eye(width))
        root, columns = np.sqrt(singular_values[:size]), slice(head * size, (head + 1) * size)
        query[:, columns], key[:, columns] = left[:, :size] * root, right[:size].T * root
    return query, key
