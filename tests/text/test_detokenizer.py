"""Texts of tokens: the graph writes what was read, with every kind of vocabulary that keeps the blanks."""

import pytest
from hostile_texts import HOSTILE
from tiny import sentencepiece_vocabulary

from keras_bert.text.detokenizer import Detokenizer
from keras_bert.text.tokenizer_files import TokenizerSettings
from keras_bert.text.tokenizers import make_tokenizer
from keras_bert.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from keras_bert.text.vocabulary_learning import learn_byte_pieces


@pytest.mark.parametrize("prefix_space", [False, True])
def test_bytes_become_the_text_that_they_were(prefix_space):
    tokenizer = make_tokenizer(
        learn_byte_pieces(["the cat sat in the café"], 300), TokenizerSettings(prefix_space=prefix_space)
    )
    texts = [text for text in HOSTILE if isinstance(text, str) and text.strip() == text]
    ids = tokenizer(texts).to_tensor(tokenizer.vocabulary.pad_id)
    assert Detokenizer(tokenizer).texts(ids) == texts


def test_bytes_that_are_no_text_are_replaced_and_special_tokens_left_out():
    vocabulary = learn_byte_pieces(["a"], 270)
    ids = [vocabulary.cls_id, *(vocabulary.bytes_of.index(byte) for byte in (b"a", b"\xc3", b"b")), vocabulary.sep_id]
    assert Detokenizer(make_tokenizer(vocabulary)).texts([ids]) == ["a\ufffdb"]


def test_pieces_become_words():
    wordpiece = make_tokenizer(Vocabulary([*SPECIAL_TOKENS, "un", "##aff", "##able", "cats"]))
    assert Detokenizer(wordpiece).texts([[2, 8, 5, 6, 7, 3, 0]]) == ["cats unaffable"]
    pieces = sentencepiece_vocabulary(["▁", "▁cats", "un", "▁un"])
    ids = [[pieces.ids[piece] for piece in ("[CLS]", "▁cats", "▁un", "un", "[SEP]", "<pad>")]]
    assert Detokenizer(make_tokenizer(pieces)).texts(ids) == ["cats unun"]
