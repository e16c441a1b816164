"""Masked LM on the texts of a task, before fine-tuning on it."""

from __future__ import annotations

import dataclasses
import itertools
import logging
from typing import TYPE_CHECKING

from keras_bert.api.pretraining import pretrain
from keras_bert.config.finetuning import FinetuneConfig
from keras_bert.core import files
from keras_bert.training.run_folder import TASK_TEXT

if TYPE_CHECKING:
    from keras_bert.data.batches.token_rows import TokenRows
    from keras_bert.text.vocabulary import Vocabulary

_log = logging.getLogger(__name__)


def pretrained_on_task(recipe: FinetuneConfig, output: str) -> FinetuneConfig:
    """The recipe, starting from its model after `training.pretrain_minutes` of masked LM on the task's training texts.

    Labels are not read, nor are dev and test texts. The pretraining run, by the recipe `continue`, is in a folder of
    `output`; it resumes if it was interrupted, and is not repeated. Needs TensorFlow.

    Raises:
        UserError: see `FinetuningRuns` and `pretrain`.
    """
    minutes = recipe.training.pretrain_minutes
    if not minutes or recipe.init is None:
        return recipe
    from keras_bert.checkpoints.model_folder import open_model_folder
    from keras_bert.inference.loading import model_tokenizer
    from keras_bert.tasks.problem import open_problem

    tokenizer = model_tokenizer(open_model_folder(recipe.init, recipe.lower_case))
    rows = open_problem(recipe, tokenizer).rows("train")
    texts = texts_of(rows, tokenizer.vocabulary)
    folder = files.join(output, TASK_TEXT)
    _log.info(f"First {minutes:g} minutes of masked LM on the {len(texts):,} different training texts, in {folder}.")
    devices = {name: getattr(recipe.training, name) for name in ("strategy", "devices", "tpu", "precision", "seed")}
    pretrain(
        texts,
        "continue",
        output=folder,
        init=recipe.init,
        lower_case=recipe.lower_case,
        max_length=recipe.input.max_length,
        minutes=minutes,
        **{f"training.{name}": value for name, value in devices.items()},
    )
    return dataclasses.replace(recipe, init=folder)


def texts_of(rows: TokenRows, vocabulary: Vocabulary) -> list[str]:
    """The different texts of rows, in order: what is written between special tokens.

    Of a text that a row cuts off, the part that fine-tuning sees; lower-cased if the tokenizer lower-cases.
    """
    spellings = vocabulary.spellings()
    special = {vocabulary.cls_id, vocabulary.sep_id, vocabulary.pad_id}
    found: dict[str, None] = {}
    for row in (rows.ids[start:end].tolist() for start, end in itertools.pairwise(rows.starts)):
        for is_special, stretch in itertools.groupby(row, special.__contains__):
            if not is_special:
                found[b"".join(spellings[token] for token in stretch).decode("utf-8", "replace").strip()] = None
    found.pop("", None)
    return list(found)
