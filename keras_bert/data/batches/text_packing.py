"""Sentences and packed rows in the graph: what `packing.plan_packed` plans, for text tokenized during the run."""

import tensorflow as tf

from keras_bert.text.characters import row_ids

# A simpler rule than that of `text.sentences`, which is Python: without pairs, sentences only mark where a row may end.
_STOP_BEFORE_CAPITAL = r"""([.!?…]["'”’»)\]]*)[ \t]+(["'“‘«(\[]*[\p{Lu}\p{N}])"""
_IDEOGRAPHIC_STOP = r"""([。！？｡]["'”’」』）】》〉)\]]*)"""


def split_lines(lines: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Splits lines [n] into sentences: (string [sentences], int32 [sentences], the line of each)."""
    sentences = tf.strings.split(break_sentences(lines), "\n")
    return sentences.values, row_ids(sentences.row_splits, tf.size(sentences.values))


def break_sentences(lines: tf.Tensor) -> tf.Tensor:
    """Lines [n] with a line break after each sentence."""
    lines = tf.strings.regex_replace(lines, _STOP_BEFORE_CAPITAL, "\\1\n\\2")
    return tf.strings.regex_replace(lines, _IDEOGRAPHIC_STOP, "\\1\n")


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
    # A row that may end at any token is one of whole sentences of a token each.
    most_tokens = 1 if fills else sequence_length - 2
    lengths, documents, first_tokens = _divide_long(lengths, documents, most_tokens)
    count = tf.size(lengths)
    begins = tf.concat([tf.ones_like(documents[:1], tf.bool), documents[1:] != documents[:-1]], axis=0)
    document_of = tf.cumsum(tf.cast(begins, tf.int32)) - 1
    first_sentences = tf.concat([tf.cast(tf.where(begins)[:, 0], tf.int32), [count]], axis=0)
    document_count = tf.size(first_sentences) - 1
    # Positions in a text with a [SEP] after each document.
    starts = first_tokens + tf.cast(document_of, tf.int64)
    following = tf.searchsorted(starts + lengths, starts + sequence_length - 2, side="right")
    beyond = tf.gather(first_sentences, tf.minimum(document_of + documents_in_row, document_count))
    first = _chain(tf.minimum(following, beyond))
    after = tf.concat([first[1:], [count]], axis=0)[: tf.size(first)]

    number = tf.gather(document_of, first)[:, None] + tf.range(documents_in_row)
    is_used = number <= tf.gather(document_of, after - 1)[:, None]
    number = tf.minimum(number, tf.maximum(document_count - 1, 0))
    bounds = tf.concat([first_tokens, [tf.reduce_sum(lengths)]], axis=0)
    span_starts = tf.maximum(tf.gather(bounds, first)[:, None], _gather_twice(bounds, first_sentences, number))
    span_ends = tf.minimum(tf.gather(bounds, after)[:, None], _gather_twice(bounds, first_sentences, number + 1))
    spans = tf.where(is_used[:, :, None], tf.stack([span_starts, span_ends], axis=2), 0)
    return tf.reshape(spans, [-1, 2 * documents_in_row])


def _divide_long(lengths: tf.Tensor, documents: tf.Tensor, max_tokens: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Divides sentences into pieces of at most `max_tokens`: (lengths, documents, starts in the tokens) of these."""
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
