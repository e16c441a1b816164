import pytest

from keras_bert.core.errors import UserError
from keras_bert.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from keras_bert.text.vocabulary_learning import cut_before, extend_vocabulary, learn_vocabulary
from keras_bert.text.wordpiece import WordPieceTokenizer

# As in Google's files: the slots stand before and between the special tokens.
BASE = Vocabulary(
    ["[PAD]", "[unused0]", "[unused1]", *SPECIAL_TOKENS[1:], "the", "[unused7]", "co", "##rt", "##u", "."]
)


def test_the_most_frequent_new_words_fill_the_slots_in_order():
    texts = ["The court. The court of tort."] * 3 + ["Court tort estoppel estoppel"] * 2 + ["lien lien the"]
    extended, added = extend_vocabulary(BASE, texts)
    assert added == [("court", 8), ("tort", 5), ("estoppel", 4)]
    assert [extended.tokens[row] for row in (1, 2, 8)] == ["court", "tort", "estoppel"]
    ids = WordPieceTokenizer(extended)(["The court"]).to_list()
    assert ids == [[extended.ids["the"], extended.ids["court"]]]


def test_every_other_id_stays():
    extended, _ = extend_vocabulary(BASE, ["court tort"] * 2)
    assert len(extended) == len(BASE)
    changed = [row for row, (old, new) in enumerate(zip(BASE.tokens, extended.tokens)) if old != new]
    assert changed == [1, 2] and extended.tokens[8] == "[unused7]"


def test_words_are_the_tokenizers_own():
    """Upper case, accents and punctuation would otherwise give rows that no text reaches."""
    assert [word for word, _ in extend_vocabulary(BASE, ["CÔTE côte-CO"])[1]] == ["cote"]
    assert [word for word, _ in extend_vocabulary(BASE, ["CÔTE?CÔTE!"], lower_case=False)[1]] == ["CÔTE"]


def test_equally_frequent_words_come_by_name_and_what_is_seen_once_does_not():
    _, added = extend_vocabulary(BASE, ["zeta alpha zeta alpha once"])
    assert added == [("alpha", 2), ("zeta", 2)]


def test_without_a_slot_or_a_new_word_it_is_refused_with_the_remedy():
    with pytest.raises(UserError, match=r"law.txt: needs \[unusedN\] rows .* --unused N"):
        extend_vocabulary(Vocabulary([*SPECIAL_TOKENS, "the"]), ["court court"], source="law.txt")
    with pytest.raises(UserError, match="none of them new"):
        extend_vocabulary(BASE, ["the the"])


def test_a_learned_vocabulary_keeps_slots_and_takes_words():
    vocabulary = learn_vocabulary(["walking talked talking walked"] * 5, 40, unused=3)
    assert vocabulary.tokens[:9] == [*SPECIAL_TOKENS, "[unused0]", "[unused1]", "[unused2]", vocabulary.tokens[8]]
    assert vocabulary.pad_id == 0 and len(vocabulary.tokens[8]) == 1
    assert extend_vocabulary(vocabulary, ["kite kite"])[0].ids["kite"] == 5


def test_new_words_are_known_by_the_pieces_that_they_were_cut_into():
    """Nothing is known of a piece inside words, nor of a word that was [UNK]; one that only moved is itself."""
    tokens = list(BASE.tokens)
    tokens[1], tokens[2], tokens[8], tokens[-1] = "court", "tort", "##tion", "cou"
    tokens[BASE.ids["the"]], tokens[BASE.ids["co"]] = "co", "the"
    ids = BASE.ids
    assert cut_before(Vocabulary(tokens), WordPieceTokenizer(BASE)) == {
        1: [ids["co"], ids["##u"], ids["##rt"]],
        len(BASE) - 1: [ids["co"], ids["##u"]],
        ids["the"]: [ids["co"]],
        ids["co"]: [ids["the"]],
    }
    assert cut_before(BASE, WordPieceTokenizer(BASE)) == {}
