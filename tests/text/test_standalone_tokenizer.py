"""The tokenizer in plain Python equals the one in the graph, and stands alone."""

import json
import random
import unicodedata

import pytest
from hostile_texts import HOSTILE, random_hostile
from standing_alone import assert_rows_as_in_the_graph, ids_alone

from keras_bert.text import standalone_tokenizer
from keras_bert.text.standalone_tokenizer import StandaloneTokenizer
from keras_bert.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from keras_bert.text.wordpiece import WordPieceTokenizer

# Most characters, alone and with ##, so that few hide behind [UNK].
CHARACTERS = [chr(code) for code in range(33, 0x3100) if unicodedata.ucd_3_2_0.category(chr(code))[0] in "LNPSM"]
WORDS = "una ##ffa ##ble aff ##able stra ##sse ##ss caf ##fe ca mask cls ab ##ab οδυσ ##σευς ##xx ##xxx xx".split()
VOCABULARY = Vocabulary(
    list(dict.fromkeys([*SPECIAL_TOKENS, *CHARACTERS, *("##" + each for each in CHARACTERS), *"中文一", *WORDS]))
)
SETTINGS = [(True, None, True), (False, None, True), (True, False, True), (False, True, False), (True, None, False)]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_it_equals_the_tokenizer_in_the_graph(settings):
    """Ids and offsets, also under the settings that only Hugging Face's tokenizer has."""
    texts = [*HOSTILE, *random_hostile(1500, seed=11)]
    generator = random.Random(5)
    pool = bytes.fromhex("ef bb bf f0 f4 90 80 8f 9f ed a0 c0 c1 c3 a9 e0 e2 f8 ff 41 20")
    texts += [bytes(generator.choices(pool, k=generator.randrange(14))) for _ in range(500)]
    columns = WordPieceTokenizer(VOCABULARY, *settings).tokenize_with_offsets(texts)
    expected = zip(*(column.to_list() for column in columns))
    tokenizer = StandaloneTokenizer(VOCABULARY.tokens, *settings)
    for text, row in zip(texts, expected, strict=True):
        assert tokenizer.tokenize_with_offsets(text) == row, text
        assert tokenizer.tokenize(text) == row[0]


@pytest.mark.parametrize("max_length", [3, 4, 7, 8, 40])
def test_rows_are_truncated_as_in_the_graph(max_length):
    graph, plain = WordPieceTokenizer(VOCABULARY), StandaloneTokenizer(VOCABULARY.tokens)
    texts = ["", "a b c", "a b c d e f g h", "1 2 3 4 5 6 7"]
    assert_rows_as_in_the_graph(graph, plain, texts, max_length)


def test_it_stands_alone(tmp_path):
    """A copy beside its data, in a process that can import nothing but the standard library."""
    VOCABULARY.to_file(str(tmp_path / "vocab.txt"))
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": false, "strip_accents": null}')
    expected = WordPieceTokenizer(VOCABULARY, lower_case=False).tokenize(["Café 中文, unaffable"]).to_list()[0]
    assert ids_alone(StandaloneTokenizer, "Café 中文, unaffable", tmp_path) == expected


def test_only_a_newline_ends_a_piece(tmp_path):
    """BERT's own vocabularies hold pieces such as U+2028, and some files have Windows line ends."""
    path = tmp_path / "vocab.txt"
    path.write_bytes("\ufeff[PAD]\r\n\u2028\r\na\u0085b\n\x0b\n".encode())
    assert standalone_tokenizer.read_tokens(str(path)) == ["[PAD]", "\u2028", "a\u0085b", "\x0b"]


def test_special_tokens_that_transformers_lists_are_words_in_texts(tmp_path):
    """In a folder that transformers wrote, "[MASK]" in a text would become the special token, unlike in the graph."""
    VOCABULARY.to_file(str(tmp_path / "vocab.txt"))
    listed = {str(row): {"content": token, "special": True} for row, token in enumerate(SPECIAL_TOKENS)}
    listed[str(VOCABULARY.ids["["])] = {"content": "["}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"added_tokens_decoder": listed}))
    vocabulary, text = Vocabulary.from_file(tmp_path / "vocab.txt"), "ca [MASK] ca [CLS]"
    expected = WordPieceTokenizer(vocabulary).tokenize([text]).to_list()[0]
    assert [token.content for token in vocabulary.added] == ["["]
    assert StandaloneTokenizer.from_folder(str(tmp_path)).tokenize(text) == expected


@pytest.mark.parametrize(("second", "least"), [(None, 2), ("b", 3)])
def test_special_tokens_need_room(second, least):
    tokenizer = StandaloneTokenizer(VOCABULARY.tokens)
    assert len(tokenizer.encode("a", second, max_length=least)["input_word_ids"][0]) == least
    with pytest.raises(ValueError, match=f"max_length: needs at least 2, 3 for a pair. Received: {least - 1}."):
        tokenizer.encode("a", second, max_length=least - 1)
