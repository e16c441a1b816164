"""Fine-tuning: `keras_bert.finetune`, and the parts that `run.py finetune` shares with it."""

from __future__ import annotations

import logging
import operator
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from keras_bert.api.given_data import GivenData
from keras_bert.api.keywords import callbacks_of, keyword_settings, length_settings, path_of, require_once
from keras_bert.api.preparation import prepared
from keras_bert.api.run import FinetuningRun
from keras_bert.checkpoints.model_folder import ModelFolder, newest_pretrained, open_model_folder
from keras_bert.config.features import TAGGING_TASKS, feature_layers
from keras_bert.config.finetuning import PROBLEM_TYPES, FinetuneConfig, TaskDataConfig
from keras_bert.config.recipes import config_names, find_config, given, recipe_init, recipe_name
from keras_bert.config.training import require_warmup
from keras_bert.core import settings
from keras_bert.core.errors import MissingData, UserError, nearest_name
from keras_bert.core.files import exists, is_folder
from keras_bert.core.program import command_line
from keras_bert.core.runtime import import_tensorflow
from keras_bert.core.yaml_and_json import read_yaml
from keras_bert.tasks.benchmarks import BENCHMARKS
from keras_bert.tasks.sources import own_file
from keras_bert.training.run_folder import FINETUNING, SEEDS, RunFolder

if TYPE_CHECKING:
    import keras

_log = logging.getLogger(__name__)

# The starting model if there is neither an `init` nor a pretraining run in runs/.
PUBLISHED = "hf:google-bert/bert-base-uncased"
_TEXT = "text"  # The task if nothing names another.
KINDS_OF_LABELS = {name.removesuffix("_classification"): name for name in PROBLEM_TYPES}


