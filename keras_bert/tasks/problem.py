"""A task as the training loop, `evaluate` and `predict` see it."""

import abc
import contextlib
import dataclasses
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence, Sized
from typing import Any, ClassVar, TypeVar

import keras
import numpy as np
from scipy.special import expit, log_softmax, logit, logsumexp

from keras_bert.config.finetuning import (
    MULTI_LABEL,
    FinetuneConfig,
    NoiseConfig,
    Seq2SeqConfig,
    TaskDataConfig,
    VectorsConfig,
)
from keras_bert.config.reading import LONG
from keras_bert.core import files
from keras_bert.core.errors import UserError
from keras_bert.data.batches.token_rows import TokenRows, joined_rows
from keras_bert.models.bert.config import BertConfig
from keras_bert.models.kind import with_article
from keras_bert.tasks.answer_files import FILE, FOLDER, text_output
from keras_bert.tasks.kind import TaskKind, kind_of_head, kind_of_task, task_kinds
from keras_bert.tasks.noise import Noise
from keras_bert.tasks.task import INPUT
from keras_bert.text.tokenizers import Tokenizer
from keras_bert.training.step import Objective


def mean_of_softmax(logits: Sequence[np.ndarray]) -> np.ndarray:
    """The log of the mean softmax of several logits [..., classes], in the same shape; -inf stays -inf."""
    return logsumexp([log_softmax(np.asarray(one, "float64"), axis=-1) for one in logits], axis=0) - np.log(len(logits))


def mean_of_sigmoids(logits: Sequence[np.ndarray]) -> np.ndarray:
    """The logit of the mean sigmoid of several logits [...], in the same shape; finite for finite ones."""
    mean = np.mean([expit(np.asarray(one, "float64")) for one in logits], axis=0)
    tiny = np.finfo(mean.dtype).eps
    return logit(np.clip(mean, tiny, 1 - tiny))


_T = TypeVar("_T")

Answers = Any  # A model's answers to some examples; the type depends on the kind of task.


@dataclasses.dataclass(kw_only=True)
class Layout:
    """Examples laid out as rows; each kind of task adds what its answers need.

    Attributes:
        rows: the rows, with whatever the objective needs.
        origin: the file or data set, for messages.
        warnings: what was truncated or looks odd, one line each.
    """

    rows: TokenRows
    origin: str
    warnings: Sequence[str] = ()


