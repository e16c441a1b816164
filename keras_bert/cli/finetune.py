"""`run.py finetune`."""

import logging
import os
import shlex
import time
from collections.abc import Set
from typing import Any

import click

from keras_bert.api.finetuning import (
    KINDS_OF_LABELS,
    PUBLISHED,
    features_recipe,
    finetuning_recipe,
    require_data,
    require_known,
    starting_model,
)
from keras_bert.api.preparation import prepared
from keras_bert.cli.options import (
    casing_option,
    file_to_write,
    folder_to_write,
    load_tensorflow,
    require_agreement,
    run_options,
    run_settings,
    set_by_key,
    setting_option,
    table_options,
    table_settings,
)
from keras_bert.config.features import FeaturesConfig
from keras_bert.config.finetuning import (
    FinetuneConfig,
    FinetuneTrainingConfig,
    InputConfig,
    PreparationConfig,
    TaskDataConfig,
)
from keras_bert.config.recipes import find_config, given, recipe_name
from keras_bert.config.teacher import TeacherConfig
from keras_bert.core import files, imports, settings
from keras_bert.core.errors import UserError
from keras_bert.core.program import PROGRAM, command_line, note_fresh_folder
from keras_bert.core.settings import MAX_SEED, are_seeds
from keras_bert.core.yaml_and_json import read_yaml
from keras_bert.tasks.answer_files import require_unread
from keras_bert.tasks.benchmarks import BENCHMARKS, Benchmark
from keras_bert.tasks.noise import Noise
from keras_bert.training.run_folder import FINETUNING, SEEDS, SWEEP, TASKS, RunFolder

_log = logging.getLogger(__name__)


