"""XLM-RoBERTa's and CamemBERT's tokenizers in the graph split any text as the published ones do; and their files."""

import json
import random
import re

import pytest
import tensorflow as tf
import tokenizers
from any_tokenizer import assert_nothing_of_nothing, assert_published, assert_works_anywhere, sentences
from fairseq_numbering import PublishedTokenizer
from goldens import run_peer
from hostile_texts import HOSTILE, random_hostile
from tokenizers import pre_tokenizers
from tokenizers.models import Unigram

from keras_bert.core.errors import UserError
from keras_bert.text.fairseq_pieces import FairseqTokenizer
from keras_bert.text.fairseq_vocabulary import CAMEMBERT, XLM_ROBERTA, FairseqVocabulary
from keras_bert.text.sentencepiece_vocabulary import unigram_model
from keras_bert.text.standalone_tokenizer import SPACES
from keras_bert.text.vocabulary import Vocabulary, read_tokenizer_settings
from keras_bert.text.vocabulary_learning import learn_fairseq_pieces

pytest.importorskip("sentencepiece")
WORDS = "the house of a River, it's cafés 1990 2,000 é 中文 的 “quoted” aaa bbb ½ 🙂 --- ... ﬁne Å ＡＢＣ".split(" ")
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", "[MASK]", "<s>NOTUSED"]
PARTS = [*WORDS, *SPECIAL, " ", "  ", "\n", "\t", "\u00a0", "\u2028", "\u200b", "\u200d", "\u0301", "\x00", "\x01", "▁", "\ufeff", "\u00ad"]  # noqa: E501  # fmt: skip
DICTIONARIES = (XLM_ROBERTA, CAMEMBERT)


@pytest.fixture(scope="module")
def learned():
    return learn_fairseq_pieces(sentences(WORDS), 110)


@pytest.fixture(scope="module", params=DICTIONARIES, ids=lambda dictionary: dictionary.tokenizer)
def vocabulary(request, learned):
    return FairseqVocabulary(learned.model, "learned", request.param)


def assert_split_as_published(vocabulary, texts):
    published = PublishedTokenizer(vocabulary.model, vocabulary.dictionary.tokenizer)
    assert_published(FairseqTokenizer(vocabulary), texts, published.encode)


def test_hostile_texts_are_split_as_published(vocabulary):
    """NUL, bytes that are not UTF-8, joiners, and spaces of every kind."""
    assert_split_as_published(vocabulary, [*HOSTILE, *random_hostile(500, seed=3)])


def test_ids_and_offsets_are_the_published_ones(vocabulary):
    """Ligatures and full-width letters are replaced, special tokens are text, and spaces belong to no piece."""
    rng = random.Random(1)
    texts = ["".join(rng.choice(PARTS) for _ in range(rng.randint(0, 9))) for _ in range(3000)]
    assert_split_as_published(vocabulary, [text.encode() for text in texts])


def test_a_long_line_and_a_batch_of_nothing(vocabulary):
    assert_split_as_published(vocabulary, ["a" * 3001 + " b" * 3000 + "é"])
    tokenizer = FairseqTokenizer(vocabulary)
    assert_nothing_of_nothing(tokenizer)
    assert tokenizer(["", " \n"]).to_list() == [[], []]


def test_special_tokens_stand_where_fairseq_has_them(learned):
    size = len(learned)
    ids = {name: getattr(learned, f"{name}_id") for name in ("cls", "pad", "sep", "unk", "mask")}
    assert ids == {"cls": 0, "pad": 1, "sep": 2, "unk": 3, "mask": size - 1}
    french = FairseqVocabulary(learned.model, "learned", CAMEMBERT)
    ids = {name: getattr(french, f"{name}_id") for name in ids}
    assert ids == {"cls": 5, "pad": 1, "sep": 6, "unk": 3, "mask": size + 2} and len(french) == size + 3
    assert french.fingerprint != learned.fingerprint
    published = PublishedTokenizer(learned.model, XLM_ROBERTA.tokenizer)
    assert [published.id_of(token) for token in learned.tokens[:-1]] == list(range(size - 1))
    assert published.mask_id == learned.mask_id


def test_no_text_is_a_special_token(vocabulary):
    special = {vocabulary.cls_id, vocabulary.sep_id, vocabulary.pad_id, vocabulary.mask_id}
    for ids in FairseqTokenizer(vocabulary)(SPECIAL).to_list():
        assert ids and not special & {*ids}


