"""Rows of raw text, planned in the graph as spans of tokens: sentences packed, or in pairs.

`packing.plan_packed` and `plans.plan_pairs` plan the rows of shards, in NumPy and once for each epoch. The same rules
apply here to text that is read once, in the input pipeline; the packed rows are equal. A pair's random draws depend, as
for masks, on the place where it begins and not on a generator, so no Python is needed.
"""

from typing import NamedTuple

import tensorflow as tf

from keras_bert.config.objectives import ObjectiveConfig
from keras_bert.data.batches.masking import below, high_bits, low_bits, random_bits
from keras_bert.data.batches.plans import PARTNERS_DRAWN, related_sizes
from keras_bert.models.term import RANDOM_NEXT, RUNNING_TEXT, SWAPPED
from keras_bert.text.characters import row_ids


def pack_sentences(
    lengths: tf.Tensor, documents: tf.Tensor, sequence_length: int, documents_in_row: int, fills: bool = False
) -> tf.Tensor:
    """The spans of packed rows, the same as those of `packing.plan_packed`.

    Args:
        lengths: int64 [sentences], tokens of each sentence; empty sentences are skipped.
        documents: int32 [sentences], ascending; sentences of the same document have the same number.
        sequence_length, documents_in_row, fills: as in `plan_packed`.

    Returns: int64 [rows, 2 * documents_in_row].
    """
    # Rows that may end at any token are rows of whole sentences of one token each.
    most_tokens = 1 if fills else sequence_length - 2
    lengths, documents, first_tokens = _divide_long(lengths, documents, most_tokens)
    count = tf.size(lengths)
    document_of, first_sentences = _documents(documents)
    document_count = tf.size(first_sentences) - 1
    # Positions in a text with a [SEP] after each document.
    starts = first_tokens + tf.cast(document_of, tf.int64)
    following = tf.searchsorted(starts + lengths, starts + sequence_length - 2, side="right")
    beyond = tf.gather(first_sentences, tf.minimum(document_of + documents_in_row, document_count))
    first = _chain(tf.minimum(following, beyond))
    after = tf.concat([first[1:], [count]], axis=0)[: tf.size(first)]

    number = tf.gather(document_of, first)[:, None] + tf.range(documents_in_row)
    is_used = number <= tf.gather(document_of, after - 1)[:, None]
    bounds = tf.concat([first_tokens, [tf.reduce_sum(lengths)]], axis=0)
    span_starts = tf.maximum(tf.gather(bounds, first)[:, None], _gather_twice(bounds, first_sentences, number))
    span_ends = tf.minimum(tf.gather(bounds, after)[:, None], _gather_twice(bounds, first_sentences, number + 1))
    spans = tf.where(is_used[:, :, None], tf.stack([span_starts, span_ends], axis=2), 0)
    return tf.reshape(spans, [-1, 2 * documents_in_row])


# The numbers of the draws at each token; draws that are needed together are the halves of one number.
_SIZE_DRAW, _LABEL_DRAW, _OTHER_DRAW, _SWAP_DRAW, _CUT_DRAW, _DRAWS = 0, 1, 2, 4, 5, 512
_UNIT = 2**32  # Draws are below it.


class Text(NamedTuple):
    """Tokenized documents, one after the other; sentences have at least one token.

    Attributes:
        bounds: int64 [sentences + 1], where each sentence starts in the tokens.
        first_sentences: int32 [documents + 1], where each document starts in the sentences.
        sentence_of: int32 [tokens].
        document_of: int32 [sentences].
    """

    bounds: tf.Tensor
    first_sentences: tf.Tensor
    sentence_of: tf.Tensor
    document_of: tf.Tensor

    def sentence_from(self, tokens: tf.Tensor) -> tf.Tensor:
        """The first sentence that starts at one of `tokens` [n] > 0 or later; the number of sentences if none does."""
        before = tf.minimum(tokens, tf.size(self.sentence_of, tf.int64)) - 1
        return tf.gather(self.sentence_of, before) + 1


