"""T5's tokenizer in the graph is the published one, sentinels in texts included; its detokenizer; and its files."""

import json
import random
import re

import pytest
import tensorflow as tf
from any_tokenizer import assert_nothing_of_nothing, assert_published, sentences
from goldens import run_peer
from hostile_texts import HOSTILE, random_hostile

from keras_bert.core.errors import UserError
from keras_bert.inputs.rows import PieceSpans, padded_rows
from keras_bert.text.detokenizer import Detokenizer
from keras_bert.text.sentencepiece_vocabulary import SentencePieceVocabulary, unigram_model
from keras_bert.text.t5_pieces import T5Tokenizer
from keras_bert.text.t5_vocabulary import T5Vocabulary
from keras_bert.text.tokenizers import make_tokenizer
from keras_bert.text.vocabulary import Vocabulary, read_tokenizer_settings, vocabulary_kind
from keras_bert.text.vocabulary_learning import learn_t5_pieces

sentencepiece = pytest.importorskip("sentencepiece")

WORDS = "the house of a River, it's cafés 1990 2,000 é 中文 的 “quoted” aaa bbb ½ 🙂 --- ... ﬁne Å ＡＢＣ".split(" ")
SENTINELS = [f"<extra_id_{number}>" for number in (0, 1, 99)]
PARTS = [*WORDS, *SENTINELS, "<extra_id_100>", "<extra_id_00>", "</s>", " ", "  ", "\n", "\t", "\u00a0", "\u200b", "\u0301", "▁"]  # noqa: E501  # fmt: skip
SPACES = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
FIRST = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
SENTINEL = re.compile(r"(<extra_id_(?:\d|[1-9]\d)>)")


@pytest.fixture(scope="module")
def vocabulary():
    """Learned as T5's was, with SentencePiece's own normalization."""
    return learn_t5_pieces(sentences(WORDS), 210)


@pytest.mark.parametrize("size", [50, 104])
def test_a_size_that_is_too_small_is_the_one_given(size):
    """The message would name the size without sentinels, and an option that `vocab` lacks."""
    with pytest.raises(UserError, match=f"The vocabulary's size: needs .* Received: {size}. Give a larger size.$"):
        learn_t5_pieces(sentences(WORDS, 40), size)


def published(vocabulary, text):
    """`(ids, starts, ends)`: sentinels are cut out, and SentencePiece splits the text between them."""
    processor, rows, place = sentencepiece.SentencePieceProcessor(model_proto=vocabulary.model), [], 0
    for part in SENTINEL.split(text):
        if SENTINEL.fullmatch(part):
            number = int(re.sub(r"\D", "", part))
            rows.append((processor.get_piece_size() + 99 - number, place, place + len(part)))
        else:
            content = part.encode("utf-8")
            for piece in processor.encode(part, out_type="proto").pieces:
                start, end = (len(content[:index].decode("utf-8")) for index in (piece.begin, piece.end))
                surface = part[start:end]
                start += len(surface) - len(surface.lstrip(SPACES))
                rows.append((piece.id, place + start, place + end))
        place += len(part)
    return [list(column) for column in zip(*rows)] or [[], [], []]


def test_ids_and_offsets_are_the_published_ones(vocabulary):
    """Also for sentinels side by side and within words; other special tokens are text; no byte breaks it."""
    rng = random.Random(1)
    texts = ["".join(rng.choices(PARTS, k=rng.randint(0, 9))) for _ in range(1500)]
    texts += [*HOSTILE, *random_hostile(300, seed=3), "a<extra_id_0>b", "<extra_id_1> <extra_id_0> , the ", ""]
    tokenizer = T5Tokenizer(vocabulary)
    assert_published(tokenizer, texts, lambda text: published(vocabulary, text))
    assert_nothing_of_nothing(tokenizer)


