"""`run.py study`: a command for each study."""

import contextlib
import importlib
import logging
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import click

from keras_bert.cli.options import Number, folder_to_write, load_tensorflow, model_option, require_utf8, set_by_key
from keras_bert.config.finetuning import FinetuneConfig
from keras_bert.config.pretraining import PretrainConfig
from keras_bert.config.recipes import config_names, find_config, given
from keras_bert.config.studies import (
    EMBRYOLOGY_PARTS,
    AblationPlan,
    EmbryologyPlan,
    PilotsPlan,
    TaskPlan,
    require_names,
    selected,
    task_plans,
)
from keras_bert.core import files, settings
from keras_bert.core.errors import UserError, nearest_name
from keras_bert.core.imports import require
from keras_bert.core.program import command_line
from keras_bert.core.yaml_and_json import read_yaml

_log = logging.getLogger(__name__)


@click.group()
def study() -> None:
    """Compare many runs, or look inside a model, and write a page with tables and pictures.

    The same command resumes: finished parts are not repeated. The page is OUTPUT/NAME.md; docs/studies.md shows
    each study.

    \b
    Example:
      python run.py study pilots --data prepared --output runs/pilots
    """


_output_option = click.option(
    "--output",
    required=True,
    metavar="FOLDER",
    callback=folder_to_write,
    help="Where the runs, the page and the pictures go.",
)
_task_seeds_option = click.option(
    "--seeds",
    default=3,
    type=click.IntRange(min=1),
    help="Number of fine-tuning seeds, unless the plan gives a task its own.",
)

_task_data_option = click.option(
    "--data", required=True, metavar="FOLDER", help="Folder that holds the folders named in the plan."
)


def _pretraining_data_option(name: str) -> Callable[..., Any]:
    return click.option(
        name, required=True, metavar="GLOB", help="A folder that `prepare` wrote, or whatever `pretrain --data` takes."
    )


def _only_option(what: str) -> Callable[..., Any]:
    return click.option(
        "--only", multiple=True, metavar="NAME", help=f"Which of the plan's {what} to run. Repeatable. Default: all."
    )


def _plan_option(name: str) -> Callable[..., Any]:
    return click.option("--plan", default=name, metavar="NAME|FILE", help="Plan: a name in configs/studies, or a file.")


def _carried_out(module: str, output: str, *arguments: Any) -> None:
    """Makes a study and writes its page.

    Args:
        module: the module in `keras_bert.studies` with the study's function, which has the name of its command.
        *arguments: the function's arguments after the folder.
    """
    require("matplotlib", "Drawing pictures")
    load_tensorflow()
    from keras_bert.studies.study import StudyFolder

    name = click.get_current_context().info_name or ""
    make = getattr(importlib.import_module(f"keras_bert.studies.{module}"), name)
    with StudyFolder(output) as folder:
        findings = make(folder, *arguments)
        page = folder.write(name, findings, command_line())
    for line in findings.lines:
        click.echo(line)
    _log.info(f"Written: {page}. Next: tensorboard --logdir {shlex.quote(output)}, page IMAGES")


def _named(pairs: Sequence[str]) -> dict[str, str]:
    """`NAME=VALUE` arguments as `{name: value}`."""
    found = dict(text.partition("=")[::2] for text in pairs)
    if not all(found) or not all(found.values()):
        raise UserError(f"Each model needs the form NAME=MODEL. Received: {' '.join(pairs)}.")
    if len(found) < len(pairs):
        raise UserError(f"Each model needs a name of its own. Received: {' '.join(pairs)}.")
    require_names(found, "model", "NAME=MODEL")
    return found


def _require_tasks(tasks: Mapping[str, TaskPlan], data: str, plan: str) -> None:
    """Raises `UserError` for a task without files, recipe or valid settings, which would only be missed after hours."""
    require_names(tasks, "task", plan)
    for name, task in tasks.items():
        if not files.is_folder(folder := files.join(data, task.folder)):
            raise UserError(f"{folder}: needs the files of {name}. Received: no folder. Give --data with its parent.")
        recipe = _task_recipe(task.task or name, name)
        with _said_of(name):
            FinetuneConfig.from_file(recipe, task.set)


def _task_recipe(task: str, where: str) -> str:
    """The file of a recipe that `finetune --task` takes. Raises `UserError`, which begins with `where`, for others."""
    known = config_names("finetune")
    if task not in known:
        hint = nearest_name(task.lower(), known)
        raise UserError(f"{where}: needs one of {', '.join(known)}. Received: {task}.{hint}")
    return find_config("finetune", task)


