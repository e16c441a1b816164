"""Words laid out in rows: every word has a place at its first piece, and windows keep the context."""

import numpy as np
import pytest
from numpy_word_rows import word_rows_by_numpy

from keras_bert.tasks.tagging.word_rows import lay_out_words
from keras_bert.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from keras_bert.text.wordpiece import WordPieceTokenizer

TOKENIZER = WordPieceTokenizer(Vocabulary([*SPECIAL_TOKENS, "a", "b", "c", "##a", "##b", "##c", "-"]))
VOCABULARY = TOKENIZER.vocabulary
CLS, SEP, UNK = VOCABULARY.cls_id, VOCABULARY.sep_id, VOCABULARY.unk_id


def pieces_of(word):
    return TOKENIZER([word]).to_list()[0]


def rows_of(layout):
    rows = layout.rows
    return [rows.ids[start:end].tolist() for start, end in zip(rows.starts, rows.starts[1:])]


def random_words(seed, sentences=40, longest=30):
    random = np.random.default_rng(seed)
    lengths = random.integers(1, longest, sentences)
    words = ["".join(random.choice(list("abc-"), random.integers(1, 6))) for _ in range(lengths.sum())]
    return words, np.concatenate([[0], np.cumsum(lengths)])


@pytest.mark.parametrize("max_length, at_once", [(3, 1 << 16), (8, 50), (13, 1 << 16), (40, 1), (512, 50)])
def test_rows_are_those_of_numpy(max_length, at_once, monkeypatch):
    """However many sentences are laid out at once, with words without pieces and words longer than a row."""
    monkeypatch.setattr("keras_bert.tasks.tagging.word_rows._WORDS_AT_ONCE", at_once)
    words, starts = random_words(max_length, sentences=12, longest=60)
    words[::17] = ["\u200b"] * len(words[::17])
    words[3::29] = ["abc" * 9] * len(words[3::29])
    layout = lay_out_words(words, starts, TOKENIZER, max_length)
    expected = word_rows_by_numpy(words, starts, TOKENIZER, max_length)
    for name, value in vars(expected.rows).items():
        np.testing.assert_array_equal(getattr(layout.rows, name), value, name)
    for name in ("places", "row_sentences", "vanished", "cut"):
        received = getattr(layout, name)
        assert received.dtype == getattr(expected, name).dtype, name
        np.testing.assert_array_equal(received, getattr(expected, name), name)
    assert (layout.rows.ids.dtype, layout.rows.starts.dtype) == (np.int32, np.int64)


def test_short_sentences_are_a_row_each():
    words, starts = ["ab", "c", "a-b", "zz"], [0, 2, 4]
    layout = lay_out_words(words, starts, TOKENIZER, 16)
    expected = [[CLS, *pieces_of("ab"), *pieces_of("c"), SEP], [CLS, *pieces_of("a-b"), UNK, SEP]]
    assert rows_of(layout) == expected
    assert layout.places.tolist() == [1, 3, 6, 9] and layout.row_sentences.tolist() == [0, 1]
    assert layout.rows.second_starts.tolist() == [5, 6]
    assert layout.token_values([5, 6, 7, 8]).tolist() == [-1, 5, -1, 6, -1, -1, 7, -1, -1, 8, -1]


@pytest.mark.parametrize("max_length", [8, 13, 40, 512])
def test_no_word_is_lost_however_long_the_sentence(max_length):
    """Every word's place holds its first piece, once; no row is too long; windows hold consecutive words."""
    words, starts = random_words(max_length)
    layout = lay_out_words(words, starts, TOKENIZER, max_length)
    rows, capacity = rows_of(layout), max_length - 2
    assert max(map(len, rows)) <= max_length and all(row[0] == CLS and row[-1] == SEP for row in rows)
    pieces = TOKENIZER(words).to_list()
    assert layout.rows.ids[layout.places].tolist() == [first for first, *_ in pieces]
    assert len(set(layout.places.tolist())) == len(words)
    row_of_word = np.searchsorted(layout.rows.starts, layout.places, side="right") - 1
    for number, sentence in enumerate(layout.row_sentences):
        first, last = starts[sentence], starts[sentence + 1]
        flat = [piece for of_word in pieces[first:last] for piece in of_word[:capacity]]
        row = rows[number][1:-1]
        assert any(flat[start : start + len(row)] == row for start in range(len(flat) - len(row) + 1))
    np.testing.assert_array_equal(layout.row_sentences[row_of_word], np.repeat(np.arange(40), np.diff(starts)))


def test_a_word_stands_where_its_context_is_largest():
    """Against a search over all windows, which overlap by half."""
    words, starts = ["a"] * 100, [0, 100]
    layout = lay_out_words(words, starts, TOKENIZER, 22)
    assert [len(row) for row in rows_of(layout)] == [22] * 9
    windows = [range(start, start + 20) for start in range(0, 90, 10)]
    for word, place in enumerate(layout.places):
        row = np.searchsorted(layout.rows.starts, place, side="right") - 1
        assert word == windows[row][place - layout.rows.starts[row] - 1]
        contexts = [min(word - window[0], window[-1] - word) if word in window else -1 for window in windows]
        assert contexts[row] == max(contexts)


def test_a_word_without_pieces_has_a_place_all_the_same():
    layout = lay_out_words(["a", "\u200b\u200d", "b"], [0, 3], TOKENIZER, 16)
    assert rows_of(layout) == [[CLS, *pieces_of("a"), UNK, *pieces_of("b"), SEP]]
    assert layout.places.tolist() == [1, 2, 3] and layout.vanished.tolist() == [1] and not len(layout.cut)


def test_a_word_longer_than_a_row_is_cut_and_said():
    layout = lay_out_words(["a", "b-" * 20, "c"], [0, 3], TOKENIZER, 8)
    assert layout.cut.tolist() == [1]
    assert rows_of(layout)[1] == [CLS, *pieces_of("b-" * 3), SEP]
    assert layout.rows.ids[layout.places].tolist() == [pieces_of(word)[0] for word in "abc"]


def test_a_row_must_hold_a_piece():
    with pytest.raises(ValueError, match="max_length: needs at least 3"):
        lay_out_words(["a"], [0, 1], TOKENIZER, 2)
