"""A task as the training loop, `evaluate` and `predict` see it."""

from __future__ import annotations

import abc
import contextlib
from collections.abc import Callable, Iterable, Iterator, Sized
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from keras_bert.task_kinds import kind_of_head
from keras_bert.tasks.answer_files import FILE
from keras_bert.tasks.task import NamedSplits

if TYPE_CHECKING:
    import keras

    from keras_bert.config.bert import BertConfig
    from keras_bert.data.batches.token_rows import TokenRows
    from keras_bert.export.serving_function import ServingFunction

Answers = Any  # What a model says to the examples of a split, in the form that the kind of task has for it.


class Problem(NamedSplits, abc.ABC):
    """A task's examples, laid out for one tokenizer, with the model, loss and scores that go with them.

    Attributes:
        head: the head's config, as config.json stores it.
        objective: the loss; see `models.classification_objective` for the protocol.
        splits: names of all splits; they start with "train", "dev" or "test".
        main_metric: the metric that picks the best epoch; higher is better.
        metric_names: every metric that `evaluate` always returns, the main one first.
        notes: what the user should know about the files read so far, one line each.
        noise: applied to every text before tokenization, where `takes_noise`; None for none.

    Class attributes:
        by_token: the model's outputs of shape [batch, seq, …].
        per_cent: whether scores are already in per cent.
        answers_ending: suffix of the file that `predict` writes for one of several splits.
        takes_noise: whether `noise` may be set.
    """

    by_token: ClassVar[tuple[str, ...]] = ()
    per_cent: ClassVar[bool] = False
    answers_ending: ClassVar[str] = ".jsonl"
    takes_noise: ClassVar[bool] = False

    head: Any
    objective: Any
    splits: tuple[str, ...]
    main_metric: str
    metric_names: tuple[str, ...]
    notes: list[str]
    noise: Callable[[str], str] | None = None

    @abc.abstractmethod
    def described(self) -> dict[str, Any]:
        """What the model folder stores about the task, so that the model can be used without the recipe."""

    def make_model(self, bert_config: BertConfig, dtype: str | None = None) -> keras.Model:
        """A new model with this task's head."""
        return kind_of_head(self.head).make_model(bert_config, self.head, dtype=dtype)

    @abc.abstractmethod
    def origin(self, split: str) -> str:
        """The file or data set that a split is read from."""

    @abc.abstractmethod
    def rows(self, split: str) -> TokenRows:
        """The tokenized rows of a split, with whatever `objective` needs. Read once."""

    @abc.abstractmethod
    def answers(self, split: str, outputs: dict[str, Any]) -> Answers:
        """The model's answer to each example.

        Args:
            split: its name.
            outputs: the model's outputs for `rows(split)`, in order: arrays [rows, …], or, for the names in `by_token`,
                a list of arrays [tokens of the row, …].

        Raises:
            UserError: an output is not a finite number.
        """

    @abc.abstractmethod
    def evaluate(self, split: str, answers: Answers) -> dict[str, float]:
        """`{metric: score}`, the main metric first. Raises `UserError` if the split has no labels."""

    @abc.abstractmethod
    def baseline(self, split: str) -> dict[str, float]:
        """The scores, as from `evaluate`, of the trivial answer: usually the most frequent one in training."""

    @abc.abstractmethod
    def remarks(self, split: str, answers: Answers) -> Iterable[str]:
        """Warnings about the answers, such as that they are all the same."""

    def tune(self, split: str, answers: Answers) -> None:  # noqa: B027 - most tasks tune nothing.
        """Sets whatever is tuned on the dev examples, such as a threshold."""

    def confusion(self, split: str, answers: Answers) -> np.ndarray | None:
        """Confusion matrix [labels, labels] of int, rows the true labels; None where the answers are not classes."""
        return None

    @abc.abstractmethod
    def windows(self, split: str) -> Iterator[Sized]:
        """The examples of a split, unlabelled, a few thousand at a time."""

    @abc.abstractmethod
    def window_answers(self, window: Any, function: ServingFunction) -> Answers:
        """The exported model's answers to the examples of a window."""

    @abc.abstractmethod
    def served_answers(self, split: str, function: ServingFunction) -> Answers:
        """As `answers`, computed by the exported model."""

    @abc.abstractmethod
    def writing(self, split: str, output: str) -> contextlib.AbstractContextManager[Callable[[Any, Answers], Any]]:
        """A context in which `write(window, answers)` appends to the output."""

    def output_kind(self, split: str) -> str:
        """Whether `predict` writes a split's answers to an `answer_files.FILE` or a `FOLDER`."""
        return FILE
