"""Classification from a few labelled texts as a task for fine-tuning."""

import bisect
import collections
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import keras
import numpy as np
import sklearn.linear_model

from keras_bert.config.reading import HEAD_TAIL, TRUNCATE
from keras_bert.core.errors import UserError
from keras_bert.data.batches.token_rows import TokenRows
from keras_bert.data.corpus.held_out import text_hash
from keras_bert.inference.texts import require_numbers
from keras_bert.models.bert.config import BertConfig
from keras_bert.tasks.classification.answers import TextWindow, text_windows
from keras_bert.tasks.classification.data import ExampleRow, ExampleRows
from keras_bert.tasks.classification.problem import SequenceProblem
from keras_bert.tasks.few_shot.network import LabelPairsObjective
from keras_bert.tasks.few_shot.task import FewShotConfig

TRAIN = "train"
_TOLERANCE, _MOST_ITERATIONS = 1e-9, 10_000


class FewShotProblem(SequenceProblem):
    """Texts with classes: the encoder is trained on pairs of texts, and the head is fitted to their vectors.

    If `data.shots` is set, the training texts are drawn anew for each seed.
    """

    objective = LabelPairsObjective()
    long = (TRUNCATE, HEAD_TAIL)
    head: FewShotConfig

    @property
    def compares_examples(self) -> bool:
        return True

    def _open(self) -> None:
        super()._open()
        self._seed = self._config.training.seed

    def _new_head(self) -> FewShotConfig:
        return FewShotConfig(self.task.labels or ())

    def make_model(self, bert_config: BertConfig, dtype: str | None = None) -> keras.Model:
        model = super().make_model(bert_config, dtype)
        model.logistic_head.trainable = False  # `settle` fits it.
        return model

    def training_rows(self, seed: int) -> tuple[TokenRows, dict[str, dict[str, float]]]:
        if self._config.data.shots and seed != self._seed:
            self._seed = seed
            self._kept.pop(TRAIN, None)
        return super().training_rows(seed)

    def windows(self, split: str, labelled: bool = False) -> Iterator[TextWindow]:
        if split != TRAIN or not labelled:
            yield from super().windows(split, labelled)
            return
        rows, shots = ExampleRows(self.task, split, self._source), self._config.data.shots
        counts = np.zeros(self.head.num_labels, int)
        examples = draw_shots(rows, shots, self._seed) if shots else rows
        for window in text_windows(examples, rows.origin, rows.reader.array):
            assert window.labels is not None
            counts += np.bincount(window.labels, minlength=len(counts))
            yield window
        self.notes += [*rows.warnings(), self._count(rows.origin, counts.tolist())]

    def require_different_answers(self) -> None:
        return  # `_count` wants a text of each class, and one is enough.

    def _count(self, origin: str, counts: list[int]) -> str:
        """A note of how many texts there are to train on. Raises `UserError` if a class has none."""
        if 0 in counts:
            raise UserError(
                f"{origin}: needs at least one text of each class to train on. Received: none of "
                f"{self.head.labels[counts.index(0)]!r}. Give more texts, or a --dev file, so that none are held "
                "out."
            )
        least, most = min(counts), max(counts)
        of_each = f"{least:,}" if least == most else f"{least:,} to {most:,}"
        return f"{origin}: {sum(counts):,} texts to train on, {of_each} of each of {len(counts)} classes."

    def settle(self, model: keras.Model, outputs: Callable[[TokenRows], dict[str, Any]]) -> None:
        rows = self.rows(TRAIN)
        vectors = outputs(rows)["vectors"]
        require_numbers(vectors)
        dense = model.logistic_head.dense
        fitted = fit_logistic_regression(vectors, rows.extra["labels"])
        for variable, value in zip((dense.kernel, dense.bias), fitted, strict=True):
            variable.assign(value)


def draw_shots(rows: Iterable[ExampleRow], shots: int, seed: int) -> list[ExampleRow]:
    """Draws at most `shots` examples of each class, in the file's order: those with the smallest hashes.

    The hash is of the seed and the texts, so the draw does not depend on the file's order. Of equal texts in a class,
    only the first is drawn.
    """
    smallest: dict[object, list[tuple[int, int, ExampleRow]]] = collections.defaultdict(list)
    for position, row in enumerate(rows):
        of_class, value = smallest[row.label], text_hash("\0".join([str(seed), *row.texts]))
        place = bisect.bisect_left(of_class, (value,))
        is_new = place == len(of_class) or of_class[place][0] != value
        if is_new and place < shots:
            of_class.insert(place, (value, position, row))
            del of_class[shots:]
    chosen = sorted((position, row) for of_class in smallest.values() for _, position, row in of_class)
    return [row for _, row in chosen]


def fit_logistic_regression(vectors: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Fits logistic regression with SetFit's L2 penalty; returns (kernel [hidden, classes], bias [classes]).

    The problem is convex: its solution depends only on the vectors and labels.

    Args:
        vectors: [texts, hidden].
        labels: int [texts], from 0 to classes - 1, each of them at least once.
    """
    regression = sklearn.linear_model.LogisticRegression(C=1.0, tol=_TOLERANCE, max_iter=_MOST_ITERATIONS)
    regression.fit(np.asarray(vectors, "float64"), labels)
    kernel, bias = regression.coef_.T, regression.intercept_
    if len(bias) == 1:  # With two classes, it is the logit of the second against the first.
        kernel, bias = (np.concatenate([-half, half], axis=-1) for half in (kernel / 2, bias / 2))
    return kernel, bias
