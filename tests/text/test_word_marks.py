import pytest

from keras_bert.core.errors import UserError
from keras_bert.data.shards.document_tokenizer import DocumentTokenizer
from keras_bert.text.marks import require_jieba
from keras_bert.text.vocabulary import SPECIAL_TOKENS, Vocabulary

TEXT = "我们在北京大学学习 playing\u200b的IBM语言模型。"
VOCABULARY = Vocabulary([*SPECIAL_TOKENS, *"我们在北京大学习的语言模。", "play", "##ing", "i", "##b", "##m"])


def test_characters_of_a_word_continue_it_and_so_do_pieces():
    pytest.importorskip("jieba")
    tokenized = DocumentTokenizer(VOCABULARY, True, "jieba")([f"学习。{TEXT}", "\n\n", TEXT])
    words = "我们 在 北京大学 学习 playing 的 ibm 语言 模型 。".split()
    pieces = [2, 1, 4, 2, 2, 1, 3, 2, 2, 1]
    marks = [int(n > 0) for count in pieces for n in range(count)]
    assert len(words) == len(pieces)
    # 型 is not in the vocabulary: the place of [UNK] is known too.
    assert tokenized.tokens.tolist().count(VOCABULARY.unk_id) == 2
    assert tokenized.continuations.tolist() == [0, 1, 0, *marks, *marks]
    assert tokenized.continuations.dtype == "uint8" and tokenized.document_lengths.tolist() == [2, 0, 1]


def test_the_ids_are_those_without_marks():
    pytest.importorskip("jieba")
    texts = [TEXT, "e\u0301\u4e2d\u0301\u6587 ﬁ ½", "\u3000", "𠀀𠀁中文\r\n中 文"]
    with_marks = DocumentTokenizer(VOCABULARY, True, "jieba")(texts)
    without = DocumentTokenizer(VOCABULARY, True)(texts)
    assert with_marks.tokens.tolist() == without.tokens.tolist() and without.continuations is None
    assert len(with_marks.continuations) == len(with_marks.tokens)


def test_jieba_that_is_not_installed_is_told(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"pip install 'bert-in-keras\[zh\]'"):
        require_jieba()
