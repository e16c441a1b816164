"""Byte-level BPE in the graph splits any text as GPT-2's encoder does; and its vocabulary's files."""

import json
import os
import pickle
import random
import resource
import time
import unicodedata

import numpy as np
import pytest
import tensorflow as tf
from any_tokenizer import assert_nothing_of_nothing, assert_published, assert_works_anywhere, sentences
from gpt2_encoding import encode
from hostile_texts import HOSTILE, random_hostile

from keras_bert.core.errors import UserError
from keras_bert.text import byte_pieces
from keras_bert.text.byte_pieces import BytePieceTokenizer, PartSplitter
from keras_bert.text.byte_vocabulary import SPECIAL_TOKENS, ByteVocabulary, byte_characters, piece_bytes
from keras_bert.text.standalone_byte_tokenizer import StandaloneByteTokenizer
from keras_bert.text.tokenizer_files import TokenizerSettings
from keras_bert.text.tokenizers import make_tokenizer
from keras_bert.text.vocabulary import Vocabulary, read_tokenizer_settings
from keras_bert.text.vocabulary_learning import learn_byte_pieces
from tools import make_character_table

WORDS = (
    "the house of a River, it's they're we've I'll cafés 1990 2,000 é中文 “quoted” \n\n\t  aaa aaaa bbb ½ 🙂 --- ..."
).split(" ")
PARTS = [
    *WORDS, " ", "  ", "\n", "\t", "'", "'s", "'S", "'re", "'l", "\u00a0", "\x1c", "\x85", "\u2028",
    "\u200d", "\u0301", "\x00", "<mask>", "</s>", "Ġ", "\u2029", "\u3000", "\u202f", "\u180e", "\ufeff",
    "\u200f", "\u202e", "\u2066", "\u200b", "’s", " 's", "  're", "\n'll", "'\u0301s", "'ſ", "é's", "9's", "אב",
    "ا\u200cب", "\r\n", "\u0e33", "👩\u200d👧", "\ue000", "²", "Ⅷ", "\U000e0001",
]  # fmt: skip


@pytest.fixture(scope="module")
def vocabulary():
    return learn_byte_pieces(sentences(WORDS), 420)


def assert_original(vocabulary, texts):
    """Texts are split as by GPT-2's encoder."""
    ids = {content: index for index, content in enumerate(vocabulary.bytes_of) if content}
    merges = {(piece_bytes(a), piece_bytes(b)): rank for rank, (a, b) in enumerate(vocabulary.merges)}

    def original(text):
        return [list(column) for column in zip(*encode(text, ids, merges))] or [[], [], []]

    assert_published(BytePieceTokenizer(vocabulary), texts, original)


def test_hostile_texts_are_split_as_by_the_original(vocabulary):
    """NUL, bytes that are not UTF-8, joiners, and spaces of every kind."""
    assert_original(vocabulary, [*HOSTILE, *random_hostile(500, seed=3)])


@pytest.mark.slow
def test_parts_begin_where_the_expression_says(vocabulary):
    """It looks ahead: of several spaces the last belongs to the word, and "'s" is a part only after a letter."""
    rng = random.Random(1)
    texts = ["".join(rng.choice(PARTS) for _ in range(rng.randint(0, 9))) for _ in range(5000)]
    assert_original(vocabulary, [text.encode() for text in texts])


