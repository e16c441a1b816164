"""`run.py evaluate`."""

import dataclasses
import logging
import shlex
from typing import Any

import click

from keras_bert.api.finetuning import require_data
from keras_bert.checkpoints.model_folder import open_model_folder
from keras_bert.cli.options import (
    file_to_write,
    load_tensorflow,
    other_table_options,
    restore_spaces_option,
    table_settings,
)
from keras_bert.core import imports, whole_files
from keras_bert.core.errors import UserError
from keras_bert.core.program import PROGRAM
from keras_bert.tasks.noise import Noise, changes_text

_log = logging.getLogger(__name__)


@click.command()
@click.option(
    "--model",
    "models",
    multiple=True,
    required=True,
    metavar="MODEL",
    help="A run folder, a model folder, or hf:NAME[@REVISION]. Repeat to score the mean of the models' probabilities.",
)
@click.option("--split", help="Split to score, which needs labels. Default: test if only --test is given, else dev.")
@click.option(
    "--noise",
    "noises",
    multiple=True,
    metavar="KIND[=SHARE]",
    help="Also score the split with this noise added to its texts. Repeatable.",
)
@click.option("--task", metavar="NAME", help="Score on another task, such as axb with a model of superglue_rte.")
@restore_spaces_option
@click.option("--output", metavar="FILE", callback=file_to_write, help="Write the scores as JSON.")
@click.option("--picture", metavar="FILE", callback=file_to_write, help="Draw the scores as a bar chart (PNG).")
@other_table_options
def evaluate(
    models: tuple[str, ...],
    split: str | None,
    noises: tuple[str, ...],
    task: str | None,
    restore_spaces: str | None,
    output: str | None,
    picture: str | None,
    **data: Any,
) -> None:
    """Score a model that was fine-tuned, here or elsewhere, on labelled examples.

    --noise KIND[=SHARE] changes that share of the words (default: 0.3) or Chinese characters (default: 0.1):

    \b
    typo                a letter becomes a neighbouring key, or is lost, doubled,
                        or swapped with the next
    swap                two neighbouring letters are swapped
    case                the word is put in capitals
    homoglyph           a letter becomes one of another script that looks alike
    nospace, addspace   spaces are lost (by default all), or added inside words
    zh-shape, zh-sound  characters are replaced by others that look or sound alike
    zh-drop, zh-double  characters are lost or doubled

    \b
    Examples:
      python run.py evaluate --model runs/sst2
      python run.py evaluate --model runs/sst2/seed-1 --model runs/sst2/seed-2 --picture scores.png
      python run.py evaluate --model runs/sst2 --data-dir glue --noise typo=0.3 --noise nospace
      python run.py evaluate --model runs/sst2 --noise nospace --restore-spaces runs/segment
    """
    if picture:
        imports.require("matplotlib", "--picture")
    for setting in noises:
        Noise(setting)  # Refuses invalid noise before anything is read.
    split = split or ("test" if data["test"] and not data["dev"] else "dev")
    for name in ("dev", "test"):  # --train also gives the most frequent label to compare with.
        if data[name] and not split.startswith(name):
            raise UserError(f"--{name}: goes with --split {name}. Received: --split {split}. Leave one out.")
    given = table_settings(**data)
    require_data(task or "the task", {f"data.{name}": value for name, value in given.items()})
    folders = [open_model_folder(model) for model in models]
    load_tensorflow()
    from keras_bert.tasks.ensemble import Ensemble
    from keras_bert.tasks.finetuned_model import FinetunedModel
    from keras_bert.tasks.finetuning.pictures import evaluation_groups, write_picture
    from keras_bert.tasks.finetuning.results import evaluation_lines
    from keras_bert.tasks.segmentation.problem import set_restored_spaces

    finetuned = [FinetunedModel(folder, given, task, outputs=[output, picture]) for folder in folders]
    ensemble = Ensemble(finetuned)
    problem = ensemble.problem
    set_restored_spaces(problem, restore_spaces)
    splits = finetuned[0].splits(split)
    read = finetuned[0].config.data
    if not read.train and any(getattr(read, scored, None) for scored in splits):
        # The user's own examples of a benchmark, which the published scores are not of.
        problem.task = dataclasses.replace(problem.task, published=())
    if noises:
        problem.require_noise()
    for scored in splits:  # Before any is scored, which takes long.
        problem.require_labels(scored)
    scores: dict[str, dict[str, dict[str, Any]]] = {}
    remarks = []
    for scored in splits:
        scores[scored] = {"as it is": ensemble.evaluate(scored)}
        for setting in noises:
            noise = Noise(setting)
            with problem.under(noise):
                figures = ensemble.evaluate(scored)
            scores[scored][setting] = {**figures, "changed": noise.shares()}
            remarks.append(f"{scored}, {setting}: noise {changes_text(noise.shares())}.")
    changes = dict.fromkeys(line for model in finetuned for line in model.data_changes(splits))
    for line in (*changes, *problem.notes, *remarks):
        click.echo(line)
    for line in evaluation_lines(scores, problem):
        click.echo(line)
    if picture:
        write_picture(picture, evaluation_groups(scores, problem), problem.task.name)
        _log.info(f"Written: {picture}.")
    if output:
        whole_files.write_json(output, scores)
        _log.info(
            f"Written: {output}. Next: {PROGRAM} predict --model {shlex.quote(models[0])} --input FILE --output FILE"
        )
