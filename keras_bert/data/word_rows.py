"""Sentences of words as rows for the encoder, long ones in windows, with the place of every word's first piece."""

import dataclasses

import numpy as np

from keras_bert.data.length_batches import TokenRows

_AT_ONCE = 1 << 16


@dataclasses.dataclass
class WordRows:
    """What `lay_out_words` gives.

    Attributes:
        rows: the `TokenRows`, without anything extra.
        places: int64 [words]: where in `rows.ids` the first piece of each word stands that is to be labelled.
        row_sentences: int64 [rows], the sentence that each row is of.
        vanished, cut: int64 arrays: words of which no piece is left, which stand as [UNK]; words with more pieces than
            a row takes, of which the first ones stand.
    """

    rows: TokenRows
    places: np.ndarray
    row_sentences: np.ndarray
    vanished: np.ndarray
    cut: np.ndarray

    def token_values(self, values, elsewhere=-1):
        """int32 [tokens]: each word's value at its place, `elsewhere` at all other tokens."""
        array = np.full(len(self.rows.ids), elsewhere, np.int32)
        array[self.places] = values
        return array


def lay_out_words(words, starts, tokenizer, max_length):
    """Rows [CLS] pieces [SEP] of sentences.

    A sentence too long for a row is divided between words into windows, of which each goes on from the middle of the
    one before. Each of its words has its place in the window where its context is largest: where the lesser number of
    pieces to its left and its right is greatest, as in run_squad.py's `_check_is_max_context`.

    Args:
        words: list of str.
        starts: int array [sentences + 1], where each sentence begins; none is empty.
        tokenizer: a `WordPieceTokenizer`.
        max_length: the most tokens of a row, special tokens included; at least 3.

    Returns: `WordRows`, a sentence's windows one after the other.
    """
    if max_length < 3:
        raise ValueError(f"max_length: needs 3 or more, [CLS], a piece and [SEP]. Received: {max_length}.")
    capacity = max_length - 2
    vocabulary = tokenizer.vocabulary
    pieces, sources, lengths = _pieces(words, tokenizer)
    vanished, cut = np.flatnonzero(lengths == 0), np.flatnonzero(lengths > capacity)
    sources[vanished] = len(pieces)
    pieces = np.append(pieces, np.int32(vocabulary.unk_id))
    lengths = np.clip(lengths, 1, capacity)
    offsets = np.concatenate([[0], np.cumsum(lengths)])

    firsts, lasts, row_sentences = _windows(np.asarray(starts), offsets, capacity)
    row_lengths = offsets[lasts] - offsets[firsts] + 2
    row_starts = np.concatenate([[0], np.cumsum(row_lengths)])
    shown = _ranges(firsts, lasts - firsts)  # The word at each place of each window.
    window = np.repeat(np.arange(len(firsts)), lasts - firsts)
    ids = np.empty(row_starts[-1], np.int32)
    is_piece = np.ones(len(ids), bool)
    is_piece[row_starts[:-1]] = is_piece[row_starts[1:] - 1] = False
    ids[is_piece] = pieces[_ranges(sources[shown], lengths[shown])]
    ids[row_starts[:-1]], ids[row_starts[1:] - 1] = vocabulary.cls_id, vocabulary.sep_id

    left, right = offsets[shown] - offsets[firsts[window]], offsets[lasts[window]] - offsets[shown + 1]
    order = np.lexsort((window, -np.minimum(left, right), shown))
    _, best = np.unique(shown[order], return_index=True)
    chosen = order[best]
    places = (row_starts[window] + 1 + left)[chosen]
    rows = TokenRows(ids, row_starts, row_lengths.astype(np.int32), {})
    return WordRows(rows, places, row_sentences, vanished, cut)


def _pieces(words, tokenizer):
    """(ids of all different words' pieces int32, where each word's begin int64 [words], how many they are)."""
    number = {word: index for index, word in enumerate(dict.fromkeys(words))}
    different = list(number)
    ids, counts = [np.zeros(0, np.int32)], [np.zeros(0, np.int64)]
    for start in range(0, len(different), _AT_ONCE):
        ragged = tokenizer(different[start : start + _AT_ONCE])
        ids.append(ragged.values.numpy())
        counts.append(ragged.row_lengths().numpy())
    ids, counts = np.concatenate(ids), np.concatenate(counts)
    of_words = np.fromiter((number[word] for word in words), np.int64, len(words))
    return ids, (np.cumsum(counts) - counts)[of_words], counts[of_words]


def _windows(starts, offsets, capacity):
    """(first word, one past the last, sentence), each int64 [windows]."""
    is_long = offsets[starts[1:]] - offsets[starts[:-1]] > capacity
    short = np.flatnonzero(~is_long)
    spans = [np.stack([starts[short], starts[short + 1], short], axis=1)]
    for sentence in np.flatnonzero(is_long):
        divided = _divided(int(starts[sentence]), int(starts[sentence + 1]), offsets, capacity)
        spans.append(np.array([(first, last, sentence) for first, last in divided]))
    spans = np.concatenate(spans).astype(np.int64)
    return spans[np.lexsort((spans[:, 0], spans[:, 2]))].T


def _divided(first, end, offsets, capacity):
    """(first word, one past the last) of each window of a sentence too long for one."""
    while True:
        last = int(np.searchsorted(offsets, offsets[first] + capacity, side="right")) - 1
        last = min(last, end)
        yield first, last
        if last == end:
            return
        # Half of the window again, or less where the next word would find no room.
        half = int(np.searchsorted(offsets, offsets[last] - capacity // 2))
        first = max(half, int(np.searchsorted(offsets, offsets[last + 1] - capacity)), first + 1)


def _ranges(starts, lengths):
    """The numbers starts[i], starts[i] + 1, … of each i, one after the other."""
    ends = np.cumsum(lengths)
    return np.repeat(starts - (ends - lengths), lengths) + np.arange(ends[-1] if len(ends) else 0)
