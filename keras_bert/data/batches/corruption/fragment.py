"""The corruption of MASS, whose decoder predicts a fragment of the text (Song et al. 2019, sections 3.1 and 4.1)."""

import tensorflow as tf

from keras_bert.config.objectives import MaskingConfig
from keras_bert.data.batches.corruption.restored import at_least_one
from keras_bert.data.batches.corruption.texts import Texts, counts_by_length, drawn_below, gathered, stream_bits
from keras_bert.data.batches.masking import high_bits, replaced

_START, _REPLACEMENTS = 16, 17


def fragment_length(length: int, share: float) -> int:
    """The most tokens of the fragment of a text of at most `length` tokens."""
    return at_least_one(length, share)


def mask_fragment(
    texts: Texts, keys: tf.Tensor, share: float, masking: MaskingConfig, mask_id: int, vocab_size: int
) -> tuple[Texts, Texts, tf.Tensor]:
    """Masks consecutive tokens, a share of each text, from a start that is drawn uniformly.

    As in BERT, a masked token becomes [MASK] with a probability of 80%, a random one with 10%, and stays with 10%, or
    as `masking` says. The decoder reads only the fragment. In the paper's figure it also reads [MASK] at the other
    places, which the authors leave out at the same accuracy (section 4.1).

    Returns:
        What the encoder reads, as wide as the texts; the fragments, which the decoder predicts; and the places in the
        texts where these begin, int32 [batch].
    """
    counts, most = counts_by_length(texts, lambda length: fragment_length(length, share))
    starts = drawn_below(stream_bits(keys, _START, 1), (texts.lengths - counts + 1)[:, None])
    is_masked = (texts.places >= starts) & (texts.places < starts + counts[:, None])
    bits = stream_bits(keys, _REPLACEMENTS, texts.width)
    random_ids = drawn_below(bits, vocab_size)
    new_ids = replaced(texts.word_ids, high_bits(bits), random_ids, masking, mask_id)
    corrupted = Texts(tf.where(is_masked, new_ids, texts.word_ids), texts.lengths)
    return corrupted, gathered(texts, starts + tf.range(most)[None, :], counts), starts[:, 0]
