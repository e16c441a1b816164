import subprocess
import sys

import pytest

from keras_bert.core.errors import UserError
from keras_bert.text import sentences
from keras_bert.text.basic_tokenizer import BasicTokenizer
from keras_bert.text.vocabulary import SPECIAL_TOKENS
from keras_bert.text.vocabulary_learning import count_words, learn_vocabulary
from keras_bert.text.wordpiece import WordPieceTokenizer

STEMS = "walk talk jump play learn read work paint farm drive ÉCOLE Straße 中文 ΟΔΟΣ x½".split()
ENDINGS = ["", "s", "ed", "ing", "er", "ers", "'s", "-able", "ΑΣ"]
TEXTS = [f"The {stem}{ending}, and {stem}!" for stem in STEMS for ending in ENDINGS for _ in range(3)]


@pytest.mark.parametrize("lower_case", [True, False])
def test_every_piece_can_occur(lower_case):
    """A normaliser that differs from the tokenizer's would teach pieces that no text gives."""
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


def test_the_same_in_every_process():
    """The trainer's hash maps are seeded anew by each process, and left to itself it breaks ties by their order."""
    script = f"""
import sys; sys.path[:0] = {sys.path!r}
from keras_bert.text.vocabulary_learning import learn_vocabulary
print(learn_vocabulary({TEXTS!r}, 130).fingerprint)
"""
    other = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert other == learn_vocabulary(TEXTS, 130).fingerprint + "\n"


def test_fewer_pieces_where_the_texts_hold_no_more():
    vocabulary = learn_vocabulary(["ab ab cd"], 1000)
    assert vocabulary.tokens == [*SPECIAL_TOKENS, "a", "b", "c", "d", "##b", "##d", "ab"]


def test_a_rare_character_takes_no_row_and_its_words_teach_nothing():
    vocabulary = learn_vocabulary(["common words only "] * 2000 + ["wor\u2603ds"], 60)
    assert not any("\u2603" in token for token in vocabulary.tokens)


def test_words_too_long_to_be_tokenized_teach_nothing():
    vocabulary = learn_vocabulary(["ab ab", "z" * 201 + " " + "z" * 201], 100)
    assert not any("z" in token for token in vocabulary.tokens)


def test_pieces_are_no_longer_than_a_vocabulary_holds():
    """Scripts without spaces have words of more bytes than tensorflow_text takes as one piece."""
    vocabulary = learn_vocabulary(["กขคงจฉชซญ" * 15] * 3, 500)
    assert max(len(token.encode()) for token in vocabulary.tokens) == 3 * 85


def test_what_cannot_be_learned_is_refused():
    with pytest.raises(UserError, match="needs at least .* Received: 20"):
        learn_vocabulary(TEXTS, 20)
    for texts in ([], ["", " \0 "]):
        with pytest.raises(UserError, match="needs words"):
            learn_vocabulary(texts, 100)


def test_texts_of_any_length_are_counted_in_bounded_batches(monkeypatch):
    """Normalizing takes a hundred times the memory of its batch: some dozens of books at once took gigabytes."""
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
