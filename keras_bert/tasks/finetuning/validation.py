"""Scores a fine-tuning run on the task's dev splits, during training and at its best checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from keras_bert.tasks.evaluator import Evaluator
from keras_bert.tasks.finetuning.results import per_cent_scale
from keras_bert.tasks.problem import Answers, Problem
from keras_bert.training.checkpoints import Checkpoints
from keras_bert.training.metrics import Column
from keras_bert.training.metrics_log import read_metrics

_METRICS_SHOWN = 3


class Validation:
    """Validates on the first dev split during training, and on all of them at the end.

    It remembers the answers of the last validation, which is often the best one: SQuAD's take minutes to compute.

    Args:
        evaluator: computes the answers.
        baseline: `Problem.baseline` of each dev split.
    """

    def __init__(self, problem: Problem, evaluator: Evaluator, baseline: Mapping[str, dict[str, float]]):
        self._problem = problem
        self._evaluator = evaluator
        self._baseline = baseline
        self._last: dict[tuple[str, int], tuple[Answers, dict[str, float]]] = {}  # By split and steps done.

    def figures(self, done: int) -> dict[str, float]:
        """The figures `eval_…` after `done` steps."""
        self._evaluator.settle()  # Checkpoints with a score are saved after this, so the best one is settled already.
        split = self._problem.dev_splits[0]
        answers, figures = self._evaluator.answers(split)
        self._last = {(split, done): (answers, figures)}
        scores = self._problem.evaluate(split, answers)
        return {f"eval_{name}": value for name, value in {**figures, **scores}.items()}

    def checkpoint_score(self, figures: Mapping[str, float]) -> float:
        """The score by which checkpoints are compared, from `figures`; lower is better."""
        return -figures[f"eval_{self._problem.main_metric}"]

    def columns(self) -> list[Column]:
        """The columns of the terminal's table for the first few metrics, in per cent."""
        scale, names = per_cent_scale(self._problem.per_cent), self._problem.metric_names[:_METRICS_SHOWN]
        return [Column(name.replace("_", " ").rjust(8), name, lambda score: f"{scale * score:.2f}") for name in names]

    def all_splits(self, done: int) -> tuple[dict[str, Any], dict[str, np.ndarray], dict[str, dict[str, np.ndarray]]]:
        """Scores every dev split with the current weights, those after `done` steps.

        What the task tunes on dev examples, such as a threshold, is tuned on the first split.

        Returns: ({"splits", "counts", "baseline", "overlap", "warnings"} for results.json, {split: confusion matrix}
            where the answers are classes, {split: `Problem.by_example`}).
        """
        problem = self._problem
        results: dict[str, Any] = {"splits": {}, "counts": {}, "baseline": {}, "overlap": {}, "warnings": []}
        confusions: dict[str, np.ndarray] = {}
        examples: dict[str, dict[str, np.ndarray]] = {}
        for split in problem.dev_splits:
            answers, figures = self._last.get((split, done)) or self._evaluator.answers(split)
            if split == problem.dev_splits[0]:
                problem.tune(split, answers)
            results["splits"][split] = {**figures, **problem.evaluate(split, answers)}
            results["counts"][split] = len(answers)
            results["baseline"][split] = self._baseline[split]
            results["overlap"][split] = problem.overlap_baseline(split)
            results["warnings"] += problem.remarks(split, answers)
            examples[split] = problem.by_example(split, answers)
            confusion = problem.confusion(split, answers)
            if confusion is not None:
                results["splits"][split]["confusion"] = confusion.tolist()
                confusions[split] = confusion
        return results, confusions, examples


def validations_since_best(checkpoints: Checkpoints, metrics_file: str, metric: str) -> int:
    """How many validations followed the best saved one; 0 if the newest is better but not saved yet.

    Args:
        metric: the metric that picks the best validation, higher is better.
    """
    best = checkpoints.best()
    if best is None:
        return 0
    step, score = best
    key = f"eval_{metric}"
    later = [line[key] for line in read_metrics(metrics_file) if key in line and line["step"] > step]
    is_better = later and later[-1] is not None and -later[-1] < score
    return 0 if is_better else len(later)