def finetune(
    model: str | os.PathLike[str] | None = None,
    task: str | None = None,
    *,
    train: Any = None,
    dev: Any = None,
    test: Any = None,
    text: str | Sequence[str] | None = None,
    label: str | None = None,
    kind: str | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    format: str | None = None,
    recipe: str | os.PathLike[str] | None = None,
    output: str | os.PathLike[str] | None = None,
    seeds: Sequence[int] = (),
    features: str | None = None,
    lower_case: bool | None = None,
    fresh: bool = False,
    callbacks: Iterable[keras.callbacks.Callback] = (),
    **keywords: Any,
) -> FinetuningRun:
    """Fine-tunes a BERT like `run.py finetune`: the same recipe, data and seed give the same numbers.

    Called again with the same `output`, it resumes an interrupted run, and returns a finished one as it is.

    ```python
    run = keras_bert.finetune("runs/wiki", train=frame, text="review", label="stars", output="runs/stars", epochs=2)
    run.results["splits"]["dev"], run.predict(["A charming film."])
    ```

    Args:
        model: the model to start from: a folder, `hf:NAME` or a `PretrainingRun`; by default as for the command.
        task: a recipe in configs/finetune: `text` to classify texts or, with two columns, pairs, `few-shot` to classify
            with a few texts per class, `rerank` to rank passages for queries, `tokens` to label words, `qa`, `choice`,
            `seq2seq` to write texts, or a task of the paper such as `sst2`; by default the recipe's, or else `text`.
        train, dev, test: examples, for a task on your own files: a path, a glob or a data set by name; or rows as
            dicts, columns as a dict of lists, a DataFrame (pandas, polars), a `datasets.Dataset`, an Arrow table or a
            `tf.data.Dataset` of dicts. Objects are kept in the run's folder, `given/`.
        text: the column that holds the text; two for pairs.
        label: the column that holds the label.
        kind: what a label is: `single_label`, `multi_label` or `regression`.
        data_dir: the folder with a task's own files, such as GLUE's.
        format: the format of the tables, if their names and contents do not show it.
        recipe: a recipe to use instead of the task's.
        output: the run's folder; by default runs/TASK.
        seeds: one run for each of these seeds; the result is the best run's model.
        features: train only a small network on features of the frozen encoder; see docs/finetuning.md.
        lower_case: whether the model lower-cases, if its folder does not specify it.
        fresh: start over in a new folder beside `output` if that exists.
        callbacks: Keras callbacks, for which a step is a batch and a validation ends an epoch, with `val_…` figures.
        **keywords: settings, like those of `keras_bert.pretrain`: `epochs=3`, `learning_rate=5e-5`, `max_length=128`.

    Raises:
        UserError: the settings, the data or the folder cannot be used; the message says what to do in one line.
        RunStopped: interrupted (Ctrl-C, the stop button, SIGTERM), after a checkpoint; call it again to resume.
    """
    started_at = time.monotonic()
    task, kind, recipe = path_of(task, "task"), path_of(kind, "kind"), path_of(recipe, "recipe")
    if task in BENCHMARKS:
        single = ", ".join(BENCHMARKS[task].tasks)
        raise UserError(f"task: needs a single task. Received: {task}. Give one of {single}.")
    if recipe:
        task = _task_of(recipe, task)
    else:
        task = task or _TEXT
        require_known(task)
    if kind and kind not in KINDS_OF_LABELS:
        raise UserError(f"kind: needs one of {', '.join(KINDS_OF_LABELS)}. Received: {kind!r}.")
    seeds = _seeds(seeds)
    by_key = keyword_settings(FinetuneConfig, keywords)
    by_key |= length_settings(by_key)
    of_features = features_recipe(task, features) if features and not recipe else {}
    file = find_config("finetune", recipe or task)
    folder = path_of(output, "output") or os.path.join("runs", recipe_name(file, {**of_features, **by_key}))
    folder = RunFolder.fresh(folder).path if fresh else folder
    RunFolder(folder).require(SEEDS if seeds else FINETUNING)
    paths = [os.path.join(folder, f"seed-{seed}") for seed in seeds] or [folder]
    init = path_of(by_key.get("init"), "init") if model is None else path_of(model, "model")
    splits = {"data.train": train, "data.dev": dev, "data.test": test}
    named = {key: os.fspath(data) for key, data in splits.items() if isinstance(data, str | os.PathLike)}
    named |= given({"data.folder": path_of(data_dir, "data_dir")})
    require_data(task, by_key | named)
    start = starting_model(init, file, paths, lower_case)
    kept = GivenData(folder)
    options = {
        **{key: kept.source(key.removeprefix("data."), data) for key, data in splits.items() if data is not None},
        **given(
            {
                "task": task if recipe else None,
                "lower_case": lower_case,
                "data.texts": [text] if isinstance(text, str) else text,
                "data.label": label,
                "data.kind": KINDS_OF_LABELS[kind] if kind else None,
                "data.folder": path_of(data_dir, "data_dir"),
                "data.format": format,
                "features.kind": features,
            }
        ),
    }
    require_once(by_key, {**options, **given({"init": model and init, "training.seed": seeds or None})})
    config = finetuning_recipe(recipe or task, {**of_features, **by_key, **options, "init": start.name}, start)
    import_tensorflow()
    from keras_bert.tasks.finetuning.runs import FinetuningRuns

    callbacks = callbacks_of(callbacks)
    kept.write()
    config = prepared(config, folder, started_at)
    runs = FinetuningRuns(config, command=command_line(), started_at=started_at, callbacks=callbacks)
    if seeds:
        runs.seeds(folder, seeds)
    else:
        runs.one(folder)
    return FinetuningRun(folder)


def _task_of(recipe: str, task: str | None) -> str:
    """The task that a recipe states or, without one, the `task` asked for, else the recipe's name or `text`.

    Raises `UserError` if another task than the recipe's is asked for.
    """
    file = find_config("finetune", recipe)
    stated, name = settings.text_of(read_yaml(file), "task"), recipe_name(file, {})
    if stated and task not in (None, stated):
        raise UserError(f"task: needs {stated}, the task of {recipe}. Received: {task}. Leave out one.")
    return stated or task or (name if name in config_names("finetune") else _TEXT)


