"""Tokens added to a vocabulary, matched as Hugging Face's `tokenizers` matches them."""

import json
import random

import pytest
import tensorflow as tf
import tokenizers
from any_tokenizer import assert_works_anywhere
from hostile_texts import HOSTILE

from keras_bert.core.errors import UserError
from keras_bert.text.standalone_tokenizer import AddedToken, StandaloneTokenizer, added_token
from keras_bert.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from keras_bert.text.wordpiece import WordPieceTokenizer

PIECES = [*SPECIAL_TOKENS, *"abxeé中<>-", *(f"##{letter}" for letter in "abxeé"), "ab", "##ab", "ent", "[E1]"]
CONTENTS = ["<e>", "<E>", "<ent>", "<entab>", "ab", "abx", "ent", "[E1]", "中", "a中", "a b", "É", "e", "-", "##a"]
CONTENTS += ["b-", "A<", "<e> ", "中 ", "²", "b\u0301", "[", " a", "\tb"]
ATOMS = [
    *CONTENTS,
    *"abeExé中<>-_², \t",
    " ",
    " ",
    "\u0301",
    "\u200b",
    "\x00",
    "ABX",
    "ⓐ",
    "\u200d",
    "[MASK",
    "1",
    "日",
]


def some_added(generator):
    """A few tokens, among the pieces and beyond them, with any flags."""
    added, next_id = [], len(PIECES)
    for content in generator.sample(CONTENTS, generator.randrange(1, 7)):
        index = PIECES.index(content) if content in PIECES else next_id
        next_id += index == next_id
        added.append(AddedToken(content, index, *(generator.random() < 0.4 for _ in range(5))))
    return added


def peer(added, lower_case):
    """Hugging Face's tokenizer, whose special tokens are not words in our texts."""
    made = tokenizers.Tokenizer(
        tokenizers.models.WordPiece({piece: row for row, piece in enumerate(PIECES)}, unk_token="[UNK]")
    )
    made.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=lower_case)
    made.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    for token in sorted(added, key=lambda token: token.id):
        fields = token._asdict()
        del fields["id"]
        made.add_tokens([tokenizers.AddedToken(**fields)])
    return made


def rows_of(tokenizer, texts):
    return list(zip(*(column.to_list() for column in tokenizer.tokenize_with_offsets(tf.constant(texts)))))


@pytest.mark.parametrize("seed", range(12))
def test_equal_to_hugging_faces_tokenizer(seed):
    """A match too many, too few or misplaced gives the model tokens that it was not trained on."""
    generator = random.Random(seed)
    added, lower_case = some_added(generator), seed % 3 > 0
    texts = ["".join(generator.choices(ATOMS, k=generator.randrange(9))) for _ in range(150)]
    theirs = peer(added, lower_case)
    graph = WordPieceTokenizer(Vocabulary(PIECES, added=added), lower_case)
    plain = StandaloneTokenizer(PIECES, lower_case, added=added)
    ours = rows_of(graph, texts)
    assert [ids for ids, _, _ in ours] == graph(texts).to_list()
    for text, row in zip(texts, ours):
        assert row == plain.tokenize_with_offsets(text), (text, added)
        assert row[0] == theirs.encode(text, add_special_tokens=False).ids, (text, added)


LATER = len(PIECES)


@pytest.mark.parametrize("normalized", [True, False])
def test_a_token_strips_no_space_of_the_next(normalized):
    added = [AddedToken("be", LATER, rstrip=True), AddedToken(" x", LATER + 1, lstrip=True)]
    added = [token._replace(normalized=normalized) for token in added]
    expected = [LATER, LATER + 1], [1, 5], [5, 7]
    assert StandaloneTokenizer(PIECES, added=added).tokenize_with_offsets(" be   x") == expected
    assert rows_of(WordPieceTokenizer(Vocabulary(PIECES, added=added)), [" be   x"]) == [expected]


EVERY_FLAG = [AddedToken("<ent>", LATER), AddedToken("ⓐ", LATER + 1, True, True, True), AddedToken("x", 7, True)]


@pytest.mark.parametrize("lower_case", [True, False])
def test_beside_hostile_texts(lower_case):
    """Tokens between invalid UTF-8, marks out of order and the like, in one batch."""
    texts = [
        row for text in HOSTILE for row in (text, b"<ENT>" + text + b"<ent>x" + text, text + " ⓐ ".encode() + text)
    ]
    ours = rows_of(WordPieceTokenizer(Vocabulary(PIECES, added=EVERY_FLAG), lower_case), texts)
    plain = StandaloneTokenizer(PIECES, lower_case, added=EVERY_FLAG)
    for text, row in zip(texts, ours):
        assert row == plain.tokenize_with_offsets(text), text
    assert rows_of(WordPieceTokenizer(Vocabulary(PIECES, added=EVERY_FLAG)), [b"", b""]) == [([], [], [])] * 2


