"""Question answering as a task for fine-tuning: rows in, scores and files of answers out."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from keras_bert.config.reading import FIELD, TRUNCATE, WINDOWS, read_own_field
from keras_bert.core import imports
from keras_bert.core.errors import UserError
from keras_bert.tasks.answer_files import FOLDER, json_objects
from keras_bert.tasks.problem import Layout, Problem, all_the_same, mean_of_softmax
from keras_bert.tasks.question_answering.data import (
    NONE,
    AnsweredQuestions,
    asked_questions,
    load_questions,
    noisy_questions,
    with_unanswerable,
)
from keras_bert.tasks.question_answering.decoding import Decoded, decode, n_best_list
from keras_bert.tasks.question_answering.network import SpanObjective
from keras_bert.tasks.question_answering.scores import cmrc_scores, squad_v1_scores, squad_v2_scores
from keras_bert.tasks.question_answering.task import CHARACTERS, AnsweringConfig, SpanExtractionConfig, SpanTask
from keras_bert.tasks.question_answering.windows import QuestionWindows, question_windows

_STRIDE = 128  # run_squad.py's doc_stride.
_N_BEST = 20  # run_squad.py's n_best_size.
Answers = Mapping[str, Decoded]  # By the questions' ids.


@dataclasses.dataclass(kw_only=True)
class QuestionLayout(Layout):
    """Questions, with the windows of their passages as rows; see `QuestionWindows` for their `extra`."""

    answered: AnsweredQuestions
    windows: QuestionWindows


class QuestionAnsweringProblem(Problem):
    """A `SpanTask`. The answers are `{id: Decoded}`.

    `task_record` may have the `null_threshold` and the `max_answer_length` of a trained model.

    Attributes:
        task: the task, with `unanswerable` set.
        null_threshold: the answer is "no answer" if `Decoded.null_odds` is larger; until `tune` sets it, the trained
            model's, or else 0.

    Raises:
        UserError: a file is malformed (see `load_questions`), or the lengths leave no room for a passage.
    """

    objective = SpanObjective()
    by_token, per_cent = ("start_logits", "end_logits"), True
    answers_ending = ""
    takes_noise = True
    long = (TRUNCATE, WINDOWS)  # Always in windows; truncating is the default.

    task: SpanTask
    null_threshold: float

    def _open(self) -> None:
        input_config, task = self._config.input, self.task
        special_tokens = self._tokenizer.vocabulary.row_pattern.special_tokens(2)
        shortest = special_tokens + input_config.max_question_length + 1
        if input_config.max_length < shortest:
            raise UserError(
                f"input.max_length: needs at least {shortest}, so that a question of "
                f"{input_config.max_question_length} pieces leaves room for the passage. Received: "
                f"{input_config.max_length}."
            )
        if task.scoring == CHARACTERS:
            # Checked now, not after hours of training.
            imports.require("nltk", f"The scores of {task.name}")
        answering = read_own_field(
            AnsweringConfig, {FIELD: self._task_record}, "config.json", max_answer_length=task.max_answer_length
        )
        task = dataclasses.replace(task, max_answer_length=answering.max_answer_length)
        self.task = with_unanswerable(task, self._source)
        self._trained_threshold = self._task_record.get("null_threshold")
        self.forget_tuning()
        self._lengths = {
            "max_length": input_config.max_length,
            "stride": input_config.stride or _STRIDE,
            "max_question_length": input_config.max_question_length,
        }

    def _new_head(self) -> SpanExtractionConfig:
        return SpanExtractionConfig(bilstm_size=self._config.head.bilstm_size)

    def task_record(self) -> dict[str, Any]:
        return {
            "task": self.task.name,
            **self._lengths,
            "max_answer_length": self.task.max_answer_length,
            "scoring": self.task.scoring,
            "unanswerable": self.task.unanswerable,
            "null_threshold": self.null_threshold,
        }

    @property
    def metric_names(self) -> tuple[str, ...]:
        if self.task.scoring == CHARACTERS:
            return ("f1", "exact_match", "average")
        if self.task.unanswerable:
            return ("best_f1", "best_exact", "f1", "exact", *(("tuned_f1", "tuned_exact") if self._is_tuned else ()))
        return ("f1", "exact_match")

    def windows(self, split: str, labelled: bool = False) -> Iterator[AnsweredQuestions]:
        """Like `Problem.windows`; a split with answers is a single window, from which questions may be skipped."""
        if not labelled:
            yield from asked_questions(self.task, split, self._source)
            return
        answered = load_questions(self.task, split, self._source)
        yield noisy_questions(answered, self.noise) if self.noise else answered

    def lay_out(self, windows: Iterable[AnsweredQuestions]) -> QuestionLayout:
        """The rows of the questions of a single window."""
        [answered] = windows
        found = question_windows(answered, self._tokenizer, **self._lengths)
        warnings = [*answered.warnings, *found.warnings]
        return QuestionLayout(
            rows=found.rows, origin=answered.origin, warnings=warnings, answered=answered, windows=found
        )

    def answers_of(self, layout: QuestionLayout, outputs: Mapping[str, Any]) -> Answers:
        found = decode(layout.answered, layout.windows, outputs, self.task.max_answer_length, _N_BEST)
        return {question.id: answer for question, answer in zip(layout.answered.questions, found)}

    def averaged(self, split: str, outputs: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """Like `Problem.averaged`, with the softmax of starts and of ends over all tokens of a question's windows."""
        first_rows = self.layout(split).windows.first_rows
        found: dict[str, Any] = {}
        for name in self.by_token:
            rows: list[np.ndarray] = []
            for first, end in itertools.pairwise(first_rows.tolist()):
                windows = outputs[0][name][first:end]
                mean = mean_of_softmax([np.concatenate(one[name][first:end]) for one in outputs])
                rows += np.split(mean, np.cumsum([len(window) for window in windows])[:-1])
            found[name] = rows
        return found

    def output_kind(self, split: str) -> str:
        return FOLDER

    @contextlib.contextmanager
    def writing(self, split: str, output: str) -> Iterator[Callable[[AnsweredQuestions, Answers], Any]]:
        """Writes the files of run_squad.py.

        predictions.json has `{id: text}`, nbest.json `{id: [{"text", "probability", "start_logit", "end_logit",
        "start", "end"}]}` with positions in code points of the passage, and null_odds.json, for tasks with unanswerable
        questions, `{id: number}`.
        """
        contents: dict[str, Callable[[Answers], dict[str, Any]]] = {
            "predictions.json": self._texts,
            "nbest.json": lambda answers: {
                name: n_best_list(answer, bool(self.task.unanswerable)) for name, answer in answers.items()
            },
        }
        if self.task.unanswerable:
            contents["null_odds.json"] = lambda answers: {name: answer.null_odds for name, answer in answers.items()}
        with json_objects(output, contents) as members:
            yield lambda window, answers: [members[name](content(answers)) for name, content in contents.items()]

    def require_labels(self, split: str) -> None:
        self._references(split)

    def require_different_answers(self) -> None:
        spans = self.layout("train").answered.spans
        if spans is not None and len(spans) > 1 and (spans == NONE).all():
            raise UserError(
                f"{self.origin('train')}: needs questions with an answer to train on. Received: none for all "
                f"{len(spans):,}. Give training data with answers."
            )

    def evaluate(self, split: str, answers: Answers) -> dict[str, float]:
        """The official script's figures, in per cent (`scores.py`).

        With unanswerable questions there are three of each, which differ in the threshold for "no answer": `exact` and
        `f1` at 0; `tuned_exact` and `tuned_f1` at `null_threshold`, which the model uses once it is tuned; `best_exact`
        and `best_f1`, the official ones, at the thresholds that are best for this split.
        """
        return self._scores(self._references(split), answers)

    def by_example(self, split: str, answers: Answers) -> dict[str, np.ndarray]:
        """The figures of each question alone, except those at the threshold that is best for all questions."""
        references = self._references(split)
        alone = [self._scores({name: texts}, {name: answers[name]}) for name, texts in references.items()]
        names = [name for name in self.metric_names if not name.startswith("best_")]
        return {name: np.array([(scores[name] / 100.0, 1.0) for scores in alone]) for name in names}

    def tune(self, split: str, answers: Answers) -> None:
        """Sets `null_threshold` to the one with the best F1 on a split, if questions may be unanswerable."""
        if not self.task.unanswerable:
            return
        references = self._references(split)
        scores = self._scores(references, answers)
        self.null_threshold = scores["best_f1_thresh"]
        unanswerable = sum(not texts for texts in references.values())
        if scores["best_f1"] == 100.0 * unanswerable / len(references):
            # It is best to answer nothing, for which the official script gives no threshold.
            self.null_threshold = min(answer.null_odds for answer in answers.values()) - 1.0
        self._is_tuned = True

    def forget_tuning(self, of_model: bool = False) -> None:
        if of_model:
            self._trained_threshold = None
        self.null_threshold = self._trained_threshold or 0.0
        self._is_tuned = self._trained_threshold is not None

    def baseline(self, split: str) -> dict[str, float]:
        """The scores of answering nothing."""
        references = self._references(split)
        nothing = dict.fromkeys(references, "")
        if self.task.scoring == CHARACTERS:
            return cmrc_scores(references, nothing)
        if not self.task.unanswerable:
            return squad_v1_scores(references, nothing)
        scores = squad_v2_scores(references, nothing, dict.fromkeys(references, 0.0))
        return {**scores, "tuned_exact": scores["exact"], "tuned_f1": scores["f1"]}

    def remarks(self, split: str, answers: Answers) -> Iterator[str]:
        texts = list(self._texts(answers).values())
        return all_the_same(texts, lambda text: f"Every question of {split} is answered with {text[:40]!r}")

    def _texts(self, answers: Answers) -> dict[str, str]:
        """`{id: text}`, with "" for no answer."""
        if not self.task.unanswerable:
            return {name: answer.best_text for name, answer in answers.items()}
        return {
            name: "" if answer.null_odds > self.null_threshold else answer.best_text for name, answer in answers.items()
        }

    def _references(self, split: str) -> dict[str, list[str]]:
        """`{id: texts}`."""
        answered = self.layout(split).answered
        if answered.spans is None:
            raise UserError(
                f"{answered.origin}: needs answers to evaluate on. Received: the split {split!r}, without. Give a file "
                "with answers, or use `predict`."
            )
        return {question.id: [answer.text for answer in question.answers or ()] for question in answered.questions}

    def _scores(self, references: Mapping[str, list[str]], answers: Answers) -> dict[str, float]:
        texts = {name: answer.best_text for name, answer in answers.items()}
        if self.task.scoring == CHARACTERS:
            return cmrc_scores(references, texts)
        if not self.task.unanswerable:
            return squad_v1_scores(references, texts)
        odds = {name: answer.null_odds for name, answer in answers.items()}
        scores = squad_v2_scores(references, texts, odds)
        if self._is_tuned:
            tuned = squad_v2_scores(references, texts, odds, self.null_threshold)
            scores |= {f"tuned_{name}": tuned[name] for name in ("exact", "f1")}
            scores["tuned_thresh"] = self.null_threshold
        return scores
