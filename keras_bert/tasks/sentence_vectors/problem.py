"""Pairs of texts as a task for fine-tuning vectors, evaluated by how their cosines rank scored pairs."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import keras
import numpy as np

from keras_bert.config.finetuning import COSENT, COSINE, IN_BATCH
from keras_bert.config.reading import HEAD_TAIL, TRUNCATE
from keras_bert.core.errors import UserError
from keras_bert.data.batches.token_rows import TokenRows
from keras_bert.models.bert.config import BertConfig
from keras_bert.tasks.classification.answers import TextWindow, text_windows
from keras_bert.tasks.classification.data import ExampleRow, ExampleRows
from keras_bert.tasks.classification.problem import SequenceProblem, TextLayout
from keras_bert.tasks.sentence_vectors.losses import at_size, make_objective
from keras_bert.tasks.sentence_vectors.task import SIZES, SentenceVectorsConfig
from keras_bert.tasks.sequence_rows import SequenceRows
from keras_bert.tasks.sources import Source
from keras_bert.tasks.task import Task
from keras_bert.training.step import Objective

TRAIN = "train"


class ContrastiveProblem(SequenceProblem):
    """Scored pairs to evaluate vectors on, and pairs that mean the same or are scored to train them on.

    The answers are float64 [examples, 1 + sizes], the cosines of whole vectors and of vectors shortened to each size of
    `vectors.matryoshka`, from the recipe or the trained model. An example has a row for each of its texts: two and, in
    training, its hard negatives.
    """

    long = (TRUNCATE, HEAD_TAIL)
    takes_restored_spaces = False

    head: SentenceVectorsConfig
    _training: tuple[Task, Source] | None = None

    @functools.cached_property
    def _sizes(self) -> tuple[int, ...]:
        return tuple(self._config.vectors.matryoshka or self._task_record.get(SIZES) or ())

    @property
    def _trains_on_all(self) -> bool:
        return self._config.vectors.loss in (COSINE, COSENT)

    def _new_head(self) -> SentenceVectorsConfig:
        return SentenceVectorsConfig((str(self.task.label),), self.task.kind)

    def train_on(self, task: Task, source: Source) -> None:
        """Adds the split "train", the pairs of a table.

        If the loss needs pairs that mean the same, those scored below `data.positive` are left out.
        """
        self._training = (task, source)

    @property
    def splits(self) -> tuple[str, ...]:
        return (*((TRAIN,) if self._training else ()), *super().splits)

    def task_record(self) -> dict[str, Any]:
        sizes = {SIZES: list(self._sizes)} if self._sizes else {}
        return {**super().task_record(), "pair": False, **sizes}  # The model reads single texts.

    @functools.cached_property
    def objective(self) -> Objective:
        return make_objective(self._config.vectors)

    @property
    def compares_examples(self) -> bool:
        return self._config.vectors.loss in (IN_BATCH, COSENT)

    def make_model(self, bert_config: BertConfig, dtype: str | None = None) -> keras.Model:
        too_large = [size for size in self._sizes if size > bert_config.hidden_size]
        if too_large:
            raise UserError(
                f"vectors.matryoshka: needs sizes up to the model's width, {bert_config.hidden_size}. "
                f"Received: {too_large[0]}. Leave it out."
            )
        model = super().make_model(bert_config, dtype)
        model.similarity.trainable = self._config.vectors.loss == IN_BATCH  # No other loss depends on the scale.
        return model

    @property
    def metric_names(self) -> tuple[str, ...]:
        return (*self.task.metrics, *(f"{self.task.metrics[0]}_{size}" for size in self._sizes))

    def require_different_answers(self) -> None:
        if self._trains_on_all:
            super().require_different_answers()

    def answers_of(self, layout: TextLayout, outputs: Mapping[str, Any]) -> np.ndarray:
        return super().answers_of(layout, {"logits": self._cosines(outputs)})

    def averaged(self, split: str, outputs: Sequence[dict[str, Any]]) -> dict[str, Any]:
        return super().averaged(split, [{"logits": self._cosines(one)} for one in outputs])

    def _cosines(self, outputs: Mapping[str, Any]) -> np.ndarray:
        if "anchors" not in outputs:  # They are the cosines already, from `averaged`.
            return outputs["logits"]
        shortened = (np.asarray(at_size(dict(outputs), size)["logits"]) for size in self._sizes)
        return np.concatenate([outputs["logits"], *shortened], axis=1)

    def evaluate(self, split: str, answers: np.ndarray) -> dict[str, float]:
        found = super().evaluate(split, answers)
        for size, cosines in zip(self._sizes, answers.T[1:], strict=True):
            found[f"{self.main_metric}_{size}"] = super().evaluate(split, cosines[:, None])[self.main_metric]
        return found

    def baseline(self, split: str) -> dict[str, float]:
        """The scores of a constant answer, which correlates with nothing."""
        return dict.fromkeys(self.metric_names, 0.0)

    def windows(self, split: str, labelled: bool = False) -> Iterator[TextWindow]:
        if split != TRAIN or self._training is None:
            yield from (self._with_cosines(window, self.task) for window in super().windows(split, labelled))
            return
        task, source = self._training
        rows, window = ExampleRows(task, split, source), None
        used = rows if self._trains_on_all else filter(self._is_positive, rows)
        for window in text_windows(used, rows.origin, rows.reader.array):
            yield self._with_cosines(window, task)
        if window is None:
            raise UserError(f"{rows.origin}: needs at least one positive pair. Received: none. Lower data.positive.")
        self.notes += rows.warnings()

    def lay_out(self, windows: Iterable[TextWindow]) -> TextLayout:
        found = super().lay_out(windows)
        if found.labels is not None and not self._trains_on_all:
            positive = (found.labels >= self._config.data.positive).astype("float32")
            # The weights affect only the loss, not the scores; without any positive, all pairs count.
            found.rows.extra["example_weights"] = positive if positive.any() else np.ones_like(positive)
        return found

    def _with_cosines(self, window: TextWindow, task: Task) -> TextWindow:
        """For the loss `cosine`, scales the scores to 0 to 1, which does not change their correlation."""
        vectors = self._config.vectors
        if vectors.loss != COSINE or window.labels is None:
            return window
        lowest, highest = task.label_range or vectors.score_range or (0.0, 1.0)
        outside = window.labels[(window.labels < lowest) | (window.labels > highest)]
        if len(outside) and not self._is_trained:  # For a trained model, they distort only the reported loss.
            raise UserError(
                f"{window.origin}: needs scores from {lowest:g} to {highest:g}. Received: {outside[0]:g}. "
                "Give the range: vectors.score_range=[LOWEST,HIGHEST]."
            )
        return dataclasses.replace(window, labels=(window.labels - np.float32(lowest)) / np.float32(highest - lowest))

    def _new_rows(self) -> SequenceRows:
        return PairRows(self._tokenizer, self._config.input)

    def _is_positive(self, row: ExampleRow) -> bool:
        return row.label is None or float(row.label) >= self._config.data.positive  # type: ignore[arg-type]


class PairRows(SequenceRows):
    """Like `SequenceRows`, but with a row for each text of an example: [CLS] first [SEP], [CLS] second [SEP], …"""

    _texts = 2

    def add(self, texts: Sequence[Sequence[str]]) -> None:
        self._texts = len(texts)
        super().add([[text for pair in zip(*texts, strict=True) for text in pair]])

    def rows(self) -> TokenRows:
        rows = super().rows()
        return dataclasses.replace(rows, group_starts=np.arange(0, len(rows) + 1, self._texts, dtype=np.int64))

    def examples(self) -> np.ndarray:
        return super().examples()[:: self._texts] // self._texts
