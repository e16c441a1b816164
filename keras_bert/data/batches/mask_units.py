"""Chooses what a row's masked LM predicts, unit by unit in random order, until a budget of tokens is spent.

A unit is a token, a whole word, an n-gram of words, a span of words, a labelled phrase or a collocation. All functions
take

    candidate: bool [batch, seq], the positions that may be chosen: those with a token of the text.
    continuation: bool [batch, seq], the tokens that continue the word of the token before them.
    budget: int32 [batch], how many tokens to choose.
    scores: int64 [batch, seq], at least 0 and all different within a row: the random order.

and return the chosen positions, bool [batch, seq]. No unit contains a position that is not a candidate, so none extends
across a [SEP]. A word is a candidate and the continuations that follow it. Continuations at the start of a segment,
whose head was cut off, are a word of their own; the original joins those after [SEP] to the last word before it.
"""

from collections.abc import Callable

import tensorflow as tf

LONGEST_NGRAM, LONGEST_SPAN = 3, 10
_SPANS_AT_ONCE = 4
# ALBERT (Lan et al. 2020, section 4.1): p(n) proportional to 1/n.
NGRAM_LENGTHS = tuple(1 / n for n in range(1, LONGEST_NGRAM + 1))
# SpanBERT (Joshi et al. 2020, section 3.1): geometric, cut off at ten words.
SPAN_LENGTHS = tuple(0.2 * 0.8 ** (n - 1) for n in range(1, LONGEST_SPAN + 1))


def choose_tokens(candidate: tf.Tensor, budget: tf.Tensor, scores: tf.Tensor, max_predictions: int) -> tf.Tensor:
    """The `budget` candidates with the highest scores; `max_predictions` is the largest budget."""
    # Selecting the n-th score takes a tenth of the time of sorting, but uses the same n for all rows. A row with a
    # smaller budget gets extra scores above all others, so that its last choice becomes its n-th score too.
    above_all = tf.range(max_predictions)[None, :] < max_predictions - budget[:, None]
    ranked = tf.concat([tf.where(candidate, scores, -1), tf.where(above_all, tf.int64.max, -1)], axis=1)
    lowest_chosen = tf.raw_ops.NthElement(input=ranked, n=max_predictions - 1, reverse=True)
    return candidate & (scores >= lowest_chosen[:, None])


def choose_words(candidate: tf.Tensor, continuation: tf.Tensor, budget: tf.Tensor, scores: tf.Tensor) -> tf.Tensor:
    """Whole words in descending order of their scores, each taken if it fits in what is left of the budget.

    `scores[:, n]` is the n-th word's. The budget is spent unless no further word fits.
    """
    return choose_units(candidate, word_heads(candidate, continuation), budget, scores)


def choose_units(candidate: tf.Tensor, is_head: tf.Tensor, budget: tf.Tensor, scores: tf.Tensor) -> tf.Tensor:
    """Like `choose_words`, but with units that begin where `is_head`, bool [batch, seq], is true."""
    unit = _units(is_head)
    sizes = add_up(tf.cast(candidate, tf.int32), unit)
    order = tf.math.top_k(tf.where(sizes > 0, scores, -1), candidate.shape[1]).indices
    taken = _take_what_fits(tf.gather(sizes, order, batch_dims=1), budget)
    return candidate & (tf.gather(add_up(tf.cast(taken, tf.int32), order), unit, batch_dims=1) > 0)


def choose_phrases(
    candidate: tf.Tensor, continuation: tf.Tensor, phrases: tf.Tensor, budget: tf.Tensor, scores: tf.Tensor
) -> tf.Tensor:
    """Whole phrases in descending order of their scores, and then, with what is left, whole words.

    Args:
        phrases: int32 [batch, seq], 1 at the first token of a phrase, 2 at its other tokens, 0 outside of phrases.
    """
    # A token after a phrase continues nothing, although it may belong to a Chinese word that began in the phrase.
    follows_phrase = tf.pad(phrases[:, :-1] > 0, [[0, 0], [1, 0]])
    is_head = word_heads(candidate, (continuation & (phrases == 0) & ~follows_phrase) | (phrases == 2))
    is_phrase = add_up(tf.cast(is_head & (phrases > 0), tf.int32), _units(is_head)) > 0
    # Scores have 63 bits. Halved, they leave one to put all phrases before all words.
    phrases_first = scores // 2 + tf.cast(is_phrase, tf.int64) * 2**62
    return choose_units(candidate, is_head, budget, phrases_first)


