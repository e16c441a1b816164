"""Vocabularies: their files, what is learned from texts, and extending an existing one."""

import hashlib
import subprocess
import sys

import pytest

from keras_bert.core.errors import UserError
from keras_bert.text import sentences
from keras_bert.text.basic_tokenizer import BasicTokenizer
from keras_bert.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from keras_bert.text.vocabulary_learning import count_words, cut_before, extend_from_counts, learn_vocabulary
from keras_bert.text.wordpiece import WordPieceTokenizer

TOKENS = [*SPECIAL_TOKENS, "a", "##b", "\u2028", "\x85", "中"]


def write(folder, content):
    path = folder / "vocab.txt"
    path.write_bytes(content)
    return str(path)


def test_only_newline_ends_a_line(tmp_path):
    """BERT's Chinese vocabulary holds U+2028 as a piece; splitlines() would shift every id after it."""
    path = write(tmp_path, "\n".join(TOKENS).encode())
    assert Vocabulary.from_file(path).tokens == TOKENS


def test_carriage_return_at_the_end_of_a_line_is_taken_off(tmp_path):
    path = write(tmp_path, "".join(f"{token}\r\n" for token in TOKENS).encode())
    assert Vocabulary.from_file(path).tokens == TOKENS


def test_a_byte_order_mark_is_no_part_of_the_first_piece(tmp_path):
    """Windows editors write one, and [PAD] would be missed."""
    (tmp_path / "vocab.txt").write_bytes(b"\xef\xbb\xbf[PAD]\r\n[UNK]\r\n[CLS]\r\n[SEP]\r\n[MASK]\r\n")
    assert Vocabulary.from_file(str(tmp_path / "vocab.txt")).tokens == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def test_ids_follow_the_rows():
    vocabulary = Vocabulary(["a", *reversed(SPECIAL_TOKENS), "##b"])
    assert [vocabulary.ids[token] for token in vocabulary.tokens] == list(range(len(vocabulary))) == list(range(7))
    names = ("pad_id", "unk_id", "cls_id", "sep_id", "mask_id")
    assert [getattr(vocabulary, name) for name in names] == [5, 4, 3, 2, 1]
    assert vocabulary.is_continuation.tolist() == [False] * 6 + [True]


def test_file_round_trip_and_fingerprint(tmp_path):
    """The fingerprint is that of the written file, and a change of order changes it."""
    path = str(tmp_path / "out.txt")
    vocabulary = Vocabulary(TOKENS)
    vocabulary.to_file(path)
    again = Vocabulary.from_file(path)
    assert again.tokens == TOKENS
    with open(path, "rb") as stream:
        assert again.fingerprint == vocabulary.fingerprint == hashlib.sha256(stream.read()).hexdigest()
    assert Vocabulary([*TOKENS[:-2], TOKENS[-1], TOKENS[-2]]).fingerprint != vocabulary.fingerprint


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("\n".join([*TOKENS, "a"]).encode(), "'a' in lines 6, 11"),
        ("\n".join([*TOKENS, "", "z"]).encode(), "line 11 is empty"),
        ("\n".join(TOKENS).encode() + b"\n\n", "line 11 is empty"),
        ("\n".join(TOKENS[:3]).encode(), "without [SEP] [MASK]"),
        (b"", "without [PAD]"),
        ("\n".join([*TOKENS, "x" * 257]).encode(), "in line 11"),
        ("\n".join([*TOKENS, "x\0y"]).encode(), "in line 11"),
        ("\n".join(TOKENS).encode() + b"\n\xff\xfe\n", "in line 11"),
    ],
)
def test_a_file_that_is_no_vocabulary_is_refused_by_name(tmp_path, content, told):
    path = write(tmp_path, content)
    with pytest.raises(UserError) as error:
        Vocabulary.from_file(path)
    assert path in str(error.value) and told in str(error.value) and "\n" not in str(error.value)


def test_a_folder_in_place_of_a_vocabulary_names_the_file_in_it(tmp_path):
    """The advice would be a vocab.txt, which a model with another kind of vocabulary does not have."""
    with pytest.raises(UserError, match="cannot be read .*Give vocab.txt or spiece.model or .* or vocab.json"):
        Vocabulary.from_file(tmp_path)
    (tmp_path / "spiece.model").write_bytes(b"")
    with pytest.raises(UserError, match=r"cannot be read .*Give .*/spiece.model\.$"):
        Vocabulary.from_file(tmp_path)


