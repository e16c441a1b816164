"""Marks of phrases and Chinese words, compared with a search in plain Python; and how the tokenizer uses them."""

import numpy as np
import pytest

from keras_bert.core.errors import UserError
from keras_bert.data.corpus.formats import AnnotatedText
from keras_bert.data.shards.document_tokenizer import DocumentTokenizer
from keras_bert.text.marks import PhraseMatcher, read_phrases, require_jieba
from keras_bert.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from keras_bert.text.vocabulary_learning import learn_byte_pieces


def _searched(tokens, phrases, is_piece):
    """The marks of one text, place by place: the longest phrase that begins there."""
    marks, place = np.zeros(len(tokens), int), 0
    is_inside = [*is_piece, False]
    while place < len(tokens):
        ends = [
            place + len(phrase)
            for phrase in phrases
            if tokens[place : place + len(phrase)] == phrase and not is_inside[place + len(phrase)]
        ]
        if ends and not is_inside[place]:
            marks[place : max(ends)], marks[place] = 2, 1
            place = max(ends)
        else:
            place += 1
    return marks.tolist()


@pytest.mark.parametrize("letters", [2, 4])
def test_marks_are_those_of_a_search_at_every_place(letters):
    """With few letters, phrases contain, overlap and continue one another."""
    rng = np.random.default_rng(letters)
    phrases = [rng.integers(letters, size=size).tolist() for size in (1, 2, 2, 3, 3, 4, 5, 7)]
    phrases = phrases[1:] if letters == 2 else phrases
    lengths = rng.integers(0, 30, 300)
    tokens = rng.integers(letters, size=lengths.sum())
    is_piece = rng.random(len(tokens)) < 0.2
    marks = PhraseMatcher(phrases).marks(tokens, lengths, is_piece)
    assert marks.dtype == np.uint8
    ends = np.cumsum(lengths)
    for end, length in zip(ends, lengths):
        text = slice(end - length, end)
        # No word continues from the text before: every text begins with a word.
        is_piece[text][:1] = False
    marks = PhraseMatcher(phrases).marks(tokens, lengths, is_piece)
    for end, length in zip(ends, lengths):
        text = slice(end - length, end)
        assert marks[text].tolist() == _searched(tokens[text].tolist(), phrases, is_piece[text].tolist())


PIECES = "new york is in the united states ##s . 北 京 大 学 a".split()
VOCABULARY = Vocabulary([*SPECIAL_TOKENS, *PIECES])


def test_a_list_of_phrases_is_found_however_it_is_written():
    phrases = ("New York", "UNITED STATES", "北京大学", "xyzzy", "states")
    tokenizer = DocumentTokenizer(VOCABULARY, True, phrases=phrases)
    tokenized = tokenizer(["NEW Yörk is in the United States. 北京大学 is in a xyzzy new yorks."])
    pieces = [VOCABULARY.tokens[index] for index in tokenized.tokens]
    found = "".join(map(str, tokenized.phrases.tolist()))
    assert pieces == "new york is in the united states . 北 京 大 学 is in a [UNK] new york ##s .".split()
    assert found == "12000120122200000000", "yorks is not York, and nothing unknown is a phrase"


@pytest.mark.parametrize("prefix_space", [True, False])
def test_byte_level_bpe_finds_phrases_anywhere(prefix_space):
    """Without a space before each text, its first word has other pieces, and seems to go on from the text before."""
    vocabulary = learn_byte_pieces(["I saw new york"] * 20, 300)
    tokenizer = DocumentTokenizer(vocabulary, False, phrases=["new york"], prefix_space=prefix_space)
    tokenized = tokenizer(["I saw new york\n\nnew york\n\nanew york"])
    places = np.flatnonzero(tokenized.phrases == 1)
    found = [[vocabulary.tokens[row] for row in tokenized.tokens[place:]] for place in places]
    assert ["".join(tokens).replace("Ġ", " ").strip()[:8] for tokens in found] == ["new york", "new york"]


def test_labelled_words_are_phrases_unless_the_list_has_them():
    document = AnnotatedText.of(
        ["New York is in the states.", "a states"],
        [[(0, 3, "PROPN"), (4, 8, "PROPN"), (9, 11, "AUX"), (19, 25, "NOUN")], [(2, 8, "NOUN")]],
    )
    both = DocumentTokenizer(VOCABULARY, True, phrases=("in the states",), phrase_tags=("PROPN", "NOUN"))
    tokenized = both([document, "in the states"])
    assert tokenized.phrases.tolist() == [1, 1, 0, 1, 2, 2, 0, 0, 1, 1, 2, 2]
    assert tokenized.document_lengths.tolist() == [2, 1]
    assert DocumentTokenizer(VOCABULARY, True)([document]).phrases is None


def test_a_file_of_phrases(tmp_path):
    path = tmp_path / "phrases.txt"
    path.write_bytes("\ufeffNew York\r\n\n 北京 \nNew York\n".encode())
    assert read_phrases(path) == ["New York", "北京"]
    path.write_bytes(b"\n \n")
    with pytest.raises(UserError, match="phrases.txt: needs phrases, one per line. Received: none."):
        read_phrases(path)
    path.write_bytes(b"caf\xe9")
    with pytest.raises(UserError, match="needs UTF-8. Received: an invalid byte at 3"):
        read_phrases(path)
    with pytest.raises(UserError, match="missing.txt: cannot be read"):
        read_phrases(tmp_path / "missing.txt")


TEXT = "我们在北京大学学习 playing\u200b的IBM语言模型。"
CHINESE = Vocabulary([*SPECIAL_TOKENS, *"我们在北京大学习的语言模。", "play", "##ing", "i", "##b", "##m"])


def test_characters_of_a_word_continue_it_and_so_do_pieces():
    pytest.importorskip("jieba")
    tokenized = DocumentTokenizer(CHINESE, True, "jieba")([f"学习。{TEXT}", "\n\n", TEXT])
    words = "我们 在 北京大学 学习 playing 的 ibm 语言 模型 。".split()
    pieces = [2, 1, 4, 2, 2, 1, 3, 2, 2, 1]
    marks = [int(n > 0) for count in pieces for n in range(count)]
    assert len(words) == len(pieces)
    # 型 is not in the vocabulary, but the place of [UNK] is known too.
    assert tokenized.tokens.tolist().count(CHINESE.unk_id) == 2
    assert tokenized.continuations.tolist() == [0, 1, 0, *marks, *marks]
    assert tokenized.continuations.dtype == "uint8" and tokenized.document_lengths.tolist() == [2, 0, 1]


def test_the_ids_are_those_without_marks():
    pytest.importorskip("jieba")
    texts = [TEXT, "e\u0301\u4e2d\u0301\u6587 ﬁ ½", "\u3000", "𠀀𠀁中文\r\n中 文"]
    with_marks = DocumentTokenizer(CHINESE, True, "jieba")(texts)
    without = DocumentTokenizer(CHINESE, True)(texts)
    assert with_marks.tokens.tolist() == without.tokens.tolist() and without.continuations is None
    assert len(with_marks.continuations) == len(with_marks.tokens)


def test_jieba_that_is_not_installed_is_told(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"pip install 'bert-in-keras\[zh\]'"):
        require_jieba()
