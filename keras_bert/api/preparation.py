"""Pretraining before fine-tuning: masked LM on the task's texts, and matching the words of pairs of texts."""

from __future__ import annotations

import dataclasses
import itertools
import logging
import time
from typing import TYPE_CHECKING, Any

from keras_bert.api.pretraining import pretrain
from keras_bert.checkpoints.model_folder import open_model_folder
from keras_bert.config.finetuning import FinetuneConfig
from keras_bert.config.pretraining import require_files
from keras_bert.config.recipes import find_config
from keras_bert.core import files
from keras_bert.core.errors import TooLittleText, UserError
from keras_bert.models.bert.config import MASKED
from keras_bert.models.kind import kind_of_config
from keras_bert.training.run_folder import PAIRS, TASK_TEXT

if TYPE_CHECKING:
    from keras_bert.data.batches.token_rows import TokenRows
    from keras_bert.tasks.problem import Problem
    from keras_bert.text.vocabulary import Vocabulary

_log = logging.getLogger(__name__)
_NO_TIME = 1e-3  # Minutes; 0 would mean no limit.


def prepared(recipe: FinetuneConfig, output: str, started_at: float) -> FinetuneConfig:
    """The recipe, starting from its model after the pretraining set by `training.pretrain_minutes` and `prepare`.

    Each is a pretraining run in a folder of `output`, resumed if it was interrupted and not repeated once finished.
    `started_at`, from `time.monotonic`, is when the command began and `training.max_minutes` starts to count. Needs
    TensorFlow.

    Raises:
        UserError: see `FinetuningRuns` and `pretrain`; or `prepare` does not apply to the task or the model.
    """
    training = recipe.training
    if recipe.init is None or not (training.pretrain_minutes or recipe.prepare.kind):
        return recipe
    from keras_bert.training.strategy import make_strategy

    make_strategy(training.strategy, training.devices, training.tpu)  # Workers must meet before the first operation.
    if recipe.prepare.kind:
        _require_preparable(recipe, recipe.init)
    if training.pretrain_minutes:
        recipe = _pretrained_on_task(recipe, output, started_at)
    if recipe.prepare.kind:
        folder, pairs = files.join(output, PAIRS), recipe.prepare
        _log.info(f"First pretraining by {pairs.recipe}, in {folder}.")
        recipe = _pretrained(recipe, folder, started_at, pairs.recipe, **{"data.files": pairs.text})
    return recipe


def _require_preparable(recipe: FinetuneConfig, init: str) -> None:
    """Raises `UserError` if `prepare` does not apply, before anything is trained; `init` is the recipe's."""
    config = open_model_folder(init, recipe.lower_case).config
    kind = kind_of_config(config)
    if config.predicts != MASKED or not (kind.attends and kind.has_positions):
        raise UserError(
            f"--prepare {recipe.prepare.kind}: needs a model of masked tokens whose attention and positions can begin "
            f"anew, such as a BERT. Received: {init}, of type {kind.model_type}, which predicts {config.predicts} "
            "tokens. Leave it out."
        )
    problem, _ = _opened(recipe)
    if not problem.task_record().get("pair"):
        raise UserError(
            f"--prepare {recipe.prepare.kind}: needs a task of two texts, read together in a row, such as mrpc. "
            f"Received: {recipe.task}. Leave it out."
        )
    find_config("pretrain", recipe.prepare.recipe)
    require_files(recipe.prepare.text)


def _pretrained_on_task(recipe: FinetuneConfig, output: str, started_at: float) -> FinetuneConfig:
    """The recipe after masked LM on the task's training texts; neither labels nor dev and test texts are used."""
    minutes = recipe.training.pretrain_minutes
    problem, vocabulary = _opened(recipe)
    texts = texts_of(problem.rows("train"), vocabulary)
    folder = files.join(output, TASK_TEXT)
    too_few = UserError(
        "training.pretrain_minutes (--pretrain-on-task): needs enough different training texts to fill a "
        f"batch of masked LM, and to hold some out. Received: {len(texts):,}. Leave it out."
    )
    if not texts:
        raise too_few
    _log.info(f"First {minutes:g} minutes of pretraining on the {len(texts):,} different training texts, in {folder}.")
    data = [{"text": text} for text in texts]  # As rows, because bare texts may be taken for paths.
    settings: dict[str, Any] = {"data": data, "max_length": recipe.input.max_length, "minutes": minutes}
    try:
        return _pretrained(recipe, folder, started_at, "continue", **settings)
    except TooLittleText:  # Its remedies are settings of pretraining, which a task's recipe does not have.
        raise too_few from None


def _opened(recipe: FinetuneConfig) -> tuple[Problem, Vocabulary]:
    from keras_bert.inference.loading import model_tokenizer
    from keras_bert.tasks.problem import open_problem

    assert recipe.init is not None
    tokenizer = model_tokenizer(open_model_folder(recipe.init, recipe.lower_case))
    return open_problem(recipe, tokenizer), tokenizer.vocabulary


def _pretrained(
    recipe: FinetuneConfig, folder: str, started_at: float, pretraining: str, **arguments: Any
) -> FinetuneConfig:
    """The recipe, starting from its model after the recipe `pretraining`, run on the same devices and seed."""
    devices = {name: getattr(recipe.training, name) for name in ("strategy", "devices", "tpu", "precision", "seed")}
    if limit := recipe.training.max_minutes:
        left = limit - (time.monotonic() - started_at) / 60
        devices["max_minutes"] = max(left, _NO_TIME)
    pretrain(
        recipe=pretraining,
        output=folder,
        init=recipe.init,
        lower_case=recipe.lower_case,
        **arguments,
        **{f"training.{name}": value for name, value in devices.items()},
    )
    return dataclasses.replace(recipe, init=folder)


def texts_of(rows: TokenRows, vocabulary: Vocabulary) -> list[str]:
    """The distinct texts of rows, in order: the text between special tokens.

    Truncated texts are those that fine-tuning sees; they are lower-cased if the tokenizer lower-cases.
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
