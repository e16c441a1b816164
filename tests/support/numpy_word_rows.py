"""`tasks.tagging.word_rows` in NumPy, sentence by sentence: what the tests compare its rows with."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike

from keras_bert.data.batches.token_rows import TokenRows
from keras_bert.tasks.tagging.word_rows import WordRows
from keras_bert.text.wordpiece import WordPieceTokenizer

_AT_ONCE = 1 << 16


def word_rows_by_numpy(
    words: Sequence[str], starts: ArrayLike, tokenizer: WordPieceTokenizer, max_length: int
) -> WordRows:
    """Lays out sentences as rows [CLS] pieces [SEP].

    A sentence too long for a row is divided between words into windows, each of which starts in the middle of the one
    before. A word in several windows is labelled in the one with the most context, where the smaller of the numbers of
    pieces to its left and right is largest, as in run_squad.py's `_check_is_max_context`.

    Args:
        words: all words.
        starts: int [sentences + 1], where each sentence starts; none is empty.
        tokenizer: splits the words into pieces.
        max_length: the most tokens of a row, special tokens included; at least 3.

    Returns: the rows; the windows of a sentence follow each other.
    """
    if max_length < 3:
        raise ValueError(f"max_length: needs at least 3, [CLS], a piece and [SEP]. Received: {max_length}.")
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
    shown = _ranges(firsts, lasts - firsts)  # The words of all windows.
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


def _pieces(words: Sequence[str], tokenizer: WordPieceTokenizer) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(int32 ids of the pieces of all distinct words; int64 [words], each word's first piece; how many it has)."""
    number = {word: index for index, word in enumerate(dict.fromkeys(words))}
    different = list(number)
    parts, part_counts = [np.zeros(0, np.int32)], [np.zeros(0, np.int64)]
    for start in range(0, len(different), _AT_ONCE):
        ragged = tokenizer(different[start : start + _AT_ONCE])
        parts.append(ragged.values.numpy())
        part_counts.append(ragged.row_lengths().numpy())
    ids, counts = np.concatenate(parts), np.concatenate(part_counts)
    of_words = np.fromiter((number[word] for word in words), np.int64, len(words))
    return ids, (np.cumsum(counts) - counts)[of_words], counts[of_words]


def _windows(starts: np.ndarray, offsets: np.ndarray, capacity: int) -> np.ndarray:
    """(first word, one past the last, sentence), each int64 [windows]."""
    is_long = offsets[starts[1:]] - offsets[starts[:-1]] > capacity
    short = np.flatnonzero(~is_long)
    parts = [np.stack([starts[short], starts[short + 1], short], axis=1)]
    for sentence in np.flatnonzero(is_long):
        divided = _divided(int(starts[sentence]), int(starts[sentence + 1]), offsets, capacity)
        parts.append(np.array([(first, last, sentence) for first, last in divided]))
    spans = np.concatenate(parts).astype(np.int64)
    return spans[np.lexsort((spans[:, 0], spans[:, 2]))].T


def _divided(first: int, end: int, offsets: np.ndarray, capacity: int) -> Iterator[tuple[int, int]]:
    """(first word, one past the last) of each window of a sentence that does not fit into one."""
    while True:
        last = int(np.searchsorted(offsets, offsets[first] + capacity, side="right")) - 1
        last = min(last, end)
        yield first, last
        if last == end:
            return
        # The next window repeats half of this one, or less if its next word would not fit.
        half = int(np.searchsorted(offsets, offsets[last] - capacity // 2))
        first = max(half, int(np.searchsorted(offsets, offsets[last + 1] - capacity)), first + 1)


def _ranges(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The numbers starts[i], starts[i] + 1, … of each i, concatenated."""
    ends = np.cumsum(lengths)
    return np.repeat(starts - (ends - lengths), lengths) + np.arange(ends[-1] if len(ends) else 0)
