"""`run.py pretrain`."""

import logging
import math
import os
import shlex
import time
from collections.abc import Mapping, Sequence
from typing import Any

import click

from keras_bert.checkpoints.model_folder import given_vocabulary, open_model_folder
from keras_bert.cli.options import (
    SEED,
    casing_option,
    column_option,
    folder_to_write,
    format_option,
    given,
    recipe_init,
    recipe_name,
    require_agreement,
    run_options,
    run_settings,
    set_by_key,
    setting_option,
)
from keras_bert.config.objectives import PhaseConfig
from keras_bert.config.pretraining import PretrainConfig
from keras_bert.config.recipes import find_config
from keras_bert.config.training import TrainingConfig
from keras_bert.core import settings
from keras_bert.core.errors import UserError
from keras_bert.core.files import join, shown
from keras_bert.core.program import PROGRAM, command_line, note_fresh_folder, same_command
from keras_bert.core.runtime import import_tensorflow
from keras_bert.data.corpus.held_out import TRAIN
from keras_bert.data.shards.prepared_folder import is_prepared
from keras_bert.models.bert.config import BOTH, MASKED, NEXT
from keras_bert.models.term import all_terms
from keras_bert.text.vocabulary import Vocabulary, find_vocabulary
from keras_bert.training.run_folder import PRETRAINING, RunFolder

_log = logging.getLogger(__name__)


@click.command()
@click.option("--config", metavar="FILE", help="Recipe: a file, or a name in configs/pretrain.")
@click.option(
    "--data",
    multiple=True,
    metavar="GLOB",
    help="Text to train on: a file, a folder, a quoted glob, tfds:NAME[/CONFIG][:SPLIT], hf:datasets/ORG/NAME[:SPLIT], "
    "or a folder that `prepare` wrote. Repeatable.",
)
@column_option
@format_option
@click.option(
    "--init",
    metavar="MODEL",
    help="Model to start from, a folder or hf:NAME, with its vocabulary or one that `vocab --extend` made of it.",
)
@casing_option
@click.option("--output", metavar="RUN", callback=folder_to_write, help="Run folder. Default: runs/RECIPE.")
@run_options
@setting_option(PhaseConfig, "batch_size", more="In every phase.", type=click.IntRange(min=1))
@setting_option(PhaseConfig, "sequence_length", "--max-length", type=click.IntRange(min=8))
@setting_option(TrainingConfig, "seed", type=SEED)
@click.option("--estimate", is_flag=True, help="Time a few steps, print what the run would take, and stop.")
@click.pass_context
def pretrain(
    context: click.Context,
    config: str | None,
    data: tuple[str, ...],
    text: str | None,
    format: str | None,
    init: str | None,
    lower_case: bool | None,
    output: str | None,
    batch_size: int | None,
    max_length: int | None,
    seed: int | None,
    overrides: tuple[str, ...],
    estimate: bool,
    fresh: bool,
    **run: Any,
) -> None:
    """Pretrain a BERT: masked LM and, unless the recipe says otherwise, next sentence prediction.

    \b
    Without --config the recipe is
    continue         with --init
    bert_base_tpu    with --strategy tpu
    bert_base        with --data or another --strategy
    demo             otherwise: a small model on the documentation that ships with Python

    The same command resumes a run that stopped. SIGTERM, SIGHUP and Ctrl-C save a checkpoint after the current step and
    exit with status 75; a second signal, at least one second later, exits at once.

    \b
    Example:
      python run.py pretrain --config wiki_mini --data 'wiki/*.txt' --output runs/wiki
    """
    started_at = time.monotonic()
    by_key = set_by_key(overrides)
    init_given = init or settings.text_of(by_key, "init")
    flags = {
        **given({"data.files": list(data) or None, "data.text": text, "data.format": format, "training.seed": seed}),
        **run_settings(**run),
    }
    strategy = flags.get("training.strategy")
    recipe_file = find_config("pretrain", config or _default_recipe(data, init_given, strategy))
    phases = by_key.get("phases", settings.read_yaml(recipe_file).get("phases"))
    flags |= _phase_settings(phases, batch_size, max_length, by_key)
    require_agreement(by_key, {**flags, **given({"init": init, "vocabulary.lower_case": lower_case})})
    output = output or os.path.join("runs", recipe_name(recipe_file, by_key))
    to_resume = None if fresh else RunFolder(output)
    if to_resume:
        to_resume.require(PRETRAINING)
    model_settings = _model_settings(init_given or recipe_init(recipe_file), lower_case, to_resume)
    if "init" in model_settings and not init_given:
        model_settings = _unless_in_recipe(model_settings, recipe_file, lower_case)
    init_setting = given({"init": model_settings.pop("init", None)})
    changes = {**model_settings, **by_key, **flags, **init_setting}
    if not init_setting:
        of_recipe = settings.section_of(settings.read_yaml(recipe_file), "vocabulary")
        own = {*changes, *(f"vocabulary.{key}" for key in of_recipe)}
        of_vocabulary = _settings_of_vocabulary(data, settings.text_of(by_key, "vocabulary.file"), lower_case)
        changes.update({key: value for key, value in of_vocabulary.items() if key not in own})
    recipe = PretrainConfig.from_file(recipe_file, changes)
    recipe.require_text()
    recipe.require_warmup()

    import_tensorflow(context.find_root().params["debug"])
    from keras_bert.tasks.pretraining.run import pretrain as run_pretraining
    from keras_bert.training.strategy import make_strategy

    if (recipe.training.strategy, recipe.training.tpu) == ("tpu", "local"):
        make_strategy("tpu")  # First of all, whether there is one. One elsewhere is asked once its paths are checked.
    folder = to_resume or RunFolder.fresh(output)
    context.meta["keras_bert.run_folder"] = folder.path
    note_fresh_folder(folder.path if fresh else None)
    if estimate:
        _estimate(recipe, folder)
        return
    _log.info(f"{shown(recipe_file)} → {folder.path}")
    results = run_pretraining(recipe, folder, command_line(), started_at)
    if results is None:  # A worker that is not the chief.
        return
    _show(results)
    _log.info(f"Written: {folder.path}. Next: {_next(folder.path, recipe.model.predicts)}")