class Chunk(NamedTuple):
    """Runs of sentences of a document and where they are divided, each [n]; see `plans.plan_pairs`.

    Attributes:
        start, middle, end: int64, in the tokens: A is `start` to `middle`, and the rest `middle` to `end`.
        target: int64, the wanted length.
        document: int32.
        splits_inside: bool, whether `middle` is inside the only sentence.
        is_random: bool, whether B is from another document.
        following: int64, where the next chunk starts.
        is_pair: bool, false for the single token that is left of a document.
    """

    start: tf.Tensor
    middle: tf.Tensor
    end: tf.Tensor
    target: tf.Tensor
    document: tf.Tensor
    splits_inside: tf.Tensor
    is_random: tf.Tensor
    following: tf.Tensor
    is_pair: tf.Tensor


def pair_sentences(
    lengths: tf.Tensor, documents: tf.Tensor, max_tokens: int, objective: ObjectiveConfig, key: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Segment pairs by the rules of `plans.plan_pairs` and `plan_swapped`, with labels that are drawn, not dealt.

    Args:
        lengths: int64 [sentences], tokens of each sentence; empty sentences are skipped.
        documents: [sentences]; neighbouring sentences of a document have the same number.
        max_tokens: the most tokens of A and B together; at least 2.
        objective: its `pairing` and shares are used. A single document has no random next sentences.
        key: uint64 [1], on which everything random depends.

    Returns: (int64 [pairs, 4], start and end of both segments; int32 [pairs], their labels).
    """
    text = text_of(lengths, documents, max_tokens)
    every_place = chunks_at(text, tf.range(tf.size(text.sentence_of, tf.int64)), max_tokens, objective, key)
    starts = tf.cast(_chain(tf.cast(every_place.following, tf.int32)), tf.int64)
    chunks = chunks_at(
        text, tf.boolean_mask(starts, tf.gather(every_place.is_pair, starts)), max_tokens, objective, key
    )
    other_start, other_end = _spans_of_other_documents(text, chunks, key)
    b_start = tf.where(chunks.is_random, other_start, chunks.middle)
    b_end = tf.where(chunks.is_random, other_end, chunks.end)
    spans = _truncate(chunks, b_start, b_end, max_tokens, key)
    labels = chunks.is_random
    if objective.pairing == SWAPPED:
        labels = high_bits(_draws(key, chunks.start, _SWAP_DRAW)) < _UNIT // 2
        spans = tf.where(labels[:, None], tf.gather(spans, [2, 3, 0, 1], axis=1), spans)
    return spans, tf.cast(labels, tf.int32)


def relate_sentences(
    lengths: tf.Tensor, documents: tf.Tensor, max_tokens: int, objective: ObjectiveConfig, key: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Rows by the rules of `plans.plan_related`, with labels that are drawn; used like `pair_sentences`."""
    fewest, most = related_sizes(max_tokens)
    text = text_of(lengths, documents, most)
    starts, lengths = text.bounds[:-1], text.bounds[1:] - text.bounds[:-1]
    ends = tf.gather(text.bounds, tf.gather(text.first_sentences, text.document_of + 1))
    kept = [tf.boolean_mask(values, lengths >= fewest) for values in (lengths, text.document_of, starts, ends)]
    lengths, documents, starts, ends = kept
    document_of, firsts = _documents(documents)
    first, count = (tf.cast(tf.gather(values, document_of), tf.int64) for values in (firsts, firsts[1:] - firsts[:-1]))
    own = tf.where(count > 1)
    bits = random_bits(key, (tf.gather(starts, own) * _DRAWS + tf.range(_SWAP_DRAW + 1, dtype=tf.int64)))
    others = tf.gather(first, own) + below(low_bits(bits[:, :PARTNERS_DRAWN]), tf.gather(count, own) - 1)
    others += tf.cast(others >= own, tf.int64)
    nearest = tf.argmin(tf.abs(tf.gather(lengths, others) - tf.gather(lengths, own)), axis=1)
    spans = []
    for chosen in (own[:, 0], tf.gather(others, nearest, batch_dims=1)):
        spans += [tf.gather(starts, chosen), tf.gather(starts + lengths, chosen)]
    labels = tf.cast(high_bits(bits[:, _SWAP_DRAW]) < _UNIT // 2, tf.int32)
    runs_on = low_bits(bits[:, _SWAP_DRAW]) >= round(objective.related_share * _UNIT)
    end = tf.minimum(spans[0] + max_tokens, tf.gather(ends, own[:, 0]))
    running = tf.stack([spans[0], end, end, end], axis=1)
    return tf.where(runs_on[:, None], running, tf.stack(spans, axis=1)), tf.where(runs_on, RUNNING_TEXT, labels)


def text_of(lengths: tf.Tensor, documents: tf.Tensor, max_tokens: int) -> Text:
    """The `Text` of sentences, after dividing those of more than `max_tokens`; see `pair_sentences`."""
    lengths, documents, first_tokens = _divide_long(lengths, documents, max_tokens)
    bounds = tf.concat([first_tokens, [tf.reduce_sum(lengths)]], axis=0)
    document_of, first_sentences = _documents(documents)
    return Text(bounds, first_sentences, row_ids(bounds, tf.cast(bounds[-1], tf.int32)), document_of)


def chunks_at(text: Text, starts: tf.Tensor, max_tokens: int, objective: ObjectiveConfig, key: tf.Tensor) -> Chunk:
    """The chunk that would start at each of the tokens int64 [n]."""
    sentence = tf.gather(text.sentence_of, starts)
    document = tf.gather(text.document_of, sentence)
    last = tf.gather(text.first_sentences, document + 1)
    document_end = tf.gather(text.bounds, last)

    size_bits, label_bits = _draws(key, starts, _SIZE_DRAW), _draws(key, starts, _LABEL_DRAW)
    is_short = high_bits(size_bits) < round(objective.short_sequence_share * _UNIT)
    target = tf.where(is_short, 2 + below(low_bits(size_bits), max_tokens - 1), max_tokens)
    place = low_bits(label_bits)
    is_random = tf.zeros_like(is_short)
    if objective.pairing == RANDOM_NEXT:
        has_others = tf.size(text.first_sentences) > 2
        is_random = has_others & (high_bits(label_bits) < round(objective.random_next_share * _UNIT))

    stop = tf.minimum(text.sentence_from(starts + target), last)
    end = tf.gather(text.bounds, stop)
    splits_inside = stop - sentence == 1
    into_sentences = tf.cast(below(place, stop - sentence - 1), tf.int32)
    between = tf.gather(text.bounds, tf.minimum(sentence + 1 + into_sentences, last))
    middle = tf.where(splits_inside, starts + 1 + below(place, end - starts - 1), between)
    # Reusing the rest of a document's last sentence would only make shorter and shorter pairs.
    goes_back = is_random & ~(splits_inside & (stop == last))
    is_pair = document_end - starts >= 2
    following = tf.where(is_pair, tf.where(goes_back, middle, end), document_end)
    return Chunk(starts, middle, end, target, document, splits_inside, is_random, following, is_pair)


def _spans_of_other_documents(text: Text, chunks: Chunk, key: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """For each chunk a span in another document, at least as long as the target without A, unless the document ends.

    If the chunk splits inside its sentence, the span starts inside one too, so that the split does not give the label
    away.
    """
    document_bits, place_bits = _draws(key, chunks.start, _OTHER_DRAW), _draws(key, chunks.start, _OTHER_DRAW + 1)
    others = tf.maximum(tf.size(text.first_sentences, tf.int64) - 2, 1)
    other = tf.cast(below(low_bits(document_bits), others), tf.int32)
    other = tf.minimum(other + tf.cast(other >= chunks.document, tf.int32), tf.size(text.first_sentences) - 2)
    first, last = tf.gather(text.first_sentences, other), tf.gather(text.first_sentences, other + 1)
    sentence = first + tf.cast(below(high_bits(place_bits), last - first), tf.int32)
    begin = tf.gather(text.bounds, sentence)
    length = tf.gather(text.bounds, sentence + 1) - begin
    inside = tf.minimum(1 + below(low_bits(place_bits), length - 1), length - 1)
    start = begin + tf.where(chunks.splits_inside, inside, 0)
    wanted = tf.maximum(chunks.target - (chunks.middle - chunks.start), 1)
    return start, tf.gather(text.bounds, tf.minimum(text.sentence_from(start + wanted), last))


def _truncate(chunks: Chunk, b_start: tf.Tensor, b_end: tf.Tensor, max_tokens: int, key: tf.Tensor) -> tf.Tensor:
    """int64 [n, 4]: both spans, cut at their ends by the rule of `plans.plan_pairs` until they fit."""
    a_length, b_length = chunks.middle - chunks.start, b_end - b_start
    a_kept = tf.minimum(a_length, tf.maximum(max_tokens - b_length, (max_tokens + 1) // 2))
    b_kept = tf.minimum(b_length, tf.maximum(max_tokens - a_length, max_tokens // 2))
    words = -(-2 * max_tokens // 64)
    a_start = chunks.start + _count_heads(key, chunks.start, _CUT_DRAW, a_length - a_kept, words)
    b_start += _count_heads(key, chunks.start, _CUT_DRAW + words, b_length - b_kept, words)
    return tf.stack([a_start, a_start + a_kept, b_start, b_start + b_kept], axis=1)


def _count_heads(key: tf.Tensor, starts: tf.Tensor, draw: int, tosses: tf.Tensor, words: int) -> tf.Tensor:
    """The number of heads in `tosses` of a coin, int64 [n], for which `words` draws of 64 bits suffice: int64 [n]."""
    heads = tf.zeros_like(tosses)
    for word in range(words):
        used = tf.cast(tf.clip_by_value(tosses - 64 * word, 0, 64), tf.uint64)
        # A shift by 64 is not defined.
        bits = tf.bitwise.right_shift(_draws(key, starts, draw + word), tf.where(used > 0, 64 - used, 0))
        counted = tf.cast(tf.raw_ops.PopulationCount(x=bits), tf.int64)
        heads += tf.where(used > 0, counted, 0)
    return heads


def _draws(key: tf.Tensor, starts: tf.Tensor, draw: int) -> tf.Tensor:
    """uint64 [n]: one of the draws at each of the tokens int64 [n]."""
    return random_bits(key, (starts * _DRAWS + draw)[None, :])[0]


def _documents(documents: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Return (each sentence's document, from 0; each document's first sentence, then the number of sentences)."""
    begins = tf.concat([tf.ones_like(documents[:1], tf.bool), documents[1:] != documents[:-1]], axis=0)
    document_of = tf.cumsum(tf.cast(begins, tf.int32)) - 1
    return document_of, tf.concat([tf.cast(tf.where(begins)[:, 0], tf.int32), [tf.size(documents)]], axis=0)


def _divide_long(lengths: tf.Tensor, documents: tf.Tensor, max_tokens: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Divides sentences into pieces of at most `max_tokens`: (lengths, documents, starts in the tokens) of pieces."""
    pieces = -(-lengths // max_tokens)
    ends = tf.concat([[0], tf.cumsum(pieces)], axis=0)
    sentence = row_ids(ends, tf.cast(ends[-1], tf.int32))
    into = (tf.range(ends[-1]) - tf.gather(ends, sentence)) * max_tokens
    lengths = tf.minimum(tf.gather(lengths, sentence) - into, max_tokens)
    return lengths, tf.gather(documents, sentence), tf.cumsum(lengths, exclusive=True)


def _chain(following: tf.Tensor) -> tf.Tensor:
    """int32: 0, its successor, the successor of that, … below n. Doubles in every round, because rounds are slow."""
    count = tf.size(following)
    jumps = tf.concat([following, [count]], axis=0)  # The end is its own successor.
    chain = tf.zeros([1], tf.int32)

    def double(chain: tf.Tensor, jumps: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        return tf.concat([chain, tf.gather(jumps, chain)], axis=0), tf.gather(jumps, jumps)

    shapes = (tf.TensorShape([None]), tf.TensorShape([None]))
    chain, _ = tf.while_loop(lambda chain, jumps: chain[-1] < count, double, (chain, jumps), shapes)
    return tf.boolean_mask(chain, chain < count)


def _gather_twice(bounds: tf.Tensor, first_sentences: tf.Tensor, documents: tf.Tensor) -> tf.Tensor:
    return tf.gather(bounds, tf.gather(first_sentences, tf.minimum(documents, tf.size(first_sentences) - 1)))
