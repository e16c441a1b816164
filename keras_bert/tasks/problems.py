"""Opens the task that a recipe names."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from keras_bert.config.finetuning import FinetuneConfig, TaskDataConfig
from keras_bert.errors import UserError
from keras_bert.task_kinds import TaskKind, kind_of_task, task_kinds, task_names
from keras_bert.tasks.problem import Problem
from keras_bert.tasks.task import INPUT
from keras_bert.text.tokenizers import Tokenizer

_ALWAYS_READ = ("folder", "train", "dev", "test")
_OPTIONS = {"texts": "--text", "label": "--label", "format": "--format", "kind": "--kind"}


def open_problem(
    config: FinetuneConfig,
    tokenizer: Tokenizer,
    head: Any = None,
    described: Mapping[str, Any] | None = None,
    asked: str | None = None,
) -> Problem:
    """The `Problem` of a recipe.

    Args:
        config: the recipe.
        tokenizer: the model's tokenizer.
        head: the head's config of a trained model, whose labels the task then has; None for a new head.
        described: what that model's folder says about its task; see `ModelFolder.task`.
        asked: a file to answer, or "-" for stdin: the split `INPUT`, in place of all the task's splits.

    Raises:
        UserError: there is no such task, its data cannot be used, or a new head's recipe has settings that the task
            does not use.
    """
    kind = kind_of_task(config.task)
    if kind is None:
        raise UserError(f"task: needs one of {', '.join(task_names())}. Received: {config.task!r}.")
    if head is None:  # What was trained already may have a recipe of an earlier version.
        _require_used(config, kind)
    elif not isinstance(head, kind.head):
        raise UserError(f"task: needs one for a {head.architecture}. Received: {config.task}. Give another --task.")
    own = {INPUT: asked} if asked else _own_files(config.data)
    problem = kind.open_problem(config, tokenizer, head, described or {}, own)
    if head is None and config.head.bilstm_size:
        if not hasattr(problem.head, "bilstm_size"):
            raise UserError(f"head.bilstm_size: needs a task of the package's own kinds. Received: {config.task}.")
        problem.head = dataclasses.replace(problem.head, bilstm_size=config.head.bilstm_size)
    return problem


def require_read(task: str, fields: Iterable[str]) -> None:
    """Raises `UserError` if a task does not read one of these fields of `TaskDataConfig`."""
    kind = kind_of_task(task)
    known = kind.data_fields(task) if kind else None
    unread = next((name for name in fields if known is not None and name not in (*_ALWAYS_READ, *known)), None)
    if unread is not None:
        option = f" ({_OPTIONS[unread]})" if unread in _OPTIONS else ""
        readers = (name for kind in task_kinds() for name in kind.tasks if unread in (kind.data_fields(name) or ()))
        raise UserError(
            f"data.{unread}{option}: needs a task that reads it, of {', '.join(readers)}. Received: {task}. "
            "Leave it out, or give another --task."
        )


def _require_used(config: FinetuneConfig, kind: TaskKind) -> None:
    defaults = vars(TaskDataConfig())
    require_read(config.task, (name for name, value in vars(config.data).items() if value != defaults[name]))
    for name in ("class_weights", "balance_classes"):
        if getattr(config.training, name) and not kind.weighs_classes:
            raise UserError(
                f"training.{name}: needs a task that classifies texts. Received: {config.task}, whose loss has no "
                "such weights. Leave it out."
            )


def _own_files(data: TaskDataConfig) -> dict[str, str]:
    """`{split: path}` of the files that the recipe names."""
    named = {"train": data.train, "dev": data.dev, "test": data.test}
    return {split: path for split, path in named.items() if path}
