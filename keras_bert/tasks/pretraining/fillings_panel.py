"""What TensorBoard's text page shows of a pretraining run: masked words and what the model puts there."""

import re

import numpy as np

from keras_bert.inference.fill_mask import best_pieces

_BEFORE = _AFTER = 8  # Pieces of context on either side.
_MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+.!|<>~-])")


def fillings_panel(model, vocabulary, batch, sentences=16, top_k=5):
    """A table: a stretch of text around a [MASK], what stood there, the `top_k` best fillings with their shares.

    Args:
        model: a `BertForPreTraining`.
        vocabulary: its `Vocabulary`.
        batch: the arrays of a validation batch; one [MASK] is taken from each of its first rows.
        sentences: rows of the table.

    Returns: list of rows of three strings in Markdown, the header first.
    """
    ids, positions = batch["input_word_ids"], batch["masked_lm_positions"]
    is_mask = (np.take_along_axis(ids, positions, axis=1) == vocabulary.mask_id) & (batch["masked_lm_weights"] > 0)
    rows = np.flatnonzero(is_mask.any(axis=1))[:sentences]
    # Not always the first [MASK] of a row, which stands near [CLS].
    picks = [np.flatnonzero(is_mask[row])[row % is_mask[row].sum()] for row in rows]
    inputs = {name: batch[name][rows] for name in ("input_word_ids", "input_mask", "input_type_ids")}
    inputs["masked_lm_positions"] = positions[rows, picks][:, None].astype("int32")
    fillings = best_pieces(model(inputs)["mlm_logits"][:, 0], vocabulary, top_k)
    table = [["text", "stood there", "best fillings"]]
    for row, pick, best in zip(rows, picks, fillings):
        pieces = [vocabulary.tokens[index] for index in ids[row]]
        position, real = positions[row, pick], int(batch["input_mask"][row].sum())
        before = pieces[max(position - _BEFORE, 0) : position]
        after = pieces[position + 1 : min(position + 1 + _AFTER, real)]
        table.append(
            [
                f"{_text(before)} **\\[MASK\\]** {_text(after)}",
                _escaped(vocabulary.tokens[batch["masked_lm_ids"][row, pick]]),
                " · ".join(f"{_escaped(piece)} {share:.0%}" for piece, share in best),
            ]
        )
    return table


def _text(pieces):
    return _escaped(" ".join(pieces).replace(" ##", ""))


def _escaped(text):
    """Text as Markdown shows it unchanged."""
    return _MARKDOWN.sub(r"\\\1", text)
