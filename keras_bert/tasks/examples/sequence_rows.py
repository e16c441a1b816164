"""From texts, or pairs of texts, to rows of tokens of a bounded length."""

import itertools

import numpy as np

from keras_bert.data.batches.length_batches import TokenRows
from keras_bert.data.growing_array import GrowingArray
from keras_bert.inference.encoder_inputs import pair_lengths

_TEXTS_AT_ONCE = 8192


class SequenceRows:
    """Rows of [CLS] text [SEP], or of [CLS] first [SEP] second [SEP], that grow by some examples at a time.

    Only the tokens are kept, two bytes each where the vocabulary has at most 65,536.

    Args:
        tokenizer: a `WordPieceTokenizer`.
        settings: an `InputConfig`.
    """

    def __init__(self, tokenizer, settings):
        self._tokenizer, self._settings = tokenizer, settings
        self._ids = GrowingArray(np.uint16 if len(tokenizer.vocabulary) <= 1 << 16 else np.int32)
        self._lengths, self._second_starts = GrowingArray(np.int32), GrowingArray(np.int32)
        self._counts = GrowingArray(np.int32)

    def add(self, texts):
        """Adds the rows of some thousand examples: one or two lists of as many str."""
        settings, vocabulary = self._settings, self._tokenizer.vocabulary
        columns = [_pieces(column, self._tokenizer) for column in texts]
        room = settings.max_length - 1 - len(columns)
        shorten = {"truncate": _truncated, "head_tail": _head_and_tail, "windows": _windows}[settings.long]
        cls, sep = (np.array([token], np.int32) for token in (vocabulary.cls_id, vocabulary.sep_id))
        segments, lengths, second_starts, counts = [], [], [], []
        for pieces in zip(*columns, strict=True):
            before = len(lengths)
            for first, *second in shorten(pieces, room, settings.stride):
                row = [cls, first, sep, *itertools.chain.from_iterable((piece, sep) for piece in second)]
                segments += row
                second_starts.append(len(first) + 2)
                lengths.append(sum(map(len, row)))
            counts.append(len(lengths) - before)
        if segments:
            self._ids.extend(np.concatenate(segments))
        self._lengths.extend(lengths)
        self._second_starts.extend(second_starts)
        self._counts.extend(counts)

    def rows(self):
        """The `TokenRows` of all examples, without `extra`."""
        lengths = self._lengths.array()
        starts = np.zeros(len(lengths) + 1, np.int64)
        np.cumsum(lengths, out=starts[1:])
        return TokenRows(self._ids.array(), starts, self._second_starts.array(), {})

    def examples(self):
        """int32 [rows]: the number of the example that each row is of: 0, 1, …, n - 1 unless long ones are several."""
        counts = self._counts.array()
        return np.repeat(np.arange(len(counts), dtype=np.int32), counts)


def sequence_rows(texts, tokenizer, settings):
    """`(rows, examples)` of one or two lists of n str; see `SequenceRows`."""
    found = SequenceRows(tokenizer, settings)
    for begin in range(0, len(texts[0]), _TEXTS_AT_ONCE):
        found.add([column[begin : begin + _TEXTS_AT_ONCE] for column in texts])
    return found.rows(), found.examples()


def _pieces(texts, tokenizer):
    """The ids of each text, a list of int32 arrays."""
    ids = tokenizer(texts)
    return np.split(ids.values.numpy(), ids.row_splits.numpy()[1:-1])


def _kept_lengths(pieces, room):
    return pair_lengths(*map(len, pieces), room) if len(pieces) == 2 else (min(len(pieces[0]), room),)


def _truncated(pieces, room, stride):
    yield [ids[:kept] for ids, kept in zip(pieces, _kept_lengths(pieces, room))]


def _head_and_tail(pieces, room, stride):
    def cut(ids, kept):
        head = kept // 4
        return ids if len(ids) <= kept else np.concatenate([ids[:head], ids[len(ids) - (kept - head) :]])

    yield [cut(ids, kept) for ids, kept in zip(pieces, _kept_lengths(pieces, room))]


def _windows(pieces, room, stride):
    """Windows over the text, or over the second of a pair beside as much of the first as half the room takes."""
    *first, ids = pieces
    stride = stride or room // 2
    if first and len(first[0]) + len(ids) > room:
        first = [first[0][: max(room // 2, room - len(ids))]]
    room -= sum(map(len, first))
    stride = max(min(stride, room), 1)  # Beside a long first and an empty second there is no room.
    last = max(len(ids) - room, 0)
    for begin in (*range(0, last, stride), last):
        yield [*first, ids[begin : begin + room]]
