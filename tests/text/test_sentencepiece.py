"""ALBERT's tokenization in the graph: ids, offsets and the model's file."""

import io
import json
import pickle
import random
import unicodedata

import numpy as np
import pytest
import tensorflow as tf
from albert_tokenization import albert_ids, preprocess
from any_tokenizer import assert_nothing_of_nothing, assert_works_anywhere, sentences
from goldens import run_peer
from hostile_texts import HOSTILE, random_hostile
from tiny import sentencepiece_vocabulary

from keras_bert.config.objectives import MaskingConfig
from keras_bert.core.errors import UserError
from keras_bert.data.batches.masking import DynamicMasking
from keras_bert.text.characters import continues_word
from keras_bert.text.sentencepiece import SentencePieceTokenizer
from keras_bert.text.sentencepiece_vocabulary import SentencePieceVocabulary
from keras_bert.text.tokenizers import make_tokenizer
from keras_bert.text.vocabulary import SPECIAL_TOKENS, Vocabulary, read_tokenizer_settings, vocabulary_file
from keras_bert.text.vocabulary_learning import learn_sentencepiece

sentencepiece = pytest.importorskip("sentencepiece")

WORDS = (
    "the house of a River stone, green cafés run jumping over 1,990 and 2,000, (in 10, 20, or 1905,) “quoted” text"
).split()


@pytest.fixture(scope="module")
def vocabulary():
    return learn_sentencepiece(sentences(WORDS), 120)


@pytest.fixture(scope="module")
def processor(vocabulary):
    return sentencepiece.SentencePieceProcessor(model_proto=vocabulary.model)


@pytest.fixture(scope="module")
def numbers():
    """A model with pieces that end in a digit and a comma, which a learned one may lack."""
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["it was 1990, and 20, or 7,000, then 55, 1990, 20, 7,000"] * 50),
        model_writer=written,
        vocab_size=60,
        hard_vocab_limit=False,
        pad_id=0,
        unk_id=1,
        bos_id=-1,
        eos_id=-1,
        control_symbols=["[CLS]", "[SEP]", "[MASK]"],
        user_defined_symbols=["0,", "90,", "5,", "▁1990,"],
        minloglevel=2,
    )
    found = SentencePieceVocabulary(written.getvalue())
    assert any(token[-1] == "," and token[-2:-1].isdigit() for token in found.tokens)
    return found


def test_rows_without_a_piece_split_nothing(numbers):
    """An ALBERT or XLNet whose table was padded to a multiple of 8 could not be loaded otherwise."""
    texts = ["1990, 20, 7,000", ""]
    padded = SentencePieceTokenizer(numbers.padded(len(numbers) + 3))
    assert padded(texts).to_list() == SentencePieceTokenizer(numbers)(texts).to_list()


@pytest.fixture(scope="module", params=[True, False], ids=["uncased", "cased"])
def folder(request, vocabulary, processor, tmp_path_factory):
    """The files of an ALBERT's tokenizer as transformers 5 writes them."""
    path = tmp_path_factory.mktemp("albert")
    pieces = [[token, processor.get_score(index)] for index, token in enumerate(vocabulary.tokens)]
    before = [{"type": "Replace", "pattern": {"String": quote}, "content": '"'} for quote in ("``", "''")]
    kinds = ["NFKD", "StripAccents", "Lowercase"][: 2 + request.param]
    content = {
        "added_tokens": [],
        "normalizer": {"type": "Sequence", "normalizers": [*before, *({"type": kind} for kind in kinds)]},
        "model": {"type": "Unigram", "unk_id": 1, "vocab": pieces},
    }
    (path / "tokenizer.json").write_text(json.dumps(content), "utf-8")
    config = {"tokenizer_class": "AlbertTokenizer", "do_lower_case": request.param, "keep_accents": False}
    (path / "tokenizer_config.json").write_text(json.dumps(config), "utf-8")
    (path / "config.json").write_text('{"model_type": "albert"}', "utf-8")
    return path


def opened(folder):
    return make_tokenizer(Vocabulary.from_file(vocabulary_file(str(folder))), read_tokenizer_settings(str(folder))[0])


