"""Finding answers in passages as a problem to fine-tune on: rows in, scores and files of answers out."""

import contextlib

from keras_bert import extras
from keras_bert.config.heads import SpanExtractionConfig
from keras_bert.errors import UserError
from keras_bert.models.span_objective import SpanObjective
from keras_bert.tasks.answer_files import FOLDER, json_objects
from keras_bert.tasks.examples.windows import windows
from keras_bert.tasks.problem import Problem
from keras_bert.tasks.question_answering.answer_spans import (
    load_questions,
    passages_with_questions,
    with_unanswerable,
)
from keras_bert.tasks.question_answering.cmrc_scores import cmrc_scores
from keras_bert.tasks.question_answering.decoding import decode, decoded, n_best_list
from keras_bert.tasks.question_answering.squad import CHARACTERS
from keras_bert.tasks.question_answering.squad_scores import squad_v1_scores, squad_v2_scores
from keras_bert.tasks.question_answering.windows import question_windows

N_BEST = 20  # run_squad.py's n_best_size.
_CHARACTERS_AT_ONCE = 1 << 20


class QuestionAnsweringProblem(Problem):
    """A `SpanTask` over a source, for the one loop of fine-tuning.

    Args:
        task: a `SpanTask`.
        tokenizer: a `WordPieceTokenizer`.
        source: see `load_questions`.
        max_length: the most pieces of a row, special tokens included.
        stride: pieces from the beginning of one window of a passage to that of the next.
        max_question_length: pieces after which a question is cut.
        n_best: how many answers nbest.json lists.
        null_threshold: for tasks with unanswerable questions, see `null_threshold` below; None before it is tuned.

    Attributes:
        task: the `SpanTask`, which knows whether questions may be unanswerable.
        null_threshold: what the odds of no answer must be above for that to be the answer; 0 until `tune` sets it.

    Raises:
        UserError: a file is wrong (see `load_questions`), or the lengths leave a passage no room.
    """

    by_token, per_cent = ("start_logits", "end_logits"), True
    answers_ending = ""

    def __init__(
        self,
        task,
        tokenizer,
        source="",
        max_length=384,
        stride=128,
        max_question_length=64,
        n_best=N_BEST,
        null_threshold=None,
    ):
        if max_length - 3 - max_question_length < 1:
            raise UserError(
                f"max_length: needs {max_question_length + 4} or more, so that a question of {max_question_length} "
                f"pieces leaves the passage room. Received: {max_length}."
            )
        if stride < 1:
            raise UserError(f"stride: needs one piece or more. Received: {stride}.")
        if task.scoring == CHARACTERS:
            # Said now, not after hours of training.
            extras.require("nltk", f"The scores of {task.name}")
        self.task = with_unanswerable(task, source)
        self.objective = SpanObjective()
        self.null_threshold = null_threshold or 0.0
        self._is_tuned = null_threshold is not None
        self._tokenizer = tokenizer
        self._source = source
        self._lengths = {"max_length": max_length, "stride": stride, "max_question_length": max_question_length}
        self._n_best = n_best
        self._splits = {}
        self.head = SpanExtractionConfig()
        self.notes = []

    @property
    def splits(self):
        return tuple(self.task.splits)

    def described(self):
        return {
            "task": self.task.name,
            **self._lengths,
            "max_answer_length": self.task.max_answer_length,
            "scoring": self.task.scoring,
            "unanswerable": self.task.unanswerable,
            "null_threshold": self.null_threshold,
        }

    @property
    def metric_names(self):
        if self.task.scoring == CHARACTERS:
            return ("f1", "exact_match", "average")
        if self.task.unanswerable:
            return ("best_f1", "best_exact", "f1", "exact", *(("tuned_f1", "tuned_exact") if self._is_tuned else ()))
        return ("f1", "exact_match")

    @property
    def main_metric(self):
        return self.metric_names[0]

    def origin(self, split):
        return self._split(split)[0].origin

    def rows(self, split):
        """The `TokenRows` of a split's windows; see `QuestionWindows` for what `extra` holds."""
        return self._split(split)[1].rows

    def answers(self, split, outputs):
        """`{id: Decoded}` of a split.

        Args:
            split: its name.
            outputs: `{"start_logits", "end_logits"}`, each a list with one array [length] for each of `rows`.

        Raises:
            UserError: a logit is no finite number.
        """
        answered, found = self._split(split)
        answers = decode(answered, found, outputs, self.task.max_answer_length, self._n_best)
        return {question.id: answer for question, answer in zip(answered.questions, answers)}

    def windows(self, split):
        """Lists of (question's id, question, passage)."""
        asked = (
            (question.id, question.text, passage)
            for passage, questions in passages_with_questions(self.task, split, self._source)
            for question in questions
        )
        return windows(asked, _CHARACTERS_AT_ONCE, lambda question: sum(map(len, question)))

    def window_answers(self, window, function):
        """`{id: Decoded}` of a window."""
        names, texts, contexts = zip(*window)
        return dict(zip(names, map(decoded, function.answers_by_length(texts, contexts))))

    def output_kind(self, split):
        return FOLDER

    @contextlib.contextmanager
    def writing(self, split, folder):
        """The files are those of run_squad.py.

        predictions.json has `{id: text}`, nbest.json `{id: [{"text", "probability", "start_logit", "end_logit",
        "start", "end"}]}` with the places in code points of the passage, and null_odds.json, for tasks with
        unanswerable questions, `{id: number}`.
        """
        contents = {
            "predictions.json": self._texts,
            "nbest.json": lambda answers: {
                name: n_best_list(answer, self.task.unanswerable) for name, answer in answers.items()
            },
        }
        if self.task.unanswerable:
            contents["null_odds.json"] = lambda answers: {name: answer.null_odds for name, answer in answers.items()}
        with json_objects(folder, contents) as members:
            yield lambda window, answers: [members[name](content(answers)) for name, content in contents.items()]

    def served_answers(self, split, function):
        found = {}
        for window in self.windows(split):
            found |= self.window_answers(window, function)
        return found

    def evaluate(self, split, answers):
        """`{metric: float}` in per cent, the official script's figures (`squad_scores`, `cmrc_scores`).

        With unanswerable questions there are three of either kind, which differ in the threshold of no answer: `exact`
        and `f1` at 0, where nothing was tuned; `tuned_exact` and `tuned_f1` at `null_threshold`, by which the model
        answers, once it is tuned; `best_exact` and `best_f1`, the official ones, at those that are best for this very
        split.

        Raises:
            UserError: the split has no answers of its own.
        """
        return self._scores(self._references(split), answers)

    def tune(self, split, answers):
        """Sets `null_threshold` to that of the best F1 on a split; returns it. Nothing where all have answers."""
        if self.task.unanswerable:
            references = self._references(split)
            scores = self._scores(references, answers)
            self.null_threshold = scores["best_f1_thresh"]
            unanswerable = sum(not texts for texts in references.values())
            if scores["best_f1"] == 100.0 * unanswerable / len(references):
                # The best is to answer nothing, for which the official script names no threshold.
                self.null_threshold = min(answer.null_odds for answer in answers.values()) - 1.0
            self._is_tuned = True
        return self.null_threshold

    def baseline(self, split):
        """The scores of no answer to any question."""
        references = self._references(split)
        nothing = dict.fromkeys(references, "")
        if self.task.scoring == CHARACTERS:
            return cmrc_scores(references, nothing)
        if not self.task.unanswerable:
            return squad_v1_scores(references, nothing)
        scores = squad_v2_scores(references, nothing, dict.fromkeys(references, 0.0))
        return {**scores, "tuned_exact": scores["exact"], "tuned_f1": scores["f1"]}

    def remarks(self, split, answers):
        texts = self._texts(answers)
        if len(texts) > 1 and len(set(texts.values())) == 1:
            yield (
                f"Every question of {split} is answered with {next(iter(texts.values()))[:40]!r}: the training "
                "failed. Try another seed, a lower learning rate or more epochs."
            )

    def _split(self, split):
        """(`AnsweredQuestions`, `QuestionWindows`), read once."""
        if split not in self._splits:
            answered = load_questions(self.task, split, self._source)
            found = question_windows(answered, self._tokenizer, **self._lengths)
            self.notes += [*answered.warnings, *found.warnings]
            self._splits[split] = answered, found
        return self._splits[split]

    def _texts(self, answers):
        """`{id: text}`, with "" for no answer."""
        if not self.task.unanswerable:
            return {name: answer.best_text for name, answer in answers.items()}
        return {
            name: "" if answer.null_odds > self.null_threshold else answer.best_text for name, answer in answers.items()
        }

    def _references(self, split):
        """`{id: [text, …]}`."""
        answered, _ = self._split(split)
        if answered.spans is None:
            raise UserError(
                f"{answered.origin}: needs answers to evaluate on. Received: the split {split!r}, without. Give a file "
                "with answers, or write predictions."
            )
        return {question.id: [answer.text for answer in question.answers] for question in answered.questions}

    def _scores(self, references, answers):
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
