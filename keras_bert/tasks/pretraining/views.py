"""What TensorBoard shows of a pretraining run besides its figures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from tensorboard.plugins import projector

from keras_bert.config.inference import SamplingConfig
from keras_bert.core import files, whole_files
from keras_bert.core.errors import UserError
from keras_bert.core.stores import as_os_errors
from keras_bert.inference.language_models import (
    Continuation,
    Filling,
    TextGenerator,
    best_pieces,
    fill_masks,
    first_ids,
    masked_ids,
)
from keras_bert.models.bert.config import MASKED, NEXT, BertConfig
from keras_bert.models.pretraining import BertForPreTraining
from keras_bert.text.tokenizers import Tokenizer
from keras_bert.text.vocabulary import MASK, Vocabulary

_SENTENCES, _PIECES = 16, 5  # The most rows of the table of fillings, and the pieces in each.
_CONTEXT = 8  # Pieces shown on either side of a [MASK].
_MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+.!|<>~-])")


def fillings_panel(
    model: BertForPreTraining, vocabulary: Vocabulary, batch: Mapping[str, np.ndarray]
) -> list[list[str]]:
    """A table with the text around a [MASK], the original piece, and the model's best pieces with their probabilities.

    Args:
        batch: the arrays of a validation batch; one [MASK] is taken from each of its first rows.

    Returns: rows of three strings in Markdown, the header first.
    """
    ids, positions = batch["input_word_ids"], batch["masked_lm_positions"]
    is_mask = (np.take_along_axis(ids, positions, axis=1) == vocabulary.mask_id) & (batch["masked_lm_weights"] > 0)
    rows = np.flatnonzero(is_mask.any(axis=1))[:_SENTENCES]
    # Not always the first [MASK] of a row, which is close to [CLS].
    picks = [np.flatnonzero(is_mask[row])[row % is_mask[row].sum()] for row in rows]
    inputs = {name: batch[name][rows] for name in ("input_word_ids", "input_mask", "input_type_ids")}
    inputs["masked_lm_positions"] = positions[rows, picks][:, None].astype("int32")
    fillings = best_pieces(model(inputs)["mlm_logits"][:, 0], vocabulary, _PIECES)
    # TensorBoard sizes a column by its longest cell, and breaks words.
    table = [["text", "original" + 24 * "&nbsp;", "best fillings"]]
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


def write_embeddings(folder: str, name: str, embeddings: np.ndarray, labels: Iterable[str]) -> None:
    """Writes a table of vectors where TensorBoard finds it.

    Args:
        folder: a folder of TensorBoard events.
        name: the table's name on the page.
        embeddings: float [rows, size].
        labels: one label per row.
    """
    files.make_folder(folder)
    whole_files.write_file(files.join(folder, f"{name}.bytes"), np.asarray(embeddings, "float32").tobytes())
    with whole_files.atomic_write(files.join(folder, f"{name}_labels.tsv")) as stream:
        # A line break or a tab in a label would shift all labels after it, and so would a blank line, which is skipped:
        # the Chinese BERT has a piece U+2028.
        stream.writelines((" ".join(label.split()) or ascii(label)) + "\n" for label in labels)
    config = projector.ProjectorConfig()
    config.embeddings.add(
        tensor_name=name, tensor_path=f"{name}.bytes", metadata_path=f"{name}_labels.tsv", tensor_shape=embeddings.shape
    )
    with as_os_errors(folder):
        projector.visualize_embeddings(folder, config)


_TOKENS = 20  # How many a left-to-right model adds to each example.


def require_examples(texts: Sequence[str], config: BertConfig, tokenizer: Tokenizer) -> None:
    """Raises `UserError`, naming the example, if the model cannot take one.

    Called before training: a run that finds out after its last step can never finish.
    """
    for index, text in enumerate(texts):
        try:
            if config.predicts == MASKED:
                masked_ids(tokenizer, text, config)
            elif config.predicts == NEXT:
                first_ids(tokenizer, _beginning(text), config.max_position_embeddings)
        except UserError as error:
            raise UserError(f"examples.{index}: {error}") from None


def tried_examples(
    texts: Sequence[str], model: BertForPreTraining, tokenizer: Tokenizer
) -> Sequence[Filling | Continuation]:
    """What the trained model makes of the examples; nothing if it neither fills masks nor writes on."""
    if model.config.predicts == MASKED:
        return fill_masks(model, tokenizer, texts)
    if model.config.predicts != NEXT:
        return []
    generate = TextGenerator(model, tokenizer)
    return [generate(_beginning(text), SamplingConfig(_TOKENS)) for text in texts]


def _beginning(text: str) -> str:
    """What a left-to-right model continues: the text before the first [MASK]."""
    return text.partition(MASK)[0].rstrip()
