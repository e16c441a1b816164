"""What fine-tuning needs of a task on whole texts: its rows, its model, its loss and its scores."""

import dataclasses
import functools

import numpy as np

from keras_bert.config.classification import MULTI_LABEL, REGRESSION, SINGLE_LABEL, ClassificationConfig
from keras_bert.errors import UserError
from keras_bert.models.classification_objective import ClassificationObjective
from keras_bert.models.sequence_classification import BertForSequenceClassification
from keras_bert.tasks.classification.examples import load_examples, with_labels
from keras_bert.tasks.classification.scores import (
    confusion_matrix,
    majority_scores,
    one_class_throughout,
    predictions,
    scores,
)
from keras_bert.tasks.classification.submission import write_submission
from keras_bert.tasks.sequence_rows import sequence_rows
from keras_bert.tasks.task import NamedSplits


class SequenceProblem(NamedSplits):
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
        main_metric: the name of what the best epoch is chosen by; higher is better.
        metric_names: of all that `evaluate` gives, the main one first.
        notes: what a user should know of the files read so far, one line each.
        noise: function (text) -> text that the examples go through, to be set from outside; None for none.
        by_token, per_cent: as of every problem, see `tasks.problems`.
        splits: names of all splits.
    """

    by_token, per_cent = (), False

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
        self.noise = None
        self._kept = {}

    def described(self):
        """What the model's folder keeps, so that it can be used without the recipe."""
        return {
            "task": self.task.name,
            **dataclasses.asdict(self._config.input),
            "stride": self._config.input.stride or None,
            "pair": len(self.task.texts) == 2,
            "texts": list(self.task.texts),
            "label": self.task.label,
            "separator": self.task.separator,
        }

    def make_model(self, config, dtype):
        """The Keras model for a `BertConfig`."""
        return BertForSequenceClassification(config, self.head.num_labels, dtype=dtype)

    @functools.cached_property
    def objective(self):
        """The `ClassificationObjective` to train by."""
        return ClassificationObjective(self.head.problem_type, self._class_weights())

    def examples(self, split):
        """The `Examples` of a split."""
        return self._read(split)[0]

    def origin(self, split):
        """The file or data set that a split is read from."""
        return self.examples(split).origin

    def rows(self, split):
        """`TokenRows` of a split, labels in their `extra` where it has them.

        Of several rows of one example each counts as that share of it.
        """
        return self._read(split)[1]

    def answers(self, split, outputs):
        """Float64 [examples, labels]: each example's logits, the mean of those of its rows."""
        of_rows, numbers = np.asarray(outputs["logits"], "float64"), self._read(split)[2]
        sums = np.zeros((numbers.max() + 1, of_rows.shape[1]))
        np.add.at(sums, numbers, of_rows)
        return sums / np.bincount(numbers)[:, None]

    def served_answers(self, split, function):
        """`answers`, of the model's `ServingFunction`."""
        texts = self.examples(split).texts
        output = "score" if self.head.problem_type == REGRESSION else "logits"
        logits = [answer[output] for answer in function.answers_by_length(*texts)]
        return np.asarray(logits, "float64").reshape(len(logits), self.head.num_labels)

    def evaluate(self, split, answers):
        """`{metric: number}`, the main one first, of `answers` to a split that has labels."""
        return scores(self.head, self.task.metrics, self._labels(split), predictions(self.head, answers))

    def rows_of(self, texts):
        """`(TokenRows, the number of the example of each row)` of one or two lists of texts.

        Their `labels` are 0, which is there for any task, since what is computed for labelled rows is so for others.
        """
        if self.noise:
            texts = [[self.noise(text) for text in column] for column in texts]
        rows, numbers = sequence_rows(texts, self._tokenizer, self._config.input)
        rows.extra["example_weights"] = (1.0 / np.bincount(numbers)[numbers]).astype("float32")
        shape = (len(rows), self.head.num_labels) if self.head.problem_type == MULTI_LABEL else (len(rows),)
        rows.extra["labels"] = np.zeros(shape, "int32" if self.head.problem_type == SINGLE_LABEL else "float32")
        return rows, numbers

    def baseline(self, split):
        """The scores of the most frequent answer in training, as `evaluate`'s."""
        return majority_scores(self.head, self.task.metrics, self.examples("train").labels, self._labels(split))

    def tune(self, split, answers):
        """Nothing is chosen on the dev examples."""

    def remarks(self, split, answers):
        """Lines that a person must see: predictions that are all alike."""
        predicted = predictions(self.head, answers)
        if self.head.problem_type == SINGLE_LABEL and one_class_throughout(predicted):
            yield (
                f"Every example of {split} is predicted as {self.head.labels[predicted[0]]!r}: the training failed. "
                "Try another seed, a lower learning rate or more epochs."
            )

    def confusion(self, split, answers):
        """[labels, labels] int, see `scores.confusion_matrix`; None where there are no classes."""
        if self.head.problem_type != SINGLE_LABEL:
            return None
        return confusion_matrix(self.head, self._labels(split), predictions(self.head, answers))

    def write_predictions(self, split, answers, folder):
        """Writes the file that the benchmark's server takes; returns its path. See `write_submission`."""
        indices = self.examples(split).indices
        return write_submission(folder, self.task, split, indices, predictions(self.head, answers))

    def _labels(self, split):
        labels = self.examples(split).labels
        if labels is None:
            raise UserError(f"{self.examples(split).origin}: needs labels to evaluate on. Received: none.")
        return labels

    def _read(self, split):
        """(`Examples`, their `TokenRows`, the number of the example of each row)."""
        key = split, self.noise
        if key not in self._kept:
            examples = load_examples(self.task, split, self._source)
            self.notes += examples.warnings
            rows, numbers = self.rows_of(examples.texts)
            if examples.labels is not None:
                rows.extra["labels"] = examples.labels[numbers]
            self._kept[key] = examples, rows, numbers
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
            labels = self.examples("train").labels
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