@contextlib.contextmanager
def _said_of(name: str) -> Iterator[None]:
    """Begins the message of a `UserError` with a name in the plan."""
    try:
        yield
    except UserError as error:
        raise UserError(f"{name}: {error}") from None


@study.command(short_help="Compare models by fine-tuning on tasks.")
@click.argument("models", nargs=-1, required=True, metavar="NAME=MODEL…")
@_plan_option("worth")
@_task_data_option
@_output_option
@_task_seeds_option
@_only_option("tasks")
@click.option("--title", default="", show_default=False, help="Title of the page and the picture.")
def worth(
    models: tuple[str, ...], plan: str, data: str, output: str, seeds: int, only: tuple[str, ...], title: str
) -> None:
    """Fine-tune models the same way on several tasks and compare what they are worth.

    A MODEL is any that `finetune --init` takes; `scratch:MODEL` is its architecture and vocabulary with random weights.
    Models, tasks and seeds may be added later.

    \b
    Example:
      python run.py study worth --data data --output runs/worth scratch=scratch:runs/five_minutes ours=runs/five_minutes
    """
    inits = _named(models)
    path = find_config("studies", plan)
    tasks = selected(task_plans(read_yaml(path)), only, "task", path)
    _require_tasks(tasks, data, path)
    _carried_out("downstream", output, inits, tasks, data, seeds, title)


@study.command(short_help="Compare changes of a pretraining recipe.")
@_plan_option("pilots")
@_pretraining_data_option("--data")
@_output_option
@click.option("--seeds", default=3, type=click.IntRange(min=1), help="Number of pretraining seeds.")
@_only_option("pilots")
def pilots(plan: str, data: str, output: str, seeds: int, only: tuple[str, ...]) -> None:
    """Train a recipe with one change at a time and compare the cost of reaching the same loss.

    Pilots and seeds may be added later.

    \b
    Example:
      python run.py study pilots --data prepared --output runs/pilots
    """
    path = find_config("studies", plan)
    planned = settings.from_mapping(PilotsPlan, read_yaml(path))
    names = selected(planned.pilots, only, "pilot", path)
    _carried_out("pilots", output, planned, names, data, seeds)


@study.command(short_help="Compare objectives by fine-tuning.")
@_plan_option("ablation")
@_pretraining_data_option("--text")
@_task_data_option
@_output_option
@click.option("--recipe", metavar="NAME|FILE", help="Pretraining recipe, such as wiki_mini; replaces the plan's.")
@click.option(
    "--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Override a setting of pretraining. Repeatable."
)
@click.option("--pretraining-seeds", default=1, type=click.IntRange(min=1), help="Number of pretraining seeds.")
@_task_seeds_option
@_only_option("variants")
def ablation(
    plan: str,
    text: str,
    data: str,
    output: str,
    recipe: str | None,
    overrides: tuple[str, ...],
    pretraining_seeds: int,
    seeds: int,
    only: tuple[str, ...],
) -> None:
    """Pretrain in several ways on the same tokens, fine-tune each, and compare with the papers' figures.

    Variants, tasks and seeds may be added later.

    \b
    Example:
      python run.py study ablation --text prepared --data data --output runs/ablation
    """
    path = find_config("studies", plan)
    values, changes = read_yaml(path), set_by_key(PretrainConfig, overrides)
    values.update(given({"recipe": recipe}), set={**settings.section_of(values, "set"), **changes})
    planned = settings.from_mapping(AblationPlan, values)
    variants = selected(planned.variants, only, "variant", path)
    for name in dict.fromkeys(variant.pretrained_as or name for name, variant in variants.items()):
        with _said_of(name):
            file = find_config("pretrain", planned.variants[name].recipe or planned.recipe)
            PretrainConfig.from_file(file, {**planned.set, **planned.variants[name].set}).require_before_end()
    _require_tasks(planned.tasks, data, path)
    _carried_out("ablation", output, planned, variants, text, data, pretraining_seeds, seeds)