@pytest.mark.slow
def test_in_a_dataset_and_a_saved_model(tmp_path):
    tokenizer = WordPieceTokenizer(Vocabulary(PIECES, added=EVERY_FLAG))
    texts = ["a <ent> b", "", "x-x ax", "  ⓐ  a", "a b"]
    assert_works_anywhere(tokenizer, texts * 2, tmp_path)


def described(**flags):
    return {"content": "<ent>", "single_word": False, "lstrip": False, "rstrip": False, **flags}


FILE = {
    "tokenizer.json": {"added_tokens": [{"id": 0, "content": "[PAD]"}, {"id": LATER, **described(normalized=True)}]}
}
DECODER = {"added_tokens_decoder": {str(LATER): described(normalized=False, single_word=True)}}


@pytest.mark.parametrize("flag", ["single_word", "lstrip", "rstrip", "normalized", "special"])
def test_a_flag_is_a_boolean(tmp_path, flag):
    """The text "no" would count as true."""
    Vocabulary(PIECES).to_file(tmp_path / "vocab.txt")
    token = {"content": "<ent>", flag: "no"}
    for name, content in (
        ("tokenizer.json", {"added_tokens": [{"id": LATER, **token}]}),
        ("tokenizer_config.json", {"added_tokens_decoder": {LATER: token}}),
    ):
        (tmp_path / name).write_text(json.dumps(content))
        with pytest.raises(UserError, match=f"{name}: needs true or false as {flag}. Received: 'no'"):
            Vocabulary.from_file(tmp_path / "vocab.txt")
    with pytest.raises(ValueError, match=f"{flag}: needs true or false. Received: 'no'"):
        added_token(LATER, token)


@pytest.mark.parametrize(
    "contents, expected",
    [
        ({"added_tokens.json": {"<ent>": LATER}}, [AddedToken("<ent>", LATER)]),
        (
            {
                "added_tokens.json": {"<ent>": LATER},
                "special_tokens_map.json": {"additional_special_tokens": ["<ent>"]},
            },
            [AddedToken("<ent>", LATER, normalized=False, special=True)],
        ),
        (FILE, [AddedToken("<ent>", LATER)]),
        ({"tokenizer_config.json": DECODER}, [AddedToken("<ent>", LATER, True, normalized=False)]),
        ({**FILE, "tokenizer_config.json": DECODER}, [AddedToken("<ent>", LATER, True, normalized=False)]),
        ({**FILE, "tokenizer_config.json": {"added_tokens_decoder": {}}}, []),
        (
            {**FILE, "tokenizer_config.json": {"added_tokens_decoder": {}, "tokenizer_class": "TokenizersBackend"}},
            [AddedToken("<ent>", LATER)],
        ),
        (
            {"tokenizer_config.json": {"extra_special_tokens": ["[E1]", "<no row>", "[CLS]"]}},
            [AddedToken("[E1]", PIECES.index("[E1]"), normalized=False, special=True)],
        ),
        ({"added_tokens.json": {"<ent>": LATER + 1}}, "'<ent>' with id"),
        ({"added_tokens.json": {"<ent>": 3}}, "'<ent>' with id 3"),
        ({"tokenizer_config.json": {"added_tokens_decoder": ["<ent>"]}}, "tokenizer_config.json: needs added_tokens"),
        ({"tokenizer.json": {"added_tokens": 3}}, "tokenizer.json: needs added_tokens"),
        ({"added_tokens.json": {"<ent>": float("inf")}}, "added_tokens.json: needs added_tokens"),
        ({"tokenizer_config.json": {"added_tokens_decoder": {"-1": {"content": PIECES[-1]}}}}, "with id -1"),
        ({"tokenizer_config.json": {"added_tokens_decoder": {str(LATER): {"content": "\ud800"}}}}, "of UTF-8"),
        # Each of its characters would become a token.
        ({"tokenizer_config.json": {"additional_special_tokens": "<ent>"}}, "a list of tokens as additional_special"),
        ({"special_tokens_map.json": {"additional_special_tokens": [["a"]]}}, "special_tokens_map.json: needs a list"),
        ({"tokenizer_config.json": {"extra_special_tokens": [{"id": 3}]}}, "a list of tokens as extra_special_tokens"),
    ],
)
def test_the_files_that_hold_them(tmp_path, contents, expected):
    """As transformers finds them; a missed token is split silently."""
    Vocabulary(PIECES).to_file(tmp_path / "vocab.txt")
    for name, content in contents.items():
        (tmp_path / name).write_text(json.dumps(content))
    if isinstance(expected, str):
        with pytest.raises(UserError, match=expected):
            Vocabulary.from_file(tmp_path / "vocab.txt")
        return
    found = Vocabulary.from_file(tmp_path / "vocab.txt")
    assert list(found.added) == expected and len(found) == len(PIECES) + any(token.id == LATER for token in expected)
    (tmp_path / "again").mkdir()
    found.to_file(tmp_path / "again" / "vocab.txt")
    again = Vocabulary.from_file(tmp_path / "again" / "vocab.txt")
    assert (again.tokens, again.added, again.fingerprint) == (found.tokens, found.added, found.fingerprint)
