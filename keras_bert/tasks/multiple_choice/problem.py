"""Multiple choice as a problem for the loop of fine-tuning."""

import contextlib
import functools
import json
from collections import Counter

import numpy as np
import scipy.special

from keras_bert.config.heads import SINGLE_LABEL, MultipleChoiceConfig
from keras_bert.errors import UserError
from keras_bert.inference.finite_outputs import require_numbers
from keras_bert.models.classification_objective import ClassificationObjective
from keras_bert.tasks.answer_files import STANDARD_STREAM, text_output
from keras_bert.tasks.examples.sequence_rows import sequence_rows
from keras_bert.tasks.examples.sources import TfdsSource
from keras_bert.tasks.examples.windows import windows
from keras_bert.tasks.multiple_choice.examples import choice_examples, own_rows, swag_rows, swag_tfds_rows
from keras_bert.tasks.problem import Problem

_CHARACTERS_AT_ONCE = 1 << 20


class MultipleChoiceProblem(Problem):
    """The splits of a task of multiple choice, laid out for a model and judged.

    A row is [CLS] context [SEP] choice [SEP] (paper, section 4.4); an example is the rows of its choices, as many as it
    has. The loss is the cross-entropy over them.

    Args:
        task: a `ChoiceTask`.
        files: `{split: path}`, each read when it is asked for: SWAG's CSV where a name ends in .csv (.csv.gz, …), else
            one's own JSON lines. Or a `sources.TfdsSource`.
        tokenizer: the model's `WordPieceTokenizer`.
        settings: an `InputConfig`; its `long` may not be "windows".

    Attributes:
        head: the `MultipleChoiceConfig`.

    Raises:
        UserError: examples that are broken, or settings that do not fit.
    """

    main_metric = "accuracy"
    metric_names = ("accuracy",)

    def __init__(self, task, files, tokenizer, settings):
        if settings.long == "windows":
            raise UserError(f"input.long: needs truncate or head_tail for {task.name}. Received: 'windows'.")
        if isinstance(files, TfdsSource) and task.tfds is None:
            raise UserError(f"{task.name}: needs files. Received: TensorFlow Datasets, which does not have it.")
        self._task, self._files, self._tokenizer, self._settings = task, files, tokenizer, settings
        self.head = MultipleChoiceConfig()
        self.objective = ClassificationObjective(SINGLE_LABEL)
        self.notes = []
        self._layout = functools.cache(self._lay_out)  # Of each split once.

    @property
    def splits(self):
        return tuple(self._task.tfds if isinstance(self._files, TfdsSource) else self._files)

    def described(self):
        return {"task": self._task.name, "max_length": self._settings.max_length, "long": self._settings.long}

    def origin(self, split):
        return self._layout(split)[2]

    def rows(self, split):
        """The `TokenRows` of a split, one a choice in groups, with `labels`: 0 for all where they are hidden."""
        return self._layout(split)[0]

    def examples(self, split):
        """The `ChoiceExamples` of a split, read anew: of what is kept the texts are no part."""
        origin, rows, unit = self._opened(split)
        return choice_examples(origin, rows, unit)

    def answers(self, split, outputs):
        """List of float64 [choices], the logits of each example, without those of choices that it has not.

        Args:
            split: its name.
            outputs: `{"logits": list of arrays [choices or more]}`, the examples in their order.

        Raises:
            UserError: an output is no number.
        """
        return _logits(outputs["logits"], self.rows(split).group_sizes)

    def windows(self, split):
        """`ChoiceExamples` without labels."""
        origin, rows, unit = self._opened(split)
        window = None
        for window in windows(rows, _CHARACTERS_AT_ONCE, _characters):
            yield choice_examples(origin, window, unit, labelled=False)
        if window is None:
            choice_examples(origin, [])  # Says that there is none.

    def window_answers(self, window, function):
        """`answers` to the examples of a window."""
        served = function.answers_by_length(window.contexts, window.beginnings, window.choices)
        return _logits([row["logits"] for row in served], map(len, window.choices))

    @contextlib.contextmanager
    def writing(self, split, output):
        """One JSON object an example, as `own_rows` reads them, `label` the choice of the model,
        with the `probabilities` of all."""
        with text_output(output) as write:
            yield lambda window, answers: write(_lines(window, answers))

    def served_answers(self, split, function):
        return [logits for window in self.windows(split) for logits in self.window_answers(window, function)]

    def evaluate(self, split, answers):
        return self._scores(split, _chosen(answers))

    def baseline(self, split):
        """The scores, as `evaluate`'s, of the place that is right most often in training."""
        (place, _), *_ = Counter(self._labels("train").tolist()).most_common(1)
        return self._scores(split, np.full(len(self.rows(split)), place))

    def remarks(self, split, answers):
        predicted = _chosen(answers)
        if len(predicted) > 1 and len(set(predicted.tolist())) == 1:
            yield (
                f"Every example of {split} is predicted as choice {predicted[0]}: the training failed. "
                "Try another seed, a lower learning rate or more epochs."
            )

    def _opened(self, split):
        """(where from, its `ChoiceRow`s, what their numbers count) of a split."""
        if split not in self.splits:
            raise UserError(
                f"{self._task.name}: needs a file for the split {split!r}. "
                f"Received: {', '.join(self.splits) or 'none'}."
            )
        if isinstance(self._files, TfdsSource):
            return *swag_tfds_rows(self._task.tfds[split], self._files), "example"
        path = str(self._files[split])
        is_swag = self._task.tfds if path == STANDARD_STREAM else ".csv" in path.rpartition("/")[2].lower()
        return path, swag_rows(path) if is_swag else own_rows(path), "line"

    def _lay_out(self, split):
        """(its `TokenRows`, whether it has labels, where from) of a split."""
        examples = self.examples(split)
        counts = [len(choices) for choices in examples.choices]
        contexts = [context for context, count in zip(examples.contexts, counts) for _ in range(count)]
        continued = [
            f"{beginning} {choice}" if beginning else choice
            for beginning, choices in zip(examples.beginnings, examples.choices)
            for choice in choices
        ]
        rows, _ = sequence_rows([contexts, continued], self._tokenizer, self._settings)
        rows.group_starts = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
        rows.extra["labels"] = np.array(examples.labels or [0] * len(examples), np.int32)
        return rows, examples.labels is not None, examples.origin

    def _labels(self, split):
        """int32 [examples]."""
        rows, has_labels, origin = self._layout(split)
        if not has_labels:
            raise UserError(f"{origin}: needs labels. Received: none. Write predictions instead.")
        return rows.extra["labels"]

    def _scores(self, split, predicted):
        return {"accuracy": float(np.mean(self._labels(split) == predicted))}


def _characters(row):
    """Of a `ChoiceRow`, of which nothing is checked yet."""
    choices = row.choices if isinstance(row.choices, list) else []
    return sum(len(text) for text in (row.context, row.beginning, *choices) if isinstance(text, str))


def _logits(rows, counts):
    """List of float64 [choices], of rows with a number for each choice or more. Raises `UserError` for no number."""
    found = [np.asarray(row, "float64")[:count] for row, count in zip(rows, counts, strict=True)]
    require_numbers(found)
    return found


def _lines(examples, answers):
    """Iterates over the lines of JSON of the examples with the answers to them."""
    of_each = zip(examples.ids, examples.contexts, examples.beginnings, examples.choices, answers, strict=True)
    for id, context, beginning, choices, logits in of_each:
        row = {} if id is None else {"id": id}
        row |= {"context": context, **({"question": beginning} if beginning else {}), "choices": choices}
        row |= {"label": int(logits.argmax()), "probabilities": scipy.special.softmax(logits).tolist()}
        yield json.dumps(row, ensure_ascii=False) + "\n"


def _chosen(answers):
    """int [examples]: the choice of each, the first of equal ones."""
    return np.array([logits.argmax() for logits in answers])
