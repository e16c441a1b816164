"""Multiple choice as a task for fine-tuning."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import scipy.special

from keras_bert.config.finetuning import SINGLE_LABEL
from keras_bert.config.reading import HEAD_TAIL, TRUNCATE
from keras_bert.core.errors import UserError
from keras_bert.data.windows import offsets, windows
from keras_bert.inference.texts import require_numbers
from keras_bert.tasks import superglue
from keras_bert.tasks.answer_files import json_line
from keras_bert.tasks.classification.network import ClassificationObjective
from keras_bert.tasks.multiple_choice.data import ChoiceRow, ChoiceWindow, choice_examples
from keras_bert.tasks.multiple_choice.task import ChoiceTask, MultipleChoiceConfig
from keras_bert.tasks.noise import Noise
from keras_bert.tasks.problem import Layout, Problem, all_the_same
from keras_bert.tasks.sequence_rows import SequenceRows
from keras_bert.tasks.sources import TfdsSource, file_of

Logits = list[np.ndarray]  # float64 [choices], for each example.


@dataclasses.dataclass(kw_only=True)
class ChoiceLayout(Layout):
    """Examples as groups of rows, one for each choice, with `labels`, which are 0 unless `has_labels`."""

    has_labels: bool


class MultipleChoiceProblem(Problem):
    """A `ChoiceTask`. The answers are the logits of each example's choices.

    A row is [CLS] context [SEP] choice [SEP] (paper, section 4.4); an example is the rows of its choices, however many
    there are. The loss is the cross-entropy over them. The source is `{split: path}` of files as the task reads them,
    or a `TfdsSource`.

    Raises:
        UserError: examples are malformed, or settings do not fit.
    """

    objective = ClassificationObjective(SINGLE_LABEL)
    metric_names = ("accuracy",)
    long = (TRUNCATE, HEAD_TAIL)
    takes_noise = True

    task: ChoiceTask

    def _new_head(self) -> MultipleChoiceConfig:
        return MultipleChoiceConfig(bilstm_size=self._config.head.bilstm_size)

    @property
    def splits(self) -> tuple[str, ...]:
        return tuple(self._places)

    @property
    def _places(self) -> Mapping[str, str]:
        """The path of each split, or TFDS's name of it."""
        if isinstance(self._source, TfdsSource):
            return {name: str(split.tfds) for name, split in self.task.splits.items()}
        return self._source

    def task_record(self) -> dict[str, Any]:
        input_config = self._config.input
        return {"task": self.task.name, "max_length": input_config.max_length, "long": input_config.long}

    def windows(self, split: str, labelled: bool = False) -> Iterator[ChoiceWindow]:
        """Like `Problem.windows`, but a split with labels is a single window, so that all its errors are counted."""
        origin, rows = self._opened(split)
        window = None
        for window in [rows] if labelled else windows(rows, _characters):
            yield choice_examples(origin, window, labelled)
        if window is None:
            choice_examples(origin, [])  # Raises an error.

    def lay_out(self, windows: Iterable[ChoiceWindow]) -> ChoiceLayout:
        rows, origin, has_labels = SequenceRows(self._tokenizer, self._config.input), "", True
        counts: list[int] = []
        labels: list[int] = []
        for window in windows:
            columns: tuple[list[str], list[str]] = ([], [])
            for example in window.examples:
                row = _noisy(example, self.noise) if self.noise else example
                columns[0].extend([row.context] * len(row.choices))
                columns[1].extend(f"{row.beginning} {choice}" if row.beginning else choice for choice in row.choices)
                counts.append(len(row.choices))
            rows.add(columns)
            labels += window.labels or [0] * len(window)
            has_labels, origin = has_labels and window.labels is not None, window.origin
        found = rows.rows()
        found.group_starts = offsets(counts)
        found.extra["labels"] = np.array(labels, np.int32)
        return ChoiceLayout(rows=found, origin=origin, has_labels=has_labels)

    def answers_of(self, layout: ChoiceLayout, outputs: Mapping[str, Any]) -> Logits:
        """The logits without padding."""
        rows = zip(outputs["logits"], layout.rows.group_sizes, strict=True)
        found = [np.asarray(logits, "float64")[:count] for logits, count in rows]
        require_numbers(found)
        return found

    def submission(self, split: str) -> str | None:
        return self.task.splits[split].submission

    def lines(self, split: str, window: ChoiceWindow, answers: Logits) -> Iterator[str]:
        """The lines of a submission or, without one, a JSON object per example, as `own_rows` reads them.

        Such an object has the chosen `label` and all `probabilities`.
        """
        return (_submission if self.submission(split) else _lines)(window, answers)

    def require_labels(self, split: str) -> None:
        self._labels(split)

    def evaluate(self, split: str, answers: Logits) -> dict[str, float]:
        return self._scores(split, _chosen(answers))

    def by_example(self, split: str, answers: Logits) -> dict[str, np.ndarray]:
        is_right = self._labels(split) == _chosen(answers)
        return {"accuracy": np.stack([is_right, np.ones(len(answers))], axis=1)}

    def baseline(self, split: str) -> dict[str, float]:
        """The scores of always choosing the index that is correct most often in training."""
        [(number, _)] = Counter(self._labels("train").tolist()).most_common(1)
        return self._scores(split, np.full(len(self.rows(split)), number))

    def remarks(self, split: str, answers: Logits) -> Iterator[str]:
        predicted = _chosen(answers).tolist()
        return all_the_same(predicted, lambda choice: f"Every example of {split} is predicted as choice {choice}")

    def _opened(self, split: str) -> tuple[str, Iterator[ChoiceRow]]:
        """(origin, rows) of a split."""
        place = str(file_of(self.task.name, self._places, split))
        if isinstance(self._source, TfdsSource):
            assert self.task.tfds_rows is not None  # `open_problem` gives other tasks files.
            return self.task.tfds_rows(place, self._source)
        return place, self.task.rows(place)

    def _labels(self, split: str) -> np.ndarray:
        """The labels, int32 [examples]. Raises `UserError` if they are hidden."""
        layout = self.layout(split)
        if not layout.has_labels:
            raise UserError(
                f"{layout.origin}: needs labels to score. Received: none. Choose another split, or use `predict`."
            )
        return layout.rows.extra["labels"]

    def _scores(self, split: str, predicted: np.ndarray) -> dict[str, float]:
        return {"accuracy": float(np.mean(self._labels(split) == predicted))}


