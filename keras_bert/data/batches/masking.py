"""Dynamic masking for the masked LM, in the graph and stateless (paper, section 3.1, task 1).

After `create_masked_lm_predictions` in Google's create_pretraining_data.py. All random bits are a counter hash of
(seed, epoch, example, position), so that a mask does not depend on batches, threads or where a run was resumed.
`tf.random.stateless_*` cannot do that, because it takes one seed for a whole tensor.
"""

import tensorflow as tf

from keras_bert.config.pretraining import MaskingConfig
from keras_bert.text.vocabulary import Vocabulary

_GOLDEN = 0x9E3779B97F4A7C15
_MASK_64 = 2**64 - 1


class DynamicMasking:
    """Chooses positions, replaces their tokens with [MASK], random or the same tokens, and returns the original ones.

    Args:
        masking: what to mask; `refresh` is not used here, because the caller passes the epoch.
        max_predictions_per_seq: the static width of the predictions.
        vocabulary: the vocabulary of the ids.
        seed: seed of all masks.
    """

    def __init__(self, masking: MaskingConfig, max_predictions_per_seq: int, vocabulary: Vocabulary, seed: int):
        self._masking = masking
        self._max_predictions = max_predictions_per_seq
        self._vocab_size = len(vocabulary)
        self._special_ids = (vocabulary.cls_id, vocabulary.sep_id)
        self._mask_id = vocabulary.mask_id
        self._is_continuation = vocabulary.is_continuation
        self._seed = seed

    def __call__(
        self,
        input_word_ids: tf.Tensor,
        lengths: tf.Tensor,
        example_ids: tf.Tensor,
        epoch: tf.Tensor | int = 0,
        continuation: tf.Tensor | None = None,
    ) -> dict[str, tf.Tensor]:
        """Masks a batch.

        Args:
            input_word_ids: int32 [batch, seq] with static `seq`; rows hold [CLS], tokens, [SEP], ... and padding.
            lengths: int32 [batch], tokens of each row that are not padding, [CLS] and [SEP] included.
            example_ids: int64 [batch].
            epoch: int, scalar or int64 [batch].
            continuation: bool [batch, seq], the tokens that continue a word, for whole-word masking. By default the
                pieces that start with "##"; needed for Chinese, which has none.

        Returns:
            `input_word_ids` int32 [batch, seq], masked; `masked_lm_positions` int32, `masked_lm_ids` int32 and
            `masked_lm_weights` float32, each [batch, max_predictions_per_seq]. Positions ascend; rows with fewer
            predictions are filled up with position 0, id 0, weight 0.
        """
        sequence_length = input_word_ids.shape[1]
        keys = example_keys(self._seed, epoch, example_ids)
        places = tf.range(sequence_length)[None, :]
        candidate = places < lengths[:, None]
        for special_id in self._special_ids:
            candidate &= input_word_ids != special_id
        # The original does not predict [CLS] and [SEP] but counts them in the length. A table rounds just like Python.
        budgets = [self._budget(length) for length in range(sequence_length + 1)]
        budget = tf.gather(tf.constant(budgets, tf.int32), lengths)
        scores = tf.cast(tf.bitwise.right_shift(random_bits(keys, places), _uint64(1)), tf.int64)
        if self._masking.whole_word:
            if continuation is None:
                continuation = tf.gather(tf.constant(self._is_continuation), input_word_ids)
            chosen = choose_words(candidate, continuation, budget, scores)
        else:
            chosen = choose_tokens(candidate, budget, scores, self._max_predictions)
        positions, is_prediction = self._positions(chosen)
        original_ids = tf.where(is_prediction, tf.gather(input_word_ids, positions, batch_dims=1), 0)
        # Added rather than assigned: unused predictions all point to position 0 and must not change it.
        change = tf.where(is_prediction, self._replacements(keys, positions, original_ids) - original_ids, 0)
        rows = tf.broadcast_to(tf.range(tf.shape(positions)[0])[:, None], tf.shape(positions))
        return {
            "input_word_ids": tf.tensor_scatter_nd_add(input_word_ids, tf.stack([rows, positions], axis=-1), change),
            "masked_lm_positions": positions,
            "masked_lm_ids": original_ids,
            "masked_lm_weights": tf.cast(is_prediction, tf.float32),
        }

    def _budget(self, length: int) -> int:
        return min(self._max_predictions, max(1, int(round(length * self._masking.share))))

    def _positions(self, chosen: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """The positions where bool [batch, seq] is true, ascending, then 0; and which of these entries are used."""
        counts = tf.reduce_sum(tf.cast(chosen, tf.int32), axis=1)
        ends = tf.cumsum(counts)
        rows = tf.RaggedTensor.from_row_splits(
            tf.cast(tf.where(chosen)[:, 1], tf.int32), tf.concat([[0], ends], axis=0), validate=False
        )
        is_prediction = tf.range(self._max_predictions)[None, :] < counts[:, None]
        return rows.to_tensor(0, shape=[None, self._max_predictions]), is_prediction

    def _replacements(self, keys: tf.Tensor, positions: tf.Tensor, original_ids: tf.Tensor) -> tf.Tensor:
        """The new id at each position: [MASK], a token drawn from the whole vocabulary, or the token itself."""
        bits = random_bits(keys, positions + 2**16)  # Beyond all positions, whose own draws are the scores.
        draw = tf.cast(tf.bitwise.right_shift(bits, _uint64(32)), tf.int64)
        below_mask = round(self._masking.mask_token_share * 2**32)
        below_random = round((self._masking.mask_token_share + self._masking.random_token_share) * 2**32)
        low_bits = tf.bitwise.bitwise_and(bits, _uint64(2**32 - 1))
        random_ids = tf.cast(tf.bitwise.right_shift(low_bits * _uint64(self._vocab_size), _uint64(32)), tf.int32)
        return tf.where(draw < below_mask, self._mask_id, tf.where(draw < below_random, random_ids, original_ids))


def choose_tokens(candidate: tf.Tensor, budget: tf.Tensor, scores: tf.Tensor, max_predictions: int) -> tf.Tensor:
    """The `budget` candidates with the highest scores: bool [batch, seq].

    Args:
        candidate: bool [batch, seq].
        budget: int32 [batch], at most `max_predictions`.
        scores: int64 [batch, seq], at least 0, all different within a row.
        max_predictions: the largest budget.
    """
    # Selecting the n-th score takes a tenth of the time of sorting, but uses the same n for all rows. A row with a
    # smaller budget gets extra scores above all others, so that its last choice becomes its n-th score too.
    above_all = tf.range(max_predictions)[None, :] < max_predictions - budget[:, None]
    ranked = tf.concat([tf.where(candidate, scores, -1), tf.where(above_all, tf.int64.max, -1)], axis=1)
    lowest_chosen = tf.raw_ops.NthElement(input=ranked, n=max_predictions - 1, reverse=True)
    return candidate & (scores >= lowest_chosen[:, None])


def choose_words(candidate: tf.Tensor, continuation: tf.Tensor, budget: tf.Tensor, scores: tf.Tensor) -> tf.Tensor:
    """Whole words in descending order of their scores, each taken if it fits in what is left: bool [batch, seq].

    A word is a candidate and the continuations that follow it. Continuations at the start of a segment, whose head was
    cut off, are a word of their own; after [SEP], the original joins them to the last word of the text before.

    Args:
        candidate, continuation: bool [batch, seq].
        budget: int32 [batch].
        scores: int64 [batch, seq], at least 0; `scores[:, n]` is the n-th word's.
    """
    batch, sequence_length = tf.shape(candidate)[0], candidate.shape[1]
    row_starts = tf.range(batch)[:, None] * sequence_length

    def add_up(values, places):
        """Sums of the values [batch, seq] that share a place in their row: [batch, seq]."""
        sums = tf.math.unsorted_segment_sum(values, places + row_starts, batch * sequence_length)
        return tf.reshape(sums, [batch, sequence_length])

    follows_candidate = tf.pad(candidate[:, :-1], [[0, 0], [1, 0]])
    is_head = candidate & ~(continuation & follows_candidate)
    word = tf.maximum(tf.cumsum(tf.cast(is_head, tf.int32), axis=1) - 1, 0)
    sizes = add_up(tf.cast(candidate, tf.int32), word)
    order = tf.math.top_k(tf.where(sizes > 0, scores, -1), sequence_length).indices
    taken = _take_what_fits(tf.gather(sizes, order, batch_dims=1), budget)
    return candidate & (tf.gather(add_up(tf.cast(taken, tf.int32), order), word, batch_dims=1) > 0)


def _take_what_fits(sizes: tf.Tensor, budget: tf.Tensor) -> tf.Tensor:
    """The greedy choice in order, skipping what would overflow: bool [batch, seq] for int32 sizes [batch, seq].

    Each round takes the longest prefix of the open items that fits, with one cumulative sum. The next item then
    overflows, and so does every later one of its size, so the budget left shrinks below that size. Rounds are few.
    """

    def take_prefix(taken, is_open, left):
        is_open &= sizes <= left[:, None]
        fits = is_open & (tf.cumsum(tf.where(is_open, sizes, 0), axis=1) <= left[:, None])
        left -= tf.reduce_sum(tf.where(fits, sizes, 0), axis=1)
        return taken | fits, is_open & ~fits & (sizes <= left[:, None]), left

    state = (tf.zeros_like(sizes, tf.bool), sizes > 0, budget)
    return tf.while_loop(lambda taken, is_open, left: tf.reduce_any(is_open), take_prefix, state)[0]


def example_keys(seed: int, epoch: tf.Tensor | int, example_ids: tf.Tensor) -> tf.Tensor:
    """A 64-bit key for each example: uint64 [batch]. Neighbouring seeds, epochs and ids get unrelated keys."""
    key = _mix(_uint64((seed + _GOLDEN) & _MASK_64))
    for part in (epoch, example_ids):
        key = _mix(key + _uint64(_GOLDEN) + tf.cast(part, tf.uint64))
    return key


def random_bits(keys: tf.Tensor, counters: tf.Tensor) -> tf.Tensor:
    """The entries `counters` (int32 [batch or 1, n]) of each key's SplitMix64 sequence: uint64 [batch, n]."""
    return _mix(keys[:, None] + tf.cast(counters + 1, tf.uint64) * _uint64(_GOLDEN))


def _mix(bits: tf.Tensor) -> tf.Tensor:
    """The finaliser of SplitMix64 (Steele, Lea and Flood 2014): every output bit depends on every input bit."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        bits = tf.bitwise.bitwise_xor(bits, tf.bitwise.right_shift(bits, _uint64(shift))) * _uint64(factor)
    return tf.bitwise.bitwise_xor(bits, tf.bitwise.right_shift(bits, _uint64(31)))


def _uint64(value: int) -> tf.Tensor:
    return tf.constant(value, tf.uint64)
