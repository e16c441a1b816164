"""XLNet's tokenization: ALBERT's algorithm over cased texts, with special tokens at the end of rows."""

import io
import json

import pytest
from albert_tokenization import albert_ids
from hostile_texts import HOSTILE, random_hostile

from keras_bert.core.errors import UserError
from keras_bert.text.sentencepiece_vocabulary import SentencePieceVocabulary
from keras_bert.text.tokenizers import make_tokenizer
from keras_bert.text.vocabulary import Vocabulary, read_tokenizer_settings, vocabulary_kind
from keras_bert.text.xlnet_vocabulary import XlnetVocabulary

sentencepiece = pytest.importorskip("sentencepiece")


def train(**options):
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["It was 1990, and 20, or 7,000, in the Café of London; then 55, 1990, 20, 7,000"] * 50),
        model_writer=written,
        vocab_size=70,
        hard_vocab_limit=False,
        minloglevel=2,
        **options,
    )
    return written.getvalue()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A spiece.model trained as XLNet's was: with these symbols, and SentencePiece's own normalization."""
    model = train(
        control_symbols=["<cls>", "<sep>", "<pad>", "<mask>", "<eod>"],
        user_defined_symbols=["<eop>", ".", "(", ")", '"', "-", "£", "€", "0,", "90,", "▁1990,"],
    )
    path = tmp_path_factory.mktemp("xlnet")
    (path / "spiece.model").write_bytes(model)
    return path


def test_ids_are_those_of_the_published_algorithm(folder):
    """Quotes, accents, numbers before a comma, special tokens in texts, and bytes that are not text."""
    vocabulary = Vocabulary.from_file(str(folder / "spiece.model"))
    assert isinstance(vocabulary, XlnetVocabulary)
    assert vocabulary.tokens[:9] == "<unk> <s> </s> <cls> <sep> <pad> <mask> <eod> <eop>".split()
    processor = sentencepiece.SentencePieceProcessor(model_file=str(folder / "spiece.model"))
    own = ["``It's'' THE Café", "1990, 20, x1990,", "<cls> <eop> <sep>", "", " ", b"\xff\xfecaf\xc3\xa9", "ﬁ ㎏ ½"]
    texts = [text if isinstance(text, bytes) else text.encode("utf-8", "ignore") for text in [*own, *HOSTILE]]
    texts += [text.encode("utf-8", "ignore") for text in random_hostile(200, seed=6) if isinstance(text, str)]
    settings, notes = read_tokenizer_settings(str(folder))
    received = make_tokenizer(vocabulary, settings).tokenize(texts).to_list()
    for text, ids in zip(texts, received, strict=True):
        assert ids == albert_ids(processor, text, lower_case=False, quotes=True), text[:80]
    assert not settings.lower_case and not notes


def test_its_file_is_told_from_alberts(tmp_path):
    """Both are called spiece.model."""
    (tmp_path / "spiece.model").write_bytes(train(control_symbols=["[CLS]", "[SEP]", "[MASK]"], pad_id=3))
    assert vocabulary_kind(tmp_path / "spiece.model") is SentencePieceVocabulary


@pytest.mark.parametrize(
    "config, wrong",
    [({"keep_accents": True}, "keep_accents True"), ({"tokenizer_class": "T5Tokenizer"}, "T5Tokenizer")],
)
def test_other_tokenizers_are_refused_in_one_line(config, wrong, folder, tmp_path):
    (tmp_path / "spiece.model").write_bytes((folder / "spiece.model").read_bytes())
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config), "utf-8")
    with pytest.raises(UserError, match=f"needs XLNet's tokenizer for spiece.model. Received: {wrong}, which"):
        read_tokenizer_settings(str(tmp_path))


def test_the_settings_come_back(folder, tmp_path):
    vocabulary = Vocabulary.from_file(str(folder / "spiece.model"))
    settings, _ = read_tokenizer_settings(str(folder))
    vocabulary.to_file(str(tmp_path / "spiece.model"))
    fields = vocabulary.tokenizer_config(settings, 512)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(fields), "utf-8")
    assert (fields["bos_token"], fields["eos_token"], fields["cls_token"]) == ("<s>", "</s>", "<cls>")
    assert read_tokenizer_settings(str(tmp_path)) == (settings, [])
