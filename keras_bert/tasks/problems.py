"""Every task that `finetune --task NAME` knows, opened as a `Problem`."""

import dataclasses

from keras_bert import files
from keras_bert.config.classification import REGRESSION
from keras_bert.errors import UserError
from keras_bert.tasks.classification.glue import GLUE
from keras_bert.tasks.classification.problem import SequenceProblem
from keras_bert.tasks.classification.tabular import text_task
from keras_bert.tasks.multiple_choice.problem import MULTIPLE_CHOICE, MultipleChoiceProblem
from keras_bert.tasks.problem import Problem
from keras_bert.tasks.question_answering.problem import QuestionAnsweringProblem
from keras_bert.tasks.question_answering.squad import QUESTION_ANSWERING, qa_task
from keras_bert.tasks.sources import TfdsSource
from keras_bert.tasks.split_files import find_split_files
from keras_bert.tasks.tagging.problem import TaggingProblem
from keras_bert.tasks.tagging.tasks import TAGGING
from keras_bert.tasks.task import INPUT, Split

TASKS = (*GLUE, "text", *QUESTION_ANSWERING, "qa", *TAGGING, *MULTIPLE_CHOICE)


def open_problem(config, tokenizer, head=None, described=None, asked=None) -> Problem:
    """The problem of a `FinetuneConfig`.

    Args:
        config: a `FinetuneConfig`.
        tokenizer: the `WordPieceTokenizer` of the model.
        head: the config of a trained model's head, whose labels the task then has; else None.
        described: what that model's folder says of its task, see `ModelFolder.task`.
        asked: a file to be answered, or "-", what comes in: the split `INPUT`, in place of all that the task has.

    Raises:
        UserError: no such task, or its data cannot be used.
    """
    name, data = config.task, config.data
    own = {INPUT: asked} if asked else _own_files(data)
    if name == "text":
        task = _own_table(data, head)
        task = _of_own_files(task, own, tuple(data.columns) or None) if asked else task
        return SequenceProblem(task, "", tokenizer, config, head)
    if name in GLUE:
        task = GLUE[name]
        if own:
            task = dataclasses.replace(_of_own_files(task, own), format=None)
        source = "" if own else _source(task.tfds.name, data.folder)
        return SequenceProblem(task, source, tokenizer, config, head)
    if name in QUESTION_ANSWERING or name == "qa":
        return _question_answering(name, data, own, config.input, tokenizer, described or {})
    if name in TAGGING:
        return _tagging(TAGGING[name], config, own, tokenizer, head)
    if name in MULTIPLE_CHOICE:
        task = MULTIPLE_CHOICE[name]
        files_of = own or (TfdsSource(download=True) if not data.folder and task.tfds else None)
        return MultipleChoiceProblem(task, files_of or _found_files(task, data.folder), tokenizer, config.input)
    raise UserError(f"task: needs one of {', '.join(TASKS)}. Received: {name!r}.")


def _of_own_files(task, own, columns=None):
    """The task with the splits `{name: path}` for its own; labels are needed only to train and to validate.

    Args:
        columns: the columns' names where the files have no header.
    """
    needed = {"train": True, "dev": True}
    splits = {name: Split((path,), columns, labelled=needed.get(name)) for name, path in own.items()}
    # Without the task's folders, in which files of the same names may stand.
    return dataclasses.replace(task, splits=splits, folders=())


def _source(tfds_name, folder):
    """What examples are read from: the task's files in a folder, or data that TFDS prepared there.

    Without a folder TFDS's own is taken, and what is not there is fetched.
    """
    if not folder:
        return TfdsSource(download=True)
    if tfds_name and any(map(files.exists, (files.join(folder, "dataset_info.json"), files.join(folder, tfds_name)))):
        return TfdsSource(folder)
    return folder


def _own_files(data):
    """`{split: path}` of the files that the settings name."""
    named = {"train": data.train, "dev": data.dev, "test": data.test}
    return {split: path for split, path in named.items() if path}


def _found_files(task, folder):
    if not folder:
        raise UserError(f"{task.name}: needs its files. Received: none. Give --data-dir, or --train and --dev.")
    return find_split_files(task, folder)


def _own_table(data, head):
    return text_task(
        data.texts,
        data.label or "label",
        train=data.train,
        dev=data.dev,
        test=data.test,
        kind=head.problem_type if head else data.kind,
        labels=head.labels if head and head.problem_type != REGRESSION else None,
        separator=data.separator,
        format=data.format,
        columns=data.columns or None,
        dev_share=data.dev_share,
    )


def _question_answering(name, data, own, settings, tokenizer, described):
    if name == "qa":
        of_task = {} if INPUT in own else own
        task = qa_task(
            **of_task, scoring=data.scoring, dev_share=data.dev_share, unanswerable=described.get("unanswerable")
        )
    else:
        task = QUESTION_ANSWERING[name]
    if own and (name != "qa" or INPUT in own):
        task = _of_own_files(task, own)
    return QuestionAnsweringProblem(
        task,
        tokenizer,
        "" if own else _source(task.tfds, data.folder),
        settings.max_length,
        settings.stride or 128,
        settings.max_question_length,
        null_threshold=described.get("null_threshold"),
    )


def _tagging(task, config, own, tokenizer, head):
    data, features = config.data, config.features if config.features.kind else None
    columns = {"word": _column(data.word), "label": _column(data.label)}
    given = {name: column for name, column in columns.items() if column is not None}
    if given and not task.in_columns:
        raise UserError(
            f"data.{next(iter(given))}: needs a task of columns (ner, tokens). Received: {task.name}, whose files have "
            "theirs at places of their own. Leave it out."
        )
    files_of = own or _found_files(task, data.folder)
    return TaggingProblem(task, files_of, tokenizer, config.input.max_length, head, data.scheme, features, **given)


def _column(value):
    """A column's number or its name, as a recipe has it or, a number already, a model's folder."""
    return int(value) if value is not None and str(value).lstrip("-").isdigit() else value
