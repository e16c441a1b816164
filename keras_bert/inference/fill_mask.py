"""What the masked LM puts in place of [MASK]."""

import dataclasses

import numpy as np
from scipy.special import softmax

from keras_bert.errors import UserError
from keras_bert.inference.encoder_inputs import encoder_inputs

MASK = "[MASK]"


@dataclasses.dataclass
class Filling:
    """The best pieces at every [MASK] of one text.

    Attributes:
        text: the text as given.
        candidates: for each [MASK], from left to right, `[(piece, probability)]`, best first. Each [MASK]
            is predicted with the others still masked.
        filled: the text with the best piece at each [MASK].
    """

    text: str
    candidates: list
    filled: str


def fill_masks(model, tokenizer, texts, top_k=5):
    """Predicts the [MASK]s of each text.

    Args:
        model: a `BertForPreTraining`.
        tokenizer: its `WordPieceTokenizer`.
        texts: list of str, each with one [MASK] or more.
        top_k: how many candidates a [MASK].

    Returns: a list of `Filling`.

    Raises:
        UserError: a text without [MASK], or longer than the model's positions.
    """
    vocabulary = tokenizer.vocabulary
    return [_fill(model, vocabulary, text, _pieces(tokenizer, text, model.config), top_k) for text in texts]


def _pieces(tokenizer, text, config):
    """Ids of the text, [MASK] included. The tokenizer, like BERT's, splits a literal [MASK], so it is put in here."""
    parts = text.split(MASK)
    if len(parts) == 1:
        raise UserError(f"The text needs at least one {MASK}. Received: {text!r}.")
    ids = []
    for index, pieces in enumerate(tokenizer.tokenize(parts).to_list()):
        ids += [tokenizer.vocabulary.mask_id] * (index > 0) + pieces
    if len(ids) + 2 > config.max_position_embeddings:
        raise UserError(
            f"The text needs at most {config.max_position_embeddings} tokens, [CLS] and [SEP] included. "
            f"Received: {len(ids) + 2}. Shorten it."
        )
    return ids


def _fill(model, vocabulary, text, ids, top_k):
    inputs = encoder_inputs([ids], vocabulary)
    positions = np.flatnonzero(inputs["input_word_ids"][0] == vocabulary.mask_id).astype("int32")
    inputs["masked_lm_positions"] = positions[None]
    candidates = best_pieces(model(inputs)["mlm_logits"][0], vocabulary, top_k)
    # From part to part: the best piece may be [MASK] itself.
    filled, *parts = text.split(MASK)
    for best, part in zip(candidates, parts, strict=True):
        filled = _with_piece(filled, best[0][0]) + part
    return Filling(text, candidates, filled)


def best_pieces(logits, vocabulary, top_k):
    """For each row of logits [rows, vocab] a list of the `top_k` best `(piece, probability)`, best first."""
    return [
        [(vocabulary.tokens[index], float(row[index])) for index in np.argsort(-row, kind="stable")[:top_k]]
        for row in softmax(np.asarray(logits, "float64"), axis=-1)
    ]


def _with_piece(before, piece):
    """A text with a piece behind it; a "##" piece joins the word before it."""
    return before.rstrip() + piece[2:] if piece.startswith("##") else before + piece
