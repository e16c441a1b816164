"""The filters of web text, compared with plain references and with the code that made C4."""

import dataclasses
import pickle
import random

import pytest
from c4_filters import filter_page, random_page

from keras_bert.config.corpus import FilterConfig, extended_filters
from keras_bert.core import settings
from keras_bert.core.errors import UserError
from keras_bert.data.corpus.filters import BadWords, DocumentFilters, ends_a_sentence, has_words, too_few_sentences
from keras_bert.text.sentences import split_sentences

C4 = settings.from_mapping(FilterConfig, extended_filters("c4"))


def without_blank_lines(text):
    return None if text is None else "\n".join(line for line in text.splitlines() if line.strip())


def test_equal_to_the_code_that_made_c4(monkeypatch):
    """TFDS's c4_utils, with our sentences instead of NLTK's, which would need a download."""
    c4_utils = pytest.importorskip("tensorflow_datasets.text.c4_utils")
    monkeypatch.setattr(c4_utils, "_get_sentences", split_sentences)
    clean, ours = c4_utils.get_clean_page_fn(), DocumentFilters(C4)
    generator = random.Random(1)
    dropped = kept = 0
    for _ in range(1500):
        page = random_page(generator).replace("\u201d", '"').replace("\u2026", "...")  # Marks that are ours alone.
        theirs = list(clean(c4_utils.PageFeatures(text=page), counter_inc_fn=lambda name: None))
        text = without_blank_lines(ours(page).text)
        assert text == (theirs[0].text if theirs else None), page
        dropped, kept = dropped + (text is None), kept + (text is not None)
    assert dropped > 100 and kept > 100


def random_config(generator):
    values = {
        field.name: {"min_words": 4, "max_word_length": 1000, "min_sentences": 2}.get(field.name, True)
        for field in dataclasses.fields(FilterConfig)
        if generator.random() < 0.5 and field.name not in ("bad_words", "repeated_spans")
    }
    return FilterConfig(**values)


def test_any_set_of_filters_equals_the_reference(tmp_path):
    """The same text, reason and counts, also for Chinese and without filters of lines."""
    words = ["naked ape", "x_y", "cat", "{"]
    (tmp_path / "words").write_text("\ufeff" + "\n\n".join(words) + "\n", encoding="utf-8")
    generator = random.Random(2)
    reasons = set()
    for _ in range(60):
        config = random_config(generator)
        bad_words = words if generator.random() < 0.3 else []
        if bad_words:
            config = dataclasses.replace(config, bad_words=str(tmp_path / "words"))
        filters = pickle.loads(pickle.dumps(DocumentFilters(config)))
        for _ in range(30):
            page = random_page(generator).strip() or "One."
            if generator.random() < 0.3:
                page = page.replace("the", "這個").replace(" cat ", "貓。")
            text, dropped_by, removed = filter_page(page, config, bad_words)
            found = filters(page)
            assert (without_blank_lines(found.text), found.dropped_by, +found.removed) == (
                without_blank_lines(text),
                dropped_by,
                removed,
            ), (page, config)
            reasons.add(dropped_by)
    assert {None, "lorem_ipsum", "curly_braces", "bad_words", "min_sentences", "no line left"} <= reasons


def test_without_filters_nothing_changes():
    text = " {A}\n\n\n b \r\n[1] lorem ipsum"
    found = DocumentFilters(FilterConfig())(text)
    assert found.text == text and not found.removed and found.lines == 0


def test_lines_become_paragraphs():
    """Otherwise a sentence could continue from a line without a period into the next."""
    page = 'A line that is "long enough"\nMenu\n\n\nand another line that is long.\nAnd a third one below it.'
    found = DocumentFilters(C4)(page)
    assert split_sentences(found.text) == [line for line in page.splitlines() if len(line) > 9]
    assert found.lines == 4 and found.removed == {"terminal_punctuation": 1}


@pytest.mark.parametrize("line", ["他走了。", "真的嗎？", "“走吧！”", "「走吧」", "He said “go.”", "Oui »", "Yes!"])
def test_what_ends_a_sentence(line):
    assert ends_a_sentence(line)


@pytest.mark.parametrize("line", ["首頁", "他走了……", "他走了…", "more...", "and,", "標題：", ""])
def test_what_does_not_end_a_sentence(line):
    assert not ends_a_sentence(line)


def test_a_chinese_character_is_a_word():
    """Counted by spaces, a Chinese line would be one word, and every line would be dropped."""
    assert [has_words("他在北京工作。", least) for least in (6, 7)] == [True, False]
    assert [has_words("BERT 是模型, really", least) for least in (5, 6)] == [True, False]
    page = "他在北京的一家公司工作。\n首頁 新聞\n他喜歡讀書和寫字。他也喜歡音樂。"
    found = DocumentFilters(C4)(page)
    assert found.text == "他在北京的一家公司工作。\n\n他喜歡讀書和寫字。他也喜歡音樂。"
    long = "這個句子很長" * 400 + "。"
    assert DocumentFilters(dataclasses.replace(C4, min_sentences=0))(long).text == long


def test_the_beginning_of_a_text_may_be_enough(monkeypatch):
    """Sentences are counted in the whole text wherever its beginning could mislead."""
    monkeypatch.setattr("keras_bert.data.corpus.filters._CHARACTERS_OF_A_SENTENCE", 9)
    generator = random.Random(3)
    words = [
        "He went to St.",
        "Mr.",
        "Smith",
        "Inc.",
        "It is.",
        "etc.",
        "I",
        "In 1990.",
        "no. 4",
        "Why?",
        "(Yes.)",
        "a",
    ]
    for _ in range(3000):
        text = " ".join(generator.choice(words) for _ in range(generator.randrange(1, 12)))
        for least in range(1, 6):
            is_too_few = len(split_sentences(text)) < least
            assert too_few_sentences(text, FilterConfig(min_sentences=least)) is is_too_few, (text, least)


def test_bad_words_stand_alone_except_where_words_do():
    bad_words = BadWords(["Ape", "two words", "2g1c", "@home", "壞話", "☠"])
    for text in ("An APE.", "ape", "(ape)", "a\ttwo words", "2g1c!", "is @home", "這是壞話嗎", "a ☠ b"):
        assert bad_words.is_in(text), text
    for text in ("Apes", "tape", "two  words", "ape_1", "12g1c", "壞 話", "a"):
        assert not bad_words.is_in(text), text


def test_a_list_of_bad_words_must_be_one(tmp_path):
    (tmp_path / "empty").write_text("\n\n")
    (tmp_path / "latin").write_bytes(b"caf\xe9")
    for name, told in (("empty", "needs a word or phrase"), ("latin", "not UTF-8"), ("none", "No such file")):
        with pytest.raises(UserError, match=f"{tmp_path / name}.*{told}"):
            DocumentFilters(FilterConfig(bad_words=str(tmp_path / name)))