def test_a_missing_file_is_refused_by_name(tmp_path):
    with pytest.raises(UserError, match="nowhere.txt"):
        Vocabulary.from_file(str(tmp_path / "nowhere.txt"))


STEMS = "walk talk jump play learn read work paint farm drive ÉCOLE Straße 中文 ΟΔΟΣ x½".split()
ENDINGS = ["", "s", "ed", "ing", "er", "ers", "'s", "-able", "ΑΣ"]
TEXTS = [f"The {stem}{ending}, and {stem}!" for stem in STEMS for ending in ENDINGS for _ in range(3)]


@pytest.mark.parametrize("lower_case", [True, False])
def test_every_piece_can_occur(lower_case):
    """A normaliser that differs from the tokenizer's would learn pieces that no text contains."""
    vocabulary = learn_vocabulary(TEXTS, 200, lower_case)
    tokenizer = WordPieceTokenizer(vocabulary, lower_case)
    first_letters = [token for token in vocabulary.tokens if len(token) == 1]
    for token in vocabulary.tokens[len(SPECIAL_TOKENS) :]:
        texts = [letter + token[2:] for letter in first_letters] if token.startswith("##") else [token]
        assert any(vocabulary.ids[token] in ids for ids in tokenizer(texts).to_list()), token


def test_size_and_order():
    vocabulary = learn_vocabulary(iter(TEXTS), 150)
    assert len(vocabulary) == 150
    assert tuple(vocabulary.tokens[:5]) == SPECIAL_TOKENS
    assert {"the", "and", "walk", "##ing"} <= set(vocabulary.tokens)


@pytest.mark.slow
def test_the_same_in_every_process():
    """The trainer's hash maps are seeded anew in each process, and it would break ties by their order."""
    script = f"""
import sys; sys.path[:0] = {sys.path!r}
from keras_bert.text.vocabulary_learning import learn_vocabulary
print(learn_vocabulary({TEXTS!r}, 130).fingerprint)
"""
    other = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert other == learn_vocabulary(TEXTS, 130).fingerprint + "\n"


@pytest.mark.parametrize("size", [1000, 4 * 10**11])  # Given so many, the trainer would abort for lack of memory.
def test_fewer_pieces_where_the_texts_hold_no_more(size):
    vocabulary = learn_vocabulary(["ab ab cd"], size)
    assert vocabulary.tokens == [*SPECIAL_TOKENS, "a", "b", "c", "d", "##b", "##d", "ab"]


def test_a_rare_character_takes_no_row_and_its_words_teach_nothing():
    vocabulary = learn_vocabulary(["common words only "] * 2000 + ["wor\u2603ds"], 60)
    assert not any("\u2603" in token for token in vocabulary.tokens)


def test_words_too_long_to_be_tokenized_teach_nothing():
    vocabulary = learn_vocabulary(["ab ab", "z" * 201 + " " + "z" * 201], 100)
    assert not any("z" in token for token in vocabulary.tokens)


def test_pieces_are_no_longer_than_a_vocabulary_holds():
    """In scripts without spaces, words have more bytes than tensorflow_text accepts as one piece."""
    vocabulary = learn_vocabulary(["กขคงจฉชซญ" * 15] * 3, 500)
    assert max(len(token.encode()) for token in vocabulary.tokens) == 3 * 85


def test_what_cannot_be_learned_is_refused():
    with pytest.raises(UserError, match="needs at least .* Received: 20"):
        learn_vocabulary(TEXTS, 20)
    for texts in ([], ["", " \0 "]):
        with pytest.raises(UserError, match="needs words"):
            learn_vocabulary(texts, 100)
    with pytest.raises(UserError, match="Received: 'wiki.txt', a single one"):  # Its characters would be the texts.
        learn_vocabulary("wiki.txt", 100)


def test_texts_of_any_length_are_counted_in_bounded_batches(monkeypatch):
    """Normalizing takes a hundred times a batch's size in memory: some dozens of books at once would take gigabytes."""
    sizes = []
    normalize = BasicTokenizer.normalize
    monkeypatch.setattr(
        BasicTokenizer, "normalize", lambda self, batch: sizes.append(len(b"".join(batch))) or normalize(self, batch)
    )
    texts = [" ".join(TEXTS), *TEXTS[::5]]
    expected = count_words(texts, True)
    monkeypatch.setattr(sentences, "_LONGEST_IN_BATCH", 100)
    monkeypatch.setattr(sentences, "_BATCH_BYTES", 1000)
    sizes.clear()
    assert count_words(texts, True) == expected
    assert len(sizes) > 5 and max(sizes) < 1400