def test_pieces_of_a_tokenizer_json_are_a_model(vocabulary, folder):
    """transformers 5 writes no other file."""
    tokenizer = opened(folder)
    read = tokenizer.vocabulary
    assert type(read) is SentencePieceVocabulary and read.tokens == vocabulary.tokens
    np.testing.assert_array_equal(read.is_piece, vocabulary.is_piece)
    texts = ["The  house,\tof a café", "``quoted'' 1,990 \u3000text", "[CLS] 语 <unk>"]
    assert tokenizer(texts).to_list() == SentencePieceTokenizer(vocabulary, tokenizer.lower_case)(texts).to_list()


def test_a_tokenizer_json_of_other_pieces_is_refused_in_one_line(tmp_path):
    (tmp_path / "tokenizer.json").write_text(json.dumps({"model": {"type": "Unigram", "vocab": [["<pad>", 0.0]]}}))
    with pytest.raises(UserError, match="tokenizer.json: needs ALBERT's pieces. Give spiece.model.$"):
        SentencePieceTokenizer(tmp_path / "tokenizer.json")


@pytest.mark.live
def test_ids_are_those_of_transformers_from_the_same_tokenizer_json(folder, tmp_path):
    """But for a piece that joins a number and a comma, which this vocabulary lacks, and for 000, which is split in two
    ways of one score.
    """
    parts = [*WORDS, "É", "ﬁ", "½", "中", " ", "\t", "\u3000", "``", "''", "-", ".", "\u0301"]
    rng = random.Random(3)
    texts = [*sentences(WORDS), *("".join(rng.choices(parts, k=rng.randrange(9))) for _ in range(400))]
    texts = [text for text in texts if "000" not in text]
    (tmp_path / "texts.json").write_text(json.dumps(texts), "utf-8")
    run_peer("of_tokenizers.py", "ids", folder, tmp_path / "texts.json", tmp_path / "ids.json")
    received = json.loads((tmp_path / "ids.json").read_text("utf-8"))
    tokenizer = opened(folder)
    start, end = tokenizer.vocabulary.cls_id, tokenizer.vocabulary.sep_id
    assert received["single"] == [[start, *row, end] for row in tokenizer(texts).to_list()]


OWN = [
    "",
    " ",
    "\u3000\u00a0 \x1c",
    "a",
    "``It's'' '''x''' ``` ` ' '' a''",
    "ΌΔΟΣ ΟΔΟΣ Σ ΑΣ. ΣΑ 𝚺Α Α𝚺 Σ\u0301Σ",
    "ﬁ ㎏ ½ … ﷺ ＡＢＣ，１２３ Ⅷ",
    "İstanbul ẞ ǅ ŉ",
    "한국어 각 か\u3099 が",
    "a´b ¨c ´",
    " \u0301a a\u0301\u0323 \u0300",
    "1,990 10, 5, ٣, ²,x 3,4,5, 1905,",
    "[CLS] [MASK] <unk> ▁ ▁the the▁",
    "a\x00b\x01c\u200b\ufeff\u00ad",
    "€5 £6 ($7) – -",
    "x" * 5000,
    b"\xff\xfecaf\xc3\xa9 \xe2\x82",
    "👩‍👩‍👧 🇩🇪 \U0010ffff",
    "क्षि நி",
]


def all_texts():
    return [
        text if isinstance(text, bytes) else text.encode("utf-8", "ignore")
        for text in [*OWN, *HOSTILE, *random_hostile(300, seed=5)]
    ]


@pytest.mark.parametrize("lower_case", [True, False])
@pytest.mark.parametrize("quotes", [True, False])
def test_ids_are_those_of_the_published_algorithm(vocabulary, processor, lower_case, quotes):
    """No difference even on hostile texts; without the rule for quotes it is Google's own tokenization."""
    texts = all_texts()
    received = SentencePieceTokenizer(vocabulary, lower_case, quotes).tokenize(texts).to_list()
    for text, ids in zip(texts, received, strict=True):
        assert ids == albert_ids(processor, text, lower_case, quotes), text[:80]


