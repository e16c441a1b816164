"""Dynamic masking for the masked LM, in the graph and stateless (paper, section 3.1, task 1).

After `create_masked_lm_predictions` in Google's create_pretraining_data.py. All random bits are a hash of (seed, epoch,
example, counter), so a draw does not depend on batches, threads or where a run was resumed; `tf.random.stateless_*`
would take one seed for a whole tensor.
"""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from keras_bert.config.objectives import PMI, MaskingConfig
from keras_bert.data.batches.collocation_units import CollocationUnits
from keras_bert.data.batches.mask_units import (
    NGRAM_LENGTHS,
    SPAN_LENGTHS,
    choose_ngrams,
    choose_phrases,
    choose_spans,
    choose_tokens,
    choose_units,
    choose_words,
)
from keras_bert.text.characters import continues_word
from keras_bert.text.vocabulary import Vocabulary

_GOLDEN = 0x9E3779B97F4A7C15
_MASK_64 = 2**64 - 1


def example_keys(seed: int, epoch: tf.Tensor | int, example_ids: tf.Tensor) -> tf.Tensor:
    """A 64-bit key for each example: uint64 [batch]. Neighbouring seeds, epochs and ids get unrelated keys."""
    key = _mix(uint64((seed + _GOLDEN) & _MASK_64))
    for part in (epoch, example_ids):
        key = _mix(key + uint64(_GOLDEN) + tf.cast(part, tf.uint64))
    return key


def random_bits(keys: tf.Tensor, counters: tf.Tensor) -> tf.Tensor:
    """The entries `counters` (int32 [batch or 1, n]) of each key's SplitMix64 sequence: uint64 [batch, n]."""
    return _mix(keys[:, None] + tf.cast(counters + 1, tf.uint64) * uint64(_GOLDEN))


def high_bits(bits: tf.Tensor) -> tf.Tensor:
    """The upper half of each uint64: int64 below 2**32."""
    return tf.cast(tf.bitwise.right_shift(bits, uint64(32)), tf.int64)


def low_bits(bits: tf.Tensor) -> tf.Tensor:
    """The lower half of each uint64: int64 below 2**32."""
    return tf.cast(tf.bitwise.bitwise_and(bits, uint64(2**32 - 1)), tf.int64)


def non_negative(bits: tf.Tensor) -> tf.Tensor:
    """All but the lowest bit of each uint64: int64, at least 0."""
    return tf.cast(tf.bitwise.right_shift(bits, uint64(1)), tf.int64)


def below(draws: tf.Tensor, count: tf.Tensor | int) -> tf.Tensor:
    """Scales draws, int64 below 2**32, to numbers from 0 to `count` - 1: int64; 0 for a count of 0."""
    return tf.bitwise.right_shift(draws * tf.cast(count, tf.int64), tf.constant(32, tf.int64))


def uint64(value: int) -> tf.Tensor:
    """A scalar constant."""
    return tf.constant(value, tf.uint64)


