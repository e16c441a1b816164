"""`tasks.sequence_rows` in NumPy, text by text: what the tests compare its rows with."""

import itertools

import numpy as np
from numpy_encoder_inputs import pair_lengths


def sequence_rows_by_numpy(texts, tokenizer, settings):
    """[(ids, position of the second segment, example)] of one or two lists of texts."""
    vocabulary = tokenizer.vocabulary
    columns = [_pieces(column, tokenizer) for column in texts]
    room = settings.max_length - 1 - len(columns)
    shorten = {"truncate": _truncated, "head_tail": _head_and_tail, "windows": _windows}[settings.long]
    rows = []
    for example, pieces in enumerate(zip(*columns, strict=True)):
        for first, *second in shorten(pieces, room, settings.stride):
            behind = itertools.chain.from_iterable((*piece, vocabulary.sep_id) for piece in second)
            rows.append(([vocabulary.cls_id, *first, vocabulary.sep_id, *behind], len(first) + 2, example))
    return rows


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
    """Windows over the text, or over the second of a pair, with as much of the first as fits into half the room."""
    *first, ids = pieces
    stride = stride or room // 2
    if first and len(first[0]) + len(ids) > room:
        first = [first[0][: max(room // 2, room - len(ids))]]
    room -= sum(map(len, first))
    stride = max(min(stride, room), 1)  # With a long first and an empty second there is no room.
    last = max(len(ids) - room, 0)
    for begin in (*range(0, last, stride), last):
        yield [*first, ids[begin : begin + room]]
