"""Every task that `finetune --task NAME` knows, opened: what the loop of fine-tuning needs of it.

A problem is a plain object of one of four classes. All have

- `head`: what config.json says of the head; `make_model(bert_config, dtype)`; `objective`;
- `dev_splits`; `rows(split)`, the split's `TokenRows`; `origin(split)`, the file or data set that they are of;
- `by_token`, the model's outputs that are [batch, seq, …];
- `answers(split, outputs)`: what the model's outputs for the rows say to each example, and
  `served_answers(split, function)`, the same from its `ServingFunction`. They go into
  `evaluate(split, answers)`, the scores; `tune(split, answers)`, which sets what is chosen on the dev examples;
  `remarks(split, answers)`; `confusion(split, answers)`; `write_predictions(split, answers, path)`;
- `main_metric`, `metric_names`; `baseline(split)`; `per_cent`, whether scores are given in per cent already;
- `notes`: what a user should know of the files read so far, one line each;
- `described()`: what the model's folder keeps, so that it can be used without the recipe.
"""

import dataclasses

from keras_bert import files
from keras_bert.errors import UserError
from keras_bert.tasks.classification.glue import GLUE
from keras_bert.tasks.classification.problem import SequenceProblem
from keras_bert.tasks.classification.tabular import text_task
from keras_bert.tasks.multiple_choice.problem import MULTIPLE_CHOICE, MultipleChoiceProblem
from keras_bert.tasks.question_answering.problem import QuestionAnsweringProblem
from keras_bert.tasks.question_answering.squad import QUESTION_ANSWERING, qa_task
from keras_bert.tasks.sources import TfdsSource
from keras_bert.tasks.split_files import find_split_files
from keras_bert.tasks.tagging.problem import TaggingProblem
from keras_bert.tasks.tagging.tasks import TAGGING
from keras_bert.tasks.task import Split

TASKS = (*GLUE, "text", *QUESTION_ANSWERING, "qa", *TAGGING, *MULTIPLE_CHOICE)


def open_problem(config, tokenizer, head=None, described=None):
    """The problem of a `FinetuneConfig`.

    Args:
        config: a `FinetuneConfig`.
        tokenizer: the `WordPieceTokenizer` of the model.
        head: the config of a trained model's head, whose labels the task then has; else None.
        described: what that model's folder says of its task, see `ModelFolder.task`.

    Raises:
        UserError: no such task, or its data cannot be used.
    """
    name, data = config.task, config.data
    if name == "text":
        return SequenceProblem(_own_table(data, head), "", tokenizer, config, head)
    if name in GLUE:
        return SequenceProblem(GLUE[name], _source(GLUE[name].tfds.name, data.folder), tokenizer, config, head)
    if name in QUESTION_ANSWERING or name == "qa":
        return _question_answering(name, data, config.input, tokenizer, described or {})
    if name in TAGGING:
        return _tagging(TAGGING[name], config, tokenizer, head)
    if name in MULTIPLE_CHOICE:
        task = MULTIPLE_CHOICE[name]
        files_of = _own_files(data) or (TfdsSource(download=True) if not data.folder and task.tfds else None)
        return MultipleChoiceProblem(task, files_of or _found_files(task, data.folder), tokenizer, config.input)
    raise UserError(f"task: needs one of {', '.join(TASKS)}. Received: {name!r}.")


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
        labels=head.labels if head and head.num_labels > 1 else None,
        separator=data.separator,
        format=data.format,
        columns=data.columns or None,
        dev_share=data.dev_share,
    )


def _question_answering(name, data, settings, tokenizer, described):
    own = _own_files(data)
    if name == "qa":
        task = qa_task(
            **own, scoring=data.scoring, dev_share=data.dev_share, unanswerable=described.get("unanswerable")
        )
    else:
        task = QUESTION_ANSWERING[name]
    if own and name != "qa":
        task = dataclasses.replace(task, splits={split: Split((path,)) for split, path in own.items()})
    return QuestionAnsweringProblem(
        task,
        tokenizer,
        "" if own else _source(task.tfds, data.folder),
        settings.max_length,
        settings.stride or 128,
        settings.max_question_length,
        null_threshold=described.get("null_threshold", 0.0),
    )


def _tagging(task, config, tokenizer, head):
    data, features = config.data, config.features if config.features.kind else None
    columns = {"word": _column(data.word), "label": _column(data.label)}
    given = {name: column for name, column in columns.items() if column is not None}
    own = _own_files(data) or _found_files(task, data.folder)
    return TaggingProblem(task, own, tokenizer, config.input.max_length, head, data.scheme, features, **given)


def _column(value):
    """A column's number or its name, as a recipe has it or, a number already, a model's folder."""
    return int(value) if value is not None and str(value).lstrip("-").isdigit() else value
