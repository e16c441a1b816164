"""Filling [MASK]s: at which places, in what order, with which tokens."""

import numpy as np
import pytest
from tiny import random_weights, without_dropout

from keras_bert.core.errors import UserError
from keras_bert.inference.language_models import fill_masks
from keras_bert.models.pretraining import BertForPreTraining
from keras_bert.text.vocabulary import Vocabulary
from keras_bert.text.wordpiece import WordPieceTokenizer

WORDS = ["the", "cat", "sat", "on", "mat", ".", "##s", "[", "]", "mask"]


@pytest.fixture(scope="module")
def parts():
    vocabulary = Vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS])
    model = BertForPreTraining(without_dropout(vocab_size=len(vocabulary)))
    random_weights(model)
    return model, WordPieceTokenizer(vocabulary)


def test_each_mask_is_predicted_where_it_stands(parts):
    """Equal to the full logits at the [MASK] positions of a hand-made row."""
    model, tokenizer = parts
    (filling,) = fill_masks(model, tokenizer, ["The [MASK] sat on [MASK]."], top_k=3)
    ids = tokenizer.vocabulary.ids
    row = np.array([[ids[t] for t in ("[CLS]", "the", "[MASK]", "sat", "on", "[MASK]", ".", "[SEP]")]], "int32")
    logits = model({"input_word_ids": row, "input_mask": row * 0 + 1, "input_type_ids": row * 0})["mlm_logits"][
        0
    ].numpy()
    for position, candidates in zip((2, 5), filling.candidates, strict=True):
        best = np.argsort(-logits[position])[:3]
        assert [piece for piece, _ in candidates] == [tokenizer.vocabulary.tokens[index] for index in best]
        expected = np.exp(logits[position]) / np.exp(logits[position]).sum()
        np.testing.assert_allclose([probability for _, probability in candidates], expected[best], rtol=1e-5)
    first, second = (candidates[0][0] for candidates in filling.candidates)
    assert filling.filled == f"The {first} sat on {second}.".replace(" ##", "")


def test_mask_at_the_ends_and_alone(parts):
    fillings = fill_masks(*parts, ["[MASK]", "[MASK] cat [MASK]", "[MASK][MASK]"], top_k=1)
    assert [len(filling.candidates) for filling in fillings] == [1, 2, 2]


@pytest.mark.parametrize(
    ("text", "message"),
    [("the cat", r"at least one \[MASK\]"), ("[MASK] " + "cat " * 30, "at most 24 tokens, .* Received: 33")],
)
def test_texts_that_cannot_be_filled_are_refused(parts, text, message):
    with pytest.raises(UserError, match=message):
        fill_masks(*parts, [text])


def test_no_candidates_are_refused(parts):
    """0 would be an IndexError, and -1 would list all pieces but the last."""
    for top_k in (0, -1):
        with pytest.raises(ValueError, match=f"top_k: needs a value above 0. Received: {top_k}"):
            fill_masks(*parts, ["[MASK]"], top_k)


def test_a_mask_that_is_filled_with_a_mask_leaves_the_next_where_it_is(parts, monkeypatch):
    best = [[("[MASK]", 0.5)], [("##s", 0.5)], [("cat", 0.5)]]
    monkeypatch.setattr("keras_bert.inference.language_models.best_pieces", lambda logits, vocabulary, top_k: best)
    (filling,) = fill_masks(*parts, ["the [MASK] mat [MASK] on [MASK]."], top_k=1)
    assert filling.filled == "the [MASK] mats on cat."
