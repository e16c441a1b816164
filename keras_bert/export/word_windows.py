"""Texts of words as rows for the encoder, in the graph, laid out as in training (`data.word_rows`)."""

from typing import NamedTuple

import tensorflow as tf

from keras_bert.export.packing import Rows, window_of_most_context
from keras_bert.export.reader import filled
from keras_bert.text.vocabulary import CONTINUATION


class TextWords(NamedTuple):
    """The words of a batch of texts, one after the other, in pieces; each word has one or more.

    Attributes:
        pieces: int32 [pieces].
        piece_splits: int32 [words + 1]: where each word begins in `pieces`.
        row_splits: int32 [batch + 1]: the words of text `i` are `row_splits[i]` to `row_splits[i + 1]`.
        starts, ends: int32 [words], where each word stands in its text, in code points.
    """

    pieces: tf.Tensor
    piece_splits: tf.Tensor
    row_splits: tf.Tensor
    starts: tf.Tensor
    ends: tf.Tensor

    def by_text(self, values, default):
        """`[words]` as `[batch, words of the text with most]`, `default` behind a text's last."""
        return tf.RaggedTensor.from_row_splits(values, self.row_splits, validate=False).to_tensor(default)

    @property
    def counts(self):
        """int32 [batch]: how many words each text has."""
        return self.row_splits[1:] - self.row_splits[:-1]


def split_texts(tokenizer, texts):
    """The `TextWords` of texts `[batch]`, split as BERT's basic tokenizer splits them."""
    continues = tf.constant([token.startswith(CONTINUATION) for token in tokenizer.vocabulary.tokens])
    ids, starts, ends = tokenizer.tokenize_with_offsets(texts)
    first = tf.where(~tf.gather(continues, ids.values))[:, 0]
    piece_splits = tf.concat([first, tf.shape(ids.values, tf.int64)], axis=0)
    return TextWords(
        ids.values,
        tf.cast(piece_splits, tf.int32),
        tf.searchsorted(first, ids.row_splits),
        tf.gather(starts.values, first),
        tf.gather(ends.values, piece_splits[1:] - 1),
    )


def given_words(tokenizer, words):
    """The `TextWords` of words `[batch, words]`, "" behind each text's last; places are as if one space joined them.

    A word of which the tokenizer leaves nothing, "" before others too, is [UNK].
    """
    is_there, counts = filled(words)
    flat = tf.boolean_mask(words, is_there)
    pieces = tokenizer.tokenize(flat)
    nothing = tf.cast(tf.equal(pieces.row_lengths(), 0), tf.int64)
    unknown = tf.RaggedTensor.from_row_lengths(
        tf.fill([tf.reduce_sum(nothing)], tokenizer.vocabulary.unk_id), nothing, validate=False
    )
    pieces = tf.concat([pieces, unknown], axis=1)
    lengths = tf.cast(tf.strings.unicode_decode(flat, "UTF-8", errors="ignore").row_lengths(), tf.int32)
    padded = tf.scatter_nd(tf.cast(tf.where(is_there), tf.int32), lengths, tf.shape(words))
    starts = tf.boolean_mask(tf.cumsum(padded + 1, axis=1, exclusive=True), is_there)
    row_splits = tf.concat([[0], tf.cumsum(counts)], axis=0)
    return TextWords(pieces.values, tf.cast(pieces.row_splits, tf.int32), row_splits, starts, starts + lengths)


class WordPlaces(NamedTuple):
    """Rows for the encoder, and where in them each word's first piece stands that is to be labelled.

    Attributes:
        rows: `Rows` of pieces, without special tokens; those of one text need not follow each other.
        row, column: int32 [words]; the column counts [CLS].
    """

    rows: Rows
    row: tf.Tensor
    column: tf.Tensor


def lay_out_words(words, capacity):
    """The `WordPlaces` of `TextWords`, as `data.word_rows.lay_out_words` lays them out.

    A text too long for a row goes by windows of whole words, each from the middle of the one before, and each word has
    its place in the window where its context is largest.

    Args:
        words: `TextWords`.
        capacity: int, the most pieces of a row. Of a word with more its first ones stand.
    """
    words = _cut_words(words, capacity)
    splits = words.piece_splits
    firsts, lasts = _windows(words, capacity)
    rows = Rows(words.pieces, tf.gather(splits, firsts), tf.gather(splits, lasts) - tf.gather(splits, firsts))
    window, shown = _ranges(firsts, lasts)
    left = tf.gather(splits, shown) - tf.gather(splits, tf.gather(firsts, window))
    right = tf.gather(splits, tf.gather(lasts, window)) - tf.gather(splits, shown + 1)
    row = window_of_most_context(tf.minimum(left, right), window, tf.size(firsts), shown, tf.size(words.starts))
    return WordPlaces(rows, row, 1 + splits[:-1] - tf.gather(rows.starts, row))


def _cut_words(words, capacity):
    """Without the pieces of each word behind its first `capacity`; few batches have any."""
    splits = words.piece_splits

    def cut():
        pieces = tf.RaggedTensor.from_row_splits(words.pieces, splits, validate=False)[:, :capacity]
        return pieces.values, pieces.row_splits

    is_longer = tf.reduce_any(splits[1:] - splits[:-1] > capacity)
    pieces, splits = tf.cond(is_longer, cut, lambda: (words.pieces, splits))
    return words._replace(pieces=pieces, piece_splits=splits)


def _windows(words, capacity):
    """(first word, one past the last), int32 [windows] each; see `data.word_rows.lay_out_words`."""
    splits, ends = words.piece_splits, words.row_splits[1:]

    def next_windows(firsts, lasts, first, end):
        room = tf.gather(splits, first) + capacity
        last = tf.minimum(tf.searchsorted(splits, room, side="right") - 1, end)
        firsts, lasts = tf.concat([firsts, first], axis=0), tf.concat([lasts, last], axis=0)
        goes_on = tf.where(last < end)[:, 0]
        first, last, end = (tf.gather(values, goes_on) for values in (first, last, end))
        # Half of the window again, or less where the next word would find no room.
        half = tf.searchsorted(splits, tf.gather(splits, last) - capacity // 2)
        roomy = tf.searchsorted(splits, tf.gather(splits, last + 1) - capacity)
        return firsts, lasts, tf.maximum(tf.maximum(half, roomy), first + 1), end

    none = tf.zeros([0], tf.int32)
    firsts, lasts, _, _ = tf.while_loop(
        lambda firsts, lasts, first, end: tf.size(first) > 0,
        next_windows,
        (none, none, words.row_splits[:-1], ends),
        shape_invariants=(tf.TensorShape([None]),) * 4,
    )
    return firsts, lasts


def _ranges(firsts, lasts):
    """(which range, number), int32 [numbers] each, of the numbers from each first to before its last."""
    lengths = lasts - firsts
    which = tf.repeat(tf.range(tf.size(lengths)), lengths)
    return which, tf.range(tf.size(which)) - tf.gather(tf.cumsum(lengths, exclusive=True) - firsts, which)