class Problem(abc.ABC):
    """A task's examples, prepared for one tokenizer, with the model, loss and scores that go with them.

    Training, `evaluate` and `predict` get from examples to answers in the same way: `windows` reads examples, `lay_out`
    turns them into rows, the model computes its outputs, and `answers_of` turns these into answers.

    Args:
        task: the task as data: its name, its splits and how it is scored.
        source: where its examples are. For tasks with named files: their folder, "" if the task names its files in
            full, or a `TfdsSource`. For other tasks: `{split: path}` or a `TfdsSource`.
        config: the recipe, of which `data`, `input`, `head`, `features`, `noise` and `training` are read.
        head: the head's config of a trained model, whose labels the task adopts; None for a new head.
        task_record: what `task_record` returned for that model, from its config.json.

    Attributes:
        head: the head's config, as config.json stores it.
        notes: what the user should know about the files read so far, one line each.
        restore_spaces: function (texts) -> texts, applied to the texts to classify after noise; None for none.
        noise: added to every text before tokenization; None for none. Set by `under`.

    Class attributes:
        by_token: the model's outputs of shape [batch, seq, …].
        per_cent: whether scores are already in per cent.
        answers_ending: suffix of the file that `predict` writes for one of several splits.
        takes_restored_spaces: whether `restore_spaces` may be set, before anything is read.
        long: the values of `input.long` that the kind takes.
        takes_noise: whether the kind can add noise to its texts.
    """

    by_token: ClassVar[tuple[str, ...]] = ()
    per_cent: ClassVar[bool] = False
    answers_ending: ClassVar[str] = ".jsonl"
    long: ClassVar[tuple[str, ...]] = LONG
    takes_noise: ClassVar[bool] = False
    takes_restored_spaces: ClassVar[bool] = False

    task: Any
    head: Any
    notes: list[str]
    restore_spaces: Callable[[Sequence[str]], list[str]] | None
    noise: Noise | None

    def __init__(
        self,
        task: Any,
        source: Any,
        tokenizer: Tokenizer,
        config: FinetuneConfig,
        head: Any = None,
        task_record: Mapping[str, Any] | None = None,
    ):
        if config.input.long not in self.long:
            raise UserError(
                f"input.long: needs {' or '.join(self.long)} for {task.name}. Received: {config.input.long}."
            )
        self.task = task
        self.notes = []
        self.noise = self.restore_spaces = None
        self._kept: dict[Hashable, Any] = {}
        self._source = source
        self._tokenizer = tokenizer
        self._config = config
        self._task_record = task_record or {}
        self.head = head
        self._open()
        self.head = self.head or self._new_head()

    def _open(self) -> None:
        """Checks and sets what the kind needs besides; `head` is still that of the trained model, or None."""
        return

    def _new_head(self) -> Any:
        """A new head's config, by the task and the recipe; None if a kind sets `head` later."""
        return None

    @contextlib.contextmanager
    def under(self, noise: Noise) -> Iterator[None]:
        """A context in which every split is read with noise in its texts; labels and answers move with them.

        Raises:
            UserError: the kind of task takes no noise.
        """
        self.require_noise()
        kept, notes = self._kept, list(self.notes)
        self.noise, self._kept = noise, {}
        try:
            yield
        finally:
            self.noise, self._kept = None, kept
            self.notes[:] = notes  # Discard notes from the noisy pass; they repeat the originals.

    def require_noise(self) -> None:
        """Raises `UserError` unless the kind of task takes noise."""
        if not self.takes_noise:
            raise UserError(f"--noise: needs a task whose texts can take it. Received: {self.task.name}. Leave it out.")

    def require_labels(self, split: str) -> None:
        """Raises `UserError` if a split cannot be evaluated; by default only `evaluate` checks that."""
        return

    def require_different_answers(self) -> None:
        """Raises `UserError` if all examples of "train" have one answer, from which no model learns anything."""
        return

    def _once(self, key: Hashable, read: Callable[[], _T]) -> _T:
        """The result of `read`, called once per key and noise."""
        if key not in self._kept:
            self._kept[key] = read()
        return self._kept[key]

    def training_rows(self, seed: int) -> tuple[TokenRows, dict[str, dict[str, float]]]:
        """(the rows to train on, `{noise: Noise.shares}`), from `training_layouts` with the recipe's noise."""
        layouts, shares = self.training_layouts(self._config.noise, seed)
        return joined_rows([layout.rows for layout in layouts]), shares

    def training_layouts(self, config: NoiseConfig, seed: int) -> tuple[list[Any], dict[str, dict[str, float]]]:
        """(the `Layout`s of "train" and of its noisy copies, `{noise: Noise.shares}`)."""
        layouts, shares = [self.layout("train")], {}
        for setting in config.kinds:
            for copy in range(config.copies):
                noise = Noise(setting, seed * config.copies + copy)
                with self.under(noise):
                    layouts.append(self.layout("train"))
                shares[f"{setting}, copy {copy + 1}" if copy else setting] = noise.shares()
        return layouts, shares

    @property
    @abc.abstractmethod
    def objective(self) -> Objective:
        """The loss."""

    @property
    def compares_examples(self) -> bool:
        """Whether the loss compares the examples of a batch with each other, within each slice and replica."""
        return False

    @property
    def splits(self) -> tuple[str, ...]:
        """Names of all splits, by default the task's; they start with "train", "dev" or "test"."""
        return tuple(self.task.splits)

    @property
    def dev_splits(self) -> tuple[str, ...]:
        """Names of the splits to evaluate on, the main one first."""
        return tuple(name for name in self.splits if name.startswith("dev"))

    @property
    @abc.abstractmethod
    def metric_names(self) -> tuple[str, ...]:
        """Every metric that `evaluate` always returns, the main one first."""

    @property
    def main_metric(self) -> str:
        """The metric that picks the best epoch; higher is better."""
        return self.metric_names[0]

    @abc.abstractmethod
    def task_record(self) -> dict[str, Any]:
        """config.json's fields about the task, which make the model usable without its recipe."""

    def make_model(self, bert_config: BertConfig, dtype: str | None = None) -> keras.Model:
        """A new model with this task's head."""
        return kind_of_head(self.head).make_model(bert_config, self.head, dtype=dtype)

    @abc.abstractmethod
    def windows(self, split: str, labelled: bool = False) -> Iterator[Sized]:
        """Yields the examples of a split, a few thousand at a time.

        Args:
            labelled: whether to read labels, for `objective` and `evaluate`. A split whose labels cannot be read piece
                by piece is a single window.
        """

    @abc.abstractmethod
    def lay_out(self, windows: Iterable[Any]) -> Any:
        """The `Layout` of the examples of some windows, without their texts."""

    @abc.abstractmethod
    def answers_of(self, layout: Any, outputs: dict[str, Any]) -> Answers:
        """The model's answer to each example of a layout.

        Args:
            layout: from `lay_out`.
            outputs: the model's outputs for its rows, in order: arrays [rows, …], or, for the names in `by_token`, a
                list of arrays [tokens of the row, …]; and its `shared_outputs`.

        Raises:
            UserError: an output is not a finite number.
        """

    def layout(self, split: str) -> Any:
        """The `Layout` of a split with its labels, read once."""

        def read() -> Any:
            found = self.lay_out(self.windows(split, labelled=True))
            self.notes += found.warnings
            return found

        return self._once(split, read)

    def origin(self, split: str) -> str:
        """The file or data set that a split is read from."""
        return self.layout(split).origin

    def rows(self, split: str) -> TokenRows:
        """The rows of a split, with whatever `objective` needs. Hidden labels are 0, or -1 for tokens."""
        return self.layout(split).rows

    def answers(self, split: str, outputs: dict[str, Any]) -> Answers:
        """Like `answers_of`, but for the rows of a split."""
        return self.answers_of(self.layout(split), outputs)

    def shared_outputs(self, model: keras.Model) -> dict[str, Any]:
        """Extra model data that `answers_of` needs besides each row's outputs; none by default."""
        return {}

    def answering(self, model: keras.Model) -> Callable[..., dict[str, Any]]:
        """Function (batch, training=False) -> the outputs that `answers_of` and `objective` take; by default the model.

        It is called in a graph, for each replica's part of a batch.
        """
        return model

    def averaged(self, split: str, outputs: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """Outputs for `rows(split)` with the mean probabilities of several models' outputs, unless they write texts.

        By default, `logits` are those of a softmax over the last axis.
        """
        logits = [one["logits"] for one in outputs]
        if isinstance(logits[0], np.ndarray):
            return {"logits": mean_of_softmax(logits)}
        return {"logits": [mean_of_softmax(rows) for rows in zip(*logits, strict=True)]}  # A list of rows, by token.

    @abc.abstractmethod
    def evaluate(self, split: str, answers: Answers) -> dict[str, float]:
        """`{metric: score}`, the main metric first. Raises `UserError` if the split has no labels."""

    @abc.abstractmethod
    def baseline(self, split: str) -> dict[str, float]:
        """The scores, as from `evaluate`, of the trivial answer: usually the most frequent one in training."""

    def overlap_baseline(self, split: str) -> dict[str, float]:
        """The scores of answers by the overlap of two texts; {} for other inputs, or if such answers do not apply."""
        return {}

    def by_example(self, split: str, answers: Answers) -> dict[str, np.ndarray]:
        """`{metric: float64 [examples, 2]}`, from which resamples of a split's examples can be scored.

        For a correlation, the columns are the labels and the answers; any other score is the sum of the first column
        divided by that of the second. Metrics of neither form are left out, by default all.
        """
        return {}

    @abc.abstractmethod
    def remarks(self, split: str, answers: Answers) -> Iterable[str]:
        """Warnings about the answers, such as that they are all the same."""

    def tune(self, split: str, answers: Answers) -> None:
        """Sets whatever is tuned on the dev examples, such as a threshold; by default nothing."""
        return

    def settle(self, model: keras.Model, outputs: Callable[[TokenRows], dict[str, Any]]) -> None:
        """Sets the weights that are computed from the trained ones, before each validation; by default none.

        Args:
            outputs: function (rows) -> the model's outputs for them, as `answers_of` takes them.
        """
        return

    def forget_tuning(self, of_model: bool = False) -> None:
        """Undoes `tune`, before another run of the task; with `of_model`, also the trained model's own tuning."""
        return

    def confusion(self, split: str, answers: Answers) -> np.ndarray | None:
        """Confusion matrix [labels, labels] of int, rows the true labels; None if the answers are not classes."""
        return None

    def submission(self, split: str) -> str | None:
        """The name of the file in which a benchmark takes the answers to a split; None if it takes none."""
        return None

    def output_kind(self, split: str) -> str:
        """Whether `predict` writes a split's answers to a file or a folder: `answer_files.FILE` or `FOLDER`."""
        return FOLDER if self.submission(split) else FILE

    @contextlib.contextmanager
    def writing(self, split: str, output: str) -> Iterator[Callable[[Any, Answers], Any]]:
        """A context in which `write(window, answers)` appends `lines` to the output, a file or "-" for stdout.

        A `submission` is written into the folder `output`.
        """
        if name := self.submission(split):
            files.make_folder(output)
            output = files.join(output, name)
        with text_output(output) as write:
            write(self.header(split))
            yield lambda window, answers: write(self.lines(split, window, answers))

    def header(self, split: str) -> Iterable[str]:
        """The lines before those of the answers to a split; by default none."""
        return ()

    def lines(self, split: str, window: Any, answers: Answers) -> Iterable[str]:
        """The lines of the answers to the examples of a window, for a submission if the split has one."""
        raise NotImplementedError


def all_the_same(answers: Sequence[Hashable], finding: Callable[[Any], str]) -> Iterator[str]:
    """Yields a warning if two or more answers are all the same; `finding` says so, given that answer."""
    if len(answers) > 1 and len(set(answers)) == 1:
        yield f"{finding(answers[0])}: the training failed. Try another seed or learning rate, or more epochs."


_ALWAYS_READ = ("folder", "train", "dev", "test")
_OPTIONS = {"texts": "--text", "label": "--label", "format": "--format", "kind": "--kind", "shots": "--shots"}


def open_problem(
    config: FinetuneConfig,
    tokenizer: Tokenizer,
    head: Any = None,
    task_record: Mapping[str, Any] | None = None,
    asked: str | None = None,
) -> Problem:
    """The `Problem` of a recipe.

    Args:
        head: the head's config of a trained model, whose labels the task adopts; None for a new head.
        task_record: what that model's config.json says about its task; see `ModelFolder.task`.
        asked: a file to answer, or "-" for stdin: the split `INPUT`, instead of all the task's splits.

    Raises:
        UserError: there is no such task, its data cannot be used, or a new head's recipe has settings that the task
            does not use.
    """
    kind = kind_of_task(config.task)
    if head is None:  # A trained model may have a recipe of an earlier version.
        _require_used(config, kind)
    elif not kind.has_tasks_for(head):
        model = with_article(head.architecture)
        raise UserError(f"task: needs one for {model}. Received: {config.task}. Give another --task.")
    data = config.data
    named = {INPUT: asked} if asked else {"train": data.train, "dev": data.dev, "test": data.test}
    own = {split: path for split, path in named.items() if path}
    return kind.open_problem(config, tokenizer, head, task_record or {}, own)


def fields_read(task: str) -> Collection[str]:
    """The fields of `TaskDataConfig` that a task reads."""
    known = kind_of_task(task).data_fields(task)
    return [field.name for field in dataclasses.fields(TaskDataConfig)] if known is None else (*_ALWAYS_READ, *known)


def require_read(task: str, fields: Iterable[str]) -> None:
    """Raises `UserError` if a task does not read one of these fields of `TaskDataConfig`."""
    known = fields_read(task)
    unread = next((name for name in fields if name not in known), None)
    if unread is not None:
        option = f" ({_OPTIONS[unread]})" if unread in _OPTIONS else ""
        readers = (name for kind in task_kinds() for name in kind.tasks if unread in (kind.data_fields(name) or ()))
        raise UserError(
            f"data.{unread}{option}: needs a task that reads it, of {', '.join(readers)}. Received: {task}. "
            "Leave it out, or give another --task."
        )


def _require_used(config: FinetuneConfig, kind: TaskKind) -> None:
    defaults = vars(TaskDataConfig())
    require_read(config.task, (name for name, value in vars(config.data).items() if value != defaults[name]))
    for name in ("class_weights", "balance_classes"):
        if getattr(config.training, name) and not kind.weighs_classes:
            raise UserError(
                f"training.{name}: needs a task that classifies texts. Received: {config.task}, whose loss has no "
                "such weights. Leave it out."
            )

    def require(name: str, is_set: object, is_taken: bool, needed: str) -> None:
        if is_set and not is_taken:
            raise UserError(f"{name}: needs a task {needed}. Received: {config.task}. Leave it out.")

    taught = "that classifies texts, scores them, chooses among them or tags words"
    require("head.bilstm_size", config.head.bilstm_size, kind.takes_bilstm, "whose models may have a BiLSTM")
    require("teacher.model", config.teacher.model, kind.takes_teacher, taught)
    require("training.freeze", config.training.freeze, not kind.trains_vectors, "with a head to train")
    require("vectors", config.vectors != VectorsConfig(), kind.trains_vectors, "that trains vectors")
    require("seq2seq", config.seq2seq != Seq2SeqConfig(), kind.writes_texts, "that writes texts")
    texts, data, seq2seq = config.input, config.data, config.seq2seq
    several = f"data.kind {MULTI_LABEL}, whose labels it separates"
    own = (data.train, data.dev or data.test)  # Vectors may be trained on STS-B, judged by it, or both.
    is_read = not (all(own) if kind.trains_vectors else any(own))
    for key, section, is_used, needed in (
        ("data.folder", data, is_read, "no files of your own (--train, --dev, --test), which are read in its place"),
        ("data.separator", data, data.kind == MULTI_LABEL, several),
        ("data.dev_share", data, not data.dev, "no data.dev (--dev), which leaves nothing to hold out"),
        ("input.stride", texts, texts.long in kind.strides, "texts to classify by input.long=windows, or passages"),
        ("input.max_question_length", texts, kind.cuts_questions, "a task of questions on passages"),
        ("noise.copies", config.noise, config.noise.kinds, "noise.kinds (--noise), of which it makes copies"),
        ("seq2seq.length_penalty", seq2seq, seq2seq.beams > 1, "seq2seq.beams of 2 or more, to compare"),
        ("seq2seq.early_stopping", seq2seq, seq2seq.beams > 1, "seq2seq.beams of 2 or more, whose search it ends"),
        ("features.lstm_size", config.features, config.features.kind, "features.kind (--features), to read by LSTMs"),
        ("features.folder", config.features, config.features.kind, "features.kind (--features), to be kept there"),
    ):
        value, default = (getattr(place, key.rpartition(".")[2]) for place in (section, type(section)))
        if value != default and not is_used:
            raise UserError(f"{key}: needs {needed}. Received: {value!r}. Leave it out.")
