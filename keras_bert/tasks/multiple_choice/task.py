"""Choosing one of several continuations or answers."""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from keras_bert.config.finetuning import FinetuneConfig
from keras_bert.core.errors import UserError
from keras_bert.tasks import superglue
from keras_bert.tasks.classification.head import CLASSIFIER, CLASSIFIER_TENSORS, CLASSIFIER_TITLES
from keras_bert.tasks.head import Head
from keras_bert.tasks.kind import TaskKind
from keras_bert.tasks.multiple_choice.data import (
    ChoiceRow,
    copa_rows,
    copa_tfds_rows,
    own_rows,
    swag_or_own_rows,
    swag_rows,
)
from keras_bert.tasks.shown_answers import ranked, shown
from keras_bert.tasks.sources import TfdsSource
from keras_bert.tasks.task import PublishedScore, Split, with_own_files


@dataclass(frozen=True)
class MultipleChoiceConfig(Head):
    """The head of a `BertForMultipleChoice`."""

    architecture: ClassVar[str] = "BertForMultipleChoice"
    outputs: ClassVar[tuple[str, ...]] = ("score",)


@dataclass(frozen=True)
class ChoiceTask:
    """A multiple-choice task, as data.

    Attributes:
        name: as in `--task NAME`.
        rows: function (path, or "-" for stdin) -> the rows of the file.
        splits: `{name: Split}`, whose files are found as in `sources.find_split_files`.
        tfds: TFDS's name of the data set; None if TFDS does not have the task.
        tfds_rows: function (TFDS's name of a split, the source) -> (the origin for messages, the rows).
        folders: names of the task's folder inside its benchmark's.
        published: published scores.
    """

    name: str
    rows: Callable[[str], Iterator[ChoiceRow]]
    splits: Mapping[str, Split]
    tfds: str | None = None
    tfds_rows: Callable[[str, TfdsSource], tuple[str, Iterator[ChoiceRow]]] | None = None
    folders: tuple[str, ...] = ()
    published: tuple[PublishedScore, ...] = ()


SWAG = ChoiceTask(
    "swag",
    functools.partial(swag_or_own_rows, swag_rows),
    {"train": Split(("train.csv",)), "dev": Split(("val.csv", "dev.csv")), "test": Split(("test.csv",))},
    # The paper's table 4; humans from Zellers et al. 2018, an expert on 100 examples and the majority of five others.
    published=tuple(
        PublishedScore(system, "accuracy", value, split)
        for system, split, value in (
            ("BERT base", "dev", 81.6),
            ("BERT large", "dev", 86.6),
            ("BERT large", "test", 86.3),
            ("human expert", "test", 85.0),
            ("human, five", "test", 88.0),
        )
    ),
)
_COPA_FOLDER = superglue.TASKS["copa"].folder
COPA = ChoiceTask(
    "copa",
    copa_rows,
    superglue.splits(_COPA_FOLDER),
    superglue.tfds_name("copa"),
    copa_tfds_rows,
    (_COPA_FOLDER,),
    superglue.published("copa"),
)
CHOICE = ChoiceTask(
    "choice",
    functools.partial(swag_or_own_rows, own_rows),
    {
        "train": Split(("train.jsonl", "*train*.jsonl")),
        "dev": Split(("dev.jsonl", "*dev*.jsonl")),
        "test": Split(("test.jsonl",)),
    },
)
MULTIPLE_CHOICE = {task.name: task for task in (SWAG, COPA, CHOICE)}


_EXAMPLE = 'context, choices = "She opened her umbrella.", ["It had begun to rain.", "The soup was cold."]'
_IN_TRANSFORMERS = f"""\
import torch
from transformers import AutoModelForMultipleChoice, AutoTokenizer

tokenizer, model = AutoTokenizer.from_pretrained("."), AutoModelForMultipleChoice.from_pretrained(".")
{_EXAMPLE}
inputs = tokenizer([context] * len(choices), choices, padding=True, return_tensors="pt")
with torch.no_grad():
    logits = model(**{{name: rows[None] for name, rows in inputs.items()}}).logits
print(choices[int(logits.argmax())])"""


class MultipleChoice(TaskKind):
    """One score for each choice (paper, section 4.4)."""

    head, part, tasks = MultipleChoiceConfig, CLASSIFIER, tuple(MULTIPLE_CHOICE)
    model = "keras_bert.tasks.multiple_choice.network:BertForMultipleChoice"
    tensors, titles = CLASSIFIER_TENSORS, CLASSIFIER_TITLES
    own_task = "choice"
    pools = takes_bilstm = takes_teacher = True
    pipeline = "multiple-choice"
    example_files = ("choices.csv", "answers.jsonl")
    reads, texts = (), 3

    def signatures(self, bert: Any, text_inputs: Any, network: Any, n_best: int) -> dict[str, Any]:
        from keras_bert.tasks.multiple_choice.serving import multiple_choice_signatures

        return multiple_choice_signatures(text_inputs, network)

    def open_problem(
        self, config: FinetuneConfig, tokenizer: Any, head: Any, task_record: Mapping[str, Any], own: Mapping[str, str]
    ) -> Any:
        from keras_bert.tasks.multiple_choice.problem import MultipleChoiceProblem
        from keras_bert.tasks.sources import TfdsSource, data_source, find_split_files, task_folder

        task, folder = MULTIPLE_CHOICE[config.task], config.data.folder
        source: Mapping[str, str] | TfdsSource = own
        if own:
            task = with_own_files(task, own)
        else:
            place = data_source(task.tfds, folder, task.splits.values()) if task.tfds else None
            home = task_folder(folder, task.folders) if folder else None
            source = place if isinstance(place, TfdsSource) else find_split_files(task, home)
        return MultipleChoiceProblem(task, source, tokenizer, config, head, task_record)

    def card_example(self, fields: Mapping[str, Any]) -> str:
        return f'{_EXAMPLE}\nprint(choices[keras_bert.serving_function(bert)([context], [""], [choices])["choice"][0]])'

    def transformers_example(self, fields: Mapping[str, Any]) -> str:
        return _IN_TRANSFORMERS

    def answer(self, bert: Any, examples: Sequence[Any]) -> list[Any]:
        from keras_bert.export.serving_function import signatures_of
        from keras_bert.tasks.multiple_choice.in_python import choices_made

        return choices_made(signatures_of(bert), examples)

    def answers_shown(self, bert: Any, texts: list[str]) -> list[str]:
        from keras_bert.tasks.multiple_choice.in_python import blank_choice

        context, *choices = texts
        if len(choices) < 2:
            raise UserError(f"TEXT: needs a context and two choices or more. Received: {len(texts)} of them.")
        if problem := blank_choice(choices):
            raise UserError(f"TEXT: {problem}")
        [answer] = bert.predict([(context, choices)])
        return shown([context], ranked(zip(choices, answer.probabilities)))


KINDS = (MultipleChoice(),)
