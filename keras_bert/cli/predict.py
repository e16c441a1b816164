"""`run.py predict`."""

import logging
import shlex
from typing import Any

import click

from keras_bert.api.finetuning import require_data
from keras_bert.checkpoints.model_folder import open_model_folder
from keras_bert.cli.options import (
    load_tensorflow,
    model_option,
    other_table_options,
    require_source,
    require_utf8,
    restore_spaces_option,
    table_settings,
)
from keras_bert.core.errors import UserError
from keras_bert.core.program import PROGRAM
from keras_bert.tasks.answer_files import STANDARD_STREAM, require_writable
from keras_bert.tasks.kind import kind_of_head
from keras_bert.tasks.task import INPUT

_log = logging.getLogger(__name__)


@click.command()
@model_option
@click.option("--input", "source", metavar="FILE|-", help="Examples to answer; - reads stdin.")
@click.option(
    "--split",
    help="Answer a split of the task instead. The test split is written in the leaderboard's format, if there is one.",
)
@click.option(
    "--task", metavar="NAME", help="Answer for another task, such as --task ax --split test with a model of mnli."
)
@click.option(
    "--output", metavar="FILE|-|DIR", help="Where to write the answers to --input or --split; - writes to stdout."
)
@click.option(
    "--n-best",
    type=click.IntRange(1),
    metavar="N",
    help="For a model that writes texts: write the N best for each example, with a beam search of at least N beams.",
)
@restore_spaces_option
@other_table_options
@click.argument("texts_to_answer", nargs=-1, metavar="[TEXT…]")
def predict(
    model: str,
    source: str | None,
    split: str | None,
    task: str | None,
    output: str | None,
    n_best: int | None,
    restore_spaces: str | None,
    texts_to_answer: tuple[str, ...],
    **data: Any,
) -> None:
    """Answer examples with a model that was fine-tuned, here or elsewhere.

    The answer to each TEXT is printed. Models of pairs take two TEXTs per answer: two texts to compare, or a question
    and its passage. Models of choices take a context and its choices. Answers to a file of --input go to --output:

    \b
    Model               --input                    --output
    classification      a table or lines of text   JSON lines
    tagging             columns or CoNLL-U         the same file with labels
    segment             a table, lines or CoNLL-U  the texts with spaces
    question answering  SQuAD's JSON               a folder: answers, n-best, odds
    multiple choice     as in training             JSON lines
    text to text        a table or lines of text   JSON lines
    SuperGLUE's tasks   as in training             JSON lines

    Files may be of any size. Answers in them are ignored. --split answers a split of the task that the model was
    trained on, in the same formats or, if the task has a leaderboard, as a folder with a submission. If the split
    stands for several, as mnli's dev does, --output is a folder with a file for each.

    \b
    Examples:
      python run.py predict --model runs/sst2 "A charming film." "Two hours of my life."
      python run.py predict --model runs/squad "Who wrote it?" "Mary Shelley wrote it in Geneva."
      python run.py predict --model runs/sst2 --input texts.txt --output answers.jsonl
      echo "A charming film." | python run.py predict --model runs/sst2 --input - --output -
      python run.py predict --model runs/sst2 --split test --data-dir glue --output submission
      python run.py predict --model runs/squad --input dev-v1.1.json --output answers
    """
    if texts_to_answer:
        others = {"input": source, "split": split, "task": task, "output": output, "n_best": n_best}
        others["restore_spaces"] = restore_spaces
        _answer(model, list(texts_to_answer), {**others, **data})
        return
    if bool(source) == bool(split):
        raise UserError(
            "TEXT: needs a text to answer, --input a file of them, or --split a split of the task. Give one."
        )
    if not output:
        raise UserError("--output: needs a file or folder for the answers, or - for stdout. Received: none.")
    files_of_task = [f"--{name.replace('_', '-')}" for name in ("data_dir", "train", "dev", "test") if data[name]]
    if source and files_of_task:
        raise UserError(f"{files_of_task[0]}: goes with --split. Received: --input, the file to answer. Leave out one.")
    if source:
        require_source(source)
    given = table_settings(**data)
    require_data(task or "the task", {f"data.{name}": value for name, value in given.items()})
    if output != STANDARD_STREAM:
        require_writable(output)
    folder = open_model_folder(model)
    if output == STANDARD_STREAM and folder.head and kind_of_head(folder.head).answers_in_folder:
        raise UserError("--output: needs a folder, because question answering writes several files. Received: -.")
    load_tensorflow()
    from keras_bert.tasks.finetuned_model import FinetunedModel
    from keras_bert.tasks.finetuned_model import predict as write_answers
    from keras_bert.tasks.segmentation.problem import set_restored_spaces

    finetuned = FinetunedModel(folder, given, task, asked=source, outputs=[output], n_best=n_best)
    set_restored_spaces(finetuned.problem, restore_spaces)
    splits = finetuned.splits(split) if split else [INPUT]
    written, count = write_answers(finetuned, splits, output)
    for line in finetuned.problem.notes:
        click.echo(line, err=output == STANDARD_STREAM)
    if output != STANDARD_STREAM:
        step = f"{PROGRAM} evaluate --model {shlex.quote(model)}"
        _log.info(f"Written: {', '.join(written)}, {count:,} examples. Next: {step}")


def _answer(model: str, texts: list[str], others: dict[str, Any]) -> None:
    """Prints the answers to texts. Raises `UserError` for other options, which are for files."""
    if used := [name.replace("_", "-").replace("texts", "text") for name, value in others.items() if value]:
        raise UserError(f"--{used[0]}: goes with a file of examples. Received: TEXT too. Leave out one.")
    require_utf8(texts)
    folder = open_model_folder(model)
    if not folder.head:
        raise UserError(
            f"{model}: needs a fine-tuned model. Received: one without a task's head. "
            f"Fine-tune it with: {PROGRAM} finetune --task NAME --init {shlex.quote(model)}"
        )
    load_tensorflow()
    from keras_bert.inference.loading import load_folder

    for line in kind_of_head(folder.head).answers_shown(load_folder(folder), texts):
        click.echo(line)
