"""Byte-level BPE in plain Python equals the tokenizer in the graph, and stands alone."""

import random

import pytest
from hostile_texts import HOSTILE, random_hostile
from standing_alone import assert_rows_as_in_the_graph, ids_alone

from keras_bert.text import standalone_byte_tokenizer
from keras_bert.text.byte_pieces import BytePieceTokenizer
from keras_bert.text.standalone_byte_tokenizer import StandaloneByteTokenizer
from keras_bert.text.vocabulary_learning import learn_byte_pieces

WORDS = (
    "the house of a River, it's they're we've cafés 1990 2,000 中文 “quoted” \n\n\t  aaa aaaa bbb ½ 🙂 --- ...".split(
        " "
    )
)
PARTS = [
    *WORDS,
    " ",
    "  ",
    "\n",
    "'",
    "'s",
    "'re",
    "\u00a0",
    "\x1c",
    "\u2028",
    "\u200d",
    "\u0301",
    "\x00",
    "<mask>",
    "Ġ",
]


@pytest.fixture(scope="module")
def vocabulary():
    rng = random.Random(0)
    return learn_byte_pieces((" ".join(rng.choices(WORDS, k=8)) for _ in range(400)), 420)


@pytest.mark.parametrize("prefix_space", [False, True])
def test_it_equals_the_tokenizer_in_the_graph(vocabulary, prefix_space):
    """Ids and offsets, for any bytes; skipped bytes must not hide that a text begins with a space."""
    rng = random.Random(1)
    texts = [*HOSTILE, *random_hostile(1000, seed=4)]
    texts += ["".join(rng.choices(PARTS, k=rng.randrange(9))).encode() for _ in range(2000)]
    texts += [b"\xff", b"\xff the", b" \xff", b" the\xff", b"\xffthe", b"  ", b" ", b"", b"a" * 3000 + b" b" * 500]
    graph = BytePieceTokenizer(vocabulary, prefix_space)
    expected = zip(*(column.to_list() for column in graph.tokenize_with_offsets(texts)))
    plain = StandaloneByteTokenizer(vocabulary.tokens, vocabulary.merges, prefix_space)
    for text, ids, row in zip(texts, graph(texts).to_list(), expected, strict=True):
        assert plain.tokenize_with_offsets(text) == row, text
        assert plain.tokenize(text) == row[0] == ids


def test_what_it_keeps_of_parts_is_bounded(vocabulary, monkeypatch):
    monkeypatch.setattr(standalone_byte_tokenizer, "_KEPT_PARTS", 3)
    plain = StandaloneByteTokenizer(vocabulary.tokens, vocabulary.merges)
    text = "the house of the river's house"
    assert [plain.tokenize(text) for _ in range(2)] == BytePieceTokenizer(vocabulary)([text] * 2).to_list()


@pytest.mark.parametrize("max_length", [4, 5, 8, 9, 40])
def test_rows_are_truncated_as_in_the_graph(vocabulary, max_length):
    graph, plain = BytePieceTokenizer(vocabulary), StandaloneByteTokenizer(vocabulary.tokens, vocabulary.merges)
    texts = ["", "a b c", "a b c d e f g h", "1 2 3 4"]
    assert_rows_as_in_the_graph(graph, plain, texts, max_length)
    with pytest.raises(ValueError, match="max_length: needs at least 2, 4 for a pair. Received: 3."):
        plain.encode("a", "b", max_length=3)


def test_it_stands_alone(vocabulary, tmp_path):
    """A copy beside its data, in a process that can import nothing but the standard library."""
    vocabulary.to_file(str(tmp_path / "vocab.json"))
    (tmp_path / "tokenizer_config.json").write_text('{"add_prefix_space": true}')
    expected = BytePieceTokenizer(vocabulary, prefix_space=True).tokenize(["Café 中文, it's"]).to_list()[0]
    assert ids_alone(StandaloneByteTokenizer, "Café 中文, it's", tmp_path) == expected
