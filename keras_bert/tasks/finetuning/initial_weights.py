"""The weights that a fine-tuning run starts from."""

from __future__ import annotations

import logging
import math
from typing import Any

import keras

from keras_bert.checkpoints.model_folder import ModelFolder
from keras_bert.config.finetuning import FinetuneConfig, FinetuneTrainingConfig
from keras_bert.core.errors import UserError
from keras_bert.models.initial_weights import apply_initialization
from keras_bert.models.tensor_names import POOLER, heads

_log = logging.getLogger(__name__)


def set_initial_weights(model: keras.Model, config: FinetuneConfig, folder: ModelFolder, head: Any) -> None:
    """Loads the weights of `init`, unless the recipe says `from_scratch`, and replaces those in `initialization`.

    Args:
        folder: the model in `init`. Its head is kept if it is the same as the task's.
        head: the config of the task's head.
    """
    lines: list[str] = []
    if not config.from_scratch:
        loaded = folder.load_into(model, new_parts=() if _has_head(folder, head) else heads(folder.config))
        lines += [f"Starting from the weights of {folder.name}.", *loaded.lines()]
    replaced = config.initialization
    apply_initialization(model, replaced.as_initialization(), None, None, config.training.seed)
    lines += [f"{part}: replaced, {value}." for part, value in vars(replaced).items() if value]
    if lines:
        _log.info("\n".join(lines))


def freeze(model: keras.Model, config: FinetuneConfig, folder: ModelFolder) -> None:
    """Makes a model's encoder untrainable, except for an untrained pooler, whose output would only be noise.

    Args:
        folder: the model in `init`.
    """
    model.encoder.trainable = False
    if model.encoder.pooler is not None and not config.features.kind:
        model.encoder.pooler.trainable = config.from_scratch or not _has_trained_pooler(folder)


def add_lora(model: keras.Model, training: FinetuneTrainingConfig) -> None:
    """Makes a model's encoder train LoRA's additions instead of its weights, and logs how many weights that leaves.

    Args:
        model: the new model; its encoder's weights may be loaded later.
    """
    model.encoder.enable_lora(training.lora_rank, training.lora_alpha)
    trained, fixed = (
        sum(math.prod(weight.shape) for weight in weights)
        for weights in (model.trainable_weights, model.non_trainable_weights)
    )
    _log.info(f"LoRA of rank {training.lora_rank}: {trained:,} weights are trained, {fixed:,} are not.")


def _has_trained_pooler(folder: ModelFolder) -> bool:
    """Whether a model has a pooler that some objective has trained: its bias is no longer 0."""
    return POOLER in folder.parts() and any(row.ndim == 1 and row.any() for row in folder.read(POOLER).values())


def _has_head(folder: ModelFolder, head: Any) -> bool:
    """Whether a model was fine-tuned with this head."""
    try:
        return folder.head == head
    except UserError:  # Its head is incomplete, but its encoder can be used.
        return False