def _seeds(given: Sequence[int]) -> list[int]:
    try:
        seeds = [operator.index(seed) for seed in given]  # JSON cannot write NumPy integers.
        if settings.are_seeds(seeds):
            return seeds
    except TypeError:
        pass
    raise UserError(
        f"seeds: needs distinct whole numbers from 0 to {settings.MAX_SEED}, as in [1, 2]. Received: {given!r}."
    )


def require_data(task: str, chosen: Mapping[str, Any]) -> None:
    """Raises `MissingData` if a chosen folder or file of data is not there, before a model is fetched from the hub."""
    folder = settings.text_of(chosen, "data.folder")
    if folder and not is_folder(folder):
        received = "a file" if exists(folder) else "no such folder"
        raise MissingData(f"{folder}: needs the data of {task}. Received: {received}. Give the folder that holds them.")
    for split in ("train", "dev", "test"):
        if path := settings.text_of(chosen, f"data.{split}"):
            own_file(path, split, task)


def starting_model(init: str | None, recipe_file: str, paths: Sequence[str], lower_case: bool | None) -> ModelFolder:
    """The model that runs start from; if any has begun, the model that the first one began from.

    Args:
        init: the requested model; None for the recipe's, else the newest pretraining run in runs/, else
            `PUBLISHED`.
        paths: the runs' folders.
        lower_case: the requested casing; None if none was.

    Raises:
        UserError: there is no such model.
    """
    init = init or recipe_init(recipe_file)
    wanted = init or _default_init()
    begun = (RunFolder(path).begun_init(wanted) for path in paths)
    try:
        return open_model_folder(next((name for name in begun if name != wanted), wanted), lower_case)
    except UserError as error:
        if init:
            raise
        raise UserError(
            f"{error} Give --init with a model folder and, if there is no network, --data-dir with the task's own "
            "files (GLUE's are train.tsv, dev.tsv and test.tsv)."
        ) from None


def _default_init() -> str:
    newest = newest_pretrained("runs")
    why = "because runs/ has no pretraining run" if newest is None else "the newest pretraining run in runs/"
    _log.info(f"Starting from {newest or PUBLISHED}, {why}; --init chooses another.")
    return newest or PUBLISHED


def finetuning_recipe(name: str, chosen: Mapping[str, Any], folder: ModelFolder) -> FinetuneConfig:
    """A recipe by its name or file, checked as far as possible without its data.

    Args:
        name: a name in configs/finetune, or a file.
        chosen: `{key: value}` of the settings that take precedence.
        folder: the model to start from.

    Raises:
        UserError: a setting is invalid, or does not fit this model.
    """
    recipe = FinetuneConfig.from_file(find_config("finetune", name), dict(chosen))
    # Without `word`, a tagger reads the first column, so a choice equal to the default must be passed on.
    if "data.texts" in chosen and recipe.data.texts == TaskDataConfig().texts and recipe.task in TAGGING_TASKS:
        recipe.data.word = recipe.data.word or recipe.data.texts[0]
    folder.require_positions(recipe.input.max_length)
    if recipe.training.steps:
        require_warmup(recipe.optimizer, recipe.training, recipe.training.steps)
    if recipe.features.kind:
        feature_layers(recipe.features.kind, folder.config.num_blocks)
    return recipe


def features_recipe(task: str | None, features: str) -> dict[str, Any]:
    """`{key: value}` for a network on the frozen encoder's features: configs/features/lstm.yaml plus a name."""
    return {"name": f"{task}-{features}", **settings.flattened(read_yaml(find_config("features", "lstm")))}


def require_known(task: str) -> None:
    """Raises `UserError` if there is no recipe for a task."""
    known = config_names("finetune")
    if task not in known:
        every = [*BENCHMARKS, *known]
        raise UserError(
            f"--task: needs one of {', '.join(every)}. Received: {task}.{nearest_name(task.lower(), every)} For your "
            "own data, give text, tokens, qa or choice."
        )
