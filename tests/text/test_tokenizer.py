"""BERT's tokenization in the graph is the original's: for any text, plain ones by a short cut, in every setting."""

import itertools
import json
import random
import unicodedata

import pytest
import tensorflow as tf
from hostile_texts import HOSTILE, random_hostile
from original_tokenization import encode
from tokenizers.implementations import BertWordPieceTokenizer

from keras_bert.core.errors import UserError
from keras_bert.text.characters import recorded_unicode_version
from keras_bert.text.sentencepiece_vocabulary import unigram_model
from keras_bert.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from keras_bert.text.wordpiece import MAX_CHARACTERS_PER_WORD, PlainTokenizer, WordPieceTokenizer

PIECES = "una ##ffa ##ble aff ##able stra ##sse ##ss caf ##fe ca mask cls bo ##om ab ##ab οδυσ ##σευς ##xx ##xxx xx"


@pytest.fixture(scope="module")
def vocabulary():
    """Small and rich: most characters up to U+30FF, alone and with ##, some ideographs, some longer pieces."""
    tokens = dict.fromkeys(SPECIAL_TOKENS)
    characters = [chr(code) for code in range(33, 0x3100) if unicodedata.ucd_3_2_0.category(chr(code))[0] in "LNPSM"]
    characters += list("中文一二豈") + [chr(0x20000), chr(0x10428), chr(0x302E), chr(0x1D165)]
    for character in characters:
        tokens[character] = tokens["##" + character] = None
    tokens.update(dict.fromkeys(PIECES.split()))
    # Some characters stay out, so that words mix known and unknown ones.
    return Vocabulary([token for token in tokens if token.removeprefix("##") not in tuple("qü½б")])


@pytest.fixture(scope="module", params=[True, False], ids=["uncased", "cased"])
def tokenizer(request, vocabulary):
    return WordPieceTokenizer(vocabulary, lower_case=request.param)


def with_offsets(tokenizer, texts):
    """`(ids, starts, ends)` of each text."""
    columns = tokenizer.tokenize_with_offsets(tf.constant(texts, tf.string, shape=[len(texts)]))
    return list(zip(*(column.to_list() for column in columns)))


def assert_equal_to_original(tokenizer, texts):
    expected = [encode(text, tokenizer.vocabulary.ids, tokenizer.lower_case) for text in texts]
    for text, ours, original in zip(texts, with_offsets(tokenizer, texts), expected):
        assert ours == original, text
    assert tokenizer.tokenize(texts).to_list() == [ids for ids, _, _ in expected]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_texts(tokenizer, text):
    assert_equal_to_original(tokenizer, [text])


@pytest.mark.skipif(
    unicodedata.unidata_version < recorded_unicode_version(), reason="broken bytes make characters that it lacks"
)
def test_random_hostile_texts(tokenizer):
    assert_equal_to_original(tokenizer, random_hostile(3000, seed=7))


ATOMS = [*"abAsé中Σß-'–#\u0301\u200b\ufffd\x01\x7f \t\r\n\xa0\u2028", "##"]


@pytest.mark.parametrize("seed", range(8))
def test_any_vocabulary(seed):
    """A piece that no word contains, such as one with a space, must not swallow the next word or split one."""
    generator = random.Random(seed)
    pieces = dict.fromkeys(["a", "##b", "is", " a", "##"][: generator.randrange(6)])
    for _ in range(generator.randrange(1, 14)):
        pieces[generator.choice(["", "##"]) + "".join(generator.choices(ATOMS, k=generator.randrange(1, 4)))] = None
    texts = ["".join(generator.choices([*ATOMS, "is"], k=generator.randrange(8))) for _ in range(60)]
    texts += [text for piece in pieces for text in (piece, f"a{piece}b", f" {piece.removeprefix('##')} a")]
    vocabulary = Vocabulary([*SPECIAL_TOKENS, *pieces])
    assert_equal_to_original(WordPieceTokenizer(vocabulary, seed % 2 == 0), [text.encode() for text in texts])


def test_random_bytes(tokenizer):
    """From the bytes on which UTF-8 decoders disagree."""
    generator = random.Random(8)
    pool = bytes.fromhex("ef bb bf f0 f4 90 80 8f 9f ed a0 c0 c1 c3 a9 e0 e2 f8 ff 41 20")
    texts = [bytes(generator.choices(pool, k=generator.randrange(14))) for _ in range(3000)]
    assert_equal_to_original(tokenizer, texts)


