"""Classification and regression of whole texts as a task for fine-tuning."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import keras
import numpy as np

from keras_bert.config.finetuning import MULTI_LABEL, REGRESSION, SINGLE_LABEL, TaskDataConfig
from keras_bert.core.errors import UserError
from keras_bert.data.batches.token_rows import GrowingArray
from keras_bert.inference.texts import require_numbers
from keras_bert.tasks.answer_files import json_line, with_texts
from keras_bert.tasks.classification.answers import (
    TextWindow,
    input_rows,
    plain_answers,
    submission_lines,
    text_windows,
)
from keras_bert.tasks.classification.data import ExampleRows, with_labels
from keras_bert.tasks.classification.head import ClassificationConfig
from keras_bert.tasks.classification.network import ClassificationObjective
from keras_bert.tasks.classification.overlap import fitted_threshold, shared_pieces
from keras_bert.tasks.classification.scores import (
    confusion_matrix,
    majority_scores,
    predictions,
    scores,
    scores_by_example,
)
from keras_bert.tasks.labels import label_finder
from keras_bert.tasks.problem import Layout, Problem, all_the_same, mean_of_sigmoids
from keras_bert.tasks.sequence_rows import SequenceRows
from keras_bert.tasks.task import INPUT, MOST_CONFUSED, Task
from keras_bert.training.step import Objective


@dataclasses.dataclass(kw_only=True)
class TextLayout(Layout):
    """Examples of a task on texts; only their tokens are kept.

    The rows' extras are `labels` and, if some examples have several rows, `example_weights`.

    Attributes:
        examples: int32 [rows], the index of each row's example.
        labels: the examples' labels, as from `LabelReader.array`; None if hidden.
    """

    examples: np.ndarray
    labels: np.ndarray | None


class TextRowsProblem(Problem):
    """A task on rows of texts. The answers are float64 [examples, labels], the logits.

    Its windows have `texts` (one or two columns), `labels` (an array or None) and an `origin`.

    Attributes:
        task: the task with its labels.
        head: its `ClassificationConfig`, with the labels in the task's order, whatever the trained model's order.

    Raises:
        UserError: the labels cannot be read, or differ from the trained model's.
    """

    takes_noise = True

    task: Task
    head: ClassificationConfig

    def _open(self) -> None:
        task, head = self.task, self.head
        self._is_trained, self._order = head is not None, list[int]()
        if not self._is_trained:
            self.task = with_labels(task, self._source)
        elif task.kind != REGRESSION:
            _check_head(task, head)
            labels = task.labels or head.labels
            self._order = [head.labels.index(label) for label in labels]
            self.task, self.head = dataclasses.replace(task, labels=labels), dataclasses.replace(head, labels=labels)

    def _new_head(self) -> ClassificationConfig:
        labels = self.task.labels or (str(self.task.label),)
        return ClassificationConfig(labels, self.task.kind, bilstm_size=self._config.head.bilstm_size)

    @property
    def metric_names(self) -> tuple[str, ...]:
        return self.task.metrics

    def task_record(self) -> dict[str, Any]:
        data: dict[str, Any] = {"format": self._config.data.format, "columns": self._config.data.columns}
        if self._config.data.language != TaskDataConfig().language:
            data["language"] = self._config.data.language
        return {
            "task": self.task.name,
            **dataclasses.asdict(self._config.input),
            "stride": self._config.input.stride or None,
            "pair": len(self.task.texts) == 2,
            "texts": list(self.task.texts),
            "label": self.task.label,
            "separator": self.task.separator,
            **{name: value for name, value in data.items() if value},
        }

    @functools.cached_property
    def objective(self) -> Objective:
        return ClassificationObjective(self.head.problem_type, self._class_weights(), self.head.logistic)

    def lay_out(self, windows: Iterable[Any]) -> TextLayout:
        """Lays out examples as rows; each of the n rows of a long example has the weight 1/n."""
        rows, origin = self._new_rows(), ""
        labels = GrowingArray(np.int32 if self.task.kind == SINGLE_LABEL else np.float32)
        for window in windows:
            rows.add(list(map(self._as_read, window.texts)))
            if window.labels is not None:
                labels.extend(window.labels.ravel())
            origin = window.origin
        found, examples = rows.rows(), rows.examples()
        shape = (-1, len(self.task.labels or ())) if self.task.kind == MULTI_LABEL else (-1,)
        by_example = labels.array().reshape(shape)
        is_hidden = not len(by_example)
        found.extra["labels"] = np.zeros((len(found), *shape[1:]), by_example.dtype) if is_hidden else by_example
        if len(found) > examples[-1] + 1:  # Some examples have several rows.
            found.extra["labels"] = found.extra["labels"] if is_hidden else by_example[examples]
            found.extra["example_weights"] = (1.0 / np.bincount(examples)).astype(np.float32)[examples]
        return TextLayout(rows=found, origin=origin, examples=examples, labels=None if is_hidden else by_example)

    def _new_rows(self) -> SequenceRows:
        return SequenceRows(self._tokenizer, self._config.input)

    def _as_read(self, texts: Sequence[str]) -> Sequence[str]:
        """Applies `noise`, then `restore_spaces`, to texts, where set."""
        texts = list(map(self.noise, texts)) if self.noise else texts
        return self.restore_spaces(texts) if self.restore_spaces else texts

    def answering(self, model: keras.Model) -> Callable[..., dict[str, Any]]:
        """The model with its logits in the order of the task's labels."""
        if self._order == sorted(self._order):
            return model

        def answer(batch: Mapping[str, Any], training: bool = False) -> dict[str, Any]:
            outputs = model(batch, training=training)
            return {**outputs, "logits": keras.ops.take(outputs["logits"], self._order, axis=1)}

        return answer

    def answers_of(self, layout: TextLayout, outputs: Mapping[str, Any]) -> np.ndarray:
        """The logits of each example, averaged over its rows."""
        row_logits, numbers = np.asarray(outputs["logits"], "float64"), layout.examples
        sums = np.zeros((numbers.max() + 1, row_logits.shape[1]))
        np.add.at(sums, numbers, row_logits)
        logits = sums / np.bincount(numbers)[:, None]
        require_numbers(logits)
        return logits

    def averaged(self, split: str, outputs: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """Like `Problem.averaged`; for multi-label and logistic heads the mean of sigmoids, for numbers their mean."""
        if self.head.problem_type == SINGLE_LABEL:
            return super().averaged(split, outputs)
        logits = [one["logits"] for one in outputs]
        is_number = self.head.problem_type == REGRESSION and not self.head.logistic
        return {"logits": np.mean(logits, axis=0) if is_number else mean_of_sigmoids(logits)}

    def submission(self, split: str) -> str | None:
        found = self.task.splits.get(split)  # None for pairs that vectors are trained on.
        return found.submission if found else None

    def require_labels(self, split: str) -> None:
        self._labels(split)

    def require_different_answers(self) -> None:
        labels = self._labels("train")
        if len(labels) > 1 and (labels == labels[0]).all() and self.head.problem_type != MULTI_LABEL:
            answer = f"{labels[0]:g}" if self.head.problem_type == REGRESSION else repr(self.head.labels[labels[0]])
            raise UserError(
                f"{self.origin('train')}: needs examples with different answers to train on. Received: {answer} for "
                f"all {len(labels):,}. Give training data with every answer."
            )
        if self.head.problem_type != REGRESSION:
            is_multi = self.head.problem_type == MULTI_LABEL
            counts = labels.sum(axis=0) if is_multi else np.bincount(labels, minlength=self.head.num_labels)
            if rare := [label for label, count in zip(self.head.labels, counts) if count < 2]:
                self.notes.append(  # As of typing errors, or of another column.
                    f"{self.origin('train')}: labels with one training example or none: {len(rare):,} of "
                    f"{self.head.num_labels:,} (the first: {rare[0][:80]!r})"
                )

    def evaluate(self, split: str, answers: np.ndarray) -> dict[str, float]:
        return scores(self.head, self.task.metrics, self._labels(split), predictions(self.head, answers))

    def baseline(self, split: str) -> dict[str, float]:
        """The scores of the most frequent answer in training or, for a regression, of the mean."""
        return majority_scores(self.head, self.task.metrics, self._labels("train"), self._labels(split))

    def by_example(self, split: str, answers: np.ndarray) -> dict[str, np.ndarray]:
        return scores_by_example(self.head, self.task.metrics, self._labels(split), predictions(self.head, answers))

    def remarks(self, split: str, answers: np.ndarray) -> Iterator[str]:
        is_class = self.head.problem_type == SINGLE_LABEL
        predicted = [self.head.labels[index] for index in predictions(self.head, answers)] if is_class else []
        return all_the_same(predicted, lambda label: f"Every example of {split} is predicted as {label!r}")

    def confusion(self, split: str, answers: np.ndarray) -> np.ndarray | None:
        """The `scores.confusion_matrix`; None unless there are classes, at most `MOST_CONFUSED` of them."""
        if self.head.problem_type != SINGLE_LABEL or self.head.num_labels > MOST_CONFUSED:
            return None
        return confusion_matrix(self.head, self._labels(split), predictions(self.head, answers))

    def _labels(self, split: str) -> np.ndarray:
        layout = self.layout(split)
        if layout.labels is None:
            others = f"Evaluate on {', '.join(self.dev_splits)}, or use" if self.dev_splits else "Use"
            raise UserError(f"{layout.origin}: needs labels to evaluate on. Received: none. {others} `predict`.")
        return layout.labels

    def _class_weights(self) -> np.ndarray | None:
        """The weight of each label in the loss; None if all are equal."""
        training = self._config.training
        if not training.class_weights and not training.balance_classes:
            return None
        if self.head.problem_type != SINGLE_LABEL:
            raise UserError(f"training.class_weights: needs a task with classes. Received: {self.head.problem_type}.")
        if training.class_weights and training.balance_classes:
            raise UserError("training.class_weights: needs balance_classes to be false. Received: both.")
        if training.balance_classes:
            if self._is_trained and "train" not in self._kept:  # Nothing is trained, and the file may be gone.
                return None
            labels = self._labels("train")
            counts = np.bincount(labels, minlength=self.head.num_labels)
            return len(labels) / (self.head.num_labels * np.maximum(counts, 1))
        weights, find = np.ones(self.head.num_labels), label_finder(self.head.labels)
        named: dict[int, Any] = {}
        for label, weight in training.class_weights.items():
            id = find(str(label))
            if id is None:
                raise UserError(
                    f"training.class_weights: needs names of labels, of {', '.join(self.head.labels)}. "
                    f"Received: {label!r}."
                )
            if id in named:
                raise UserError(
                    f"training.class_weights: needs one weight for each label. Received: {named[id]!r} and {label!r}, "
                    f"both for {self.head.labels[id]!r}. Leave one out."
                )
            weights[id], named[id] = weight, label
        if not weights.any():
            raise UserError("training.class_weights: needs a weight above 0 for some label. Received: 0 for all.")
        return weights


class SequenceProblem(TextRowsProblem):
    """A `Task` on texts or pairs of texts."""

    takes_restored_spaces = True

    def windows(self, split: str, labelled: bool = False) -> Iterator[TextWindow]:
        if split == INPUT and not labelled:
            yield from text_windows(input_rows(self.task), self.task.splits[split].files[0])
            return
        rows = ExampleRows(self.task, split, self._source, labels=labelled)
        yield from text_windows(rows, rows.origin, rows.reader.array)
        self.notes += rows.warnings()

    def overlap_baseline(self, split: str) -> dict[str, float]:
        """The scores of `shared_pieces` as the answers or, for two classes, of a threshold on it fitted on "train"."""
        is_number = self.head.problem_type == REGRESSION
        is_binary = self.head.problem_type == SINGLE_LABEL and self.head.num_labels == 2
        if len(self.task.texts) != 2 or not (is_number or is_binary):
            return {}
        layouts = [self.layout("train"), self.layout(split)]
        if any(len(layout.rows.second_starts) > layout.examples[-1] + 1 for layout in layouts):
            return {}  # Some examples have several rows.
        vocabulary = self._tokenizer.vocabulary
        special = (vocabulary.cls_id, vocabulary.sep_id, vocabulary.pad_id)
        training, answers = (shared_pieces(layout.rows, special) for layout in layouts)
        if is_number:
            return self.evaluate(split, answers[:, None])
        threshold, label = fitted_threshold(training, self._labels("train"))
        return self.evaluate(split, np.eye(2)[np.where(answers >= threshold, label, 1 - label)])

    def header(self, split: str) -> Iterable[str]:
        return ["index\tprediction\n"] if str(self.submission(split)).endswith(".tsv") else ()

    def lines(self, split: str, window: TextWindow, answers: np.ndarray) -> Iterator[str]:
        """The lines of a submission (SuperGLUE's are JSON, GLUE's TSV) or, without one, a JSON object per text.

        Such an object has the texts by column, and `plain_answers`.
        """
        if name := self.submission(split):
            found = predictions(self.head, answers)
            return submission_lines(self.task, window.indices, found, is_json=name.endswith(".jsonl"))
        rows = zip(zip(*window.texts), plain_answers(self.head, answers), strict=True)
        return (json_line(with_texts(dict(zip(self.task.texts, texts)), answer)) for texts, answer in rows)


def _check_head(task: Task, head: ClassificationConfig) -> None:
    if task.kind != head.problem_type or (task.labels and set(task.labels) != set(head.labels)):
        raise UserError(
            f"{task.name}: needs a model for {task.kind} with the labels {', '.join(task.labels or ('?',))}. "
            f"Received: one for {head.problem_type} with {', '.join(head.labels)}."
        )