def _next(run: str, predicts: str) -> str:
    run = shlex.quote(run)
    command = {
        MASKED: f'fill --model {run} "…[MASK]…"',
        NEXT: f'generate --model {run} "…"',
        BOTH: f"finetune --task ner --features weighted_all --init {run} --data-dir …",
    }[predicts]
    return f"{PROGRAM} {command}   |   tensorboard --logdir {run}"


def _default_recipe(data: Sequence[str], init: str | None, strategy: str | None) -> str:
    if init:
        return "continue"
    if strategy == "tpu":
        return "bert_base_tpu"
    return "bert_base" if data or strategy else "demo"


def _phase_settings(
    phases: Any, batch_size: int | None, max_length: int | None, by_key: Mapping[str, Any]
) -> dict[str, Any]:
    """Returns `{key: value}` that give all `phases` of a recipe, which are not checked yet, these sizes.

    As many more or fewer tokens of a row are predicted, unless `by_key`, the settings of `--set`, says how many. Raises
    `UserError` if the phases differ in a size, which is what they are for.
    """
    options = given({"batch_size": batch_size, "sequence_length": max_length})
    if not options:
        return {}
    mappings = phases if isinstance(phases, list) else [{}]
    own = [settings.from_mapping(PhaseConfig, phase, f"phases.{index}") for index, phase in enumerate(mappings)]
    found: dict[str, Any] = {} if mappings is phases else {"phases": mappings}
    for name, value in options.items():
        if len({getattr(phase, name) for phase in own}) > 1:
            option = "--max-length" if name == "sequence_length" else "--batch-size"
            values = " and ".join(str(getattr(phase, name)) for phase in own)
            each = " ".join(f"--set phases.{index}.{name}=N" for index in range(len(own)))
            raise UserError(f"{option}: needs phases that agree. Received: a recipe with {values}. Give {each}.")
        found |= {f"phases.{index}.{name}": value for index in range(len(own))}
    for index, phase in enumerate(own if max_length else ()):
        key = f"phases.{index}.max_predictions_per_seq"
        if key not in by_key:
            found[key] = math.ceil(phase.max_predictions_per_seq * options["sequence_length"] / phase.sequence_length)
    return found


def _estimate(recipe: PretrainConfig, run: RunFolder) -> None:
    from keras_bert.tasks.pretraining.estimate import estimate
    from keras_bert.tasks.pretraining.run import Pretraining

    with run:
        pretraining = Pretraining(recipe, run)
        pretraining.build()
        for line in estimate(pretraining).lines():
            click.echo(line)
    _log.info(f"Written: the run's data, {run.data}. Next: {same_command()}, without --estimate.")


