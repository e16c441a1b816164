"""Initial values for a new model's weights, other than BERT's random normal ones."""

import keras
import numpy as np
from keras import ops

from keras_bert.config.initialization import CORPUS, MIMETIC, SINUSOIDAL, UNIGRAM, InitializationConfig
from keras_bert.layers.embeddings import scaled_sinusoids
from keras_bert.models.kind import kind_of_config
from keras_bert.models.pretraining import BertForPreTraining

# The weights of noise and identity in the product of query and key. Trockman and Kolter 2023 (section 3) use 0.7 and
# 0.7 for images; with less noise, equal words find each other across texts (docs/learning.md#pairs-of-texts).
_NOISE, _IDENTITY = 0.3, 0.7


def apply_initialization(
    model: keras.Model,
    initialization: InitializationConfig,
    unigram_nats: np.ndarray | None,
    vectors: np.ndarray | None,
    seed: int,
) -> None:
    """Set the weights that `initialization` selects; all others keep their values.

    Args:
        model: a new `BertForPreTraining`, or any model with an `encoder` if all selected weights are the encoder's.
        initialization: how to initialize each group of weights.
        unigram_nats: [vocab], -log p of each piece in the training text; needed if the decoder bias starts as the
            unigram.
        vectors: [vocab, hidden] from `data.corpus_vectors`; needed if the word embeddings start from them.
        seed: the seed of the noise in mimetic attention.

    Raises:
        UserError: the kind of model has no place for selected weights.
    """
    embeddings = model.encoder.embeddings
    deviation = embeddings.initializer_range  # A T5's differs from the config's.
    initialization.require_for(kind_of_config(model.encoder.config))
    if initialization.word_embeddings == CORPUS:
        assert vectors is not None
        table = embeddings.word_embeddings
        table.assign(_scaled(vectors, deviation, ops.convert_to_numpy(table)))
    if initialization.position_embeddings == SINUSOIDAL:
        table = embeddings.position_embeddings
        rows, width = table.shape
        table.assign(scaled_sinusoids(rows, width, deviation))
    if initialization.decoder_bias == UNIGRAM:
        assert unigram_nats is not None
        model.mlm_head.bias.assign(-unigram_nats)
    if initialization.attention == MIMETIC:
        # Blocks of an ALBERT share them.
        attentions = {id(block.attention): block.attention for block in model.encoder.blocks}
        for layer, attention in enumerate(attentions.values()):
            query, key = mimetic_kernels(attention.hidden_size, attention.num_attention_heads, (seed, layer))
            attention.query.kernel.assign(query)
            attention.key.kernel.assign(key)
            for projection in (attention.query, attention.key):
                projection.bias.assign(ops.zeros_like(projection.bias))


def set_new_words(model: BertForPreTraining, pieces: dict[int, list[int]]) -> None:
    """Initialize new words of a trained model as the mean of the pieces into which they were split before.

    Args:
        model: a model with the weights of the older vocabulary.
        pieces: `{row: rows to average}`, for the word embeddings and the decoder.
    """
    decoder = () if model.mlm_head.decoder is None else (model.mlm_head.decoder,)
    for variable in (model.encoder.embeddings.word_embeddings, model.mlm_head.bias, *decoder):
        before = ops.convert_to_numpy(variable)
        after = np.array(before)
        for row, ids in pieces.items():
            after[row] = before[ids].mean(axis=0)
        variable.assign(after)


def _scaled(vectors: np.ndarray, deviation: float, others: np.ndarray) -> np.ndarray:
    """Center the vectors [vocab, hidden] and scale them to a standard deviation; zero rows come from `others`."""
    is_known = vectors.any(axis=1)
    known = vectors[is_known] - vectors[is_known].mean(axis=0)
    table = np.array(others)
    table[is_known] = known * (deviation / max(known.std(), np.finfo(np.float32).tiny))
    return table


def mimetic_kernels(width: int, heads: int, seed: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Query and key kernels, float32 [width, width], whose product in every head is close to the identity.

    In each head the product is the best approximation of noise + identity that its rank allows, split evenly between
    the two kernels.
    """
    generator, size = np.random.default_rng(np.random.SeedSequence(seed)), width // heads
    query, key = np.empty((2, width, width), np.float32)
    for head in range(heads):
        noise = generator.normal(0.0, width**-0.5, (width, width))
        left, singular_values, right = np.linalg.svd(_NOISE * noise + _IDENTITY * np.eye(width))
        root, columns = np.sqrt(singular_values[:size]), slice(head * size, (head + 1) * size)
        query[:, columns], key[:, columns] = left[:, :size] * root, right[:size].T * root
    return query, key
