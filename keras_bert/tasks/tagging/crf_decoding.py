"""Decodes the labels of whole sentences from a CRF's emissions at their words."""

import functools
from collections.abc import Callable

import numpy as np
import tensorflow as tf
from keras import ops

from keras_bert.data.windows import batches_by_length
from keras_bert.layers.crf import Chain, best_paths, marginals
from keras_bert.layers.tensors import Tensor

_WORDS_AT_ONCE = 1 << 16  # Padding included.

Scores = tuple[Tensor, Tensor, Tensor]  # Starts [labels], transitions [labels, labels], ends [labels].


def decode(emissions: tf.Tensor, mask: tf.Tensor, scores: Scores) -> tuple[tf.Tensor, tf.Tensor]:
    """The labels of each row's best path, int32 [batch, seq], and marginal probabilities, [batch, seq, labels].

    Args:
        emissions: float32 [batch, seq, labels].
        mask: bool [batch, seq], the positions of words; results elsewhere are meaningless.
        scores: as from `CrfTaggingHead.scores`.
    """
    starts, transitions, ends = scores
    seq = tf.shape(mask)[1]
    # Add a masked position, so that there is one even without words.
    emissions, mask = tf.pad(emissions, [[0, 0], [0, 1], [0, 0]]), tf.pad(mask, [[0, 0], [0, 1]])
    rows = ops.zeros_like(emissions[:, 0])
    chain = Chain(emissions, mask, rows + starts, transitions, rows + ends)
    best = best_paths(chain)
    return best[:, :seq], marginals(chain)[:, :seq]


def decode_ragged(emissions: tf.RaggedTensor, scores: Scores) -> tuple[tf.Tensor, tf.Tensor]:
    """Like `decode`, but for ragged emissions [sentences, (words), labels]; returns [words] and [words, labels]."""
    padded = emissions.to_tensor()
    mask = tf.sequence_mask(emissions.row_lengths(), tf.shape(padded)[1])
    best, probabilities = decode(padded, mask, scores)
    return tf.boolean_mask(best, mask), tf.boolean_mask(probabilities, mask)


def decode_words(emissions: np.ndarray, starts: np.ndarray, scores: Scores) -> tuple[np.ndarray, np.ndarray]:
    """The labels of the best path of each sentence, int32 [words], and marginal probabilities, [words, labels].

    Args:
        emissions: [words, labels], of all sentences.
        starts: int [sentences + 1], where each sentence starts.
        scores: as from `CrfTaggingHead.scores`.
    """
    labels, probabilities = np.zeros(len(emissions), np.int32), np.zeros(emissions.shape, np.float32)
    decoder = _decoder(emissions.shape[1])
    values = tuple(tf.cast(value, tf.float32) for value in scores)
    for sentences in batches_by_length(np.diff(starts), _WORDS_AT_ONCE):
        words = np.concatenate([np.arange(starts[number], starts[number + 1]) for number in sentences])
        lengths = (starts[sentences + 1] - starts[sentences]).astype(np.int64)
        found = decoder(tf.constant(emissions[words], tf.float32), tf.constant(lengths), values)
        labels[words], probabilities[words] = (part.numpy() for part in found)
    return labels, probabilities


@functools.cache
def _decoder(labels: int) -> Callable[[tf.Tensor, tf.Tensor, Scores], tuple[tf.Tensor, tf.Tensor]]:
    """`decode_ragged` for emissions [words, labels] and sentence lengths, traced once for each number of labels."""
    scores = tuple(tf.TensorSpec(shape, tf.float32) for shape in ([labels], [labels, labels], [labels]))
    specs = (tf.TensorSpec([None, labels], tf.float32), tf.TensorSpec([None], tf.int64), scores)
    return tf.function(
        lambda emissions, lengths, scores: decode_ragged(
            tf.RaggedTensor.from_row_lengths(emissions, lengths, validate=False), scores
        ),
        input_signature=specs,
        autograph=False,
    )
