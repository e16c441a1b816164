"""CMRC's scores: Chinese by characters, the rest by words, and the longest run that both share."""

import random

import pytest

from keras_bert.tasks.question_answering.scores import cmrc_scores, longest_run, segments, without_marks


def test_chinese_is_cut_into_characters_and_the_rest_into_words():
    assert segments("光荣和ω-Force 3.5 million年") == ["光", "荣", "和", "ωforce", "3.5", "million", "年"]
    assert segments("A，b") == ["ab"]  # A mark that is dropped separates nothing.
    assert segments("don't, (ok)") == ["do", "n't", ",", "(", "ok", ")"]
    assert segments(" 。《》 ") == [] == segments("")
    assert without_marks(" 《战国 无双》3：A-B ") == "战国 无双3ab"


def test_the_longest_run_is_of_neighbours():
    assert longest_run("xabcy", "zabcw") == 3 == longest_run("abc", "ababc")
    assert longest_run("abc", "acb") == 1
    assert longest_run("", "abc") == 0
    rng = random.Random(0)
    for _ in range(200):
        first, second = ("".join(rng.choice("ab光") for _ in range(rng.randrange(9))) for _ in range(2))
        shared = [first[i:j] for i in range(len(first)) for j in range(i + 1, len(first) + 1) if first[i:j] in second]
        assert longest_run(first, second) == max(map(len, shared), default=0)


def test_scores_of_known_answers():
    references = {"a": ["光荣和开发", "光荣"], "b": ["2008年"], "c": ["无双"], "d": ["战国"]}
    predictions = {"a": "光荣。", "b": "在2008年底", "c": "战国"}  # d has no answer.
    received = cmrc_scores(references, predictions)
    # b shares 2008 and 年, of 4 segments predicted and 2 in the reference.
    assert received["f1"] == pytest.approx(100 * (1 + 2 * 0.5 * 1.0 / 1.5) / 4)
    assert received["exact_match"] == 25.0
    assert received["average"] == (received["f1"] + received["exact_match"]) / 2


def test_two_empty_answers_are_the_same_and_share_nothing():
    assert cmrc_scores({"a": ["。"]}, {"a": ""}) == {"f1": 0.0, "exact_match": 100.0, "average": 50.0}
