"""The kinds of tasks, one record each, and the registry through which other packages find them.

The package's own kinds are `KINDS` in `tasks/KIND/task.py`; `register` adds one from anywhere. The packages that use
the registry import this module, so a record imports from them only when it is used; the annotations say `Any`, and the
docstrings name the classes.
"""

import abc
import functools
import importlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from keras_bert.config.finetuning import FinetuneConfig
from keras_bert.config.reading import own_field
from keras_bert.core.errors import UserError
from keras_bert.core.imports import named_class
from keras_bert.core.program import PROGRAM
from keras_bert.core.settings import checked
from keras_bert.models.bert.config import BertConfig
from keras_bert.models.kind import bert_counterpart
from keras_bert.tasks.head import Head

# The order matters: for a file that does not name its head, the first matching kind is chosen.
_ROOMS = (
    "classification",
    "tagging",
    "question_answering",
    "multiple_choice",
    "segmentation",
    "sentence_vectors",
    "span_pairs",
    "few_shot",
    "seq2seq",
)


class TaskKind(abc.ABC):
    """A kind of task: its head, model, signatures and problem.

    Class attributes:
        head: the class of the head's config.
        model: the class of its model, as `module:class`.
        part: the part of the model that holds the head's tensors, a key of `models.tensor_names.parts(config)`.
        tensors: the head's `TensorName`s, by part; empty if pretraining models have the head too. The last one of
            `part` is the output layer's bias, whose length is the number of outputs.
        titles: the names of those parts in `inspect`.
        tasks: the names that `--task` takes.
        own_task: the task for the user's own files and for models that name no task; None if there is none.
        in_transformers: whether transformers has a class of the head's name, with "Bert" replaced for other kinds of
            models (`AlbertFor…`). If not, config.json calls the model a BertModel and names the head in the field
            `keras_bert`.
        pools: whether the head reads the pooled vector. A causal model trained here pools differently from
            transformers, so config.json then calls it a BertModel too.
        in_google: whether Google's files, which name no class, are searched for such a head.
        pipeline: the hub's pipeline tag.
        library: the hub's name of a library that opens the model by its `folder_files`, if no class of transformers
            does what the model does.
        not_portable: what other runtimes need instead, and why, if they cannot run the head; "" if they can.
        answers_in_folder: whether `predict` always writes several files.
        takes_bilstm: whether its models may have a BiLSTM before the head; its problems then make new heads with the
            recipe's `head.bilstm_size`.
        strides: the values of `input.long` with which its tasks read `input.stride`.
        cuts_questions: whether its tasks read `input.max_question_length`.
        weighs_classes: whether its loss takes `training.class_weights` and `training.balance_classes`.
        takes_teacher: whether its loss takes the section `teacher`.
        trains_vectors: whether its loss takes the section `vectors`.
        writes_texts: whether it takes the section `seq2seq`.
        lists_answers: whether its signatures return several answers to an example, up to `n_best`.
        has_own_rows: whether its models' rows differ from those of the kind whose `head` theirs extends.
        reads: the fields of `TaskDataConfig` that its tasks read besides the folder and the files; None for all.
        texts: how many TEXTs of `predict` make an example; 0 if it needs more than texts.
        noun: the plural noun for the task's examples.
        baseline: the name of `Problem.baseline` in tables of scores.
        example_files: the input and output files in a model card's `predict` command.
    """

    head: ClassVar[type[Head]]
    model: ClassVar[str]
    part: ClassVar[str]
    tensors: ClassVar[Mapping[str, tuple[Any, ...]]] = {}
    titles: ClassVar[Mapping[str, str]] = {}
    tasks: ClassVar[tuple[str, ...]] = ()
    own_task: ClassVar[str | None] = None
    in_transformers: ClassVar[bool] = True
    pools: ClassVar[bool] = False
    in_google: ClassVar[bool] = False
    pipeline: ClassVar[str | None] = None
    library: ClassVar[str | None] = None
    not_portable: ClassVar[str] = ""
    answers_in_folder: ClassVar[bool] = False
    takes_bilstm: ClassVar[bool] = False
    strides: ClassVar[tuple[str, ...]] = ()
    cuts_questions: ClassVar[bool] = False
    weighs_classes: ClassVar[bool] = False
    takes_teacher: ClassVar[bool] = False
    trains_vectors: ClassVar[bool] = False
    writes_texts: ClassVar[bool] = False
    lists_answers: ClassVar[bool] = False
    has_own_rows: ClassVar[bool] = False
    reads: ClassVar[tuple[str, ...] | None] = None
    texts: ClassVar[int] = 1
    noun: ClassVar[str] = "examples"
    baseline: ClassVar[str] = "majority"
    example_files: ClassVar[tuple[str, str]] = ("texts.txt", "answers.jsonl")

    def is_of(self, fields: Mapping[str, Any]) -> bool:
        """Whether a config.json names a model of this kind."""
        if own := own_architecture(fields):
            return own == self.head.architecture
        return self.in_transformers and self.head.architecture in map(
            bert_counterpart, fields.get("architectures") or ()
        )

    def make_model(self, config: BertConfig, head: Any, **keras_options: Any) -> Any:
        """A new `keras.Model`, a `model` unless a kind overrides this.

        Args:
            keras_options: `dtype` and `name`.
        """
        return named_class(self.model)(config, **self.model_arguments(head), **keras_options)

    def model_arguments(self, head: Any) -> dict[str, Any]:
        """The arguments of `model` besides its config."""
        return {"bilstm_size": head.bilstm_size} if self.takes_bilstm else {}

    @abc.abstractmethod
    def signatures(self, bert: Any, text_inputs: Any, network: Any, n_best: int) -> dict[str, Any]:
        """The `Signature`s of the exported model, by name.

        Args:
            bert: the `LoadedModel`, with its head's config and its folder.
            text_inputs: a `TextInputs`, which turns strings into the network's inputs.
            network: the model's `Network`.
            n_best: the most answers to an example, for a kind that `lists_answers`.
        """

    @abc.abstractmethod
    def open_problem(
        self, config: FinetuneConfig, tokenizer: Any, head: Any, task_record: Mapping[str, Any], own: Mapping[str, str]
    ) -> Any:
        """The `Problem` of one of `tasks`.

        Args:
            config: the recipe; `config.task` is the task's name.
            tokenizer: the model's `Tokenizer`.
            head: the head's config of a trained model, whose labels the task adopts; None for a new head.
            task_record: what `Problem.task_record` returned for that model, from its config.json.
            own: `{split: path}` of the user's files; if there are any, they are the only splits.

        Raises:
            UserError: the task's data cannot be used.
        """

    def new_head(self, task: str, labels: Iterable[str] | None) -> Any:
        """A new head for one of `tasks`; see `Head.new`."""
        return self.head.new(task, labels)

    def card_example(self, fields: Mapping[str, Any]) -> str:
        """A model card's Python lines that answer with `bert`, a `LoadedModel`; `fields` are config.json's."""
        return "answer = keras_bert.serving_function(bert)  # Takes a list for each of answer.columns."

    def transformers_example(self, fields: Mapping[str, Any]) -> str:
        """Like `card_example`, but with transformers, including its import; for kinds with `in_transformers`."""
        return transformers_pipeline(str(self.pipeline), '"A text."')

    def folder_files(self, config: BertConfig, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Extra JSON files of a model's folder, `{path in it: content}`, by which other libraries open it.

        Written only for kinds of models that transformers has; `fields` are config.json's.
        """
        return {}

    def library_example(self, fields: Mapping[str, Any]) -> str:
        """Like `transformers_example`, but with `library`."""
        raise NotImplementedError

    def require_start(self, folder: Any) -> None:
        """Raises `UserError` if the model of a `ModelFolder` cannot be trained for `tasks`; by default all can."""
        return

    def data_fields(self, task: str) -> Collection[str] | None:
        """What one of `tasks` `reads`."""
        return self.reads

    def has_tasks_for(self, head: Any) -> bool:
        """Whether a model with this head can do `tasks`: its config's class is `head` or extends it."""
        others = kind_of_head(head)
        return isinstance(head, self.head) and (isinstance(others, type(self)) or not others.has_own_rows)

    def unnamed_labels(self, head: Any) -> tuple[str, ...]:
        """The labels of a head if config.json names none; else ()."""
        return ()

    def answer(self, bert: Any, examples: Sequence[Any]) -> list[Any]:
        """The answers of `LoadedModel.predict`, one per example.

        Raises:
            UserError: the kind does not answer in Python, as by default.
            ValueError: an example does not have the kind's form.
        """
        raise UserError(
            f"{bert.path}: needs a head that answers in Python. Received: {self.head.architecture}. "
            f"Give it to serving_function (docs/serving.md), or: {PROGRAM} predict --model MODEL"
        )

    def texts_per_example(self, own: Mapping[str, Any]) -> int:
        """The `texts` of a model with this `keras_bert` in its config.json."""
        return self.texts

    def takes_pairs(self, bert: Any) -> bool:
        """Whether an example of a `LoadedModel` is a pair of texts."""
        return bert.folder.reading.pair

    def answers_shown(self, bert: Any, texts: list[str]) -> list[str]:
        """The lines that `run.py predict` prints for a `LoadedModel`'s answers to texts on its command line.

        Raises `UserError` if other texts are needed or texts are not enough, as by default.
        """
        raise UserError(f"TEXT: {bert.path} needs more than texts to answer. Give --input with a file of examples.")


def transformers_pipeline(pipeline: str, example: str, options: str = "") -> str:
    """Python lines that answer `example`, an expression, with a pipeline of transformers."""
    return f'from transformers import pipeline\n\nprint(pipeline("{pipeline}", model="."{options})({example}))'


def own_architecture(fields: Mapping[str, Any]) -> str | None:
    """The class that config.json names in the field `keras_bert`, if transformers lacks it; else None."""
    return own_field(fields).get("architecture")


@functools.cache
def _by_architecture() -> dict[str, TaskKind]:
    """The registry: every kind by its head's architecture, the package's own first."""
    own = [kind for room in _ROOMS for kind in importlib.import_module(f"keras_bert.tasks.{room}.task").KINDS]
    return {kind.head.architecture: kind for kind in own}


@checked
def register(kind: TaskKind) -> TaskKind:
    """Registers a kind. Raises `ValueError` if the name of its head or of one of its tasks is taken."""
    taken = {*_by_architecture(), *task_names()}
    for name in (kind.head.architecture, *kind.tasks):
        if name in taken:
            raise ValueError(f"{name}: already registered.")
    _by_architecture()[kind.head.architecture] = kind
    return kind


def unregister(kind: TaskKind) -> None:
    """Removes a kind from the registry."""
    del _by_architecture()[kind.head.architecture]


def task_kinds() -> list[TaskKind]:
    """Every kind, in the order of registration."""
    return list(_by_architecture().values())


def kind_of_head(head: Any) -> TaskKind:
    """The kind of a head's config."""
    return _by_architecture()[head.architecture]


def kind_of_task(task: str) -> TaskKind:
    """The kind of the task with this name, as in `--task`. Raises `UserError` if there is none."""
    for kind in task_kinds():
        if task in kind.tasks:
            return kind
    raise UserError(f"task: needs one of {', '.join(task_names())}. Received: {task!r}.")


def kind_of_fields(fields: Mapping[str, Any]) -> TaskKind | None:
    """The kind of model that a config.json names; None if it names none."""
    # Kinds that transformers lacks come first: their files name a BertModel too, and the kind in another field.
    ordered = sorted(task_kinds(), key=lambda kind: kind.in_transformers)
    return next((kind for kind in ordered if kind.is_of(fields)), None)


def task_names() -> tuple[str, ...]:
    """Every name that `--task` takes."""
    return tuple(name for kind in task_kinds() for name in kind.tasks)
