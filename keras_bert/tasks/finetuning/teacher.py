"""The answers of a fine-tuned teacher to the training examples: computed once, then kept in the run's folder."""

import dataclasses
import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from keras_bert.checkpoints.model_folder import open_model_folder
from keras_bert.config.finetuning import REGRESSION, FinetuneConfig
from keras_bert.config.teacher import TeacherConfig
from keras_bert.core import files
from keras_bert.core.errors import UserError
from keras_bert.core.program import PROGRAM
from keras_bert.data.batches.feature_files import FeatureRoom
from keras_bert.data.batches.token_rows import TokenRows
from keras_bert.inference.texts import require_numbers
from keras_bert.models.kind import with_article
from keras_bert.tasks.distillation import TEACHER_LOGITS, DistillationObjective, TokenDistillation
from keras_bert.tasks.finetuned_model import FinetunedModel
from keras_bert.tasks.kind import kind_of_head
from keras_bert.tasks.problem import Answers, Problem, fields_read
from keras_bert.training.processes import agreement, by_chief, fail_together
from keras_bert.training.run_folder import RunFolder

_log = logging.getLogger(__name__)


class Teacher:
    """A model fine-tuned on the task that another model now learns; it may be of any kind, with any tokenizer.

    Args:
        config: the recipe of the model that learns, with `teacher.model`.
        problem: that model's task.

    Raises:
        UserError: the teacher is of another task or has other labels, or numbers are given a temperature.
    """

    def __init__(self, config: FinetuneConfig, problem: Problem):
        assert config.teacher.model is not None
        self.folder = open_model_folder(config.teacher.model)
        self._config, self._problem = config, problem
        self._order = self._order_of_labels()
        self._kept: dict[str, np.ndarray] = {}  # Logits by what they were made of, for all seeds of a run.

    def taught(self, rows: TokenRows, seed: int, run: RunFolder, strategy: tf.distribute.Strategy) -> TokenRows:
        """The rows to train on, with the teacher's logits in `extra` or, for words, in `token_files`.

        The logits are read from a file in the run's folder or, if it lacks them, computed and written there. A
        collective.

        Args:
            rows: what `Problem.training_rows` returned for the seed.
        """
        made_of = {"teacher": self.folder.fingerprint, "order": self._order, "rows": rows.fingerprint()}
        key, by_token, choices = str(made_of), self._problem.by_token, int(rows.sizes.max())
        shape = (len(rows.ids if by_token else rows), 1, len(self._order) if self._order else choices)
        room = FeatureRoom(files.join(run.path, "teacher"), "teacher's answers", None)

        def write() -> None:
            if not room.open("train", made_of, shape):
                if key not in self._kept:
                    self._kept[key] = self._logits(seed)
                with room.writing("train", made_of, shape) as write:
                    write(0, self._kept[key][:, None])

        by_chief(strategy, write)
        with fail_together(agreement(strategy)):
            found = room.open("train", made_of, shape)
            if found is None:
                raise UserError(f"{room.path}: needs the teacher's answers. Received: none that can be read.")
        if by_token:
            return dataclasses.replace(rows, token_files={**rows.token_files, TEACHER_LOGITS: found})
        logits = found.read(tf.range(len(rows), dtype=tf.int64)).numpy()[:, 0]
        return dataclasses.replace(rows, extra={**rows.extra, TEACHER_LOGITS: logits})

    def objective(self) -> DistillationObjective:
        """The loss of batches of the rows that `taught` returns."""
        distillation = TokenDistillation if self._problem.by_token else DistillationObjective
        return distillation(self._problem.objective, self._config.teacher)

    def _logits(self, seed: int) -> np.ndarray:
        """float32 [rows or tokens, labels], with the columns in the order of the labels of the model that learns."""
        config, training = self._config, self._config.training
        data = {name: getattr(config.data, name) for name in fields_read(config.task)}
        teacher = FinetunedModel(self.folder, data, config.task, training.batch_size // training.slices)
        _log.info(f"{self.folder.name} answers the training examples, once.")
        parts = []
        layouts, given = (one.training_layouts(config.noise, seed)[0] for one in (self._problem, teacher.problem))
        for layout, read in zip(layouts, given, strict=True):
            outputs, _ = teacher.evaluate.outputs(read.rows)
            if self._problem.by_token:
                parts.append(_by_token(layout, read, outputs["logits"]))
            else:
                parts.append(_by_row(layout, teacher.problem.answers_of(read, outputs)))
        logits = np.concatenate(parts)
        if self._order is None:
            return logits
        labels = teacher.problem.head.labels  # In the order of its answers; the model's own order may differ.
        return logits[:, [labels.index(label) for label in self._problem.head.labels]]

    def _order_of_labels(self) -> list[int] | None:
        """The teacher's column of each label of the model that learns; None for outputs without names.

        Raises `UserError` unless the teacher is of the same task, with the same labels, and its settings count.
        """
        head: Any = self.folder.head
        name, own = self._config.teacher.model, self._problem.head
        if not kind_of_head(own).takes_teacher:
            model = with_article(own.architecture)
            raise UserError(f"teacher.model: needs no CRF and no frozen features. Received: {model}.")
        task, its_task = self._config.task, self.folder.task.get("task")
        if head is None:
            raise UserError(
                f"teacher.model: needs a model fine-tuned on {task}. Received: {name}, which has no head for a task. "
                f"Fine-tune it first: {PROGRAM} finetune --task {task} --init {name}"
            )
        if its_task not in (None, task):
            raise UserError(f"teacher.model: needs a model fine-tuned on {task}. Received: {name}, of {its_task}.")
        for what in ("architecture", "problem_type", "logistic"):
            needed, received = getattr(own, what, None), getattr(head, what, None)
            if needed != received:
                raise UserError(f"teacher.model: needs the {what} {needed}, as {task}. Received: {name}, {received}.")
        labels, is_number = getattr(own, "labels", None), getattr(own, "problem_type", None) == REGRESSION
        temperature = self._config.teacher.temperature
        if is_number and not own.logistic and temperature != TeacherConfig.temperature:
            raise UserError(
                f"teacher.temperature: needs answers with probabilities. Received: {temperature:g} for {task}, whose "
                "answers are numbers. Leave it out."
            )
        if labels is None or is_number:
            return None
        if set(labels) != set(head.labels):
            raise UserError(
                f"teacher.model: needs the labels of {task}, {_shown(labels)}. Received: {name}, with "
                f"{_shown(head.labels)}."
            )
        return [head.labels.index(label) for label in labels]


_SHOWN = 10


def _shown(labels: tuple[str, ...]) -> str:
    return ", ".join(labels[:_SHOWN]) + (f", … ({len(labels)})" if len(labels) > _SHOWN else "")


def _by_row(layout: Any, answers: Answers) -> np.ndarray:
    """A teacher's logits for the rows of the model that learns, float32 [rows, labels].

    Args:
        layout: the rows of the model that learns.
        answers: the teacher's logits of each example: an array, or for choices a list of arrays [choices].
    """
    if isinstance(answers, list):
        logits = np.full((len(answers), max(map(len, answers))), -np.inf, np.float32)
        for row, choices in zip(logits, answers):
            row[: len(choices)] = choices
        return logits
    return answers[layout.examples].astype(np.float32)


def _by_token(layout: Any, read: Any, outputs: Sequence[np.ndarray]) -> np.ndarray:
    """A teacher's logits at each word's first piece in the model that learns, float32 [tokens, labels]; 0 elsewhere.

    Args:
        layout: the rows of the model that learns.
        read: the teacher's rows of the same words.
        outputs: the teacher's logits [tokens, labels] of each of its rows.
    """
    words = np.concatenate(outputs)[read.words.places]
    require_numbers(words, "words")
    logits = np.zeros((len(layout.rows.ids), words.shape[1]), np.float32)
    logits[layout.words.places] = words
    return logits
