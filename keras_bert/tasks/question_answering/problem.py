"""Finding answers in passages as a problem to fine-tune on: rows in, scores and files of answers out."""

import json

from keras_bert import extras
from keras_bert.config.span_extraction import SpanExtractionConfig
from keras_bert.errors import UserError
from keras_bert.files import atomic_write, join, make_folder
from keras_bert.models.span_extraction import BertForQuestionAnswering
from keras_bert.models.span_objective import SpanObjective
from keras_bert.tasks.question_answering.answer_spans import load_questions, with_unanswerable
from keras_bert.tasks.question_answering.cmrc_scores import cmrc_scores
from keras_bert.tasks.question_answering.decoding import decode, decoded, n_best_list
from keras_bert.tasks.question_answering.squad import CHARACTERS
from keras_bert.tasks.question_answering.squad_scores import squad_v1_scores, squad_v2_scores
from keras_bert.tasks.question_answering.windows import question_windows
from keras_bert.tasks.task import NamedSplits

N_BEST = 20  # run_squad.py's n_best_size.


class QuestionAnsweringProblem(NamedSplits):
    """A `SpanTask` over a source, for the one loop of fine-tuning.

    Args:
        task: a `SpanTask`.
        tokenizer: a `WordPieceTokenizer`.
        source: see `load_questions`.
        max_length: the most pieces of a row, special tokens included.
        stride: pieces from the beginning of one window of a passage to that of the next.
        max_question_length: pieces after which a question is cut.
        n_best: how many answers `write_predictions` lists.
        null_threshold: for tasks with unanswerable questions, see `null_threshold` below.

    Attributes:
        task: the `SpanTask`, which knows whether questions may be unanswerable.
        objective: the `SpanObjective`.
        main_metric: its name; higher is better. Scores are in per cent, as the official scripts give them.
        head: the `SpanExtractionConfig`.
        notes: what a user should know of the files read so far, one line each.
        by_token, per_cent: as of every problem, see `tasks.problems`.
        metric_names: what `evaluate` always gives, the main metric first.
        null_threshold: what the odds of no answer must be above for that to be the answer; `tune` sets it.

    Raises:
        UserError: a file is wrong (see `load_questions`), or the lengths leave a passage no room.
    """

    by_token, per_cent = ("start_logits", "end_logits"), True

    def __init__(
        self,
        task,
        tokenizer,
        source="",
        max_length=384,
        stride=128,
        max_question_length=64,
        n_best=N_BEST,
        null_threshold=0.0,
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
        self.null_threshold = null_threshold
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

    def make_model(self, bert_config, dtype=None):
        """A new `BertForQuestionAnswering`."""
        return BertForQuestionAnswering(bert_config, dtype=dtype)

    def described(self):
        """What the model's folder keeps, so that it can be used without the recipe."""
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
            return ("best_f1", "best_exact", "f1", "exact")
        return ("f1", "exact_match")

    @property
    def main_metric(self):
        return self.metric_names[0]

    def origin(self, split):
        """The file or data set that a split is read from."""
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
        answered, windows = self._split(split)
        decoded = decode(answered, windows, outputs, self.task.max_answer_length, self._n_best)
        return {question.id: answer for question, answer in zip(answered.questions, decoded)}

    def served_answers(self, split, function):
        """`answers`, of the model's `ServingFunction`."""
        answered, _ = self._split(split)
        texts = [question.text for question in answered.questions]
        contexts = [answered.passages[question.passage] for question in answered.questions]
        served = function.answers_by_length(texts, contexts)
        return {question.id: decoded(row) for question, row in zip(answered.questions, served)}

    def evaluate(self, split, answers):
        """`{metric: float}` in per cent, the official script's figures (`squad_scores`, `cmrc_scores`).

        With unanswerable questions `exact` and `f1` are at `null_threshold`, and `best_exact` and `best_f1` those of
        the best thresholds.

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
        return self.null_threshold

    def baseline(self, split):
        """The scores of no answer to any question."""
        references = self._references(split)
        nothing = dict.fromkeys(references, "")
        if self.task.scoring == CHARACTERS:
            return cmrc_scores(references, nothing)
        if not self.task.unanswerable:
            return squad_v1_scores(references, nothing)
        return squad_v2_scores(references, nothing, dict.fromkeys(references, 0.0), 0.0)

    def remarks(self, split, answers):
        """Lines that a person must see: answers that are all alike."""
        texts = self._texts(answers)
        if len(texts) > 1 and len(set(texts.values())) == 1:
            yield (
                f"Every question of {split} is answered with {next(iter(texts.values()))[:40]!r}: the training "
                "failed. Try another seed, a lower learning rate or more epochs."
            )

    def confusion(self, split, answers):
        """None: answers are no classes."""

    def write_predictions(self, split, answers, folder):
        """Writes the answers as run_squad.py does, and returns the files' paths.

        predictions.json has `{id: text}`, nbest.json `{id: [{"text", "probability", "start_logit", "end_logit",
        "start", "end"}]}` with the places in code points of the passage, and null_odds.json, for tasks with
        unanswerable questions, `{id: number}`.
        """
        contents = {
            "predictions.json": self._texts(answers),
            "nbest.json": {name: n_best_list(answer, self.task.unanswerable) for name, answer in answers.items()},
        }
        if self.task.unanswerable:
            contents["null_odds.json"] = {name: answer.null_odds for name, answer in answers.items()}
        make_folder(folder)
        for name, content in contents.items():
            with atomic_write(join(folder, name)) as stream:
                json.dump(content, stream, ensure_ascii=False, indent=1)
                stream.write("\n")
        return [join(folder, name) for name in contents]

    def _split(self, split):
        """(`AnsweredQuestions`, `QuestionWindows`), read once."""
        if split not in self._splits:
            answered = load_questions(self.task, split, self._source)
            windows = question_windows(answered, self._tokenizer, **self._lengths)
            self.notes += [*answered.warnings, *windows.warnings]
            self._splits[split] = answered, windows
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
        return squad_v2_scores(references, texts, odds, self.null_threshold)
