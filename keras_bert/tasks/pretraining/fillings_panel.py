"""The table on TensorBoard's text page of a pretraining run: masked words, and what the model fills in."""

import re
from collections.abc import Iterable, Mapping

import numpy as np

from keras_bert.inference.fill_mask import best_pieces
from keras_bert.models.pretraining import BertForPreTraining
from keras_bert.text.vocabulary import Vocabulary

_CONTEXT = 8  # Pieces shown on either side of a [MASK].
_MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+.!|<>~-])")


def fillings_panel(
    model: BertForPreTraining,
    vocabulary: Vocabulary,
    batch: Mapping[str, np.ndarray],
    sentences: int = 16,
    top_k: int = 5,
) -> list[list[str]]:
    """A table with the text around a [MASK], the original piece, and the model's best pieces with their probabilities.

    Args:
        model: the model.
        vocabulary: the model's vocabulary.
        batch: the arrays of a validation batch; one [MASK] is taken from each of its first rows.
        sentences: the most rows of the table.
        top_k: how many pieces to show for each [MASK].

    Returns: rows of three strings in Markdown, the header first.
    """
    ids, positions = batch["input_word_ids"], batch["masked_lm_positions"]
    is_mask = (np.take_along_axis(ids, positions, axis=1) == vocabulary.mask_id) & (batch["masked_lm_weights"] > 0)
    rows = np.flatnonzero(is_mask.any(axis=1))[:sentences]
    # Not always the first [MASK] of a row, which is close to [CLS].
    picks = [np.flatnonzero(is_mask[row])[row % is_mask[row].sum()] for row in rows]
    inputs = {name: batch[name][rows] for name in ("input_word_ids", "input_mask", "input_type_ids")}
    inputs["masked_lm_positions"] = positions[rows, picks][:, None].astype("int32")
    fillings = best_pieces(model(inputs)["mlm_logits"][:, 0], vocabulary, top_k)
    table = [["text", "original", "best fillings"]]
    for row, pick, best in zip(rows, picks, fillings):
        pieces = [vocabulary.tokens[index] for index in ids[row]]
        position, length = positions[row, pick], int(batch["input_mask"][row].sum())
        before = pieces[max(position - _CONTEXT, 0) : position]
        after = pieces[position + 1 : min(position + 1 + _CONTEXT, length)]
        table.append(
            [
                f"{_text(before)} **\\[MASK\\]** {_text(after)}",
                _escaped(vocabulary.tokens[batch["masked_lm_ids"][row, pick]]),
                " · ".join(f"{_escaped(piece)} {share:.0%}" for piece, share in best),
            ]
        )
    return table


def _text(pieces: Iterable[str]) -> str:
    return _escaped(" ".join(pieces).replace(" ##", ""))


def _escaped(text: str) -> str:
    """The text with Markdown's special characters escaped."""
    return _MARKDOWN.sub(r"\\\1", text)
