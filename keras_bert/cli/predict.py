"""`run.py predict`."""

import shlex

import click

from keras_bert.checkpoints.model_folder import open_model_folder
from keras_bert.cli.options import model_option, table_options, table_settings
from keras_bert.config.span_extraction import SpanExtractionConfig
from keras_bert.errors import UserError
from keras_bert.files import exists
from keras_bert.program import PROGRAM
from keras_bert.quiet import import_tensorflow
from keras_bert.tasks.task import INPUT


@click.command()
@model_option
@click.option("--input", "source", metavar="FILE|-", help="Examples to answer; - reads standard input.")
@click.option(
    "--split", help="Answer a split of the task instead; test in the format that its leaderboard takes, if it has one."
)
@click.option(
    "--task", metavar="NAME", help="With --split: another task for the same model, as ax for a model of mnli."
)
@click.option(
    "--output", required=True, metavar="FILE|-|DIR", help="Where to write the answers; - writes to standard output."
)
@table_options
@click.pass_context
def predict(context, model, source, split, task, output, **data):
    """Write a fine-tuned model's answers.

    \b
    Model                --input                                        --output
    classification       .csv, .tsv, .jsonl, or .txt with a text a line JSON lines
    tagging              columns or CoNLL-U, as in training             the same file with labels
    question answering   SQuAD's JSON                                   a folder: predictions, n-best, null odds
    multiple choice      as in training                                 JSON lines

    \b
    Files of any size, without answers or with them, which are not looked at. --split writes the same,
    or a submission into a folder where the task has one; of several splits, as mnli's dev, each into
    the folder --output under its own name.

    \b
    Examples:
      echo "A charming film." | python run.py predict --model runs/sst2 --input - --output -
      python run.py predict --model runs/sst2 --split test --data-dir glue --output submission
      python run.py predict --model runs/squad --input dev-v1.1.json --output answers
    """
    if bool(source) == bool(split):
        raise UserError("--input: needs texts to answer, or --split a split of the task. Give one of the two.")
    if source and source != "-" and not exists(source):
        raise UserError(f"{source}: no such file. Give one that is there, or - for what comes in.")
    folder = open_model_folder(model)
    if output == "-" and isinstance(folder.head, SpanExtractionConfig):
        raise UserError("--output: needs a folder, as the answers to questions are several files. Received: -.")
    import_tensorflow(context.find_root().params["debug"])
    from keras_bert.tasks.evaluation import FinetunedModel, splits_like
    from keras_bert.tasks.prediction import predict as write_answers

    finetuned = FinetunedModel(folder, table_settings(**data), task, asked=source)
    splits = [INPUT] if source else splits_like(finetuned.problem, split)
    written, count = write_answers(finetuned, splits, output)
    if output != "-":
        for line in finetuned.problem.notes:
            click.echo(line)
        step = f"{PROGRAM} evaluate --model {shlex.quote(model)}"
        click.echo(f"Written: {', '.join(written)}, {count:,} examples. Next: {step}")
