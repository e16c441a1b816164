"""From texts, or pairs of texts, to rows of tokens of a bounded length."""

import itertools

import numpy as np

from keras_bert.data.length_batches import TokenRows
from keras_bert.models.encoder_inputs import pair_lengths

_TEXTS_AT_ONCE = 8192


def sequence_rows(texts, tokenizer, settings):
    """`TokenRows` of [CLS] text [SEP], or of [CLS] first [SEP] second [SEP], without `extra`.

    Args:
        texts: one or two lists of n str.
        tokenizer: a `WordPieceTokenizer`.
        settings: an `InputConfig`.

    Returns: `(rows, examples)`, `examples` int64 [rows], the number of the example that each row is of: 0, 1, …, n - 1
        unless long texts become several rows.
    """
    columns = [_pieces(column, tokenizer) for column in texts]
    room = settings.max_length - 1 - len(columns)
    shorten = {"truncate": _truncated, "head_tail": _head_and_tail, "windows": _windows}[settings.long]
    cls, sep = (np.array([token], np.int32) for token in (tokenizer.vocabulary.cls_id, tokenizer.vocabulary.sep_id))
    segments, lengths, second_starts, examples = [], [], [], []
    for example, pieces in enumerate(zip(*columns, strict=True)):
        for first, *second in shorten(pieces, room, settings.stride):
            row = [cls, first, sep, *itertools.chain.from_iterable((piece, sep) for piece in second)]
            segments += row
            second_starts.append(len(first) + 2)
            lengths.append(sum(map(len, row)))
            examples.append(example)
    rows = TokenRows(
        ids=np.concatenate(segments),
        starts=np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]),
        second_starts=np.array(second_starts, np.int32),
        extra={},
    )
    return rows, np.array(examples, np.int64)


def _pieces(texts, tokenizer):
    """The ids of each text, a list of int32 arrays."""
    found = []
    for begin in range(0, len(texts), _TEXTS_AT_ONCE):
        ids = tokenizer(texts[begin : begin + _TEXTS_AT_ONCE])
        found += np.split(ids.values.numpy(), ids.row_splits.numpy()[1:-1])
    return found


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