def test_numbers_before_a_comma_are_split_again(numbers):
    processor = sentencepiece.SentencePieceProcessor(model_proto=numbers.model)
    texts = ["it was 1990, and", "20, 55, 7,000, x1990,", "1990,1990, 1,2", "99, 8,"]
    tokenizer = SentencePieceTokenizer(numbers, quotes=False)
    ids, starts, ends = tokenizer.tokenize_with_offsets(texts)
    assert ids.to_list() == tokenizer(texts).to_list() == [albert_ids(processor, text) for text in texts]
    comma = numbers.ids[","]
    for text, row, first, last in zip(texts, ids.to_list(), starts.to_list(), ends.to_list()):
        commas = [text[start:end] for piece, start, end in zip(row, first, last) if piece == comma]
        assert commas == [","] * row.count(comma)
        assert "".join(text[start:end] for start, end in zip(first, last)) == text.replace(" ", "")


def test_one_model_is_learned_from_the_same_text(vocabulary):
    assert learn_sentencepiece(sentences(WORDS), 120).fingerprint == vocabulary.fingerprint
    assert vocabulary.tokens[:5] == ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"] and len(vocabulary) <= 120
    assert "," in vocabulary.ids


@pytest.mark.slow
def test_normalization_is_pythons_for_every_code_point():
    """Where Python's Unicode version is the table's; between letters, since white space depends on its place."""
    from keras_bert.text.sentencepiece import AlbertNormalizer

    if unicodedata.unidata_version != "14.0.0":
        pytest.skip("another version of Unicode than the table's")
    points = [point for point in range(0x110000) if not 0xD800 <= point < 0xE000]
    blocks = [points[first : first + 4096] for first in range(0, len(points), 4096)]
    texts = ["".join(f"a{chr(point)}b " for point in block) for block in blocks]
    for lower_case in (True, False):
        received = AlbertNormalizer(lower_case, quotes=False)([text.encode() for text in texts]).texts.numpy()
        for text, normalized in zip(texts, received):
            assert normalized.decode() == preprocess(text, lower_case, quotes=False)


@pytest.mark.parametrize(
    "text",
    [
        "The  House,\tof\n a café–river ",
        "it's ``quoted'' text, 1,990.",
        "ﬁne ㎏ stone e\u0301 Ａ",
        "  ",
        "",
        "한국 rivers",
    ],
)
def test_pieces_are_the_text_between_their_offsets(vocabulary, text):
    """They cover all letters and marks once, in order, with no white space at either end."""
    tokenizer = SentencePieceTokenizer(vocabulary)
    ids, starts, ends = (column.to_list()[0] for column in tokenizer.tokenize_with_offsets([text]))
    assert ids == tokenizer([text]).to_list()[0]
    covered = set()
    for piece, start, end in zip(ids, starts, ends):
        assert 0 <= start <= end <= len(text)
        assert text[start:end] == text[start:end].strip() or not text[start:end].strip()
        if start < end and vocabulary.tokens[piece] != "▁":
            covered.update(range(start, end))
            normalized = preprocess(text[start:end], True, True).replace(" ", "")
            whole = vocabulary.tokens[piece].removeprefix("▁")
            if piece != vocabulary.unk_id and len(text[start:end]) == len(normalized):
                assert whole == normalized
    letters = {place for place, character in enumerate(text) if character.isalnum()}
    assert letters <= covered


def test_offsets_of_a_batch_are_those_of_each_text(vocabulary):
    tokenizer, texts = SentencePieceTokenizer(vocabulary), ["", "the house", " ", "a river, 1,990", "", "stone"]
    together = [column.to_list() for column in tokenizer.tokenize_with_offsets(texts)]
    for index, text in enumerate(texts):
        alone = [column.to_list()[0] for column in tokenizer.tokenize_with_offsets([text])]
        assert [column[index] for column in together] == alone
    assert_nothing_of_nothing(tokenizer)


def test_it_works_in_tf_data_in_functions_and_in_a_saved_model(vocabulary, tmp_path):
    texts = [f"the house {number}, river" for number in range(20)]
    assert_works_anywhere(SentencePieceTokenizer(vocabulary), texts, tmp_path)


