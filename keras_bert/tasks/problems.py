"""Every task that `finetune --task NAME` knows, and what a model is fine-tuned to do on it."""

from keras_bert import files
from keras_bert.errors import UserError
from keras_bert.tasks.glue import GLUE
from keras_bert.tasks.sequence_problem import SequenceProblem
from keras_bert.tasks.sources import TfdsSource
from keras_bert.tasks.tabular import text_task

TASKS = (*GLUE, "text")


def open_problem(config, tokenizer, head=None, report=print):
    """The problem of a `FinetuneConfig`: see `tasks.sequence_problem.SequenceProblem`.

    Args:
        config: a `FinetuneConfig`.
        tokenizer: the `WordPieceTokenizer` of the model.
        head: the config of a trained model's head, whose labels the task then has; else None.
        report: takes one line of text at a time.

    Raises:
        UserError: no such task, or its data cannot be used.
    """
    if config.task == "text":
        return SequenceProblem(_own_table(config.data, head), "", tokenizer, config, head, report)
    if config.task not in GLUE:
        raise UserError(f"task: needs one of {', '.join(TASKS)}. Received: {config.task!r}.")
    task = GLUE[config.task]
    return SequenceProblem(task, task_source(task, config.data.folder), tokenizer, config, head, report)


def task_source(task, folder):
    """What `load_examples` reads a task from: the task's files in a folder, or data that TFDS prepared there.

    Without a folder TFDS's own is taken, and what is not there is fetched.
    """
    if not folder:
        return TfdsSource(download=True)
    prepared = (files.join(folder, "dataset_info.json"), files.join(folder, task.tfds.name)) if task.tfds else ()
    if any(map(files.exists, prepared)):
        return TfdsSource(folder)
    return folder


def _own_table(data, head):
    return text_task(
        data.texts,
        data.label,
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
