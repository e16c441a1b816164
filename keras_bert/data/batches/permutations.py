"""Orders in which an XLNet predicts the tokens of a row (Yang et al. 2019, sections 2.2 and 2.3), stateless.

After `_sample_mask` and `_local_perm` in the published data_utils.py. Random bits come from `masking`, so a row's order
is a function of (seed, epoch, example).
"""

import tensorflow as tf

from keras_bert.config.objectives import MaskingConfig
from keras_bert.data.batches.mask_units import choose_tokens
from keras_bert.data.batches.masking import (
    LENGTHS,
    below,
    budgets,
    candidates,
    chosen_positions,
    drawn_lengths,
    example_keys,
    low_bits,
    non_negative,
    random_bits,
)
from keras_bert.text.characters import continues_word
from keras_bert.text.vocabulary import Vocabulary

LONGEST_SPAN = 5
# Where the draws of the order begin in an example's random sequence; see `masking`.
_RANKS = 2**19


class Permutations:
    """Chooses the tokens to predict and the order in which they become visible; no token is replaced.

    Tokens are predicted in spans of one to five, each from the start of a word. A span of L has a random place within a
    context of L / share further tokens; the paper's K = 6 is a share of a sixth. Single tokens make up for what is
    still missing from the share, as in the original.

    This differs from the original in two points. The original permutes halves of a row, and reuses the first as the
    memory of the next row; here the order spans the whole row. The original counts special tokens of a span among the
    predictions and drops them later; here they do not count. Lengths are in tokens, as in the paper and in the
    original's code, whose comments speak of n-grams.

    Args:
        masking: only its `share` is used.
        max_predictions_per_seq: the static width of the predictions.
    """

    def __init__(self, masking: MaskingConfig, max_predictions_per_seq: int, vocabulary: Vocabulary, seed: int):
        self._share = masking.share
        self._max_predictions = max_predictions_per_seq
        self._vocabulary = vocabulary
        self._seed = seed

    def __call__(
        self,
        input_word_ids: tf.Tensor,
        lengths: tf.Tensor,
        example_ids: tf.Tensor,
        epoch: tf.Tensor | int = 0,
        continuation: tf.Tensor | None = None,
        phrases: tf.Tensor | None = None,
    ) -> dict[str, tf.Tensor]:
        """Orders a batch; the arguments are those of a `DynamicMasking`.

        Returns:
            `input_word_ids` as given; `masked_lm_positions`, `masked_lm_ids` and `masked_lm_weights` of the
            predictions, as from a `DynamicMasking`; and `permutation_ranks` int32 [batch, seq], -1 for the context,
            which every token sees, and for padding. All other tokens, predictions and special tokens, see the context
            and tokens of lower ranks. Special tokens have ranks because they see predictions.
        """
        keys = example_keys(self._seed, epoch, example_ids)
        candidate = candidates(input_word_ids, lengths, self._vocabulary)
        budget = budgets(lengths, self._share, input_word_ids.shape[1], self._max_predictions)
        if continuation is None:
            continuation = continues_word(self._vocabulary, input_word_ids)
        places = tf.range(input_word_ids.shape[1])[None, :]
        chosen = scattered_spans(candidate, continuation, lengths, budget, self._share, keys)
        left = budget - tf.reduce_sum(tf.cast(chosen, tf.int32), axis=1)
        scores = non_negative(random_bits(keys, places))
        chosen |= choose_tokens(candidate & ~chosen, left, scores, self._max_predictions)
        positions, is_prediction = chosen_positions(chosen, self._max_predictions)
        ranks = tf.argsort(non_negative(random_bits(keys, places + _RANKS)), axis=1)
        is_special = (places < lengths[:, None]) & ~candidate
        return {
            "input_word_ids": input_word_ids,
            "masked_lm_positions": positions,
            "masked_lm_ids": tf.where(is_prediction, tf.gather(input_word_ids, positions, batch_dims=1), 0),
            "masked_lm_weights": tf.cast(is_prediction, tf.float32),
            "permutation_ranks": tf.where(chosen | is_special, ranks, -1),
        }


def scattered_spans(
    candidate: tf.Tensor, continuation: tf.Tensor, lengths: tf.Tensor, budget: tf.Tensor, share: float, keys: tf.Tensor
) -> tf.Tensor:
    """Chooses spans of one to five tokens with context between them, from left to right.

    Args:
        candidate: bool [batch, seq], the positions that may be chosen.
        continuation: bool [batch, seq], the tokens that no span may begin with.
        lengths: int32 [batch], tokens that are not padding.
        budget: int32 [batch], the most tokens to choose.
        share: the share to choose; a span of L has L / share tokens of context, some before it and the others after it.
        keys: uint64 [batch], see `example_keys`.

    Returns: the chosen positions, bool [batch, seq], often fewer than the budget.
    """
    sequence_length = candidate.shape[1]
    # No row is as long as the context of a smaller share, such as 0.
    contexts = [round(length / max(share, 1e-6)) for length in range(LONGEST_SPAN + 1)]
    steps = tf.range(-(-sequence_length // (1 + contexts[1])))[None, :]
    drawn = drawn_lengths(keys, [1 / length for length in range(1, LONGEST_SPAN + 1)])(steps)
    parts = low_bits(random_bits(keys, steps + LENGTHS))
    starts = tf.cumsum(tf.cast(candidate & ~continuation, tf.int32), axis=1)
    earlier = tf.pad(starts, [[0, 0], [1, 0]])
    places = tf.range(sequence_length)[None, :]

    def take(
        step: tf.Tensor, place: tf.Tensor, left: tf.Tensor, chosen: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
        size = tf.minimum(drawn[:, step], left)
        context = tf.gather(tf.constant(contexts, tf.int32), size)
        before = tf.cast(below(parts[:, step], context), tf.int32)
        begin = tf.minimum(place + before, sequence_length)
        begin = tf.searchsorted(starts, tf.gather(earlier, begin, batch_dims=1)[:, None] + 1)[:, 0]
        end = begin + size
        fits = end < lengths
        span = (places >= begin[:, None]) & (places < end[:, None]) & fits[:, None] & candidate
        left -= tf.reduce_sum(tf.cast(span, tf.int32), axis=1)
        return step + 1, tf.where(fits, end + context - before, sequence_length), left, chosen | span

    def is_unfinished(step: tf.Tensor, place: tf.Tensor, left: tf.Tensor, chosen: tf.Tensor) -> tf.Tensor:
        return (step < steps.shape[1]) & tf.reduce_any((place < lengths) & (left > 0))

    state = (0, tf.zeros_like(budget), budget, tf.zeros_like(candidate))
    return tf.while_loop(is_unfinished, take, state)[3]