def test_it_works_in_tf_data_in_functions_and_in_a_saved_model(vocabulary, tmp_path):
    texts = [f"the house {number}, it's ﬁne 中文" for number in range(20)]
    assert_works_anywhere(FairseqTokenizer(vocabulary), texts, tmp_path)


def test_one_vocabulary_is_learned_from_the_same_text(learned):
    assert learn_fairseq_pieces(sentences(WORDS), 110).fingerprint == learned.fingerprint
    assert len(learned) <= 110 and {"▁house", "▁ABC", "R"} <= learned.ids.keys()
    with pytest.raises(UserError, match=r"The vocabulary's size: needs at least \d+ for .* Received: 20\.") as refused:
        learn_fairseq_pieces(sentences(WORDS), 20)
    least = int(re.search(r"\d+", str(refused.value))[0])
    assert len(learn_fairseq_pieces(sentences(WORDS), least)) == least
    with pytest.raises(UserError, match="needs words to learn"):
        learn_fairseq_pieces(["", ""], 400)


def test_a_file_is_written_bit_for_bit_and_read_as_of_its_dictionary(vocabulary, tmp_path):
    """CamemBERT's file has the same name as XLM-RoBERTa's, but other ids."""
    path = str(tmp_path / "sentencepiece.bpe.model")
    vocabulary.to_file(path)
    assert (tmp_path / "sentencepiece.bpe.model").read_bytes() == vocabulary.model
    again = Vocabulary.from_file(path)
    assert isinstance(again, FairseqVocabulary) and again.dictionary == vocabulary.dictionary
    assert again.fingerprint == vocabulary.fingerprint and again.tokens == vocabulary.tokens


def test_the_tokenizer_reads_a_file_of_any_name(learned, tmp_path):
    """By its name, such a file would be taken for ALBERT's."""
    learned.to_file(str(tmp_path / "own.model"))
    assert FairseqTokenizer(tmp_path / "own.model").vocabulary.tokens == learned.tokens


def test_the_model_type_tells_the_dictionary_where_the_tokenizer_does_not(learned, tmp_path):
    """As in camembert-base, whose tokenizer_config.json has only the length."""
    learned.to_file(str(tmp_path / "sentencepiece.bpe.model"))
    (tmp_path / "tokenizer_config.json").write_text('{"model_max_length": 512}', "utf-8")
    (tmp_path / "config.json").write_text('{"model_type": "camembert"}', "utf-8")
    assert Vocabulary.from_file(tmp_path / "sentencepiece.bpe.model").dictionary is CAMEMBERT


def tokenizer_json(vocabulary, normalizer):
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor(model_proto=vocabulary.model)
    scores = {processor.id_to_piece(row): processor.get_score(row) for row in range(processor.get_piece_size())}
    pieces = [[token, scores.get(token, 0.0)] for token in vocabulary.tokens]
    return {"normalizer": normalizer, "model": {"type": "Unigram", "unk_id": 3, "vocab": pieces}}


def test_pieces_of_a_tokenizer_json_are_a_model(vocabulary, tmp_path):
    """transformers 5 writes no other file."""
    (tmp_path / "tokenizer.json").write_text(json.dumps(tokenizer_json(vocabulary, None)), "utf-8")
    read = Vocabulary.from_file(tmp_path / "tokenizer.json")
    assert read.dictionary is vocabulary.dictionary and read.tokens == vocabulary.tokens
    texts = ["the house of a River", "it's 1990", "unheard 的"]  # No normalization changes these.
    assert FairseqTokenizer(read)(texts).to_list() == FairseqTokenizer(vocabulary)(texts).to_list()
    assert_split_as_published(read, [*texts, "  ﬁne  Å"])