@click.command()
@click.option(
    "--task",
    metavar="NAME",
    help="Task to train on: a recipe in configs/finetune (sst2, squad, text, …), or all of glue or superglue.",
)
@click.option("--config", metavar="FILE", help="Recipe, if not the task's own: a file, or a name in configs/finetune.")
@click.option(
    "--init",
    metavar="MODEL",
    help="Model to start from: a folder or hf:NAME. Default: the recipe's, else the newest "
    f"pretraining run in runs/, else {PUBLISHED}.",
)
@casing_option
@setting_option(FinetuneConfig, "from_scratch")
@table_options
@setting_option(TaskDataConfig, "kind", type=click.Choice(list(KINDS_OF_LABELS)))
@setting_option(TaskDataConfig, "shots")
@click.option("--output", metavar="RUN", callback=folder_to_write, help="Run folder. Default: runs/TASK.")
@click.option("--picture", metavar="FILE", callback=file_to_write, help="Draw the scores as a bar chart (PNG).")
@setting_option(FinetuneTrainingConfig, "seed")
@click.option("--seeds", metavar="1,2,3", help="Train one run per seed and report median, mean, deviation and best.")
@click.option(
    "--sweep",
    is_flag=True,
    help="Try the paper's grid of batch sizes, epochs and learning rates; the rates are scaled to the model.",
)
@setting_option(FinetuneTrainingConfig, "epochs")
@setting_option(FinetuneTrainingConfig, "batch_size")
@setting_option(InputConfig, "max_length")
@setting_option(FinetuneTrainingConfig, "freeze")
@setting_option(FinetuneTrainingConfig, "lora_rank")
@setting_option(FinetuneTrainingConfig, "pretrain_minutes", "--pretrain-on-task", metavar="MINUTES")
@setting_option(PreparationConfig, "kind", "--prepare")
@setting_option(PreparationConfig, "text", "--prepare-text", multiple=True, metavar="GLOB", more="Repeatable.")
@setting_option(TeacherConfig, "model", "--teacher", metavar="MODEL")
@setting_option(FeaturesConfig, "kind", "--features")
@click.option(
    "--noise",
    "noises",
    multiple=True,
    metavar="KIND[=SHARE]",
    help="Also train on copies of the examples with this noise; `evaluate --help` lists the kinds. Repeatable.",
)
@run_options
def finetune(
    task: str | None,
    config: str | None,
    init: str | None,
    lower_case: bool | None,
    from_scratch: bool,
    data_dir: str | None,
    train: str | None,
    dev: str | None,
    test: str | None,
    texts: tuple[str, ...],
    label: str | None,
    format: str | None,
    kind: str | None,
    shots: int | None,
    output: str | None,
    seed: int | None,
    seeds: str | None,
    max_length: int | None,
    freeze: bool,
    pretrain_on_task: float | None,
    prepare: str | None,
    prepare_text: tuple[str, ...],
    teacher: str | None,
    features: str | None,
    noises: tuple[str, ...],
    picture: str | None,
    sweep: bool,
    overrides: tuple[str, ...],
    fresh: bool,
    **training: Any,
) -> None:
    """Fine-tune a BERT on a task and keep the best epoch by dev score.

    All other settings come from the recipe; `settings` lists those that --set can change.

    The same command resumes a run that stopped.

    \b
    Examples:
      python run.py finetune --task sst2 --init MODEL
      python run.py finetune --task mrpc --init MODEL --data-dir glue --seeds 1,2,3
      python run.py finetune --task text --init MODEL --train reviews.csv --text review --label stars
      python run.py finetune --task ner --init MODEL --data-dir conll2003 --features concat_last4
      python run.py finetune --task seq2seq --init BART --train titles.tsv --text text --label target
    """
    started_at = time.monotonic()
    if not task and not config:
        raise UserError("--task: needs the name of a task, or --config with a recipe file. Received: neither.")
    if picture:
        imports.require("matplotlib", "--picture")
    if sweep and seeds:
        raise UserError("--sweep: needs a single seed. Received: --seeds as well. Choose it by --seed N.")
    if seed is not None and seeds:
        raise UserError("--seed: needs to be the only choice of seeds. Received: --seeds as well. Leave out one.")
    if sweep and picture:
        raise UserError("--sweep: draws no picture. Received: --picture as well. Leave out one.")
    for noise in noises:
        Noise(noise)  # Refuses invalid noise before a model is looked for on the hub.
    data = table_settings(data_dir, texts, train=train, dev=dev, test=test, label=label, format=format)
    by_key = set_by_key(FinetuneConfig, overrides)
    benchmark = BENCHMARKS.get(task or "")
    if task and config:
        _require_task_of(config, task)
    elif task and not benchmark:
        require_known(task)
    flags = {
        **given(
            {
                "task": task if config else None,
                "lower_case": lower_case,
                "from_scratch": from_scratch or None,
                "data.kind": KINDS_OF_LABELS[kind] if kind else None,
                "data.shots": shots,
                "training.seed": seed,
                "input.max_length": max_length,
                "training.freeze": freeze or None,
                "training.pretrain_minutes": pretrain_on_task,
                "prepare.kind": prepare,
                "prepare.text": list(prepare_text) or None,
                "teacher.model": teacher,
                "features.kind": features,
                "noise.kinds": list(noises) or None,
            }
        ),
        **{f"data.{key}": value for key, value in data.items()},
        **run_settings(by_key, **training),
    }
    require_agreement(
        by_key, {**flags, **given({"task": task, "init": init, "training.seed": seeds and f"--seeds {seeds}"})}
    )
    for option, is_given in (
        ("--sweep", sweep),
        ("--train, --dev, --test, --text, --label", data.keys() - {"folder"}),
        ("--prepare", any(f"{key}.".startswith("prepare.") for key in flags | by_key)),
    ):
        if benchmark and is_given:
            raise UserError(
                f"{option}: needs a single task. Received: {benchmark.name}. Give one of {', '.join(benchmark.tasks)}."
            )
    names = list(benchmark.tasks) if benchmark else [config or task or ""]
    require_data(task or names[0], by_key | flags)
    seed_list = _seeds(seeds)
    of_features = features_recipe(task, features) if features and not config else {}
    first_recipe = find_config("finetune", names[0])
    name = benchmark.name if benchmark else recipe_name(first_recipe, {**of_features, **by_key})
    output = output or os.path.join("runs", name)
    output = RunFolder.fresh(output).path if fresh else output
    require_unread([output, picture], [])
    paths = _run_paths(output, benchmark, seed_list, sweep)
    folder = starting_model(init or settings.text_of(by_key, "init"), first_recipe, paths, lower_case)
    if sweep:
        _require_free(flags.keys() | by_key.keys())
    chosen = {**of_features, **by_key, **flags, "init": folder.name}
    recipes = {name: finetuning_recipe(name, chosen, folder) for name in names}
    for recipe in recipes.values():
        own = recipe.data
        require_unread([picture], [folder.path, own.folder, own.train, own.dev, own.test])

    load_tensorflow()
    click.get_current_context().meta["keras_bert.run_folder"] = output
    note_fresh_folder(output if fresh else None)
    recipes = {
        name: prepared(recipe, files.join(output, name) if benchmark else output, started_at)
        for name, recipe in recipes.items()
    }
    if benchmark:
        _all_of(benchmark, recipes, output, seed_list, picture, started_at)
    else:
        _one(next(iter(recipes.values())), output, seed_list, sweep, picture, started_at)


