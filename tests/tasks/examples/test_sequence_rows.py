"""From texts to rows: what is kept of long texts, and where the segments lie."""

import numpy as np
import pytest
from numpy_sequence_rows import sequence_rows_by_numpy
from rows_of_texts import sequence_rows
from tiny import VOCABULARY

from keras_bert.config.finetuning import InputConfig
from keras_bert.text.wordpiece import WordPieceTokenizer

TOKENIZER = WordPieceTokenizer(VOCABULARY)
CLS, SEP = VOCABULARY.cls_id, VOCABULARY.sep_id


def words(*numbers):
    return " ".join(f"w{number}" for number in numbers)


def ids(*numbers):
    return [VOCABULARY.tokens.index(f"w{number}") for number in numbers]


def rows_of(texts, **settings):
    """[(ids, second_start, example)] of the rows."""
    rows, examples = sequence_rows(texts, TOKENIZER, InputConfig(**settings))
    parts = np.split(rows.ids, rows.starts[1:-1])
    return list(zip([part.tolist() for part in parts], rows.second_starts.tolist(), examples.tolist()))


@pytest.mark.parametrize("long", ["truncate", "head_tail", "windows"])
@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("stride", [0, 1, 5, 100])
def test_rows_are_those_of_numpy(long, columns, stride):
    """For texts and pairs that are empty, short, exactly as long as a row, and longer."""
    lengths = np.array([(first, second) for first in (0, 1, 5, 12, 13, 14, 40) for second in (0, 1, 6, 13, 14, 50)])
    random = np.random.default_rng(stride)
    texts = [[words(*random.integers(0, 40, length)) for length in column] for column in lengths.T[:columns]]
    settings = {"max_length": 16, "long": long, "stride": stride}
    expected = sequence_rows_by_numpy(texts, TOKENIZER, InputConfig(**settings))
    assert rows_of(texts, **settings) == expected


def test_short_texts_are_whole():
    assert rows_of([[words(1, 2), ""]]) == [([CLS, *ids(1, 2), SEP], 4, 0), ([CLS, SEP], 2, 1)]
    pair = [[words(1)], [words(2, 3)]]
    assert rows_of(pair) == [([CLS, *ids(1), SEP, *ids(2, 3), SEP], 3, 0)]


def test_long_texts_are_cut_as_the_setting_says():
    text = [[words(*range(20))]]
    assert rows_of(text, max_length=10) == [([CLS, *ids(*range(8)), SEP], 10, 0)]
    assert rows_of(text, max_length=10, long="head_tail") == [([CLS, *ids(0, 1, *range(14, 20)), SEP], 10, 0)]
    windows = rows_of(text, max_length=10, long="windows", stride=5)
    assert [row for row, _, _ in windows] == [[CLS, *ids(*range(begin, begin + 8)), SEP] for begin in (0, 5, 10, 12)]
    assert [example for _, _, example in windows] == [0, 0, 0, 0]


@pytest.mark.parametrize("length", [8, 9, 12, 13, 16, 17, 40])
def test_windows_leave_no_piece_out(length):
    seen = set()
    for row, _, _ in rows_of([[words(*range(length))]], max_length=10, long="windows"):
        assert len(row) <= 10
        seen |= set(row[1:-1])
    assert seen == set(ids(*range(length)))


def test_of_a_pair_the_longer_text_is_cut():
    first, second = words(*range(4)), words(*range(20, 40))
    ((row, second_start, _),) = rows_of([[first], [second]], max_length=15)
    assert row == [CLS, *ids(*range(4)), SEP, *ids(*range(20, 28)), SEP] and second_start == 6
    ((row, _, _),) = rows_of([[first], [second]], max_length=15, long="head_tail")
    assert row == [CLS, *ids(*range(4)), SEP, *ids(20, 21, *range(34, 40)), SEP]
    rows = rows_of([[first], [second]], max_length=15, long="windows", stride=6)
    assert [row[6:-1] for row, _, _ in rows] == [ids(*range(begin, begin + 8)) for begin in (20, 26, 32)]
    assert all(row[:6] == [CLS, *ids(*range(4)), SEP] for row, _, _ in rows)


def test_windows_of_a_pair_of_two_long_texts_fit():
    for row, _, _ in rows_of([[words(*range(30))], [words(*range(30))]], max_length=16, long="windows"):
        assert len(row) <= 16


def test_rows_are_the_same_however_many_texts_come_at_a_time(monkeypatch):
    """A token must take two bytes, since ten million of them are held at once."""
    texts = [[words(n % 7) for n in range(50)], [words(*range(n % 30)) for n in range(50)]]
    settings = InputConfig(max_length=16, long="windows")
    rows, examples = sequence_rows(texts, TOKENIZER, settings)
    monkeypatch.setattr("keras_bert.tasks.sequence_rows._TEXTS_AT_ONCE", 7)
    parts, of_parts = sequence_rows(texts, TOKENIZER, settings)
    assert rows.ids.dtype == np.uint16 and len(rows) > 50
    for one, other in zip(
        (rows.ids, rows.starts, rows.second_starts, examples),
        (parts.ids, parts.starts, parts.second_starts, of_parts),
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)