# As in Google's files, the slots stand before and between the special tokens.
BASE = Vocabulary(
    ["[PAD]", "[unused0]", "[unused1]", *SPECIAL_TOKENS[1:], "the", "[unused7]", "co", "##rt", "##u", "."]
)


def extended_by(vocabulary, texts, lower_case=True, source="vocabulary"):
    """What `extend_from_counts` returns for texts."""
    return extend_from_counts(vocabulary, count_words(texts, lower_case), source)


def test_the_most_frequent_new_words_fill_the_slots_in_order():
    texts = ["The court. The court of tort."] * 3 + ["Court tort estoppel estoppel"] * 2 + ["lien lien the"]
    extended, added = extended_by(BASE, texts)
    assert added == [("court", 8), ("tort", 5), ("estoppel", 4)]
    assert [extended.tokens[row] for row in (1, 2, 8)] == ["court", "tort", "estoppel"]
    ids = WordPieceTokenizer(extended)(["The court"]).to_list()
    assert ids == [[extended.ids["the"], extended.ids["court"]]]


def test_every_other_id_stays():
    extended, _ = extended_by(BASE, ["court tort"] * 2)
    assert len(extended) == len(BASE)
    changed = [row for row, (old, new) in enumerate(zip(BASE.tokens, extended.tokens)) if old != new]
    assert changed == [1, 2] and extended.tokens[8] == "[unused7]"


def test_words_are_the_tokenizers_own():
    """Words with upper case, accents or punctuation would take rows that no text reaches."""
    assert [word for word, _ in extended_by(BASE, ["CÔTE côte-CO"])[1]] == ["cote"]
    assert [word for word, _ in extended_by(BASE, ["CÔTE?CÔTE!"], lower_case=False)[1]] == ["CÔTE"]


def test_equally_frequent_words_come_by_name_and_what_is_seen_once_does_not():
    _, added = extended_by(BASE, ["zeta alpha zeta alpha once"])
    assert added == [("alpha", 2), ("zeta", 2)]


def test_a_word_too_long_to_be_tokenized_fills_no_slot():
    """A text with the word would still get [UNK]."""
    _, added = extended_by(BASE, [f"{'z' * 201} {'z' * 201} {'y' * 200} {'y' * 200}"])
    assert added == [("y" * 200, 2)]


def test_without_a_slot_or_a_new_word_it_is_refused_with_the_remedy():
    with pytest.raises(UserError, match=r"law.txt: needs \[unusedN\] rows .* --unused N"):
        extended_by(Vocabulary([*SPECIAL_TOKENS, "the"]), ["court court"], source="law.txt")
    with pytest.raises(UserError, match="none of them new"):
        extended_by(BASE, ["the the"])


def test_a_learned_vocabulary_keeps_slots_and_takes_words():
    vocabulary = learn_vocabulary(["walking talked talking walked"] * 5, 40, unused=3)
    assert vocabulary.tokens[:9] == [*SPECIAL_TOKENS, "[unused0]", "[unused1]", "[unused2]", vocabulary.tokens[8]]
    assert vocabulary.pad_id == 0 and len(vocabulary.tokens[8]) == 1
    assert extended_by(vocabulary, ["kite kite"])[0].ids["kite"] == 5


def test_new_words_are_known_by_the_pieces_that_they_were_cut_into():
    """New ## pieces, and words that were [UNK], have no such pieces; a word that only moved is itself."""
    tokens = list(BASE.tokens)
    tokens[1], tokens[2], tokens[8], tokens[-1] = "court", "tort", "##tion", "cou"
    tokens[BASE.ids["the"]], tokens[BASE.ids["co"]] = "co", "the"
    ids = BASE.ids
    assert cut_before(Vocabulary(tokens), WordPieceTokenizer(BASE)) == {
        1: [ids["co"], ids["##u"], ids["##rt"]],
        len(BASE) - 1: [ids["co"], ids["##u"]],
        ids["the"]: [ids["co"]],
        ids["co"]: [ids["the"]],
    }
    assert cut_before(BASE, WordPieceTokenizer(BASE)) == {}
