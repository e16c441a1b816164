"""Multiple choice as a problem for the loop of fine-tuning."""

import functools
import json
from collections import Counter
from dataclasses import dataclass

import numpy as np
import scipy.special

from keras_bert.config.classification import SINGLE_LABEL
from keras_bert.config.multiple_choice import MultipleChoiceConfig
from keras_bert.errors import UserError
from keras_bert.files import atomic_write
from keras_bert.models.classification_objective import ClassificationObjective
from keras_bert.models.finite_outputs import require_numbers
from keras_bert.models.multiple_choice import BertForMultipleChoice
from keras_bert.tasks.multiple_choice.examples import read_choices, read_swag, read_swag_tfds
from keras_bert.tasks.sequence_rows import sequence_rows
from keras_bert.tasks.sources import TfdsSource
from keras_bert.tasks.task import NamedSplits


@dataclass(frozen=True)
class ChoiceTask:
    """A task of multiple choice, as data.

    Attributes:
        name: as in `--task NAME`.
        patterns: split to the names that its file may have in a folder, for `split_files.find_split_files`.
        tfds: split to TFDS's name of it; None where TFDS does not have the task.
    """

    name: str
    patterns: dict
    tfds: dict | None = None


SWAG = ChoiceTask(
    "swag",
    {"train": ("train.csv",), "dev": ("val.csv", "dev.csv"), "test": ("test.csv",)},
    {"train": "train", "dev": "validation", "test": "test"},
)
CHOICE = ChoiceTask(
    "choice",
    {"train": ("train.jsonl", "*train*.jsonl"), "dev": ("dev.jsonl", "*dev*.jsonl"), "test": ("test.jsonl",)},
)
MULTIPLE_CHOICE = {task.name: task for task in (SWAG, CHOICE)}


class MultipleChoiceProblem(NamedSplits):
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
        main_metric, metric_names, by_token, objective, splits: as of every problem, see `tasks.problems`.
        notes: list of what a user should know, one line each.

    Raises:
        UserError: examples that are broken, or settings that do not fit.
    """

    main_metric = "accuracy"
    metric_names = ("accuracy",)
    by_token, per_cent = (), False

    def __init__(self, task, files, tokenizer, settings):
        if settings.long == "windows":
            raise UserError(f"input.long: needs truncate or head_tail for {task.name}. Received: 'windows'.")
        if isinstance(files, TfdsSource) and task.tfds is None:
            raise UserError(f"{task.name}: needs files. Received: TensorFlow Datasets, which does not have it.")
        self._task, self._files, self._tokenizer, self._settings = task, files, tokenizer, settings
        self.head = MultipleChoiceConfig()
        self.objective = ClassificationObjective(SINGLE_LABEL)
        self.notes = []
        # Of each split once.
        self.examples = functools.cache(self._read)
        self._layout = functools.cache(self._lay_out)

    @property
    def splits(self):
        return tuple(self._task.tfds if isinstance(self._files, TfdsSource) else self._files)

    def described(self):
        """What the model's folder keeps, so that it can be used without the recipe."""
        return {"task": self._task.name, "max_length": self._settings.max_length, "long": self._settings.long}

    def make_model(self, bert_config, dtype=None):
        """A new `BertForMultipleChoice`."""
        return BertForMultipleChoice(bert_config, dtype=dtype)

    def origin(self, split):
        """The file or data set that a split is read from."""
        return self.examples(split).origin

    def rows(self, split):
        """The `TokenRows` of a split, one a choice in groups, with `labels`: 0 for all where they are hidden."""
        return self._layout(split)

    def answers(self, split, outputs):
        """List of float64 [choices], the logits of each example, without those of choices that it has not.

        Args:
            split: its name.
            outputs: `{"logits": list of arrays [choices or more]}`, the examples in their order.

        Raises:
            UserError: an output is no number.
        """
        choices = self.examples(split).choices
        rows = [
            np.asarray(row, "float64")[: len(of_example)]
            for row, of_example in zip(outputs["logits"], choices, strict=True)
        ]
        require_numbers(rows)
        return rows

    def served_answers(self, split, function):
        """`answers`, of the model's `ServingFunction`."""
        examples = self.examples(split)
        served = function.answers_by_length(examples.contexts, examples.beginnings, examples.choices)
        return self.answers(split, {"logits": [row["logits"] for row in served]})

    def evaluate(self, split, answers):
        """`{"accuracy": float}` of a split with labels. Raises `UserError` where they are hidden."""
        return self._scores(split, _chosen(answers))

    def baseline(self, split):
        """The scores, as `evaluate`'s, of the place that is right most often in training."""
        (place, _), *_ = Counter(self._labels("train")).most_common(1)
        return self._scores(split, np.full(len(self.examples(split)), place))

    def tune(self, split, answers):
        """Nothing is chosen on the dev examples."""

    def remarks(self, split, answers):
        """Lines that a person must see: predictions that are all alike."""
        predicted = _chosen(answers)
        if len(predicted) > 1 and len(set(predicted.tolist())) == 1:
            yield (
                f"Every example of {split} is predicted as choice {predicted[0]}: the training failed. "
                "Try another seed, a lower learning rate or more epochs."
            )

    def confusion(self, split, answers):
        """None: the places of choices are no classes."""

    def write_predictions(self, split, answers, path):
        """Writes one JSON object an example, as `read_choices` reads them, `label` the choice of the model, with the
        `probabilities` of all."""
        examples = self.examples(split)
        rows = zip(examples.ids, examples.contexts, examples.beginnings, examples.choices, strict=True)
        with atomic_write(path) as stream:
            for (id, context, beginning, choices), logits in zip(rows, answers, strict=True):
                row = {} if id is None else {"id": id}
                row |= {"context": context, **({"question": beginning} if beginning else {}), "choices": choices}
                row |= {"label": int(logits.argmax()), "probabilities": scipy.special.softmax(logits).tolist()}
                stream.write(json.dumps(row, ensure_ascii=False) + "\n")

    def _read(self, split):
        """The `ChoiceExamples` of a split."""
        if split not in self.splits:
            raise UserError(
                f"{self._task.name}: needs a file for the split {split!r}. "
                f"Received: {', '.join(self.splits) or 'none'}."
            )
        if isinstance(self._files, TfdsSource):
            return read_swag_tfds(self._task.tfds[split], self._files)
        path = str(self._files[split])
        return read_swag(path) if ".csv" in path.rpartition("/")[2].lower() else read_choices(path)

    def _lay_out(self, split):
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
        return rows

    def _labels(self, split):
        examples = self.examples(split)
        if examples.labels is None:
            raise UserError(f"{examples.origin}: needs labels. Received: none. Write predictions instead.")
        return examples.labels

    def _scores(self, split, predicted):
        return {"accuracy": float(np.mean(np.array(self._labels(split)) == predicted))}


def _chosen(answers):
    """int [examples]: the choice of each, the first of equal ones."""
    return np.array([logits.argmax() for logits in answers])