def test_parts_are_cut_where_nothing_is_joined(vocabulary):
    """Without spaces, a Chinese sentence would be one part: slow to join, and too rare to reuse."""
    texts = ["一二三四 the houses", "中中文二文", "aé\u0301é", "\U00020000\U00020001"]
    decoded = tf.strings.unicode_decode(texts, "UTF-8")
    parts = PartSplitter(vocabulary)(decoded)
    assert parts[0].numpy().tolist() == [*(each.encode() for each in "一二三四"), b" the", b" houses"]
    assert tf.strings.reduce_join(parts, axis=1).numpy().tolist() == [text.encode() for text in texts]
    # A piece that spans the end of one character and the beginning of another may join them.
    pairs = [("ä", "¸"), ("ä¸", "Ń"), ("æ", "ĸ"), ("ä¸Ń", "æĸ")]
    spanning = ByteVocabulary(
        [*SPECIAL_TOKENS, *byte_characters().values(), *map("".join, pairs)], pairs, "pieces of 中 and 文"
    )
    assert PartSplitter(spanning)(decoded)[1].numpy().tolist() == [each.encode() for each in ("中", "中文", "二", "文")]
    assert_original(spanning, [text.encode() for text in [*texts, "中文中", "文中文文 中", "中"]])


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["a", "xk", " ", "\n", "'s", "🙂", "中", "\u200d", "é"])
def test_a_megabyte_without_a_break_takes_seconds(vocabulary, unit):
    """A line without a break is one part; joins that search all of it every time would take hours."""
    text = unit * (1_000_000 // len(unit.encode()))
    plain = StandaloneByteTokenizer(vocabulary.tokens, vocabulary.merges)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.process_time()
    columns = BytePieceTokenizer(vocabulary).tokenize_with_offsets([text])
    assert time.process_time() - started < 30
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2_000_000  # Kilobytes.
    assert tuple(column.to_list()[0] for column in columns) == plain.tokenize_with_offsets(text)


def test_a_long_line_and_a_batch_of_nothing(vocabulary):
    assert_original(vocabulary, ["a" * 5001 + " b" * 3000 + "'s"])
    tokenizer = BytePieceTokenizer(vocabulary)
    assert_nothing_of_nothing(tokenizer)
    assert tokenizer(["", ""]).to_list() == [[], []]


def test_bytes_that_are_not_utf_8_are_skipped_in_any_place(vocabulary):
    """NUL, lone continuation bytes and cut characters, between blanks, contractions and joiners."""
    rng = random.Random(2)
    pool = [part.encode() for part in PARTS] + [
        b"\x80",
        b"\xbf",
        b"\xc3",
        b"\xe4\xb8",
        b"\xf0\x9f",
        b"\xff",
        b"\xed\xa0\x80",
    ]
    assert_original(vocabulary, [b"".join(rng.choices(pool, k=rng.randrange(12))) for _ in range(1500)])
    assert_original(vocabulary, [bytes(rng.choices(range(256), k=rng.randrange(60))) for _ in range(500)])


def test_no_text_is_unknown(vocabulary):
    texts = [bytes([byte]).decode("latin-1") for byte in range(256)] + ["\U0010ffff", "</s><unk>"]
    for text, ids in zip(texts, BytePieceTokenizer(vocabulary)(texts).to_list()):
        assert not {*ids} & {vocabulary.unk_id, vocabulary.sep_id, vocabulary.mask_id}
        assert b"".join(vocabulary.bytes_of[index] for index in ids) == text.encode()


def test_a_text_may_be_read_as_if_a_space_came_before_it(vocabulary):
    plain, spaced = BytePieceTokenizer(vocabulary), BytePieceTokenizer(vocabulary, prefix_space=True)
    texts = ["the house", " the house", "", "\tthe", "é"]
    ids, starts, ends = (column.to_list() for column in spaced.tokenize_with_offsets(texts))
    assert ids == plain([" the house", " the house", "", " \tthe", " é"]).to_list()
    assert [texts[0][start:end] for start, end in zip(starts[0], ends[0])] == ["the", "house"]
    assert [texts[1][start:end] for start, end in zip(starts[1], ends[1])] == ["the", "house"]


def test_bytes_that_are_skipped_do_not_hide_the_space_before_a_text(vocabulary):
    """An expression on the raw bytes would miss spaces beside "\\xff"."""
    plain, spaced = BytePieceTokenizer(vocabulary), BytePieceTokenizer(vocabulary, prefix_space=True)
    texts = [b"\xff the", b"\xff", b" the \xff", b"\xffthe", b" \xff"]
    columns = [column.to_list() for column in spaced.tokenize_with_offsets(texts)]
    assert columns[0] == plain([" the", "", " the ", " the", " "]).to_list()
    assert columns[2][0] == [4] and columns[2][3] == [3]


def test_it_works_in_tf_data_in_functions_and_in_a_saved_model(vocabulary, tmp_path):
    texts = [f"the house {number}, it's" for number in range(20)]
    assert_works_anywhere(BytePieceTokenizer(vocabulary), texts, tmp_path)


def test_one_vocabulary_is_learned_from_the_same_text(vocabulary):
    assert learn_byte_pieces(sentences(WORDS), 420).fingerprint == vocabulary.fingerprint
    assert vocabulary.tokens[:4] == ["<s>", "<pad>", "</s>", "<unk>"] and vocabulary.tokens[-1] == "<mask>"
    assert "Ġhouse" in vocabulary.ids and len(vocabulary) <= 420
    with pytest.raises(UserError, match="The vocabulary's size: needs more than the 261"):
        learn_byte_pieces(sentences(WORDS), 200)
    with pytest.raises(UserError, match="needs words to learn"):
        learn_byte_pieces(["", ""], 400)


def test_its_files_are_read_again(vocabulary, tmp_path):
    path = str(tmp_path / "vocab.json")
    vocabulary.to_file(path)
    again = Vocabulary.from_file(path)
    assert isinstance(again, ByteVocabulary) and again.fingerprint == vocabulary.fingerprint
    assert pickle.loads(pickle.dumps(again)).fingerprint == again.fingerprint
    assert isinstance(make_tokenizer(again, TokenizerSettings(prefix_space=False)), BytePieceTokenizer)
    os.remove(path)
    fields = {
        "model": {"type": "BPE", "vocab": vocabulary.ids, "merges": [*map(" ".join, vocabulary.merges)]},
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
    }
    (tmp_path / "tokenizer.json").write_text(json.dumps(fields))
    assert Vocabulary.from_file(str(tmp_path / "tokenizer.json")).fingerprint == vocabulary.fingerprint


def tokenizer_json(**changes):
    letters = list(byte_characters().values())
    tokens = [*SPECIAL_TOKENS, *letters, "ab"]
    model = {"type": "BPE", "vocab": {token: index for index, token in enumerate(tokens)}, "merges": [["a", "b"]]}
    content = {"model": model, "pre_tokenizer": {"type": "ByteLevel"}, **changes}
    model.update(content.pop("model_fields", {}))
    return content


@pytest.mark.parametrize(
    "content, message",
    [
        (tokenizer_json(pre_tokenizer={"type": "Sequence"}), "Received: the pre-tokenizer Sequence, which is not"),
        (tokenizer_json(pre_tokenizer={"type": "ByteLevel", "use_regex": False}), "ByteLevel with use_regex false"),
        (tokenizer_json(normalizer={"type": "NFC"}), "Received: the normalizer NFC, which is not supported"),
        (tokenizer_json(model_fields={"ignore_merges": True}), "Received: ignore_merges True, which is not"),
        (
            tokenizer_json(model_fields={"merges": ["a b", "c zz"]}),
            "needs merges of its pieces. Received: 'zz' in merge 2",
        ),  # noqa: E501
        (tokenizer_json(model_fields={"merges": ["a b", "a b"]}), "needs each merge once, after those of its parts"),
        (tokenizer_json(model_fields={"merges": ["ab"]}), "needs two pieces a merge. Received"),
        (
            tokenizer_json(
                pre_tokenizer={
                    "type": "Sequence",
                    "pretokenizers": [{"type": "Split", "pattern": {"Regex": "\\w+"}}, {"type": "ByteLevel"}],
                }
            ),
            "Received: the pre-tokenizer Sequence of Split, ByteLevel, which is not supported. Give a model with RoB",
        ),
        (tokenizer_json(pre_tokenizer=None), "Received: the pre-tokenizer None, which is not supported"),
        (tokenizer_json(pre_tokenizer=["ByteLevel"]), "needs a pre_tokenizer that is an object. Received: list"),
        (
            tokenizer_json(normalizer={"type": "Sequence", "normalizers": [{"type": "NFKC"}, {"type": "Lowercase"}]}),
            "Received: the normalizer Sequence of NFKC, Lowercase, which",
        ),
        (tokenizer_json(pre_tokenizer={"type": "X", "pretokenizers": 3}), "Received: the pre-tokenizer X, which is"),
        (tokenizer_json(normalizer={"type": "X", "normalizers": 3}), "Received: the normalizer X, which is"),
        (tokenizer_json(normalizer="NFC"), "needs a normalizer that is an object. Received: str"),
        (tokenizer_json(model_fields={"dropout": 0.1}), "Received: dropout 0.1, which is not supported"),
        (tokenizer_json(model_fields={"byte_fallback": True}), "Received: byte_fallback True, which is not supported"),
        (tokenizer_json(model_fields={"end_of_word_suffix": "</w>"}), "Received: end_of_word_suffix '</w>', which"),
        (tokenizer_json(model_fields={"merges": {"a": "b"}}), "needs a list of merges. Received: dict"),
        (tokenizer_json(model_fields={"merges": [["a", 5]]}), "needs two pieces a merge. Received: ['a', 5] as merge"),
        (tokenizer_json(model_fields={"vocab": ["a"]}), "needs pieces with whole numbers as ids"),
        (tokenizer_json(model_fields={"vocab": {"a": "0"}}), "needs pieces with whole numbers as ids"),
        (tokenizer_json(added_tokens=["<mask>"]), "needs added_tokens with a content and an id each"),
        (tokenizer_json(added_tokens=[{"content": "<mask>"}]), "needs added_tokens with a content and an id each"),
        (tokenizer_json(model_fields={"vocab": {"a": 0}}), "needs <s> <pad> </s> <unk> <mask>. Received: 1 pieces"),
        (tokenizer_json(model_fields={"vocab": {"a": 0, "b": 5}}), "needs one piece for every id"),
    ],
)
def test_other_files_are_refused_in_one_line(content, message, tmp_path):
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(UserError) as error:
        Vocabulary.from_file(str(tmp_path / "tokenizer.json"))
    assert message in str(error.value) and "\n" not in str(error.value)


def test_a_dropout_of_zero_is_none(tmp_path):
    (tmp_path / "tokenizer.json").write_text(json.dumps(tokenizer_json(model_fields={"dropout": 0.0})))
    assert len(Vocabulary.from_file(str(tmp_path / "tokenizer.json")).merges) == 1


def without(piece):
    tokens = [token for token in (*SPECIAL_TOKENS, *byte_characters().values(), "ab") if token != piece]
    return json.dumps({token: index for index, token in enumerate(tokens)})


@pytest.mark.parametrize(
    "pieces, merges, message",
    [
        (
            without(None),
            "#version: 0.2\na b\nb zz\n",
            "Received: 'zz' in merge 2, no piece. Give the pieces and merges",
        ),
        (without(None), "a b\nab c\n", "Received: 'abc' in merge 2, no piece."),
        (without(None), "a b\n\na b c\n", "needs two pieces a merge. Received: ['a', 'b', 'c'] as merge 2."),
        (without(None), "a b\nab\n", "needs two pieces a merge. Received: ['ab'] as merge 2."),
        (without("<mask>"), "a b\n", "Received: 261 pieces without <mask>. Learn a vocabulary with: "),
        (without("Ġ"), "a b\n", "needs a piece for each of 256 bytes. Received: 255."),
        (without(None)[:-20], "a b\n", "vocab.json: is not valid JSON ("),
        ("[]", "a b\n", "vocab.json: needs a JSON object. Received: list."),
        ("{}", "a b\n", "Received: 0 pieces without <s> <pad> </s> <unk> <mask>."),
    ],
)
def test_a_vocab_json_and_its_merges_are_refused_in_one_line(pieces, merges, message, tmp_path):
    (tmp_path / "vocab.json").write_text(pieces, encoding="utf-8")
    (tmp_path / "merges.txt").write_text(merges, encoding="utf-8")
    with pytest.raises(UserError) as error:
        Vocabulary.from_file(str(tmp_path / "vocab.json"))
    assert message in str(error.value) and "\n" not in str(error.value)


def test_a_cut_tokenizer_json_is_refused_in_one_line(tmp_path):
    (tmp_path / "tokenizer.json").write_text(json.dumps(tokenizer_json())[:-30])
    with pytest.raises(UserError, match=r"tokenizer.json: is not valid JSON \(.*\). Fetch or write it again"):
        Vocabulary.from_file(str(tmp_path / "tokenizer.json"))


def test_a_generic_class_follows_tokenizer_json_beside_a_vocab_json(vocabulary, tmp_path):
    """transformers splits by tokenizer.json here, but by vocab.json alone for RoBERTa's own class."""
    vocabulary.to_file(str(tmp_path / "vocab.json"))
    (tmp_path / "tokenizer.json").write_text(json.dumps(tokenizer_json(normalizer={"type": "NFC"})))
    config = tmp_path / "tokenizer_config.json"
    config.write_text('{"tokenizer_class": "RobertaTokenizer"}')
    assert read_tokenizer_settings(str(tmp_path))[0].prefix_space is False
    config.write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')
    with pytest.raises(UserError, match="Received: the normalizer NFC, which is not supported"):
        read_tokenizer_settings(str(tmp_path))


def test_merges_that_learning_cannot_give_are_refused():
    """In "abc" b and c would merge first, so ab and c never meet, while SentencePiece would join a and bc."""
    tokens = [*SPECIAL_TOKENS, *byte_characters().values(), "bc", "ab", "abc"]
    with pytest.raises(UserError, match=r"training can produce. Received: 'ab' 'c', but 'b' 'c' would merge first\."):
        ByteVocabulary(tokens, [("b", "c"), ("a", "b"), ("ab", "c")])
    ByteVocabulary([*tokens[:-1], "abd"], [("b", "c"), ("a", "b"), ("ab", "d")])


def test_merges_txt_belongs_to_vocab_json(vocabulary, tmp_path):
    vocabulary.to_file(str(tmp_path / "vocab.json"))
    os.remove(tmp_path / "merges.txt")
    with pytest.raises(UserError, match=r"merges.txt: cannot be read \(No such file or directory\)"):
        Vocabulary.from_file(str(tmp_path / "vocab.json"))


def test_pieces_are_text_again(vocabulary):
    assert vocabulary.appended("The ", "Ġhouse") == vocabulary.appended("The", "Ġhouse") == "The house"
    assert vocabulary.continued("It", ["'s", "Ġthe"]) == "It's the"


def test_rows_without_a_piece_split_nothing_and_are_no_text(vocabulary):
    """A RoBERTa whose table was padded to a multiple of 8 could not be loaded otherwise."""
    padded = vocabulary.padded(len(vocabulary) + 3)
    tokenizer, texts = BytePieceTokenizer(padded), ["the house", "é中", ""]
    assert tokenizer(texts).to_list() == BytePieceTokenizer(vocabulary)(texts).to_list()
    assert len(padded.spellings()) == len(padded) and padded.appended("The", padded.tokens[-1]) == "The"
    assert vocabulary.padded(len(vocabulary)).bytes_of == vocabulary.bytes_of


def test_the_shipped_classes_are_what_the_code_builds():
    if unicodedata.unidata_version != "14.0.0":
        pytest.skip("another version of Unicode than the table's")
    starts, pages = byte_pieces.load_character_classes()
    built = make_character_table.build_character_classes()
    np.testing.assert_array_equal(starts, built["page_starts"])
    np.testing.assert_array_equal(pages, built["pages"])
