"""Pairs of texts as a task for fine-tuning vectors, judged by how cosines rank pairs with scores."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from keras_bert.config.reading import HEAD_TAIL, TRUNCATE
from keras_bert.core.errors import UserError
from keras_bert.data.batches.token_rows import TokenRows
from keras_bert.tasks.classification.answers import TextWindow, text_windows
from keras_bert.tasks.classification.data import ExampleRow, ExampleRows
from keras_bert.tasks.classification.problem import SequenceProblem, TextLayout
from keras_bert.tasks.sentence_vectors.network import ContrastiveObjective
from keras_bert.tasks.sentence_vectors.task import SentenceVectorsConfig
from keras_bert.tasks.sequence_rows import SequenceRows
from keras_bert.tasks.sources import Source
from keras_bert.tasks.task import Task

TRAIN = "train"


class ContrastiveProblem(SequenceProblem):
    """Pairs with scores, by which vectors are judged, and pairs that mean the same, on which they are trained.

    The answers are float64 [examples, 1], the cosines. The rows of an example are its texts, each by itself: two, and
    in training also its hard negatives.
    """

    long = (TRUNCATE, HEAD_TAIL)
    takes_restored_spaces = False

    head: SentenceVectorsConfig
    _training: tuple[Task, Source] | None = None

    def _new_head(self) -> SentenceVectorsConfig:
        return SentenceVectorsConfig((str(self.task.label),), self.task.kind)

    def train_on(self, task: Task, source: Source) -> None:
        """Adds the split "train": the pairs of a table whose score, if they have one, is `data.positive` or more."""
        self._training = (task, source)

    @property
    def splits(self) -> tuple[str, ...]:
        return (*((TRAIN,) if self._training else ()), *super().splits)

    def task_record(self) -> dict[str, Any]:
        return {**super().task_record(), "pair": False}  # The model reads single texts.

    @functools.cached_property
    def objective(self) -> ContrastiveObjective:
        return ContrastiveObjective()

    def baseline(self, split: str) -> dict[str, float]:
        """The scores of equal answers for all pairs, which are correlated with nothing."""
        return dict.fromkeys(self.task.metrics, 0.0)

    def windows(self, split: str, labelled: bool = False) -> Iterator[TextWindow]:
        if split != TRAIN or self._training is None:
            yield from super().windows(split, labelled)
            return
        task, source = self._training
        rows, window = ExampleRows(task, split, source), None
        for window in text_windows(filter(self._is_positive, rows), rows.origin, rows.reader.array):
            yield window
        if window is None:
            raise UserError(f"{rows.origin}: needs a positive pair or more. Received: none. Lower data.positive.")
        self.notes += rows.warnings()

    def lay_out(self, windows: Iterable[TextWindow]) -> TextLayout:
        found = super().lay_out(windows)
        if found.labels is not None:
            positive = (found.labels >= self._config.data.positive).astype("float32")
            # Only the loss, which no score depends on, is weighted; without any positive it is that of all pairs.
            found.rows.extra["example_weights"] = positive if positive.any() else np.ones_like(positive)
        return found

    def _new_rows(self) -> SequenceRows:
        return PairRows(self._tokenizer, self._config.input)

    def _is_positive(self, row: ExampleRow) -> bool:
        return row.label is None or float(row.label) >= self._config.data.positive  # type: ignore[arg-type]


class PairRows(SequenceRows):
    """As `SequenceRows`, with a row for each text of an example: [CLS] first [SEP], [CLS] second [SEP], …"""

    _texts = 2

    def add(self, texts: Sequence[Sequence[str]]) -> None:
        self._texts = len(texts)
        super().add([[text for pair in zip(*texts, strict=True) for text in pair]])

    def rows(self) -> TokenRows:
        rows = super().rows()
        return dataclasses.replace(rows, group_starts=np.arange(0, len(rows) + 1, self._texts, dtype=np.int64))

    def examples(self) -> np.ndarray:
        return super().examples()[:: self._texts] // self._texts
