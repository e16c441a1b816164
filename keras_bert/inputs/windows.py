"""Splits texts that are too long for a row into overlapping windows, of pieces or of whole words."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_bert.config.reading import HEAD_TAIL, TRUNCATE, WINDOWS
from keras_bert.core.errors import UserError
from keras_bert.inputs.rows import PieceSpans, filled
from keras_bert.text.characters import continues_word, row_ids
from keras_bert.text.tokenizers import Tokenizer
from keras_bert.text.vocabulary import Vocabulary


def windows(spans: PieceSpans, room: tf.Tensor, stride: int, last_is_full: bool = True) -> tuple[PieceSpans, tf.Tensor]:
    """Splits spans longer than `room` into windows: `(windows, int32 [windows] the span of each)`.

    Args:
        spans: spans without gaps.
        room: int32 [batch], the maximum length of each span's windows.
        stride: pieces from the start of one window to the start of the next.
        last_is_full: whether the last window of a span starts earlier, to be as long as the others.
    """
    step = tf.maximum(tf.minimum(stride, room), 1)
    last = tf.maximum(spans.lengths - room, 0)
    counts = (last + step - 1) // step + 1
    span = tf.repeat(tf.range(tf.size(counts)), counts)
    number = tf.range(tf.size(span)) - tf.gather(tf.cumsum(counts, exclusive=True), span)
    begins = number * tf.gather(step, span)
    if last_is_full:
        begins = tf.minimum(begins, tf.gather(last, span))
    lengths = tf.minimum(tf.gather(spans.lengths, span) - begins, tf.gather(room, span))
    return PieceSpans(spans.values, tf.gather(spans.starts, span) + begins, lengths), span


def windows_of_pairs(
    firsts: PieceSpans, seconds: PieceSpans, longest: int, stride: int
) -> tuple[PieceSpans, PieceSpans, tf.Tensor]:
    """Windows over the second text of a pair, each with the first text truncated to half the room; see `windows`.

    Returns: `(firsts, seconds, int32 [windows] the pair of each)`.
    """
    is_long = firsts.lengths + seconds.lengths > longest
    beside = tf.minimum(firsts.lengths, tf.maximum(longest // 2, longest - seconds.lengths))
    kept = tf.where(is_long, beside, firsts.lengths)
    seconds, pair = windows(seconds, longest - kept, stride)
    return firsts._replace(lengths=kept).taken(pair), seconds, pair


def window_of_most_context(
    context: tf.Tensor, window: tf.Tensor, windows: tf.Tensor, place: tf.Tensor, places: tf.Tensor
) -> tf.Tensor:
    """For each place, the first of the windows that give it the most context: int32 [places].

    Args:
        context: int32, any shape: how much context a window gives a place.
        window: int32, broadcastable to that shape: the index of the window.
        windows: int32 scalar: the number of windows.
        place: int32, the shape of `context`: the index of the place; negative ones are ignored.
        places: int32 scalar: the number of places.
    """
    windows = tf.cast(windows, tf.int64)
    # One number ranks by context, then by the lower window index.
    rank = tf.cast(context, tf.int64) * windows + (windows - 1 - tf.cast(window, tf.int64))
    best = tf.math.unsorted_segment_max(rank, place, places)
    return tf.cast(windows - 1 - best % windows, tf.int32)


def truncate(spans: PieceSpans, longest: int | tf.Tensor) -> PieceSpans:
    """Truncates spans to their first `longest` pieces."""
    return spans._replace(lengths=tf.minimum(spans.lengths, longest))


def truncate_beginning(spans: PieceSpans, longest: int) -> PieceSpans:
    """Truncates spans to their last `longest` pieces."""
    beyond = tf.maximum(spans.lengths - longest, 0)
    return spans._replace(starts=spans.starts + beyond, lengths=spans.lengths - beyond)


def truncate_pairs(firsts: PieceSpans, seconds: PieceSpans, longest: int) -> tuple[PieceSpans, PieceSpans]:
    """Truncates pairs to `longest` pieces together.

    Drops the last piece of the longer text until the pair fits; of the second if they are equally long
    (run_classifier.py, `_truncate_seq_pair`).
    """
    kept = tf.minimum(firsts.lengths, tf.maximum(longest - seconds.lengths, longest - longest // 2))
    return firsts._replace(lengths=kept), truncate(seconds, longest - kept)


def head_and_tail(spans: PieceSpans, kept: PieceSpans) -> PieceSpans:
    """Shortens each span to its length in `kept`: a quarter from the beginning, the rest from the end."""
    return spans._replace(lengths=kept.lengths, heads=kept.lengths // 4, gaps=spans.lengths - kept.lengths)


def single_row(spans: PieceSpans, max_length: int, long: str, vocabulary: Vocabulary) -> PieceSpans:
    """The pieces of each text that fit into one row of `max_length` tokens, as chosen by `fit_rows`.

    Where `fit_rows` would split a long text into windows, this keeps its beginning.
    """
    [row], _ = fit_rows([spans], max_length, TRUNCATE if long == WINDOWS else long, None, vocabulary)
    return row


def fit_rows(
    columns: Sequence[PieceSpans], max_length: int, long: str, stride: int | None, vocabulary: Vocabulary
) -> tuple[Sequence[PieceSpans], tf.Tensor | None]:
    """Fits texts or pairs into the segments of rows of at most `max_length` tokens.

    Args:
        columns: the texts or, for pairs, the first and the second texts.
        max_length: the maximum number of tokens of a row, special tokens included.
        long: how to handle longer texts, one of `config.reading.LONG`; see `InputConfig`.
        stride: pieces from one window to the next; half a window if 0 or None.
        vocabulary: the vocabulary of the pieces, which adds the special tokens.

    Returns: `(segments, int32 [rows] the text of each row)`, with None for the latter if every text is one row.

    Raises:
        UserError: a row has no room for the special tokens, such as three tokens for the four of RoBERTa's pairs.
    """
    special = vocabulary.row_pattern.special_tokens(len(columns))
    if max_length < special:
        raise UserError(
            f"max_length: needs {special} tokens or more, the special ones of a row of {vocabulary.title}. "
            f"Received: {max_length}."
        )
    longest = max_length - special
    first, second = columns if len(columns) == 2 else (columns[0], None)
    if long == WINDOWS:
        stride = stride or max(longest // 2, 1)
        if second is None:
            *segments, texts = windows(first, tf.fill(tf.shape(first.lengths), longest), stride)
        else:
            *segments, texts = windows_of_pairs(first, second, longest, stride)
        return segments, texts
    segments = [truncate(first, longest)] if second is None else list(truncate_pairs(first, second, longest))
    if long == HEAD_TAIL:
        segments = [head_and_tail(spans, kept) for spans, kept in zip(columns, segments, strict=True)]
    return segments, None


class Words(NamedTuple):
    """The words of a batch of texts, concatenated, each with one or more pieces.

    Attributes:
        pieces: int32 [pieces].
        piece_splits: int32 [words + 1]: where each word starts in `pieces`.
        row_splits: int32 [batch + 1]: the words of text `i` are `row_splits[i]` to `row_splits[i + 1]`.
    """

    pieces: tf.Tensor
    piece_splits: tf.Tensor
    row_splits: tf.Tensor


class TextWords(NamedTuple):
    """The words of a batch of texts, and where they are.

    Attributes:
        words: the words.
        starts, ends: int32 [words], the offsets of each word in its text, in code points.
    """

    words: Words
    starts: tf.Tensor
    ends: tf.Tensor

    def by_text(self, values: tf.Tensor, default: str | float) -> tf.Tensor:
        """Reshapes `[words]` to `[batch, most words of a text]`, padded with `default`."""
        return tf.RaggedTensor.from_row_splits(values, self.words.row_splits, validate=False).to_tensor(default)

    @property
    def counts(self) -> tf.Tensor:
        """The number of words of each text: int32 [batch]."""
        return self.words.row_splits[1:] - self.words.row_splits[:-1]


def split_texts(tokenizer: Tokenizer, texts: tf.Tensor) -> TextWords:
    """Tokenizes texts `[batch]` and groups their pieces into words, as judged by `continues_word`."""
    ids, starts, ends = tokenizer.tokenize_with_offsets(texts)
    # The first piece of a text begins a word, even if SentencePiece marks it as a continuation.
    rows = row_ids(ids.row_splits, tf.size(ids.values))
    is_first = tf.concat([tf.ones_like(rows[:1], tf.bool), rows[1:] > rows[:-1]], axis=0)
    first = tf.where(is_first | ~continues_word(tokenizer.vocabulary, ids.values))[:, 0]
    piece_splits = tf.concat([first, tf.shape(ids.values, tf.int64)], axis=0)
    words = Words(ids.values, tf.cast(piece_splits, tf.int32), tf.searchsorted(first, ids.row_splits))
    return TextWords(words, tf.gather(starts.values, first), tf.gather(ends.values, piece_splits[1:] - 1))


def begins_word(vocabulary: Vocabulary, ids: tf.Tensor) -> tf.Tensor:
    """Whether tokens, int32 [..., seq], begin a word, neither special nor continuing one: bool [..., seq]."""
    may_begin = np.ones(len(vocabulary), bool)
    may_begin[[vocabulary.pad_id, vocabulary.cls_id, vocabulary.sep_id]] = False
    return tf.gather(tf.constant(may_begin), ids) & ~continues_word(vocabulary, ids)


def given_words(tokenizer: Tokenizer, words: tf.Tensor) -> TextWords:
    """The words of texts pre-split into `[batch, words]`, padded with ""; offsets as if joined by single spaces.

    A word without pieces, such as a "" before other words, becomes [UNK].
    """
    is_there, counts = filled(words)
    flat = tf.boolean_mask(words, is_there)
    pieces = with_unknown(tokenizer.tokenize(flat), tokenizer.vocabulary)
    lengths = tf.cast(tf.strings.unicode_decode(flat, "UTF-8", errors="ignore").row_lengths(), tf.int32)
    padded = tf.scatter_nd(tf.cast(tf.where(is_there), tf.int32), lengths, tf.shape(words))
    starts = tf.boolean_mask(tf.cumsum(padded + 1, axis=1, exclusive=True), is_there)
    row_splits = tf.concat([[0], tf.cumsum(counts)], axis=0)
    return TextWords(Words(pieces.values, tf.cast(pieces.row_splits, tf.int32), row_splits), starts, starts + lengths)


def with_unknown(pieces: tf.RaggedTensor, vocabulary: Vocabulary) -> tf.RaggedTensor:
    """The pieces of words, `[words, (pieces)]`, with [UNK] for each word without pieces."""
    nothing = tf.cast(tf.equal(pieces.row_lengths(), 0), tf.int64)
    unknown = tf.RaggedTensor.from_row_lengths(
        tf.fill([tf.reduce_sum(nothing)], vocabulary.unk_id), nothing, validate=False
    )
    return tf.concat([pieces, unknown], axis=1)


class WordWindows(NamedTuple):
    """Windows over words, and where each word's first piece, the one to label, is.

    Attributes:
        spans: the pieces of each window, without special tokens; the windows of one text need not be consecutive.
        text: int32 [windows], the text of each window.
        window, column: int32 [words], the window of each word's first piece and its position in the row.
    """

    spans: PieceSpans
    text: tf.Tensor
    window: tf.Tensor
    column: tf.Tensor


def word_windows(words: Words, max_length: int, vocabulary: Vocabulary) -> WordWindows:
    """Lays words out in windows that fit into rows.

    A text too long for a row is split into windows of whole words, each starting in the middle of the previous one. A
    word is labeled in the window with the most context: the smaller of the numbers of pieces to its left and right, as
    in run_squad.py's `_check_is_max_context`.

    Args:
        max_length: the maximum number of tokens of a row. A longer word is truncated to fit.
    """
    pattern = vocabulary.row_pattern
    capacity = max_length - pattern.special_tokens(1)
    words = _cut_words(words, capacity)
    splits = words.piece_splits
    firsts, lasts, text = _windows(words, capacity)
    starts = tf.gather(splits, firsts)
    spans = PieceSpans(words.pieces, starts, tf.gather(splits, lasts) - starts)
    window, shown = _ranges(firsts, lasts)
    left = tf.gather(splits, shown) - tf.gather(starts, window)
    right = tf.gather(splits, tf.gather(lasts, window)) - tf.gather(splits, shown + 1)
    best = window_of_most_context(tf.minimum(left, right), window, tf.size(firsts), shown, tf.size(splits) - 1)
    return WordWindows(spans, text, best, len(pattern.start) + splits[:-1] - tf.gather(starts, best))


def _cut_words(words: Words, capacity: int) -> Words:
    """Truncates each word to its first `capacity` pieces; few batches need it."""
    splits = words.piece_splits

    def cut() -> tuple[tf.Tensor, tf.Tensor]:
        pieces = tf.RaggedTensor.from_row_splits(words.pieces, splits, validate=False)[:, :capacity]
        return pieces.values, pieces.row_splits

    is_longer = tf.reduce_any(splits[1:] - splits[:-1] > capacity)
    pieces, splits = tf.cond(is_longer, cut, lambda: (words.pieces, splits))
    return words._replace(pieces=pieces, piece_splits=splits)


def _windows(words: Words, capacity: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """(first word, one past the last, text), int32 [windows] each; see `word_windows`."""
    splits, ends = words.piece_splits, words.row_splits[1:]

    def next_windows(
        firsts: tf.Tensor, lasts: tf.Tensor, texts: tf.Tensor, first: tf.Tensor, text: tf.Tensor
    ) -> tuple[tf.Tensor, ...]:
        end = tf.gather(ends, text)
        last = tf.minimum(tf.searchsorted(splits, tf.gather(splits, first) + capacity, side="right") - 1, end)
        grown = (tf.concat(pair, axis=0) for pair in ((firsts, first), (lasts, last), (texts, text)))
        goes_on = tf.where(last < end)[:, 0]
        first, last, text = (tf.gather(values, goes_on) for values in (first, last, text))
        # Overlap by half the window, or less if the next word would not fit.
        half = tf.searchsorted(splits, tf.gather(splits, last) - capacity // 2)
        roomy = tf.searchsorted(splits, tf.gather(splits, last + 1) - capacity)
        return *grown, tf.maximum(tf.maximum(half, roomy), first + 1), text

    none = tf.zeros([0], tf.int32)
    firsts, lasts, texts, _, _ = tf.while_loop(
        lambda firsts, lasts, texts, first, text: tf.size(first) > 0,
        next_windows,
        (none, none, none, words.row_splits[:-1], tf.range(tf.size(ends))),
        shape_invariants=(tf.TensorShape([None]),) * 5,
    )
    return firsts, lasts, texts


def _ranges(firsts: tf.Tensor, lasts: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """(range index, number) of all numbers in the ranges from first to last, exclusive; int32 [numbers] each."""
    lengths = lasts - firsts
    which = tf.repeat(tf.range(tf.size(lengths)), lengths)
    return which, tf.range(tf.size(which)) - tf.gather(tf.cumsum(lengths, exclusive=True) - firsts, which)
