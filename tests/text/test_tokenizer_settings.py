"""The settings of Hugging Face's BertTokenizer beside BERT's own two: accents kept or not, Chinese split or not."""

import itertools
import json

import pytest
from hostile_texts import HOSTILE, random_hostile
from original_tokenization import encode
from tokenizers.implementations import BertWordPieceTokenizer

from keras_bert.core.errors import UserError
from keras_bert.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from keras_bert.text.wordpiece import WordPieceTokenizer

CHARACTERS = [chr(code) for code in range(33, 0x500)] + list("中文一二豈,。")
PIECES = Vocabulary(dict.fromkeys([*SPECIAL_TOKENS, *CHARACTERS, *(f"##{character}" for character in CHARACTERS)]))
ALL_SETTINGS = list(itertools.product([True, False], [None, True, False], [True, False]))
TEXTS = ["Ärger im Café: ÉTÉ, naïve!", "中文ABC 一二é", "İstanbul ĞÜŞ", "e\u0301 E\u0301", "豈 x豈"]


@pytest.mark.parametrize("settings", ALL_SETTINGS)
def test_equal_to_the_original_with_these_settings(settings):
    tokenizer = WordPieceTokenizer(PIECES, *settings)
    texts = [*HOSTILE, *random_hostile(400, seed=9)]
    columns = (column.to_list() for column in tokenizer.tokenize_with_offsets(texts))
    for text, *ours in zip(texts, *columns, strict=True):
        assert tuple(ours) == encode(text, PIECES.ids, *settings), text


@pytest.mark.parametrize("settings", ALL_SETTINGS)
def test_equal_to_hugging_faces_tokenizer(settings):
    lower_case, strip_accents, split_chinese = settings
    theirs = BertWordPieceTokenizer(
        PIECES.ids, lowercase=lower_case, strip_accents=strip_accents, handle_chinese_chars=split_chinese
    )
    ours = WordPieceTokenizer(PIECES, lower_case, strip_accents, split_chinese)
    assert ours(TEXTS).to_list() == [theirs.encode(text, add_special_tokens=False).ids for text in TEXTS]


def write_tokenizer_json(path, change=lambda content: None):
    """What transformers saves beside, or in place of, vocab.txt."""
    BertWordPieceTokenizer(PIECES.ids).save(str(path))
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content)
    path.write_text(json.dumps(content), encoding="utf-8")
    return str(path)


def test_pieces_of_tokenizer_json(tmp_path):
    path = write_tokenizer_json(tmp_path / "tokenizer.json")
    assert Vocabulary.from_file(path).tokens == PIECES.tokens


def test_tokens_that_were_added_later_have_their_ids(tmp_path):
    def add(content):
        content["added_tokens"].append({"content": "[E1]", "id": len(PIECES)})

    path = write_tokenizer_json(tmp_path / "tokenizer.json", add)
    assert Vocabulary.from_file(path).tokens == [*PIECES.tokens, "[E1]"]


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda content: content["model"].update(type="BPE"), "needs a WordPiece vocabulary. Received: BPE"),
        (lambda content: content["model"].update(continuing_subword_prefix="@@"), "needs the prefix '##'"),
        (lambda content: content["model"]["vocab"].update(x=99999), "needs one piece for every id"),
        (lambda content: content["model"]["vocab"].pop("A"), "needs one piece for every id"),
        (lambda content: content["model"]["vocab"].update(x="1"), "needs whole numbers as ids. Received: '1'"),
        (lambda content: content["added_tokens"].append("[E1]"), "needs added_tokens with a content and an id each"),
        (lambda content: content.update(model=["WordPiece"]), "needs a model that is an object. Received: list"),
    ],
)
def test_a_tokenizer_json_that_cannot_be_used_is_named(tmp_path, change, message):
    path = write_tokenizer_json(tmp_path / "tokenizer.json", change)
    with pytest.raises(UserError, match=f"{path}: {message}"):
        Vocabulary.from_file(path)