def test_all_white_space_separates_words_where_nothing_normalizes_texts(vocabulary, tmp_path):
    """As in transformers 5, which splits texts at it first; a tab used to be an unknown piece of its word."""
    content = tokenizer_json(vocabulary, None)
    (tmp_path / "tokenizer.json").write_text(json.dumps(content), "utf-8")
    peer = tokenizers.Tokenizer(Unigram([tuple(piece) for piece in content["model"]["vocab"]], vocabulary.unk_id))
    peer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    texts = [f"the{space}house" for space in SPACES] + ["\n the\u3000\u2028house ", "the\x00house"]
    read = Vocabulary.from_file(tmp_path / "tokenizer.json")
    read.to_file(str(tmp_path / "sentencepiece.bpe.model"))
    for tokenizer in (FairseqTokenizer(read), FairseqTokenizer(tmp_path / "sentencepiece.bpe.model")):
        columns = (column.to_list() for column in tokenizer.tokenize_with_offsets(tf.constant(texts)))
        for text, ids, starts, ends in zip(texts, *columns, strict=True):
            expected = peer.encode(text)
            assert (ids, list(zip(starts, ends))) == (expected.ids, expected.offsets), text
        assert tokenizer(texts[:1]).to_list() == [peer.encode(texts[0]).ids]


@pytest.mark.parametrize(
    "normalizer, message",
    [
        ({"type": "Lowercase"}, "Received: Lowercase, which is not supported. Put sentencepiece.bpe.model beside"),
        ({"type": "Precompiled", "precompiled_charsmap": "é"}, "needs precompiled_charsmap in base64"),
        (["Precompiled"], "needs normalizers that are objects. Received: others. Put sentencepiece.bpe.model beside"),
        ({"type": "Sequence", "normalizers": [None]}, "needs normalizers that are objects"),
    ],
)
def test_another_normalizer_is_refused_in_one_line(normalizer, message, learned, tmp_path):
    (tmp_path / "tokenizer.json").write_text(json.dumps(tokenizer_json(learned, normalizer)), "utf-8")
    with pytest.raises(UserError) as error:
        Vocabulary.from_file(tmp_path / "tokenizer.json")
    assert message in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"tokenizer_class": "MBartTokenizer"}, "needs XLMRobertaTokenizer or CamembertTokenizer for sen"),
        ({"tokenizer_class": ["CamembertTokenizer"]}, "Received: ['CamembertTokenizer']"),
        ({"do_lower_case": True}, "needs text as it is for a SentencePiece model like XLM-RoBERTa's"),
    ],
)
def test_other_tokenizers_are_refused_in_one_line(fields, message, learned, tmp_path):
    learned.to_file(str(tmp_path / "sentencepiece.bpe.model"))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(fields), "utf-8")
    with pytest.raises(UserError) as error:
        read_tokenizer_settings(str(tmp_path))
    assert message in str(error.value) and "\n" not in str(error.value)


def test_a_model_of_other_first_pieces_is_refused_in_one_line(tmp_path):
    path = tmp_path / "sentencepiece.bpe.model"
    path.write_bytes(unigram_model([("<pad>", 0.0), ("<unk>", 0.0), ("[CLS]", 0.0), ("a", -1.0)], b""))
    with pytest.raises(UserError, match=r"needs a model that begins with <unk> <s> </s>. Received: <pad> <unk> \[CLS"):
        Vocabulary.from_file(path)
    path.write_bytes(b"\x0a\xff")
    with pytest.raises(UserError, match="is not a complete SentencePiece model"):
        Vocabulary.from_file(path)


@pytest.mark.live
def test_ids_are_those_of_transformers_from_the_same_file(vocabulary, tmp_path):
    """For ordinary text: on some other text transformers' tokenizer differs from SentencePiece itself."""
    vocabulary.to_file(str(tmp_path / "sentencepiece.bpe.model"))
    config = {"model_type": vocabulary.dictionary.model_type}
    (tmp_path / "config.json").write_text(json.dumps(config), "utf-8")
    (tmp_path / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": vocabulary.dictionary.tokenizer}), "utf-8"
    )
    texts = [*sentences(WORDS), "ﬁne Å ＡＢＣ", "unheard 语"]
    (tmp_path / "texts.json").write_text(json.dumps(texts), "utf-8")
    run_peer("of_tokenizers.py", "ids", tmp_path, tmp_path / "texts.json", tmp_path / "ids.json")
    received = json.loads((tmp_path / "ids.json").read_text("utf-8"))
    rows = FairseqTokenizer(vocabulary)(texts).to_list()
    start, between, end, _ = vocabulary.row_pattern
    assert received["single"] == [[*start, *row, *end] for row in rows]
    assert received["pair"] == [*start, *rows[0], *between, *rows[1], *end]
    assert received["mask"] == vocabulary.mask_id
