"""Fills in [MASK]s with a masked LM."""

import dataclasses
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from scipy.special import softmax

from keras_bert.core.errors import UserError
from keras_bert.core.program import PROGRAM
from keras_bert.inference.texts import encoder_inputs, text_list
from keras_bert.models.bert.config import BOTH, MASKED, NEXT, BertConfig
from keras_bert.models.pretraining import BertForPreTraining
from keras_bert.text.tokenizers import Tokenizer
from keras_bert.text.vocabulary import MASK, Vocabulary

# What a model predicts that cannot fill in, and what it is for.
_OTHERS = {
    NEXT: f"next tokens. Continue texts with it: {PROGRAM} generate",
    BOTH: f"next tokens and previous ones. Train a tagger on its states: {PROGRAM} finetune --task ner "
    "--features weighted_all --init MODEL",
}

# [(piece, probability)], best first.
Candidates: TypeAlias = list[tuple[str, float]]


@dataclasses.dataclass
class Filling:
    """The best pieces at every [MASK] of one text.

    Attributes:
        text: the text as given.
        candidates: for each [MASK], from left to right, `[(piece, probability)]`, best first. Each [MASK] is predicted
            with the others still masked.
        filled: the text with the best piece filled in at each [MASK].
    """

    text: str
    candidates: list[Candidates]
    filled: str


def fill_masks(model: BertForPreTraining, tokenizer: Tokenizer, texts: Sequence[str], top_k: int = 5) -> list[Filling]:
    """Predicts the [MASK]s of each text.

    Args:
        model: the model.
        tokenizer: its tokenizer.
        texts: texts with at least one [MASK] each.
        top_k: the number of candidates for each [MASK].

    Raises:
        UserError: the model predicts other tokens than masked ones, or a text has no [MASK] or is longer than the
            model's maximum length.
        ValueError: `texts` is no list of texts.
    """
    texts = text_list(texts)
    if model.config.predicts != MASKED:
        raise UserError(
            f"Filling a {MASK} needs a model that sees both sides of it. Received: one that predicts "
            f"{_OTHERS[model.config.predicts]}"
        )
    vocabulary = tokenizer.vocabulary
    return [_fill(model, vocabulary, text, masked_ids(tokenizer, text, model.config), top_k) for text in texts]


def masked_ids(tokenizer: Tokenizer, text: str, config: BertConfig) -> list[int]:
    """Tokenizes a text with [MASK]s. The tokenizer, like BERT's, would split a literal [MASK] into three words.

    Raises `UserError` if the text has no [MASK] or is longer than the model's maximum length.
    """
    parts = text.split(MASK)
    if len(parts) == 1:
        raise UserError(f"The text needs at least one {MASK}. Received: {text!r}.")
    ids: list[int] = []
    for index, pieces in enumerate(tokenizer.tokenize(parts).to_list()):
        ids += [tokenizer.vocabulary.mask_id] * (index > 0) + pieces
    if len(ids) + 2 > config.max_position_embeddings:
        raise UserError(
            f"The text needs at most {config.max_position_embeddings} tokens, [CLS] and [SEP] included. "
            f"Received: {len(ids) + 2}. Shorten it."
        )
    return ids


def _fill(model: BertForPreTraining, vocabulary: Vocabulary, text: str, ids: list[int], top_k: int) -> Filling:
    inputs = encoder_inputs([ids], vocabulary)
    positions = np.flatnonzero(inputs["input_word_ids"][0] == vocabulary.mask_id).astype("int32")
    inputs["masked_lm_positions"] = positions[None]
    candidates = best_pieces(model(inputs)["mlm_logits"][0], vocabulary, top_k)
    # Not by replacing [MASK] in the text, because the best piece may be [MASK] itself.
    filled, *parts = text.split(MASK)
    for best, part in zip(candidates, parts, strict=True):
        filled = vocabulary.appended(filled, best[0][0]) + part
    return Filling(text, candidates, filled)


def best_pieces(logits: np.ndarray, vocabulary: Vocabulary, top_k: int) -> list[Candidates]:
    """Returns the `top_k` most probable pieces for each row of `logits` [rows, vocab]."""
    return [
        [(vocabulary.tokens[index], float(row[index])) for index in np.argsort(-row, kind="stable")[:top_k]]
        for row in softmax(np.asarray(logits, "float64"), axis=-1)
    ]
