"""Words in texts without blanks: every form of file, scores by hand, noise, and lines written again."""

import itertools
import json

import numpy as np
import pytest
from tiny import VOCABULARY

from keras_bert.config.finetuning import FinetuneConfig
from keras_bert.core.errors import UserError
from keras_bert.tasks.noise import Noise
from keras_bert.tasks.segmentation.data import begins, segmented_reader, words_of
from keras_bert.tasks.segmentation.problem import SegmentationProblem
from keras_bert.tasks.segmentation.task import SEGMENT
from keras_bert.tasks.tagging import tagged_words
from keras_bert.text.wordpiece import WordPieceTokenizer

TREEBANK = """# text = vámonos al mar.
1-2\tvámonos\t_\t_\t_\t_\t_\t_\t_\t_
1\tvamos\t_\t_\t_\t_\t_\t_\t_\t_
2\tnos\t_\t_\t_\t_\t_\t_\t_\t_
3-4\tal\t_\t_\t_\t_\t_\t_\t_\t_
3\ta\t_\t_\t_\t_\t_\t_\t_\t_
4\tel\t_\t_\t_\t_\t_\t_\t_\t_
5\tmar\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No
5.1\tnada\t_\t_\t_\t_\t_\t_\t_\t_
6\t.\t_\t_\t_\t_\t_\t_\t_\t_

1\t中国\t_\t_\t_\t_\t_\t_\t_\t_
2\t人\t_\t_\t_\t_\t_\t_\t_\t_
"""


def texts_of(tagged):
    starts = begins(tagged.labels)
    pairs = itertools.pairwise(tagged.starts.tolist())
    return [words_of(tagged.words[first:end], starts[first:end]) for first, end in pairs]


def problem_of(path, **data):
    config = FinetuneConfig.from_mapping({"task": "segment", "input": {"max_length": 16}, "data": data})
    source = {"train": str(path), "dev": str(path)}
    return SegmentationProblem(task=SEGMENT, source=source, tokenizer=WordPieceTokenizer(VOCABULARY), config=config)


def write(path, content):
    path.write_text(content, encoding="utf-8")
    return path


def test_texts_without_words_are_not_trained_on(tmp_path):
    """As raw Chinese, which nobody has divided into words: each text would be one."""
    problem_of(write(tmp_path / "a.txt", "中国 人\n中国人\n")).require_different_answers()
    with pytest.raises(UserError, match=r"b.txt: needs texts of several words .* Received: one word in each text"):
        problem_of(write(tmp_path / "b.txt", "中国人\n中国\n")).require_different_answers()


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_words_of_a_treebank_are_those_that_stand_in_the_text(mark, tmp_path):
    """`al` is two words of syntax, but one written word; a byte order mark is not part of the text."""
    path = write(tmp_path / "dev.conllu", mark + TREEBANK)
    for read in (segmented_reader(str(path)).whole(), next(segmented_reader(str(path)).windows())):
        assert texts_of(read) == [["vámonos", "al", "mar", "."], ["中国", "人"]]
        assert read.words[:3] == ["v", "á", "m"] and read.labels[-3:] == ["B", "E", "S"]
        assert read.lines[[0, -1]].tolist() == [2, 12]


def test_texts_and_tables_are_split_at_blanks(tmp_path):
    plain = write(tmp_path / "dev.txt", "\ufeffso  it\tgoes\n\n\u3000on \n")
    table = write(tmp_path / "dev.jsonl", "".join(json.dumps({"s": text}) + "\n" for text in ("so it goes", "on")))
    expected = [["so", "it", "goes"], ["on"]]
    assert texts_of(segmented_reader(str(plain)).whole()) == expected
    for source in (table, tmp_path / "*[!t]"):
        assert texts_of(segmented_reader(str(source), "s").whole()) == expected
    with pytest.raises(UserError, match="needs texts. Received: none."):
        list(segmented_reader(str(write(tmp_path / "empty.txt", " \n"))).windows())
    with pytest.raises(UserError, match="line 1: needs 10 cells"):
        segmented_reader(str(write(tmp_path / "bad.conllu", "1\ta\n"))).whole()


def test_the_column_of_texts_may_have_any_name(tmp_path):
    problem = problem_of(write(tmp_path / "dev.jsonl", json.dumps({"sentence": "so it"}) + "\n"), texts=["sentence"])
    assert texts_of(problem._words("dev")) == [["so", "it"]]
    assert problem.task_record() == {"task": "segment", "max_length": 16, "texts": ["sentence"]}