def _run_paths(output: str, benchmark: Benchmark | None, seeds: list[int], sweep: bool) -> list[str]:
    """The folders of the command's runs; for a sweep, those that exist. Refuses folders that hold something else."""
    if benchmark:
        RunFolder(output).require(TASKS)
    paths = [files.join(output, task) for task in benchmark.tasks] if benchmark else [output]
    for path in paths:
        RunFolder(path).require(SWEEP if sweep else SEEDS if seeds else FINETUNING)
    if sweep:
        return [path for name in files.list_folder(output) if files.is_folder(path := files.join(output, name))]
    return [files.join(path, f"seed-{seed}") for path in paths for seed in seeds] if seeds else paths


def _one(
    recipe: FinetuneConfig, output: str, seeds: list[int], sweep: bool, picture: str | None, started_at: float
) -> None:
    from keras_bert.tasks.finetuning.pictures import results_groups, write_picture
    from keras_bert.tasks.finetuning.results import results_lines, sweep_lines
    from keras_bert.tasks.finetuning.runs import FinetuningRuns, point_name
    from keras_bert.tasks.kind import kind_of_head

    _log.info(f"{recipe.task} from {recipe.init} → {output}")
    runs = FinetuningRuns(recipe, command=command_line(), started_at=started_at)
    if sweep:
        found = runs.sweep(output)
        if found is None:  # A worker that is not the chief.
            return
        for line in sweep_lines(found):
            click.echo(line)
        best = files.join(output, point_name(found[0][0]))
        _log.info(
            f"Written: {output}. Next: {PROGRAM} evaluate --model {shlex.quote(best)}   |   "
            f"tensorboard --logdir {shlex.quote(output)}, page HPARAMS"
        )
        return
    results = runs.seeds(output, seeds) if seeds else runs.one(output)
    if results is None:
        return
    published = runs.problem.task.published
    for line in results_lines(results, published):
        click.echo(line)
    if picture:
        write_picture(picture, results_groups(results, published), recipe.name)
    texts = kind_of_head(runs.problem.head).texts_per_example(runs.problem.task_record())
    example = " ".join(['"…"'] * texts) or "--input FILE --output FILE"
    _log.info(
        f"Written: {output}. Next: {PROGRAM} predict --model {shlex.quote(output)} {example}   |   "
        f"tensorboard --logdir {shlex.quote(output)}"
    )


def _all_of(
    benchmark: Benchmark,
    recipes: dict[str, FinetuneConfig],
    output: str,
    seeds: list[int],
    picture: str | None,
    started_at: float,
) -> None:
    from keras_bert.tasks.finetuning.pictures import benchmark_groups, write_picture
    from keras_bert.tasks.finetuning.results import benchmark_lines
    from keras_bert.tasks.finetuning.runs import finetune_benchmark

    results = finetune_benchmark(benchmark.name, recipes, output, seeds, command_line(), started_at)
    if results is None:
        return
    for line in benchmark_lines(benchmark, results):
        click.echo(line)
    if picture:
        write_picture(picture, benchmark_groups(benchmark, results), benchmark.title)
    _log.info(f"Written: {output}. Next: tensorboard --logdir {shlex.quote(output)}")


def _require_task_of(config: str, task: str) -> None:
    """Refuses a task other than the recipe's; a recipe without a task is for any."""
    stated = settings.text_of(read_yaml(find_config("finetune", config)), "task")
    if task in BENCHMARKS or stated not in (None, task):
        needed = "a single task" if task in BENCHMARKS else f"{stated}, the task of {config}"
        raise UserError(f"--task: needs {needed}, beside --config. Received: {task}. Leave out one.")


def _require_free(given: Set[str]) -> None:
    """Refuses settings that a sweep chooses itself or would ignore."""
    rates = ("optimizer.learning_rate", "optimizer.base_rate")
    for key in (*rates, "training.batch_size", "training.epochs", "training.steps", "training.minutes"):
        if key in given:
            raise UserError(
                f"--sweep: needs its own batch sizes, rates and epochs. Received: {key}. Leave out one of the two."
            )


def _seeds(text: str | None) -> list[int]:
    if text is None:
        return []
    try:
        seeds = [int(seed) for seed in text.split(",")]
    except ValueError:
        seeds = []
    if not seeds or not are_seeds(seeds):
        raise UserError(
            f"--seeds: needs distinct whole numbers from 0 to {MAX_SEED} separated by commas, as in 1,2,3. "
            f"Received: {text!r}."
        )
    return seeds
