"""`run.py predict`."""

import shlex
from typing import Any

import click

from keras_bert.checkpoints.model_folder import open_model_folder
from keras_bert.cli.options import (
    model_option,
    other_table_options,
    require_source,
    restore_spaces_option,
    table_settings,
)
from keras_bert.core.errors import UserError
from keras_bert.core.program import PROGRAM
from keras_bert.core.runtime import import_tensorflow
from keras_bert.tasks.answer_files import STANDARD_STREAM, require_writable
from keras_bert.tasks.kind import kind_of_head
from keras_bert.tasks.task import INPUT


@click.command()
@model_option
@click.option("--input", "source", metavar="FILE|-", help="Examples to answer; - reads stdin.")
@click.option(
    "--split",
    help="Answer a split of the task instead. The test split is written in the leaderboard's format, if there is one.",
)
@click.option(
    "--task", metavar="NAME", help="Another task for the same model, such as, with --split, ax for an mnli model."
)
@click.option("--output", required=True, metavar="FILE|-|DIR", help="Where to write the answers; - writes to stdout.")
@restore_spaces_option
@other_table_options
@click.pass_context
def predict(
    context: click.Context,
    model: str,
    source: str | None,
    split: str | None,
    task: str | None,
    output: str,
    restore_spaces: str | None,
    **data: Any,
) -> None:
    """Write the predictions of a model that was fine-tuned, here or elsewhere.

    \b
    Model                --input                                        --output
    classification       a table, or plain text, one text per line      JSON lines
    tagging              columns or CoNLL-U, as in training             the same file with labels
    segment              .conllu, a table, or one text per line         the texts, with blanks between words
    question answering   SQuAD's JSON                                   a folder: predictions, n-best, null odds
    multiple choice      as in training                                 JSON lines
    SuperGLUE's tasks    as in training                                 JSON lines

    \b
    Files may be of any size. Answers in them are ignored. --split writes the same formats or, if the task
    has a leaderboard, a folder with a submission. If the split stands for several, as mnli's dev does,
    --output is a folder with a file for each.

    \b
    Examples:
      echo "A charming film." | python run.py predict --model runs/sst2 --input - --output -
      python run.py predict --model runs/sst2 --split test --data-dir glue --output submission
      python run.py predict --model runs/squad --input dev-v1.1.json --output answers
    """
    if bool(source) == bool(split):
        raise UserError("--input: needs a file of examples, or --split a split of the task. Give one of the two.")
    files_of_task = [f"--{name.replace('_', '-')}" for name in ("data_dir", "train", "dev", "test") if data[name]]
    if source and files_of_task:
        raise UserError(f"{files_of_task[0]}: goes with --split. Received: --input, the file to answer. Leave out one.")
    if source:
        require_source(source)
    if output != STANDARD_STREAM:
        require_writable(output)
    folder = open_model_folder(model)
    if output == STANDARD_STREAM and folder.head and kind_of_head(folder.head).answers_in_folder:
        raise UserError("--output: needs a folder, because question answering writes several files. Received: -.")
    import_tensorflow(context.find_root().params["debug"])
    from keras_bert.tasks.evaluation import FinetunedModel, splits_like
    from keras_bert.tasks.evaluation import predict as write_answers
    from keras_bert.tasks.segmentation.problem import set_restored_spaces

    finetuned = FinetunedModel(folder, table_settings(**data), task, asked=source, outputs=[output])
    set_restored_spaces(finetuned.problem, restore_spaces)
    splits = splits_like(finetuned.problem, split) if split else [INPUT]
    written, count = write_answers(finetuned, splits, output)
    for line in finetuned.problem.notes:
        click.echo(line, err=output == STANDARD_STREAM)
    if output != STANDARD_STREAM:
        step = f"{PROGRAM} evaluate --model {shlex.quote(model)}"
        click.echo(f"Written: {', '.join(written)}, {count:,} examples. Next: {step}")
