"""The short cut for plain texts, where the tokenizer's own tests, of hostile texts, seldom get."""

import random

import pytest
from original_tokenization import encode

from keras_bert.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from keras_bert.text.wordpiece import MAX_CHARACTERS_PER_WORD, PlainTokenizer, WordPieceTokenizer

# Pieces that punctuation runs through, which no word can hold, too.
PIECES = (
    "a b A é É ж – ’ - ' ##' 's ##'s - ##- a-b ##-b -- # ## ### [ ] mask ##ask M ##ASK ##b ##a ##A ##é ##ж ##– aa ##aa"
)
VOCABULARY = Vocabulary(list(dict.fromkeys([*SPECIAL_TOKENS, *PIECES.split()])))


def plain_tokenizer(lower_case, vocabulary=VOCABULARY):
    return PlainTokenizer(vocabulary, lower_case, not lower_case, MAX_CHARACTERS_PER_WORD)


def assert_equal_to_original(texts, lower_case, vocabulary=VOCABULARY):
    columns = plain_tokenizer(lower_case, vocabulary).tokenize_with_offsets(texts)
    for text, ours in zip(texts, zip(*(column.to_list() for column in columns)), strict=True):
        assert ours == encode(text.encode(), vocabulary.ids, lower_case), text


@pytest.mark.parametrize("lower_case", [True, False])
def test_every_plain_character_alone_and_in_a_word(lower_case):
    characters = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    accepted = plain_tokenizer(lower_case).accepts(characters).numpy()
    plain = [character for character, is_plain in zip(characters, accepted) if is_plain]
    assert len(plain) == (122 if lower_case else 713)
    # All of them are in the vocabulary, so that none hides behind [UNK].
    pieces = [piece for character in plain if not character.isspace() for piece in (character, "##" + character)]
    texts = [text for character in plain for text in (character, f"a{character}a", f" {character}{character} a")]
    assert_equal_to_original(texts, lower_case, Vocabulary([*SPECIAL_TOKENS, *pieces]))


@pytest.mark.parametrize("lower_case", [True, False])
def test_random_plain_texts(lower_case):
    generator = random.Random(4)
    pool = ["a", "b", "A", "'s", "-", "#", "##", "[MASK]", "c", "–", "’", " ", "  ", "\t", "\r\n", "é", "ж"]
    texts = ["".join(generator.choices(pool, k=generator.randrange(20))) for _ in range(3000)]
    texts = [text for text, accepted in zip(texts, plain_tokenizer(lower_case).accepts(texts).numpy()) if accepted]
    assert len(texts) > (1000 if lower_case else 2900)
    assert_equal_to_original(texts, lower_case)
    assert_equal_to_original([text for text in texts if text.isascii()], lower_case)


def test_texts_that_are_not_plain():
    texts = [
        "a\0",
        "a\x7f",
        "\x0b",
        "\x1c",
        "\ufeff",
        "\xa0",
        "\xad",
        "e\u0301",
        "中",
        "½",
        b"a\xff",
        b"\xc3",
        "Ѐ\u0483",
    ]
    assert not plain_tokenizer(False).accepts(texts).numpy().any()
    assert plain_tokenizer(True).accepts(["é", "É", "Σ", "ж"]).numpy().tolist() == [False] * 4


def test_a_word_of_too_many_characters_is_not_plain():
    """Characters, not bytes, which is what tensorflow-text counts."""
    tokenizer = plain_tokenizer(False)
    for character in "aé–":
        longest = character * MAX_CHARACTERS_PER_WORD
        texts = [longest, f"a {longest} a", longest + character, f"a {longest}{character} a"]
        assert tokenizer.accepts(texts).numpy().tolist() == [True, True, False, False]
        assert_equal_to_original(texts[:2], False)


def test_plain_texts_between_others_stay_in_their_places():
    tokenizer = WordPieceTokenizer(VOCABULARY, lower_case=False)
    texts = ["a b", "中 a", "", "é–b", "a\0b", " a", "\u0301"]
    assert tokenizer(texts).to_list() == [encode(text.encode(), VOCABULARY.ids, False)[0] for text in texts]