def _model_settings(init: str | None, lower_case: bool | None, run: RunFolder | None) -> dict[str, Any]:
    """Returns the settings taken from the model that training starts from.

    A `run` that has begun stays with the revision it began from. If that cannot be opened, the run has the settings
    too, and the weights are in its checkpoints.
    """
    if not init:
        return {} if lower_case is None else {"vocabulary.lower_case": lower_case}
    init = run.begun_init(init) if run else init
    try:
        folder = open_model_folder(init, lower_case)
    except UserError as error:
        recorded = run.begun_settings() if run else None
        if recorded is None or recorded.get("init") != init:
            raise
        begun = PretrainConfig.from_mapping(recorded)
        _log.info(f"{error} The run has begun and does without it.")
        return {
            "init": begun.init,
            "model": settings.to_mapping(begun.model),
            "vocabulary.lower_case": begun.vocabulary.lower_case if lower_case is None else lower_case,
        }
    for line in folder.notes:
        _log.info(line)
    if not folder.tokenizer.is_berts_own():
        raise UserError(
            f"{init}: pretraining needs BERT's own tokenizer, which removes accents if it lower-cases, and splits "
            f"Chinese characters. Received: do_lower_case {folder.lower_case}, strip_accents "
            f"{folder.tokenizer.strip_accents}, tokenize_chinese_chars {folder.tokenizer.split_chinese}. "
            "Give another --init."
        )
    return {
        "init": folder.name,
        "model": settings.to_mapping(folder.config.for_training()),
        "vocabulary.lower_case": folder.lower_case,
    }


def _settings_of_vocabulary(data: Sequence[str], file: str | None, lower_case: bool | None) -> dict[str, Any]:
    """Returns the model's rows and the casing if the vocabulary is there already, so that nobody has to state them."""
    prepared = find_vocabulary(data[0]) if len(data) == 1 and is_prepared(data[0]) else None
    if prepared:
        vocabulary = Vocabulary.from_file(prepared)
        lower_case = settings.read_json(join(data[0], TRAIN, "meta.json"))["lower_case"]
    elif file:
        vocabulary, lower_case = given_vocabulary(file, lower_case)
    else:
        return {}
    return {"model.vocab_size": len(vocabulary), "vocabulary.lower_case": lower_case}


def _unless_in_recipe(model_settings: dict[str, Any], recipe_file: str, lower_case: bool | None) -> dict[str, Any]:
    """Returns the settings taken from the recipe's `init` model, except those that the recipe sets itself."""
    recipe, own = settings.read_yaml(recipe_file), []
    if "model" in recipe:
        own.append("model")
    if lower_case is None and "lower_case" in settings.section_of(recipe, "vocabulary"):
        own.append("vocabulary.lower_case")
    return {key: value for key, value in model_settings.items() if key not in own}


def _show(results: dict[str, Any]) -> None:
    of_tokens = next(term for term in all_terms() if term.predicts_tokens and f"eval_{term.name}_loss" in results)
    accuracies = {term.title: results.get(f"eval_{term.name}_accuracy") for term in all_terms() if term != of_tokens}
    beside = "".join(f", {title} {value:.1%}" for title, value in accuracies.items() if value is not None)
    click.echo(
        f"Held-out documents, after {results['steps']} steps: {of_tokens.title} loss "
        f"{results[f'eval_{of_tokens.name}_loss']:.3f} nats, "
        f"perplexity {results['eval_perplexity'] or math.inf:.1f}{beside}."
    )
    token, where = (
        ("mask_token", "At [MASK] positions only")
        if "eval_mask_token_loss" in results
        else ("text_token", "Of these, at tokens of text, without [SEP]")
    )
    loss, unigram = results[f"eval_{token}_loss"], results.get(f"eval_{token}_unigram_loss")
    compared = (
        ""
        if unigram is None
        else (
            f", {abs(unigram - loss):.3f} {'below' if unigram > loss else 'above'} "
            f"the training text's unigram ({unigram:.3f})"
        )
    )
    click.echo(f"{where}: {loss:.3f} nats{compared}.")
    for example in results["examples"]:
        click.echo(f"  {example['text']}\n    → {example.get('filled') or example['continued']}")
