"""What fine-tuning needs of a task on whole texts: its rows, its model, its loss and its scores."""

import dataclasses
import functools

import numpy as np

from keras_bert.config.heads import REGRESSION, SINGLE_LABEL, ClassificationConfig
from keras_bert.errors import UserError
from keras_bert.models.classification_objective import ClassificationObjective
from keras_bert.tasks.answer_files import FOLDER
from keras_bert.tasks.classification.answering import served_logits, text_windows, writing_answers
from keras_bert.tasks.classification.examples import with_labels
from keras_bert.tasks.classification.labelled_rows import read_split
from keras_bert.tasks.classification.scores import (
    confusion_matrix,
    majority_scores,
    one_class_throughout,
    predictions,
    scores,
)
from keras_bert.tasks.problem import Problem
from keras_bert.tasks.task import MOST_CONFUSED


class SequenceProblem(Problem):
    """A `Task`, with its examples as one tokenizer cuts them.

    Args:
        task: the `Task`.
        source: as for `load_examples`.
        tokenizer: a `WordPieceTokenizer`.
        config: a `FinetuneConfig`.
        head: the `ClassificationConfig` of a trained model, whose labels the task then has; else None.

    Attributes:
        task: the `Task` with its labels.
        head: the `ClassificationConfig`.
    """

    takes_noise = True

    def __init__(self, task, source, tokenizer, config, head=None):
        if head is None:
            self.task = with_labels(task, source)
            head = ClassificationConfig(self.task.labels or (task.label,), task.kind)
        elif task.kind == REGRESSION:
            self.task = task
        else:
            _check_head(task, head)
            self.task = dataclasses.replace(task, labels=head.labels)
        self.head = head
        self.main_metric = self.task.main_metric
        self.metric_names = self.task.metrics
        self.splits = tuple(self.task.splits)
        self._source = source
        self._tokenizer = tokenizer
        self._config = config
        self.notes = []
        self._kept = {}

    def described(self):
        data = {"format": self._config.data.format, "columns": self._config.data.columns}
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
    def objective(self):
        """The `ClassificationObjective` to train by."""
        return ClassificationObjective(self.head.problem_type, self._class_weights())

    def origin(self, split):
        return self._read(split).origin

    def rows(self, split):
        """`TokenRows` of a split, labels in their `extra`.

        Where there are none they are 0, since what is computed for labelled rows is so for others. Of several rows of
        one example each counts as that share of it.
        """
        return self._read(split).rows

    def answers(self, split, outputs):
        """Float64 [examples, labels]: each example's logits, the mean of those of its rows."""
        of_rows, numbers = np.asarray(outputs["logits"], "float64"), self._read(split).examples
        sums = np.zeros((numbers.max() + 1, of_rows.shape[1]))
        np.add.at(sums, numbers, of_rows)
        return sums / np.bincount(numbers)[:, None]

    def windows(self, split):
        """`TextWindow`s."""
        return text_windows(self.task, split, self._source, self.notes)

    def window_answers(self, window, function):
        """List of what the model's `ServingFunction` gives of each text of a window."""
        return function.answers_by_length(*window.texts)

    def output_kind(self, split):
        return FOLDER if self.task.splits[split].submission else super().output_kind(split)

    def writing(self, split, output):
        return writing_answers(self.head, self.task, split, output)

    def served_answers(self, split, function):
        served = (served_logits(self.head, self.window_answers(window, function)) for window in self.windows(split))
        return np.concatenate(list(served))

    def evaluate(self, split, answers):
        return scores(self.head, self.task.metrics, self._labels(split), predictions(self.head, answers))

    def baseline(self, split):
        """The scores of the most frequent answer in training, as `evaluate`'s."""
        return majority_scores(self.head, self.task.metrics, self._labels("train"), self._labels(split))

    def remarks(self, split, answers):
        predicted = predictions(self.head, answers)
        if self.head.problem_type == SINGLE_LABEL and one_class_throughout(predicted):
            yield (
                f"Every example of {split} is predicted as {self.head.labels[predicted[0]]!r}: the training failed. "
                "Try another seed, a lower learning rate or more epochs."
            )

    def confusion(self, split, answers):
        """[labels, labels] int, see `scores.confusion_matrix`; None where there are no classes, or very many."""
        if self.head.problem_type != SINGLE_LABEL or self.head.num_labels > MOST_CONFUSED:
            return None
        return confusion_matrix(self.head, self._labels(split), predictions(self.head, answers))

    def _labels(self, split):
        read = self._read(split)
        if read.labels is None:
            raise UserError(f"{read.origin}: needs labels to evaluate on. Received: none.")
        return read.labels

    def _read(self, split):
        """The `ReadSplit`, read once. Of the texts nothing is kept but their tokens."""
        key = split, self.noise
        if key not in self._kept:
            found = read_split(self.task, split, self._source, self._tokenizer, self._config.input, self.noise)
            self.notes += found.warnings
            self._kept[key] = found
        return self._kept[key]

    def _class_weights(self):
        """[labels] numbers, or None where all count alike."""
        training = self._config.training
        if not training.class_weights and not training.balance_classes:
            return None
        if self.head.problem_type != SINGLE_LABEL:
            raise UserError(f"training.class_weights: needs a task of classes. Received: {self.head.problem_type}.")
        if training.class_weights and training.balance_classes:
            raise UserError("training.class_weights: needs balance_classes to be false. Received: both.")
        if training.balance_classes:
            labels = self._labels("train")
            counts = np.bincount(labels, minlength=self.head.num_labels)
            return len(labels) / (self.head.num_labels * np.maximum(counts, 1))
        unknown = next((label for label in training.class_weights if str(label) not in self.head.labels), None)
        if unknown is not None:
            raise UserError(
                f"training.class_weights: needs names of labels, of {', '.join(self.head.labels)}. "
                f"Received: {unknown!r}."
            )
        named = {str(label): weight for label, weight in training.class_weights.items()}
        return [named.get(label, 1.0) for label in self.head.labels]


def _check_head(task, head):
    if task.kind != head.problem_type or (task.labels and set(task.labels) != set(head.labels)):
        raise UserError(
            f"{task.name}: needs a model for {task.kind} with the labels {', '.join(task.labels or ('?',))}. "
            f"Received: one for {head.problem_type} with {', '.join(head.labels)}."
        )
