"""`run.py evaluate`."""

import shlex
from typing import Any

import click

from keras_bert import whole_files
from keras_bert.checkpoints.model_folder import open_model_folder
from keras_bert.cli.options import file_to_write, model_option, table_options, table_settings
from keras_bert.errors import UserError
from keras_bert.program import PROGRAM
from keras_bert.quiet import import_tensorflow
from keras_bert.tasks.examples.noise import noise as noise_of


@click.command()
@model_option
@click.option("--split", default="dev", show_default=True, help="Split to score: dev, or another with labels.")
@click.option(
    "--noise",
    "noises",
    multiple=True,
    metavar="typo=SHARE|nospace",
    help="Also score the split with this noise added to its texts. Repeatable.",
)
@click.option("--output", metavar="FILE", callback=file_to_write, help="Write the scores as JSON.")
@table_options
@click.pass_context
def evaluate(
    context: click.Context, model: str, split: str, noises: tuple[str, ...], output: str | None, **data: Any
) -> None:
    """Score a fine-tuned model on labelled examples.

    \b
    --noise typo=0.3   in 30% of the words a letter is replaced, dropped, doubled or swapped
    --noise nospace    all spaces are removed

    \b
    Examples:
      python run.py evaluate --model runs/sst2
      python run.py evaluate --model runs/sst2 --data-dir glue --noise typo=0.3 --noise nospace
    """
    disturbances = {"": None, **{setting: noise_of(setting) for setting in noises}}
    folder = open_model_folder(model)
    import_tensorflow(context.find_root().params["debug"])
    from keras_bert.tasks.evaluation import FinetunedModel, splits_like
    from keras_bert.tasks.finetuning.results_table import evaluation_lines

    finetuned = FinetunedModel(folder, table_settings(**data))
    problem = finetuned.problem
    if noises and not problem.takes_noise:
        raise UserError(f"--noise: needs a task on whole texts. Received: {finetuned.config.task}.")
    scores: dict[str, dict[str, dict[str, float]]] = {}
    for name, disturbance in disturbances.items():
        problem.noise = disturbance
        for scored in splits_like(problem, split):
            scores.setdefault(scored, {})[name or "as it is"] = finetuned.evaluate(scored)
    for line in problem.notes:
        click.echo(line)
    for line in evaluation_lines(scores, problem):
        click.echo(line)
    if output:
        whole_files.write_json(output, scores)
        click.echo(
            f"Written: {output}. Next: {PROGRAM} predict --model {shlex.quote(model)} --input FILE --output FILE"
        )