def _noisy(row: ChoiceRow, noise: Noise) -> ChoiceRow:
    """The example with noise in every text."""
    choices = list(map(noise, row.choices))
    return row._replace(context=noise(row.context), beginning=noise(row.beginning), choices=choices)


def _characters(row: ChoiceRow) -> int:
    """The number of characters of a row that is not yet checked."""
    choices = row.choices if isinstance(row.choices, list) else []
    return sum(len(text) for text in (row.context, row.beginning, *choices) if isinstance(text, str))


def _lines(window: ChoiceWindow, answers: Logits) -> Iterator[str]:
    """The lines of JSON of the examples with their answers."""
    for row, logits in zip(window.examples, answers, strict=True):
        line: dict[str, Any] = {} if row.id is None else {"id": row.id}
        line |= {"context": row.context, **({"question": row.beginning} if row.beginning else {})}
        line |= {"choices": row.choices, "label": int(logits.argmax())}
        line["probabilities"] = scipy.special.softmax(logits).tolist()
        yield json_line(line)


def _submission(window: ChoiceWindow, answers: Logits) -> Iterator[str]:
    """The lines of a submission to SuperGLUE. Raises `UserError` if an example has no number."""
    ids = [row.id for row in window.examples]
    if None in ids:
        raise UserError(f"{window.origin}: needs an idx for every example. Received: one without.")
    return superglue.answer_lines(ids, _chosen(answers).tolist())


def _chosen(answers: Logits) -> np.ndarray:
    """int [examples]: the index of the choice with the highest logit, the first in a tie."""
    return np.array([logits.argmax() for logits in answers])