def test_texts_come_back_in_the_graph_and_in_a_saved_model(vocabulary, tmp_path):
    """Normalized, with one space between words; special tokens and rows without a piece are not text."""
    tokenizer = T5Tokenizer(vocabulary.padded(len(vocabulary) + 3))
    module, detokenizer = tf.Module(), Detokenizer(tokenizer)
    module.tokenizer, module.detokenizer = tokenizer, detokenizer
    module.back = tf.function(
        lambda texts: detokenizer(tokenizer(texts).to_tensor()), input_signature=[tf.TensorSpec([None], tf.string)]
    )
    tf.saved_model.save(module, str(tmp_path / "saved"))
    texts = ["the  house,<extra_id_0>of ﬁne Å", " it's 1990", "", "unheard"]
    expected = ["the house, of fine Å", "it's 1990", "", "unheard"]
    served = tf.saved_model.load(str(tmp_path / "saved")).back(tf.constant(texts))
    assert [text.decode() for text in served.numpy()] == expected
    own = [vocabulary.ids[token] for token in ("▁the", "</s>", "<extra_id_3>", "<pad>")]
    assert detokenizer.texts([[*own, len(vocabulary) + 1]]) == ["the"]


def test_rows_end_in_the_end_of_the_text_and_begin_with_no_token(vocabulary):
    first, second = (T5Tokenizer(vocabulary)([text]) for text in ("the house", "of"))
    rows = padded_rows([PieceSpans.of(first), PieceSpans.of(second)], vocabulary)
    expected = [*first.to_list()[0], 1, *second.to_list()[0], 1]
    assert rows["input_word_ids"].numpy().tolist() == [expected]
    single = padded_rows([PieceSpans.of(first)], vocabulary)["input_word_ids"].numpy().tolist()
    assert single == [[*first.to_list()[0], 1]]


def test_its_file_is_told_from_alberts_and_comes_back(vocabulary, tmp_path):
    path, other = tmp_path / "spiece.model", tmp_path / "other.model"
    vocabulary.to_file(path)
    assert path.read_bytes() == vocabulary.model and not (tmp_path / "tokenizer_config.json").exists()
    assert vocabulary_kind(path) is T5Vocabulary
    other.write_bytes(unigram_model([(token, 0.0) for token in ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]")], b""))
    assert vocabulary_kind(other) is SentencePieceVocabulary
    with pytest.raises(UserError, match="needs a model that begins with <pad> </s> <unk>"):
        T5Tokenizer(other)
    again = Vocabulary.from_file(path)
    assert again.tokens == vocabulary.tokens and again.fingerprint == vocabulary.fingerprint
    assert (again.pad_id, again.sep_id, again.unk_id) == (0, 1, 2)
    assert again.tokens[-1] == "<extra_id_0>" and again.sentinel_ids[99] == len(again) - 100 == again.num_pieces - 100


def test_another_number_of_sentinels_is_kept(vocabulary, tmp_path):
    few = T5Vocabulary(vocabulary.model, sentinels=2)
    few.to_file(tmp_path / "spiece.model")
    again = Vocabulary.from_file(tmp_path / "spiece.model")
    assert again.tokens == few.tokens and again.fingerprint == few.fingerprint != vocabulary.fingerprint
    assert len(few) == len(vocabulary) - 98 and few.tokens[-2:] == ["<extra_id_1>", "<extra_id_0>"]
    none = T5Vocabulary(vocabulary.model, sentinels=0)
    assert few.unk_id not in few.sentinel_ids and T5Tokenizer(none)(["<extra_id_0>"]).to_list()[0][-1] < len(none)


def tokenizer_json(vocabulary, normalizer=None):
    processor = sentencepiece.SentencePieceProcessor(model_proto=vocabulary.model)
    scores = {processor.id_to_piece(row): processor.get_score(row) for row in range(processor.get_piece_size())}
    pieces = [[token, scores.get(token, 0.0)] for token in vocabulary.tokens]
    return {"normalizer": normalizer, "model": {"type": "Unigram", "unk_id": 2, "vocab": pieces}}


def test_pieces_of_a_tokenizer_json_are_a_model(vocabulary, tmp_path):
    """transformers 5 writes no other file."""
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(tokenizer_json(vocabulary)), "utf-8")
    read = Vocabulary.from_file(path)
    assert isinstance(read, T5Vocabulary) and read.tokens == vocabulary.tokens
    assert read.sentinel_ids == vocabulary.sentinel_ids
    texts = ["the house of a River", "it's <extra_id_1> 1990", "unheard 的"]  # No normalization changes these.
    assert T5Tokenizer(read)(texts).to_list() == T5Tokenizer(vocabulary)(texts).to_list()


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"tokenizer_class": "AlbertTokenizer"}, "needs T5Tokenizer for spiece.model. Received: AlbertTokenizer"),
        ({"tokenizer_class": 5}, "needs T5Tokenizer for spiece.model. Received: 5"),
        ({"do_lower_case": True}, "needs text as it is for a SentencePiece model like T5's"),
        ({"extra_ids": "100"}, "needs a whole number of 0 or more as extra_ids. Received: '100'"),
        ({"extra_ids": -1}, "Received: -1"),
    ],
)
def test_other_tokenizers_are_refused_in_one_line(fields, message, vocabulary, tmp_path):
    vocabulary.to_file(tmp_path / "spiece.model")
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(fields), "utf-8")
    with pytest.raises(UserError) as error:
        Vocabulary.from_file(tmp_path / "spiece.model")
        read_tokenizer_settings(str(tmp_path))
    assert message in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    "piece", [["a", None], ["a", "0"], [3, 0.0], ["a", float("nan")], ["a", -1e39], ["a", 10**400], ["\ud800", 0.0]]
)
def test_pieces_without_a_text_or_a_score_are_no_model(piece, vocabulary, tmp_path):
    content = tokenizer_json(vocabulary)
    content["model"]["vocab"].append(piece)
    (tmp_path / "tokenizer.json").write_text(json.dumps(content), "utf-8")
    with pytest.raises(UserError, match="tokenizer.json: needs"):
        Vocabulary.from_file(tmp_path / "tokenizer.json")