@pytest.mark.slow
@pytest.mark.skipif(unicodedata.unidata_version != recorded_unicode_version(), reason="made by another Unicode version")
def test_every_code_point(tokenizer):
    """Each stands between two letters once: is it deleted, a space, one letter, several, or a word of its own?"""
    characters = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    rows = ["a".join(["", *characters[start : start + 60], ""]).encode() for start in range(0, len(characters), 60)]
    for start in range(0, len(rows), 1024):
        assert_equal_to_original(tokenizer, rows[start : start + 1024])


def test_a_text_is_tokenized_alike_in_any_company(tokenizer):
    """Rare characters switch branches for the whole batch, and words must not run over the end of a text."""
    together = with_offsets(tokenizer, HOSTILE)
    assert together == [with_offsets(tokenizer, [text])[0] for text in HOSTILE]
    order = random.Random(3).sample(range(len(HOSTILE)), len(HOSTILE))
    assert [together[place] for place in order] == with_offsets(tokenizer, [HOSTILE[place] for place in order])


def test_a_piece_is_found_in_the_text_by_its_offsets(vocabulary):
    text = "  Una\u0301ffable, ΟΔΥΣΣΕΥΣ!"
    ids, starts, ends = with_offsets(WordPieceTokenizer(vocabulary), [text])[0]
    pieces = [vocabulary.tokens[index] for index in ids]
    assert pieces == ["una", "##ffa", "##ble", ",", "οδυσ", "##σευς", "!"]
    spans = [text[start:end] for start, end in zip(starts, ends)]
    assert spans == ["Una", "ffa", "ble", ",", "ΟΔΥΣ", "ΣΕΥΣ", "!"]


def test_empty_batch(tokenizer):
    assert tokenizer([]).to_list() == []
    assert [column.to_list() for column in tokenizer.tokenize_with_offsets([])] == [[], [], []]
    assert tokenizer.normalize([]).shape == [0]


@pytest.mark.slow
def test_types_and_shapes(tokenizer):
    function = tf.function(tokenizer.tokenize_with_offsets, input_signature=[tf.TensorSpec([None], tf.string)])
    for column in function(tf.constant(["a b", ""])):
        assert column.dtype == tf.int32 and column.shape == [2, None] and column.row_splits.dtype == tf.int64


def test_normalize_gives_the_words(vocabulary):
    texts = [" Héllo,\0 wörld中 ", "", "ΑΣ"]
    normalized = WordPieceTokenizer(vocabulary).normalize(texts).numpy()
    assert [text.decode() for text in normalized] == ["hello , world 中", "", "ας"]
    normalized = WordPieceTokenizer(vocabulary, lower_case=False).normalize(texts).numpy()
    assert [text.decode() for text in normalized] == ["Héllo , wörld 中", "", "ΑΣ"]


def test_in_a_parallel_dataset(tokenizer):
    dataset = tf.data.Dataset.from_tensor_slices(HOSTILE).batch(7).map(tokenizer, num_parallel_calls=4)
    assert [ids for batch in dataset for ids in batch.to_list()] == tokenizer(HOSTILE).to_list()


def save(tokenizer, folder, functions):
    """Saves `functions` copies of a function of the tokenizer and returns the size in bytes."""
    module = tf.Module()
    module.tokenizer = tokenizer
    for number in range(functions):
        tokenize = tf.function(lambda texts: tokenizer.tokenize_with_offsets(texts))
        tokenize.get_concrete_function(tf.TensorSpec([None], tf.string))
        setattr(module, f"tokenize_{number}", tokenize)
    tf.saved_model.save(module, str(folder))
    return (folder / "saved_model.pb").stat().st_size


def test_all_graphs_call_one_of_the_tokenizer(vocabulary, monkeypatch):
    """Tracing it again costs a quarter of a second for each text of a pair, signature and data set."""
    tokenizer, texts = WordPieceTokenizer(vocabulary, max_characters_per_word=77), ["unaffable", "ÅNGSTRÖM ☃", ""]
    tokenize_any, traced = tokenizer._tokenize_any, []
    monkeypatch.setattr(tokenizer, "_tokenize_any", lambda texts: traced.append(texts) or tokenize_any(texts))
    both = tf.function(lambda one, other: (tokenizer(one), tokenizer(other)))(texts[:2], texts)
    batches = list(tf.data.Dataset.from_tensors(texts).map(tokenizer.tokenize))
    assert len(traced) == 1
    expected = tokenizer.tokenize(texts).to_list()
    assert [ids.to_list() for ids in (*both, *batches)] == [expected[:2], expected, expected]


def test_in_a_saved_model(tokenizer, tmp_path):
    save(tokenizer, tmp_path, 1)
    loaded = tf.saved_model.load(str(tmp_path))
    ours, theirs = (function(tf.constant(HOSTILE)) for function in (tokenizer.tokenize_with_offsets, loaded.tokenize_0))
    assert [column.to_list() for column in ours] == [column.to_list() for column in theirs]