def test_the_vocabulary_is_read_without_the_package(vocabulary, processor, tmp_path):
    path = str(tmp_path / "spiece.model")
    vocabulary.to_file(path)
    again = Vocabulary.from_file(path)
    assert isinstance(again, SentencePieceVocabulary) and again.fingerprint == vocabulary.fingerprint
    assert again.tokens == [processor.id_to_piece(index) for index in range(processor.get_piece_size())]
    assert pickle.loads(pickle.dumps(again)).fingerprint == again.fingerprint
    assert isinstance(make_tokenizer(again), SentencePieceTokenizer)
    starts = [token.startswith("▁") for token in again.tokens]
    assert any(starts) and not again.is_continuation[starts].any() and not again.is_continuation[again.ids[","]]
    assert again.is_continuation.any() and not again.is_continuation[:5].any()


@pytest.mark.parametrize("broken", [b"\x0a\xff\xff", b"hello", b"\x0a\x05\x0a\x03abc"])
def test_a_broken_file_is_refused_in_one_line(tmp_path, broken):
    (tmp_path / "spiece.model").write_bytes(broken)
    with pytest.raises(UserError, match="spiece.model: (is not a complete SentencePiece model|needs <pad>)"):
        Vocabulary.from_file(str(tmp_path / "spiece.model"))


def test_pieces_are_appended_as_words():
    class Own(SentencePieceVocabulary):
        def __init__(self):
            pass

    append = Own().appended
    assert append("The ", "▁cat") == append("The", "▁cat") == "The cat"
    assert append("The cat ", "s") == "The cats" and append("", "▁The") == "The"


def test_sizes_and_texts_that_cannot_be_learned_are_refused():
    with pytest.raises(UserError, match="needs words to learn a vocabulary from"):
        learn_sentencepiece([" ", ""], 100)
    with pytest.raises(UserError, match="The vocabulary's size"):
        learn_sentencepiece(sentences(WORDS), 10)


def test_a_size_beyond_the_trainers_numbers_is_no_error():
    """It would end in a traceback or, from 2e9 on, in a training that never ends."""
    assert 20 < len(learn_sentencepiece(["the stone house of the river"] * 20, 4 * 10**11)) < 60


def test_text_without_full_stops_is_learned_from_too():
    """The trainer skips long sentences, so lower-case text without punctuation, or Thai, would teach nothing."""
    learned = learn_sentencepiece(["the stone house of the river " * 400, "ภาษาไทย" * 400], 60)
    assert {"▁river", "ท"} <= learned.ids.keys()


def test_only_sentencepiece_looks_at_the_piece_before():
    """Whole-word masks and tagged words must be the same words; WordPiece's follow from the ## alone."""
    own = sentencepiece_vocabulary(["▁", "▁in", "(", "paris", ")", "s", "ian"])
    row = ["[CLS]", "▁in", "▁", "(", "paris", "ian", ")", "s", "▁", "<unk>", "[SEP]"]
    expected = [row.index("("), row.index("ian"), row.index("<unk>")]
    ids = tf.constant([[own.ids[piece] for piece in row]])
    assert tf.where(continues_word(own, ids))[:, 1].numpy().tolist() == expected
    pieces = Vocabulary([*SPECIAL_TOKENS, "(", "##s"])
    assert continues_word(pieces, tf.constant([6, 5, 6, 3, 6])).numpy().tolist() == [True, False, True, False, True]


def test_words_are_masked_as_they_are_tagged():
    """A "▁" would be masked without its word, and a word after punctuation only together with it."""
    own = sentencepiece_vocabulary(["▁", "(", "paris", "ian"])
    ids = tf.constant([[own.ids[piece] for piece in ("[CLS]", "▁", "(", "paris", "ian", "[SEP]")]] * 64)
    masking = DynamicMasking(MaskingConfig(unit="word", share=0.34), 2, own, seed=1)
    masked = masking(ids, tf.fill([64], 6), tf.range(64, dtype=tf.int64))
    assert {tuple(row) for row in masked["masked_lm_positions"].numpy().tolist()} == {(1, 2), (3, 4)}
