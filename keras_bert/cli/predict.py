"""`run.py predict`."""

import click

from keras_bert.checkpoints.model_folder import open_model_folder
from keras_bert.cli.options import model_option, table_options, table_settings
from keras_bert.errors import UserError
from keras_bert.files import exists
from keras_bert.program import PROGRAM
from keras_bert.quiet import import_tensorflow


@click.command()
@model_option
@click.option("--input", "source", metavar="FILE|-", help="Examples to answer; - reads standard input.")
@click.option(
    "--split", help="Answer a split of the task instead, usually test, in the format that its leaderboard takes."
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
    import_tensorflow(context.find_root().params["debug"])
    from keras_bert.tasks.evaluation import FinetunedModel, splits_like
    from keras_bert.tasks.prediction import answers_texts, predict_splits, predict_texts

    chosen = table_settings(**data)
    if source and not answers_texts(folder.name):
        chosen |= {"folder": None, "train": None, "dev": None, "test": source}
        split = "test"
    finetuned = FinetunedModel(folder.name, chosen, task)
    if split:
        written = ", ".join(predict_splits(finetuned, splits_like(finetuned.problem, split), output))
    else:
        written = f"{output}, {predict_texts(finetuned, source, output):,} texts"
    if output != "-":
        for line in finetuned.problem.notes:
            click.echo(line)
        click.echo(f"Written: {written}. Next: {PROGRAM} evaluate --model {model}")