def test_functions_of_one_saved_model_share_the_tables(tokenizer, tmp_path):
    """Tables made inside a function would be written once per function: 0.4 MB and the whole vocabulary."""
    assert save(tokenizer, tmp_path / "two", 2) - save(tokenizer, tmp_path / "one", 1) < 150_000


def test_a_path_is_as_good_as_a_vocabulary(vocabulary, tmp_path):
    path = str(tmp_path / "vocab.txt")
    vocabulary.to_file(path)
    assert WordPieceTokenizer(path)(HOSTILE).to_list() == WordPieceTokenizer(vocabulary)(HOSTILE).to_list()
    with pytest.raises(UserError, match="nowhere.txt"):
        WordPieceTokenizer(str(tmp_path / "nowhere.txt"))


def test_a_path_of_another_kind_is_refused_in_one_line(tmp_path):
    """tensorflow-text would only say that it cannot find [UNK]."""
    pieces = ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]", "a"]
    (tmp_path / "spiece.model").write_bytes(unigram_model([(piece, -1.0) for piece in pieces], b"", 5, 1))
    with pytest.raises(UserError, match="spiece.model: needs UTF-8"):
        WordPieceTokenizer(tmp_path / "spiece.model")
    (tmp_path / "vocab.json").write_text(json.dumps({piece: row for row, piece in enumerate(pieces)}))
    with pytest.raises(UserError, match="vocab.json: needs a WordPiece vocabulary. Received: a JSON file"):
        WordPieceTokenizer(tmp_path / "vocab.json")


def test_texts_of_another_shape_are_refused(tokenizer):
    for texts in ("one text", [["a"], ["b"]]):
        with pytest.raises(ValueError, match=r"texts: needs strings of shape \[batch\]"):
            tokenizer(texts)


# Also pieces with punctuation inside, which no word can hold.
PLAIN_PIECES = (
    "a b A é É ж – ’ - ' ##' 's ##'s - ##- a-b ##-b -- # ## ### [ ] mask ##ask M ##ASK ##b ##a ##A ##é ##ж ##– aa ##aa"
)
PLAIN = Vocabulary(list(dict.fromkeys([*SPECIAL_TOKENS, *PLAIN_PIECES.split()])))


def plain_tokenizer(lower_case, vocabulary=PLAIN):
    return PlainTokenizer(vocabulary, lower_case, not lower_case, MAX_CHARACTERS_PER_WORD)


def assert_plain_equal_to_original(texts, lower_case, vocabulary=PLAIN):
    columns = plain_tokenizer(lower_case, vocabulary).tokenize_with_offsets(texts)
    for text, ours in zip(texts, zip(*(column.to_list() for column in columns)), strict=True):
        assert ours == encode(text.encode(), vocabulary.ids, lower_case), text


@pytest.mark.parametrize("lower_case", [True, False])
def test_every_plain_character_alone_and_in_a_word(lower_case):
    characters = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    accepted = plain_tokenizer(lower_case).accepts(characters).numpy()
    plain = [character for character, is_plain in zip(characters, accepted) if is_plain]
    assert len(plain) == (122 if lower_case else 713)
    # All of them are in the vocabulary, so that none hides behind [UNK].
    pieces = [piece for character in plain if not character.isspace() for piece in (character, "##" + character)]
    texts = [text for character in plain for text in (character, f"a{character}a", f" {character}{character} a")]
    assert_plain_equal_to_original(texts, lower_case, Vocabulary([*SPECIAL_TOKENS, *pieces]))


@pytest.mark.parametrize("lower_case", [True, False])
def test_random_plain_texts(lower_case):
    generator = random.Random(4)
    pool = ["a", "b", "A", "'s", "-", "#", "##", "[MASK]", "c", "–", "’", " ", "  ", "\t", "\r\n", "é", "ж"]
    texts = ["".join(generator.choices(pool, k=generator.randrange(20))) for _ in range(3000)]
    texts = [text for text, accepted in zip(texts, plain_tokenizer(lower_case).accepts(texts).numpy()) if accepted]
    assert len(texts) > (1000 if lower_case else 2900)
    assert_plain_equal_to_original(texts, lower_case)
    assert_plain_equal_to_original([text for text in texts if text.isascii()], lower_case)


def test_texts_that_are_not_plain():
    texts = [
        "a\0",
        "a\x7f",
        "\x0b",
        "\x1c",
        "\ufeff",
        "\xa0",
        "\xad",
        "e\u0301",
        "中",
        "½",
        b"a\xff",
        b"\xc3",
        "Ѐ\u0483",
    ]
    assert not plain_tokenizer(False).accepts(texts).numpy().any()
    assert plain_tokenizer(True).accepts(["é", "É", "Σ", "ж"]).numpy().tolist() == [False] * 4


