"""Opens the task that a recipe names."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from keras_bert.config.finetuning import FinetuneConfig, TaskDataConfig
from keras_bert.errors import UserError
from keras_bert.task_kinds import kind_of_task, task_names
from keras_bert.tasks.problem import Problem
from keras_bert.tasks.task import INPUT
from keras_bert.text.tokenizers import Tokenizer


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
        UserError: there is no such task, or its data cannot be used.
    """
    kind = kind_of_task(config.task)
    if kind is None:
        raise UserError(f"task: needs one of {', '.join(task_names())}. Received: {config.task!r}.")
    own = {INPUT: asked} if asked else _own_files(config.data)
    problem = kind.open_problem(config, tokenizer, head, described or {}, own)
    if head is None and config.head.bilstm_size:
        if not hasattr(problem.head, "bilstm_size"):
            raise UserError(f"head.bilstm_size: needs a task of the package's own kinds. Received: {config.task}.")
        problem.head = dataclasses.replace(problem.head, bilstm_size=config.head.bilstm_size)
    return problem


def _own_files(data: TaskDataConfig) -> dict[str, str]:
    """`{split: path}` of the files that the recipe names."""
    named = {"train": data.train, "dev": data.dev, "test": data.test}
    return {split: path for split, path in named.items() if path}
