"""Computes a model's outputs, answers and scores on the splits of a task."""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import keras
import tensorflow as tf

from keras_bert.core.terminal_bar import terminal_bar
from keras_bert.data.batches.length_batches import FEW_SHAPES, MANY_SHAPES, every_row_once
from keras_bert.data.batches.token_rows import TokenRows
from keras_bert.tasks.objective import ExampleObjective
from keras_bert.tasks.problem import Answers, Problem
from keras_bert.training.step import Batch, Step, all_outputs
from keras_bert.training.strategy import distribute, is_one_cpu

_T = TypeVar("_T")


@dataclasses.dataclass(frozen=True)
class _Batches:
    """The batches of some rows, each row once.

    Attributes:
        count: how many batches.
        distributed: the batches, spread over the replicas.
        spec: the spec of all batches, for which the model is traced once; None to trace it per shape.
    """

    rows: TokenRows
    count: int
    distributed: Iterable[Batch]
    spec: dict[str, tf.TensorSpec] | None


@dataclasses.dataclass(eq=False)
class Evaluator:
    """Computes a model's outputs, answers and scores on a task's splits.

    Args:
        strategy: the strategy in whose scope the model was made.
        batch_size: rows per batch.
        unlabelled: whether rows come without labels, in many windows. Then there are no figures, and the model is
            traced once for any batch shape, as it always is on one CPU; otherwise it is traced for the few shapes per
            split that need the least padding.
    """

    problem: Problem
    model: keras.Model
    pad_id: int
    strategy: tf.distribute.Strategy
    batch_size: int
    unlabelled: bool = False
    _of_splits: dict[str, _Batches] = dataclasses.field(default_factory=dict, init=False)

    @functools.cached_property
    def _step(self) -> Step:
        objective = _NoObjective() if self.unlabelled else self.problem.objective
        return Step(self.strategy, self.problem.answering(self.model), objective)

    def __call__(self, split: str) -> dict[str, float]:
        """The objective's figures and the scores on a split with labels."""
        answers, figures = self.answers(split)
        return {**figures, **self.problem.evaluate(split, answers)}

    def answers(self, split: str) -> tuple[Answers, dict[str, float]]:
        """(the answers, the objective's figures) on a split; its batches are laid out once and kept for later calls."""
        rows, batches = self.problem.rows(split), self._of_splits.get(split)
        if batches is None or batches.rows is not rows:  # Noise changes a split's rows.
            self._of_splits[split] = batches = self._batches(rows)
        outputs, figures = self._outputs(batches, None)
        return self.problem.answers(split, outputs), figures

    def settle(self) -> None:
        """Sets the weights that are computed from the trained ones; see `Problem.settle`."""
        self.problem.settle(self.model, lambda rows: self.outputs(rows)[0])

    def outputs(
        self, rows: TokenRows, progress: Callable[[float], object] | None = None
    ) -> tuple[dict[str, Any], dict[str, float]]:
        """(the model's outputs for some rows, as `Problem.answers_of` takes them; the objective's figures).

        Args:
            progress: called after each batch with the share of batches done; None shows a progress bar instead.
        """
        return self._outputs(self._batches(rows), progress)

    def _batches(self, rows: TokenRows) -> _Batches:
        traces_once = self.unlabelled or is_one_cpu(self.strategy)
        batch_size = min(self.batch_size, len(rows)) if self.unlabelled else self.batch_size
        batches = every_row_once(rows, batch_size, self.pad_id, most=MANY_SHAPES if traces_once else FEW_SHAPES)
        count, spec = int(batches.cardinality()), None
        if traces_once and count > 1:  # For a single batch, its own shape is traced faster.
            spec = {name: tf.TensorSpec([None, *of.shape[1:]], of.dtype) for name, of in batches.element_spec.items()}
        return _Batches(rows, count, distribute(self.strategy, batches), spec)

    def _outputs(
        self, batches: _Batches, progress: Callable[[float], object] | None
    ) -> tuple[dict[str, Any], dict[str, float]]:
        followed: Iterable[Batch]
        if progress:
            followed = _followed(batches.distributed, batches.count, progress)
        else:
            followed = terminal_bar("Evaluating", "batches", batches.count, batches.distributed, leave=False)
        outputs, figures = all_outputs(self._step, followed, self.problem.by_token, batches.spec)
        return {**outputs, **self.problem.shared_outputs(self.model)}, figures


class _NoObjective(ExampleObjective):
    """Measures nothing."""

    figures = terms = ()

    def figures_of(self, outputs: Mapping[str, Any], batch: Mapping[str, Any]) -> dict[str, Any]:
        return {}


def _followed(batches: Iterable[_T], count: int, progress: Callable[[float], object]) -> Iterator[_T]:
    """Yields the batches; after each, calls `progress` with the share of `count` done."""
    for number, batch in enumerate(batches, 1):
        yield batch
        progress(number / count)