def test_a_word_of_too_many_characters_is_not_plain():
    """Characters are counted, not bytes as in tensorflow-text."""
    tokenizer = plain_tokenizer(False)
    for character in "aé–":
        longest = character * MAX_CHARACTERS_PER_WORD
        texts = [longest, f"a {longest} a", longest + character, f"a {longest}{character} a"]
        assert tokenizer.accepts(texts).numpy().tolist() == [True, True, False, False]
        assert_plain_equal_to_original(texts[:2], False)


def test_plain_texts_between_others_stay_in_their_places():
    tokenizer = WordPieceTokenizer(PLAIN, lower_case=False)
    texts = ["a b", "中 a", "", "é–b", "a\0b", " a", "\u0301"]
    assert tokenizer(texts).to_list() == [encode(text.encode(), PLAIN.ids, False)[0] for text in texts]


CHARACTERS = [chr(code) for code in range(33, 0x500)] + list("中文一二豈,。")
SINGLES = Vocabulary(dict.fromkeys([*SPECIAL_TOKENS, *CHARACTERS, *(f"##{character}" for character in CHARACTERS)]))
ALL_SETTINGS = list(itertools.product([True, False], [None, True, False], [True, False]))
TEXTS = ["Ärger im Café: ÉTÉ, naïve!", "中文ABC 一二é", "İstanbul ĞÜŞ", "e\u0301 E\u0301", "豈 x豈"]


@pytest.mark.parametrize("settings", ALL_SETTINGS)
def test_equal_to_the_original_with_these_settings(settings):
    tokenizer = WordPieceTokenizer(SINGLES, *settings)
    texts = [*HOSTILE, *random_hostile(400, seed=9)]
    columns = (column.to_list() for column in tokenizer.tokenize_with_offsets(texts))
    for text, *ours in zip(texts, *columns, strict=True):
        assert tuple(ours) == encode(text, SINGLES.ids, *settings), text


@pytest.mark.parametrize("settings", ALL_SETTINGS)
def test_equal_to_hugging_faces_tokenizer(settings):
    lower_case, strip_accents, split_chinese = settings
    theirs = BertWordPieceTokenizer(
        SINGLES.ids, lowercase=lower_case, strip_accents=strip_accents, handle_chinese_chars=split_chinese
    )
    ours = WordPieceTokenizer(SINGLES, lower_case, strip_accents, split_chinese)
    assert ours(TEXTS).to_list() == [theirs.encode(text, add_special_tokens=False).ids for text in TEXTS]


def write_tokenizer_json(path, change=lambda content: None):
    """What transformers saves beside vocab.txt, or instead of it."""
    BertWordPieceTokenizer(SINGLES.ids).save(str(path))
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content)
    path.write_text(json.dumps(content), encoding="utf-8")
    return str(path)


def test_pieces_of_tokenizer_json(tmp_path):
    path = write_tokenizer_json(tmp_path / "tokenizer.json")
    assert Vocabulary.from_file(path).tokens == SINGLES.tokens


def test_tokens_that_were_added_later_have_their_ids(tmp_path):
    def add(content):
        content["added_tokens"].append({"content": "[E1]", "id": len(SINGLES)})

    path = write_tokenizer_json(tmp_path / "tokenizer.json", add)
    assert Vocabulary.from_file(path).tokens == [*SINGLES.tokens, "[E1]"]


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda content: content["model"].update(type="Unigram"), "needs a WordPiece vocabulary. Received: Unigram"),
        (lambda content: content["model"].update(continuing_subword_prefix="@@"), "needs the prefix '##'"),
        (lambda content: content["model"]["vocab"].update(x=99999), "needs one piece for every id"),
        (lambda content: content["model"]["vocab"].pop("A"), "needs one piece for every id"),
        (
            lambda content: content["model"]["vocab"].update(x="1"),
            "needs pieces with whole numbers as ids. Received: '1'",
        ),
        (
            lambda content: content["model"]["vocab"].update(x=None),
            "needs pieces with whole numbers as ids. Received: None",
        ),
        (lambda content: content["added_tokens"].append("[E1]"), "needs added_tokens with a content and an id each"),
        (lambda content: content.update(model=["WordPiece"]), "needs a model that is an object. Received: list"),
    ],
)
def test_a_tokenizer_json_that_cannot_be_used_is_named(tmp_path, change, message):
    path = write_tokenizer_json(tmp_path / "tokenizer.json", change)
    with pytest.raises(UserError, match=f"{path}: {message}"):
        Vocabulary.from_file(path)
