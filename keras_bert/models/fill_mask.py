"""What the masked LM puts in place of [MASK]."""

import dataclasses

import numpy as np

from keras_bert.errors import UserError

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
    return [_fill(model, vocabulary, text, _encode(tokenizer, text, model.config), top_k) for text in texts]


def _encode(tokenizer, text, config):
    """Ids [tokens] of [CLS] text [SEP]. The tokenizer, like BERT's, splits a literal [MASK], so it is put in here."""
    parts = text.split(MASK)
    if len(parts) == 1:
        raise UserError(f"The text needs at least one {MASK}. Received: {text!r}.")
    vocabulary = tokenizer.vocabulary
    ids = [vocabulary.cls_id]
    for index, pieces in enumerate(tokenizer.tokenize(parts).to_list()):
        ids += [vocabulary.mask_id] * (index > 0) + pieces
    ids.append(vocabulary.sep_id)
    if len(ids) > config.max_position_embeddings:
        raise UserError(
            f"The text needs at most {config.max_position_embeddings} tokens. Received: {len(ids)}. Shorten it."
        )
    return np.asarray(ids, "int32")


def _fill(model, vocabulary, text, ids, top_k):
    positions = np.flatnonzero(ids == vocabulary.mask_id).astype("int32")
    inputs = {
        "input_word_ids": ids[None],
        "input_mask": np.ones_like(ids)[None],
        "input_type_ids": np.zeros_like(ids)[None],
        "masked_lm_positions": positions[None],
    }
    logits = np.asarray(model(inputs)["mlm_logits"][0], "float64")
    probabilities = np.exp(logits - logits.max(axis=-1, keepdims=True))
    probabilities /= probabilities.sum(axis=-1, keepdims=True)
    candidates = [
        [(vocabulary.tokens[index], float(row[index])) for index in np.argsort(-row, kind="stable")[:top_k]]
        for row in probabilities
    ]
    filled = text
    for best in candidates:
        filled = _replace_mask(filled, best[0][0])
    return Filling(text, candidates, filled)


def _replace_mask(text, piece):
    """Puts `piece` in place of the first [MASK]; a "##" piece joins the word before it."""
    before, _, after = text.partition(MASK)
    return before.rstrip() + piece[2:] + after if piece.startswith("##") else before + piece + after
