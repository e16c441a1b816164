import random
import time

import pytest

from keras_bert.text.sentences import divide_text, split_sentences


@pytest.mark.parametrize(
    "sentences",
    [
        ["Mr. Smith paid 3.14 dollars.", "Dr. Jones left."],
        ["He wrote to J. K. Rowling.", "So did I.", "She answered."],
        ["Animals, e.g. Cats, sleep.", "See Fig. 2 and No. 5, vol. II.", "The answer was no.", "He left."],
        ["U.S. Army men came.", "He lives in the U.S.", "The house is old.", "It closed at 5 p.m.", "They went home."],
        ["It was founded on Jan. 5 by Acme Inc. President Tom Ray."],
        ["St. Petersburg is cold.", "They live on Main St.", "The shop is near."],
        ["1. Take an egg.", "2. Break it.", "There were 12.", "All broke."],
        ["He took his Ph. D. in 1976.", "See pt. 2 there."],
        ["It rose to 1,000.5 points (see www.example.com/a.html).", "Version 2.0.1 came."],
    ],
)
def test_abbreviations_initials_and_numbers_do_not_end_a_sentence(sentences):
    assert split_sentences(" ".join(sentences)) == sentences


@pytest.mark.parametrize(
    "sentences",
    [
        ['"Why?" he asked.', '"Go!"', "She left.", "'Did you?' said he.", "“No.”", "“Yes.”"],
        ["(It was late.)", "He slept [badly].", "«Oui.»", "It ended."],
        ["But now . . .", "He left. - !", "She did not. * * *"],
        ["Wait... for it.", "Or not...", "Then … silence.", "Really?!", "Yes!!!"],
    ],
)
def test_quotes_brackets_and_ellipses(sentences):
    """Closing marks stay with their sentence, and a lower-case word continues it."""
    assert split_sentences(" ".join(sentences)) == sentences


@pytest.mark.parametrize(
    "sentences",
    [
        ["他说：“你好。”", "然后走了！", "真的吗？！", "是（对。）", "没有句号"],
        ["「好。」", "他點頭。", "價格是3.5元。", "《書名》很好看！"],
        ["你好!", "我们走吧?", "好。"],
        [
            "书名是《好吗？》，作者是张三。",
            "他说“走！”、“停！”……。",
            "完。……",
            "例如奈爾（M. D. P. Nair）和Dr. Leung。",
        ],
    ],
)
def test_chinese_needs_no_white_space(sentences):
    assert split_sentences("".join(sentences)) == sentences


def test_only_a_blank_line_ends_a_paragraph():
    """Hard-wrapped lines stay one sentence, but a heading without a stop does not run into the text."""
    assert split_sentences("A heading\n\nOne line\nand the next\r\n \r\nLast") == [
        "A heading",
        "One line\nand the next",
        "Last",
    ]


@pytest.mark.parametrize("text", ["", " \n\n\t ", "\u3000"])
def test_nothing_gives_nothing(text):
    assert split_sentences(text) == []


def test_no_character_is_lost():
    generator = random.Random(0)
    alphabet = "abI .,!?…\n\r\t\"'“”()[]。！？」』St.Mr.5中文é\u2028"
    for _ in range(2000):
        text = "".join(generator.choice(alphabet) for _ in range(generator.randrange(60)))
        sentences = split_sentences(text)
        assert "".join("".join(sentences).split()) == "".join(text.split())
        assert all(sentence and sentence == sentence.strip() for sentence in sentences)


@pytest.mark.parametrize("unit", [".", ". ", "\n ", '."', "U.S. ", "1. ", "-", " ", "。」"])
def test_time_grows_linearly_on_hostile_text(unit):
    """A quadratic scan would take minutes here."""
    start = time.process_time()
    split_sentences("." + unit * 200_000 + "a")
    assert time.process_time() - start < 5


def test_long_texts_are_cut_between_sentences():
    """A cut within a sentence would make two that no one wrote; no cut would take unbounded memory."""
    assert list(divide_text(" as it is ", 10)) == [" as it is "]
    assert list(divide_text("Mr. A. Cat sat.  It ate. It slept", 26)) == ["Mr. A. Cat sat.  It ate.", "It slept"]
    assert list(divide_text("no sentence ends in here", 16)) == ["no sentence", "ends in here"]
    assert list(divide_text("貓坐著。狗跑了", 5)) == ["貓坐著。", "狗跑了"]
    assert list(divide_text("x" * 7, 3)) == ["xxx", "xxx", "x"]


def test_parts_of_random_texts_are_short_enough_and_lose_nothing():
    rng = random.Random(0)
    for _ in range(200):
        text = "".join(rng.choices(["a", ". ", "B", "。", "\n\n", " ", "Mr. "], k=60))
        parts = list(divide_text(text, longest := rng.randint(1, 20)))
        assert "".join("".join(parts).split()) == "".join(text.split()) and max(map(len, parts)) <= longest
