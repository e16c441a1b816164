"""`run.py predict`."""

import click

from keras_bert.checkpoints.model_folder import open_model_folder
from keras_bert.cli.options import model_option, table_options, table_settings
from keras_bert.errors import UserError
from keras_bert.files import exists
from keras_bert.quiet import import_tensorflow


@click.command()
@model_option
@click.option(
    "--input", "source", metavar="FILE|-", help="A .csv, .tsv or .jsonl table, .txt with a text a line, or -."
)
@click.option("--split", help="In place of --input: test, whose predictions are written as GLUE's server takes them.")
@click.option("--task", metavar="NAME", help="Of --split: another task that the model answers: ax, by a model of mnli.")
@click.option("--output", required=True, metavar="FILE|-|DIR", help="JSON lines; for --split a folder.")
@table_options
@click.pass_context
def predict(context, model, source, split, task, output, **data):
    """Write a fine-tuned model's answers.

    \b
    Examples:
      echo "A charming film." | python run.py predict --model runs/sst2 --input - --output -
      python run.py predict --model runs/sst2 --input reviews.csv --output answers.jsonl
      python run.py predict --model runs/sst2 --split test --data-dir glue --output submission
    """
    if bool(source) == bool(split):
        raise UserError("--input: needs texts to answer, or --split a split of the task. Give one of the two.")
    if source and source != "-" and not exists(source):
        raise UserError(f"{source}: no such file. Give a table, a text a line, or - for what comes in.")
    open_model_folder(model)
    import_tensorflow(context.find_root().params["debug"])
    from keras_bert.tasks.evaluation import FinetunedModel
    from keras_bert.tasks.prediction import predict_splits, predict_texts

    finetuned = FinetunedModel(model, table_settings(**data), task, report=click.echo)
    if split:
        paths = predict_splits(finetuned, finetuned.problem.splits_like(split), output)
        click.echo(f"Written: {', '.join(paths)}. Next: put it into the zip that gluebenchmark.com takes")
        return
    done = predict_texts(finetuned, source, output)
    if output != "-":
        click.echo(f"Written: {output}, {done:,} texts. Next: python run.py evaluate --model {model}")