def choose_ngrams(
    candidate: tf.Tensor,
    continuation: tf.Tensor,
    budget: tf.Tensor,
    scores: tf.Tensor,
    draw_lengths: Callable[[tf.Tensor], tf.Tensor],
    max_predictions: int,
) -> tf.Tensor:
    """N-grams of whole words, after `create_masked_lm_predictions` in ALBERT's create_pretraining_data.py.

    Words are visited in descending order of their scores. The n-gram that begins at a word ends at the latest where its
    segment ends, loses words at its end until it fits in what is left of the budget, and is taken unless it overlaps
    one already taken. What is left of the budget when `max_predictions` words have been visited goes to single words,
    as by `choose_words`; the original leaves it.

    Args:
        candidate, continuation, budget, scores: as everywhere; `scores[:, n]` is the n-th word's.
        draw_lengths: function of words int32 [batch, n] that returns the lengths of the n-grams they begin, in words.
        max_predictions: the largest budget.
    """
    batch, sequence_length = tf.shape(candidate)[0], candidate.shape[1]
    heads = tf.cumsum(tf.cast(word_heads(candidate, continuation), tf.int32), axis=1)
    word_count = heads[:, -1:]
    visited = tf.math.top_k(tf.where(tf.range(sequence_length) < word_count, scores, -1), max_predictions).indices
    lengths = tf.where(visited < word_count, draw_lengths(visited), 0)
    edges = tf.stack([tf.searchsorted(heads, visited + 1 + n) for n in range(LONGEST_NGRAM + 1)], axis=2)
    edges = tf.minimum(edges, sequence_length - 1)  # Past the last word; there a [SEP] comes at the latest.
    edges = tf.minimum(edges, _segment_ends(candidate, edges[:, :, 0])[:, :, None])
    # All rows one after the other, each with an extra place for words that are not to be marked.
    row_starts = tf.range(batch)[:, None] * (sequence_length + 1)
    nowhere = row_starts + sequence_length
    words = tf.minimum(visited[:, :, None] + tf.range(LONGEST_NGRAM), sequence_length) + row_starts[:, :, None]
    is_wanted = tf.range(LONGEST_NGRAM) < lengths[:, :, None]
    by_visit = [tf.transpose(values, [1, 0, 2]) for values in (edges - edges[:, :, :1], words, is_wanted)]

    def visit(index: tf.Tensor, taken: tf.Tensor, left: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        ends, words, is_wanted = (values[index] for values in by_visit)
        starts, ends = ends[:, :-1], ends[:, 1:]
        size = tf.reduce_max(tf.where(is_wanted & (ends <= left[:, None]), ends, 0), axis=1, keepdims=True)
        is_inside = starts < size
        overlaps = tf.reduce_any(is_inside & tf.gather(taken, words), axis=1, keepdims=True)
        words = tf.where(is_inside & ~overlaps, words, nowhere)
        taken = tf.tensor_scatter_nd_update(taken, words[:, :, None], tf.ones_like(is_inside))
        return index + 1, taken, left - tf.where(overlaps, 0, size)[:, 0]

    def is_unfinished(index: tf.Tensor, taken: tf.Tensor, left: tf.Tensor) -> tf.Tensor:
        return (index < max_predictions) & tf.reduce_any(left > 0)

    left = tf.minimum(budget, tf.reduce_sum(tf.cast(candidate, tf.int32), axis=1))
    state = (0, tf.zeros([batch * (sequence_length + 1)], tf.bool), left)
    _, taken_words, left = tf.while_loop(is_unfinished, visit, state)
    taken = candidate & tf.gather(taken_words, tf.maximum(heads - 1, 0) + row_starts)
    return tf.cond(
        tf.reduce_any(left > 0),
        lambda: taken | choose_words(candidate & ~taken, continuation, left, scores),
        lambda: taken,
    )


def choose_spans(
    candidate: tf.Tensor,
    continuation: tf.Tensor,
    budget: tf.Tensor,
    scores: tf.Tensor,
    draw_lengths: Callable[[tf.Tensor], tf.Tensor],
    max_predictions: int,
) -> tf.Tensor:
    """Spans of whole words, after `PairWithSpanMaskingScheme` in SpanBERT's code.

    Tokens are visited in descending order of their scores. A token that is not chosen yet starts a span at the
    beginning of its word, which ends at the latest where its segment ends, and may extend over tokens already chosen.
    The last span is cut off where the budget is spent, possibly inside a word.

    Args:
        candidate, continuation, budget, scores: as everywhere; `scores[:, n]` is the n-th token's.
        draw_lengths: function of positions int32 [batch, n] that returns the lengths of their spans, in words.
        max_predictions: the largest budget.
    """
    budget = tf.minimum(budget, tf.reduce_sum(tf.cast(candidate, tf.int32), axis=1))
    heads = tf.cumsum(tf.cast(word_heads(candidate, continuation), tf.int32), axis=1)
    # Each visited token ends up chosen, so no more tokens are visited than are to be chosen.
    visited = tf.math.top_k(tf.where(candidate, scores, -1), max_predictions).indices
    word = tf.gather(heads, visited, batch_dims=1)  # Counted from 1.
    starts = tf.searchsorted(heads, word)
    ends = tf.minimum(tf.searchsorted(heads, word + draw_lengths(visited)), _segment_ends(candidate, visited))
    ends = tf.where(tf.gather(candidate, visited, batch_dims=1), ends, starts)
    starts, ends, visited = tf.transpose(starts), tf.transpose(ends), tf.transpose(visited)
    sequence_length = candidate.shape[1]
    places = tf.range(sequence_length)

    def visit_some(index: tf.Tensor, span: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        # Completion is checked every few spans; extra visits are no-ops.
        for ahead in range(_SPANS_AT_ONCE):
            number = tf.minimum(index + ahead, max_predictions - 1)
            start, is_free = starts[number], tf.gather(span, visited[number], batch_dims=1) == max_predictions
            end = tf.where(is_free, ends[number], start)
            is_inside = (places >= start[:, None]) & (places < end[:, None])
            span = tf.where(is_inside, tf.minimum(span, number), span)
        return index + _SPANS_AT_ONCE, span

    def is_unfinished(index: tf.Tensor, span: tf.Tensor) -> tf.Tensor:
        chosen = tf.reduce_sum(tf.cast(span < max_predictions, tf.int32), axis=1)
        return (index < max_predictions) & tf.reduce_any(chosen < budget)

    # The number of the span that took a position; `max_predictions` if none did.
    nobody = tf.fill(tf.shape(candidate), max_predictions)
    _, span = tf.while_loop(is_unfinished, visit_some, (0, nobody))
    in_turn = tf.cast(span * sequence_length + places, tf.int64)
    last = (max_predictions + 1) * sequence_length
    return choose_tokens(candidate & (span < max_predictions), budget, last - in_turn, max_predictions)


def _units(is_head: tf.Tensor) -> tf.Tensor:
    """The number of the unit that each position is in, given the first positions of units: int32 [batch, seq]."""
    return tf.maximum(tf.cumsum(tf.cast(is_head, tf.int32), axis=1) - 1, 0)


def word_heads(candidate: tf.Tensor, continuation: tf.Tensor) -> tf.Tensor:
    """bool [batch, seq]: the first position of each word."""
    follows_candidate = tf.pad(candidate[:, :-1], [[0, 0], [1, 0]])
    return candidate & ~(continuation & follows_candidate)


def _segment_ends(candidate: tf.Tensor, positions: tf.Tensor) -> tf.Tensor:
    """The first position after each of `positions` [batch, n] that is not a candidate: int32 [batch, n]."""
    breaks = tf.cumsum(tf.cast(~candidate, tf.int32), axis=1)
    return tf.searchsorted(breaks, tf.gather(breaks, positions, batch_dims=1) + 1)


def add_up(values: tf.Tensor, places: tf.Tensor) -> tf.Tensor:
    """Sums of the values [batch, seq] that share a place in their row: [batch, seq]."""
    batch, sequence_length = tf.shape(values)[0], values.shape[1]
    row_starts = tf.range(batch)[:, None] * sequence_length
    sums = tf.math.unsorted_segment_sum(values, places + row_starts, batch * sequence_length)
    return tf.reshape(sums, [batch, sequence_length])


def _take_what_fits(sizes: tf.Tensor, budget: tf.Tensor) -> tf.Tensor:
    """The greedy choice in order, skipping what would overflow: bool [batch, seq] for int32 sizes [batch, seq].

    Each round takes the longest prefix of the open items that fits, with one cumulative sum. The next item then
    overflows, and so does every later one of its size, so the budget left shrinks below that size. Rounds are few.
    """

    def take_prefix(taken: tf.Tensor, is_open: tf.Tensor, left: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        is_open &= sizes <= left[:, None]
        fits = is_open & (tf.cumsum(tf.where(is_open, sizes, 0), axis=1) <= left[:, None])
        left -= tf.reduce_sum(tf.where(fits, sizes, 0), axis=1)
        return taken | fits, is_open & ~fits & (sizes <= left[:, None]), left

    state = (tf.zeros_like(sizes, tf.bool), sizes > 0, budget)
    return tf.while_loop(lambda taken, is_open, left: tf.reduce_any(is_open), take_prefix, state)[0]