def _mix(bits: tf.Tensor) -> tf.Tensor:
    """The finaliser of SplitMix64 (Steele, Lea and Flood 2014): every output bit depends on every input bit."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        bits = tf.bitwise.bitwise_xor(bits, tf.bitwise.right_shift(bits, uint64(shift))) * uint64(factor)
    return tf.bitwise.bitwise_xor(bits, tf.bitwise.right_shift(bits, uint64(31)))


# Where each kind of draw begins in an example's random sequence. Those for the order of the units begin at 0, and no
# position reaches 2**16.
_REPLACEMENTS, LENGTHS, _REPLACED_SPANS, _DRAWS = 2**16, 2**17, 2**18, 2**19


class DynamicMasking:
    """Chooses positions, replaces their tokens with [MASK], random or the same tokens, and returns the original ones.

    The choice among the three is drawn for each token, as in BERT and ALBERT; for `unit: span` and `pmi`, once for each
    run of chosen tokens, as in SpanBERT. Random tokens are drawn one by one in either case.

    Args:
        masking: what to mask; `refresh` is not used here, because the caller passes the epoch.
        max_predictions_per_seq: the static width of the predictions.
        token_counts: int [vocab], how often each token occurs in the text; needed for `random_from: unigram`.
        collocations: the ids of each collocation; needed for `unit: pmi`.
    """

    def __init__(
        self,
        masking: MaskingConfig,
        max_predictions_per_seq: int,
        vocabulary: Vocabulary,
        seed: int,
        token_counts: npt.NDArray[np.integer] | None = None,
        collocations: Sequence[Sequence[int]] | None = None,
    ):
        self._masking = masking
        self._max_predictions = max_predictions_per_seq
        self._vocabulary = vocabulary
        self._seed = seed
        self._unigram = None
        if masking.random_from == "unigram":
            if token_counts is None:
                raise ValueError("token_counts: needed for random_from: unigram. Received: None.")
            self._unigram = class_steps(token_counts)
        self._collocations = None
        if masking.unit == PMI:
            if collocations is None:
                raise ValueError(f"collocations: needed for unit: {PMI}. Received: None.")
            self._collocations = CollocationUnits(collocations, len(vocabulary))

    def __call__(
        self,
        input_word_ids: tf.Tensor,
        lengths: tf.Tensor,
        example_ids: tf.Tensor,
        epoch: tf.Tensor | int = 0,
        continuation: tf.Tensor | None = None,
        phrases: tf.Tensor | None = None,
    ) -> dict[str, tf.Tensor]:
        """Masks a batch.

        Args:
            input_word_ids: int32 [batch, seq] with static `seq`; rows hold [CLS], tokens, [SEP], ... and padding.
            lengths: int32 [batch], tokens of each row that are not padding, [CLS] and [SEP] included.
            example_ids: int64 [batch].
            epoch: int, scalar or int64 [batch].
            continuation: bool [batch, seq], the tokens that continue a word, for units made of words. By default what
                `continues_word` says; needed for Chinese, whose words are several pieces without "##".
            phrases: int32 [batch, seq], 1 at the first token of a phrase, 2 at its other tokens, 0 outside of phrases;
                needed for `unit: phrase`.

        Returns:
            `input_word_ids` int32 [batch, seq], masked; `masked_lm_positions` int32, `masked_lm_ids` int32 and
            `masked_lm_weights` float32, each [batch, max_predictions_per_seq]. Positions ascend; rows with fewer
            predictions are filled up with position 0, id 0, weight 0.
        """
        keys = example_keys(self._seed, epoch, example_ids)
        candidate = candidates(input_word_ids, lengths, self._vocabulary)
        budget = budgets(lengths, self._masking.share, input_word_ids.shape[1], self._max_predictions)
        if continuation is None and self._masking.unit != "token":
            continuation = continues_word(self._vocabulary, input_word_ids)
        chosen = self._choose(keys, input_word_ids, candidate, continuation, phrases, budget)
        positions, is_prediction = chosen_positions(chosen, self._max_predictions)
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

    def draws(self, example_ids: tf.Tensor, epoch: tf.Tensor | int = 0) -> tf.Tensor:
        """A random number for each prediction, by which a model replaces its token: float32 [batch, predictions].

        The numbers are multiples of 2**-24 in [0, 1).
        """
        keys = example_keys(self._seed, epoch, example_ids)
        bits = high_bits(random_bits(keys, tf.range(self._max_predictions)[None, :] + _DRAWS))
        return tf.cast(tf.bitwise.right_shift(bits, tf.constant(8, tf.int64)), tf.float32) / 2**24

    @tf.autograph.experimental.do_not_convert  # AutoGraph cannot convert `match`, and would warn about it in `map`.
    def _choose(
        self,
        keys: tf.Tensor,
        word_ids: tf.Tensor,
        candidate: tf.Tensor,
        continuation: tf.Tensor | None,
        phrases: tf.Tensor | None,
        budget: tf.Tensor,
    ) -> tf.Tensor:
        """The chosen positions, bool [batch, seq]."""
        scores = non_negative(random_bits(keys, tf.range(candidate.shape[1])[None, :]))
        match self._masking.unit:
            case "token":
                return choose_tokens(candidate, budget, scores, self._max_predictions)
            case "word":
                return choose_words(candidate, continuation, budget, scores)
            case "phrase":
                return choose_phrases(candidate, continuation, phrases, budget, scores)
            case "pmi":
                assert self._collocations is not None
                heads = self._collocations.heads(word_ids, candidate, continuation)
                return choose_units(candidate, heads, budget, scores)
            case "ngram":
                lengths = drawn_lengths(keys, NGRAM_LENGTHS)
                return choose_ngrams(candidate, continuation, budget, scores, lengths, self._max_predictions)
            case "span":
                lengths = drawn_lengths(keys, SPAN_LENGTHS)
                return choose_spans(candidate, continuation, budget, scores, lengths, self._max_predictions)
        raise AssertionError(self._masking.unit)

    def _replacements(self, keys: tf.Tensor, positions: tf.Tensor, original_ids: tf.Tensor) -> tf.Tensor:
        """The new id at each position: [MASK], a random token, or the token itself."""
        bits = random_bits(keys, positions + _REPLACEMENTS)
        if self._masking.unit in ("span", PMI):
            # Positions ascend, so position minus index is the same throughout a run and different in every other.
            runs = positions - tf.range(self._max_predictions)
            draw = high_bits(random_bits(keys, runs + _REPLACED_SPANS))
        else:
            draw = high_bits(bits)
        if self._unigram is None:
            random_ids = below(low_bits(bits), len(self._vocabulary))
        else:
            random_ids = drawn_classes(low_bits(bits), self._unigram)
        return replaced(original_ids, draw, tf.cast(random_ids, tf.int32), self._masking, self._vocabulary.mask_id)


def replaced(
    original_ids: tf.Tensor, draws: tf.Tensor, random_ids: tf.Tensor, masking: MaskingConfig, mask_id: int
) -> tf.Tensor:
    """[MASK], the random id or the original one, as chosen by draws int64 below 2**32; all are [batch, n]."""
    below_mask = round(masking.mask_token_share * 2**32)
    below_random = round((masking.mask_token_share + masking.random_token_share) * 2**32)
    return tf.where(draws < below_mask, mask_id, tf.where(draws < below_random, random_ids, original_ids))


def candidates(word_ids: tf.Tensor, lengths: tf.Tensor, vocabulary: Vocabulary) -> tf.Tensor:
    """The positions that hold text, neither special tokens nor padding: bool [batch, seq]."""
    candidate = tf.range(word_ids.shape[1])[None, :] < lengths[:, None]
    for special_id in (vocabulary.cls_id, vocabulary.sep_id):
        candidate &= word_ids != special_id
    return candidate


def budgets(lengths: tf.Tensor, share: float, sequence_length: int, most: int) -> tf.Tensor:
    """How many tokens to predict in rows of these lengths: int32 [batch], at least 1 and at most `most`.

    The original does not predict [CLS] and [SEP] but counts them in the length. A table rounds just as Python does.
    """
    wanted = [max(1, int(round(length * share))) for length in range(sequence_length + 1)]
    return tf.gather(tf.constant([min(most, count) for count in wanted], tf.int32), lengths)


def chosen_positions(chosen: tf.Tensor, most: int) -> tuple[tf.Tensor, tf.Tensor]:
    """The positions where bool [batch, seq] is true, ascending, then 0; and which of these entries are used.

    Returns: int32 and bool, both [batch, most].
    """
    counts = tf.reduce_sum(tf.cast(chosen, tf.int32), axis=1)
    ends = tf.cumsum(counts)
    rows = tf.RaggedTensor.from_row_splits(
        tf.cast(tf.where(chosen)[:, 1], tf.int32), tf.concat([[0], ends], axis=0), validate=False
    )
    return rows.to_tensor(0, shape=[None, most]), tf.range(most)[None, :] < counts[:, None]


def drawn_lengths(keys: tf.Tensor, weights: Sequence[float]) -> Callable[[tf.Tensor], tf.Tensor]:
    """A function that draws a length for each number of int32 [batch, n], with the odds `weights` of lengths 1, 2, ….

    The same number in the same example gets the same length.
    """
    steps = class_steps(weights)
    return lambda numbers: 1 + drawn_classes(high_bits(random_bits(keys, numbers + LENGTHS)), steps)


def class_steps(weights: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Where each class ends when 0 to 2**32 is divided in proportion to the weights: int64 [classes]."""
    sums = np.cumsum(np.asarray(weights, np.float64))
    return np.floor(sums / sums[-1] * 2**32).astype(np.int64)


def drawn_classes(draws: tf.Tensor, steps: npt.NDArray[np.int64]) -> tf.Tensor:
    """The class of each draw, int64 [batch, n] below 2**32: int32 [batch, n]."""
    classes = tf.searchsorted(tf.constant(steps), tf.reshape(draws, [-1]), side="right")
    return tf.reshape(classes, tf.shape(draws))