def test_a_model_of_other_first_pieces_is_refused_in_one_line():
    with pytest.raises(UserError, match=r"needs a model that begins with <pad> </s> <unk>. Received: <unk> <s>\. Give"):
        T5Vocabulary(unigram_model([("<unk>", 0.0), ("<s>", 0.0)], b""))


@pytest.mark.live
def test_ids_and_texts_are_those_of_transformers_from_the_same_file(vocabulary, tmp_path):
    vocabulary.to_file(tmp_path / "spiece.model")
    (tmp_path / "config.json").write_text('{"model_type": "t5"}', "utf-8")
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "T5Tokenizer"}', "utf-8")
    # There "</s>" is a token, and the other parts are not split as SentencePiece itself does.
    rng, parts = random.Random(2), [part for part in PARTS if part not in ("</s>", "▁", "\u0301")]
    texts = [*sentences(WORDS, 50), *("".join(rng.choices(parts, k=rng.randint(0, 9))) for _ in range(500))]
    (tmp_path / "texts.json").write_text(json.dumps(texts), "utf-8")
    run_peer("of_tokenizers.py", "ids", tmp_path, tmp_path / "texts.json", tmp_path / "ids.json")
    received = json.loads((tmp_path / "ids.json").read_text("utf-8"))
    settings, _ = read_tokenizer_settings(str(tmp_path))
    tokenizer = make_tokenizer(Vocabulary.from_file(tmp_path / "spiece.model"), settings)
    rows = tokenizer(texts)
    assert received["single"] == [[*row, 1] for row in rows.to_list()]
    assert received["pair"] == [*received["single"][0], *received["single"][1]]
    assert Detokenizer(tokenizer).texts(rows.to_tensor().numpy()) == received["texts"]