def test_a_word_is_right_if_both_its_ends_are(tmp_path):
    problem = problem_of(write(tmp_path / "dev.txt", "ab c def\nab\n"))
    gold = problem._words("dev").labels
    assert gold == ["B", "E", "S", "B", "I", "E", "B", "E"] and problem.evaluate("dev", gold)["f1"] == 1.0
    assert problem.by_example("dev", gold) == {}, "the accuracy of characters is not among the metrics"
    # "ab", "cd", "ef" and "ab": two of the four words found are right, of four in all.
    scores = problem.evaluate("dev", ["B", "E", "B", "E", "B", "E", "B", "E"])
    assert scores == {"f1": 0.5, "precision": 0.5, "recall": 0.5}
    # A text always begins with a word, whatever the model says: "ab", "cdef" and "ab".
    scores = problem.evaluate("dev", ["I", "I", "B", "I", "I", "I", "I", "I"])
    assert scores == {"f1": pytest.approx(4 / 7), "precision": pytest.approx(2 / 3), "recall": 0.5}
    assert problem.head.labels == ("B", "I", "E", "S") and problem.metric_names == ("f1", "precision", "recall")
    assert problem.task_record() == {"task": "segment", "max_length": 16, "texts": ["text"]}


def test_blanks_that_a_text_has_stay_when_it_is_written(tmp_path):
    problem = problem_of(write(tmp_path / "dev.txt", "abcd ef\n"))
    with problem.writing("dev", str(tmp_path / "out")) as write_window:
        [window] = problem.windows("dev")
        write_window(window, ["B", "E", "B", "I", "I", "E"])
    assert (tmp_path / "out").read_text(encoding="utf-8") == "ab cd ef\n"


def test_the_words_of_a_treebank_are_not_copied_into_the_answers(tmp_path):
    """The words are what the model must find; from the text come only blanks, which Chinese does not have."""
    chinese = "1\t中国" + "\t_" * 7
    path = write(tmp_path / "dev.conllu", TREEBANK.replace(f"{chinese}\t_", f"{chinese}\tX=1|SpaceAfter=No"))
    problem = problem_of(path)
    with problem.writing("dev", str(tmp_path / "out")) as write_window:
        [window] = problem.windows("dev")
        write_window(window, ["I"] * 16)
    assert (tmp_path / "out").read_text(encoding="utf-8") == "vámonos al mar.\n中国人\n"


def test_words_stay_words_under_noise(tmp_path):
    """The model never sees blanks, so a blank lost or added in the text changes nothing."""
    problem = problem_of(write(tmp_path / "dev.txt", "some words 中国人 stand here\n" * 3))
    clean = texts_of(problem._words("dev"))
    for kind in ("nospace", "addspace=1"):
        with problem.under(Noise(kind)):
            assert texts_of(problem._words("dev")) == clean
    with problem.under(Noise("swap=1")):
        noisy = texts_of(problem._words("dev"))
        assert noisy != clean and [list(map(len, words)) for words in noisy] == [
            list(map(len, words)) for words in clean
        ]
    with problem.under(Noise("zh-drop=1")):
        assert texts_of(problem._words("dev"))[0] == ["some", "words", "stand", "here"]


def test_every_character_is_a_place_in_a_row(tmp_path):
    problem = problem_of(write(tmp_path / "dev.txt", "some words stand here and there\n"))
    rows = problem.rows("train")
    assert (rows.token_extra["labels"] >= 0).sum() == 26 and len(rows) > 2
    assert rows.extra["sentence_starts"].tolist() == [1] + [0] * (len(rows) - 1)
    assert np.isin(rows.token_extra["labels"], [-1, 0, 1, 2, 3]).all()


@pytest.mark.parametrize("at_once", [1, 1 << 18])
def test_an_empty_text_has_an_empty_line(tmp_path, monkeypatch, at_once):
    """Otherwise output lines would no longer match input lines, even if a window holds nothing but empty texts."""
    monkeypatch.setattr(tagged_words, "_CHARACTERS_AT_ONCE", at_once)
    path = write(tmp_path / "texts.txt", "\nthe cat\n\n \nsat\n\n")
    lines = [
        line
        for tagged in segmented_reader(str(path)).windows()
        for line in tagged.reader.labelled(tagged, tagged.labels or [])
    ]
    assert lines == ["\n", "the cat\n", "\n", "\n", "sat\n", "\n"]
    table = write(tmp_path / "texts.csv", 'text\n""\nthe cat\n')
    lines = [tagged.reader.labelled(tagged, tagged.labels or []) for tagged in segmented_reader(str(table)).windows()]
    assert list(itertools.chain(*lines)) == ["\n", "the cat\n"]