@study.command(short_help="Show what a run learned when.")
@click.argument("run", metavar="RUN")
@_plan_option("embryology")
@_task_data_option
@_output_option
@_task_seeds_option
@click.option(
    "--only", multiple=True, type=click.Choice(EMBRYOLOGY_PARTS), help="What to measure. Repeatable. Default: all."
)
@click.option(
    "--tasks-from",
    type=click.IntRange(min=2),
    metavar="N",
    help="Fine-tune from only N snapshots, about evenly spaced by the logarithm of their steps. Default: from all.",
)
def embryology(
    run: str, plan: str, data: str, output: str, seeds: int, only: tuple[str, ...], tasks_from: int | None
) -> None:
    """Show what a pretraining run learned when, from the snapshots that training.keep_every left.

    \b
    words   token reconstruction and mask prediction by part of speech
    probes  linear probes by layer
    tasks   fine-tuning from each snapshot

    \b
    Example:
      python run.py study embryology runs/mini --data data --output runs/embryology
    """
    path = find_config("studies", plan)
    planned = settings.from_mapping(EmbryologyPlan, read_yaml(path))
    if not only or "tasks" in only:
        _require_tasks(planned.tasks, data, path)
    _carried_out("embryology", output, planned, run, data, seeds, only or EMBRYOLOGY_PARTS, tasks_from)


@study.command(short_help="Draw what each attention head looks at.")
@click.argument("texts", nargs=-1, required=True, metavar="TEXT…")
@model_option
@_output_option
def attention(texts: tuple[str, ...], model: str, output: str) -> None:
    """Draw every head of a model for a text, and measure what the heads look at.

    OUTPUT/heads.html shows the heads one by one in a browser. The shares are means over all texts.

    \b
    Example:
      python run.py study attention --model runs/wiki "The cat sat on the mat." --output runs/attention
    """
    require_utf8(texts)
    _carried_out("attention", output, model, texts)


@study.command(short_help="List the neighbours of words.")
@model_option
@click.option(
    "--word",
    "words",
    multiple=True,
    required=True,
    metavar="WORD",
    help="Word to look up, one piece of the vocabulary. Repeatable.",
)
@click.option("--text", "texts", multiple=True, required=True, metavar="GLOB", help="Text to read. Repeatable.")
@click.option(
    "--tokens", default=500_000, type=click.IntRange(min=1), help="Read at most this many tokens of the text."
)
@click.option("--neighbours", default=8, type=click.IntRange(min=1), help="Neighbours to list for each word.")
@click.option("--layer", type=int, help="Layer of the contextual vectors, from 1. Default: the last.")
@_output_option
def geometry(
    model: str,
    words: tuple[str, ...],
    texts: tuple[str, ...],
    tokens: int,
    neighbours: int,
    layer: int | None,
    output: str,
) -> None:
    """List the neighbours of words by static, contextual and corpus vectors; break down the sum of the embeddings.

    \b
    Example:
      python run.py study geometry --model runs/wiki --word king --word bank --text 'wiki/*' --output runs/geometry
    """
    require_utf8(words)
    _carried_out("geometry", output, model, words, texts, tokens, neighbours, layer)


@study.command(short_help="Draw the loss around the end of training.")
@click.option("--task", required=True, metavar="NAME", help="Task, as for `finetune`.")
@click.option("--init", required=True, metavar="MODEL", help="Model to start from: a folder or hf:NAME.")
@click.option("--data-dir", metavar="DIR", help="Folder with the task's own files. Default: TFDS's own folder.")
@click.option(
    "--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Override a setting of both runs. Repeatable."
)
@click.option(
    "--set-scratch",
    "scratch",
    multiple=True,
    metavar="KEY=VALUE",
    help="Override a setting of the run from scratch only. Repeatable.",
)
@click.option(
    "--radius",
    default=0.5,
    type=Number(min=0, min_open=True),
    help="How far the plane reaches each way, as a multiple of the norm of the weights.",
)
@click.option("--points", default=11, type=click.IntRange(min=3), help="Points on each axis, an odd number.")
@click.option(
    "--examples",
    default=512,
    type=click.IntRange(min=1),
    help="Training examples to compute the loss on, rounded down to whole batches of 32, at least one.",
)
@_output_option
def landscape(
    task: str,
    init: str,
    data_dir: str | None,
    overrides: tuple[str, ...],
    scratch: tuple[str, ...],
    radius: float,
    points: int,
    examples: int,
    output: str,
) -> None:
    """Compare fine-tuning with training from scratch: losses over the steps, and in a plane around each end.

    \b
    Example:
      python run.py study landscape --task mrpc --init MODEL --data-dir glue --output runs/landscape
    """
    changes, more = (set_by_key(FinetuneConfig, given) for given in (overrides, scratch))
    FinetuneConfig.from_file(_task_recipe(task, "--task"), {**changes, **more})
    _carried_out("landscape", output, task, init, data_dir, changes, more, radius, points, examples)
