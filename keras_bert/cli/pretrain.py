"""`run.py pretrain`."""

import logging
import math
import os
import shlex
import time
from typing import Any

import click

from keras_bert.api.pretraining import default_recipe, phase_settings, pretraining_recipe, require_tpu
from keras_bert.cli.options import (
    column_option,
    folder_to_write,
    format_option,
    load_tensorflow,
    require_agreement,
    run_options,
    run_settings,
    set_by_key,
    setting_option,
)
from keras_bert.config.objectives import PhaseConfig
from keras_bert.config.pretraining import PretrainConfig, require_files
from keras_bert.config.recipes import find_config, given, recipe_name
from keras_bert.config.teacher import PretrainingTeacherConfig
from keras_bert.config.training import TrainingConfig
from keras_bert.core import settings
from keras_bert.core.files import shown
from keras_bert.core.program import PROGRAM, command_line, note_fresh_folder, same_command
from keras_bert.models.bert.config import BOTH, DECODED, MASKED, NEXT, PERMUTED, REPLACED
from keras_bert.models.term import all_terms
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
    help="Model to start from: a folder or hf:NAME, with its vocabulary or one that `vocab --extend` made from it.",
)
@click.option(
    "--uncased/--cased",
    "lower_case",
    default=None,
    help="Lower-case texts, or keep case. Default: that of --init, of the prepared text or of the given vocabulary, or "
    "else the recipe's.",
)
@click.option("--output", metavar="RUN", callback=folder_to_write, help="Run folder. Default: runs/RECIPE.")
@click.option("--estimate", is_flag=True, help="Time a few steps, print what the run would take, and stop.")
@setting_option(TrainingConfig, "seed")
@setting_option(PhaseConfig, "batch_size", more="The same in every phase.")
@setting_option(PhaseConfig, "sequence_length", "--max-length")
@setting_option(PretrainingTeacherConfig, "model", "--teacher", metavar="MODEL")
@run_options
def pretrain(
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
    teacher: str | None,
    overrides: tuple[str, ...],
    estimate: bool,
    fresh: bool,
    **run: Any,
) -> None:
    """Pretrain a BERT with masked LM and, unless the recipe says otherwise, next sentence prediction. Other recipes in
    configs/pretrain train an ALBERT, a RoBERTa, an ELMo, an XLNet, an ELECTRA, a BART or a T5.

    \b
    Without --config, the recipe is:
    continue         with --init
    bert_base_tpu    with --strategy tpu
    bert_base        with --data or another --strategy
    demo             otherwise: a small model, on the documentation of Python

    All other settings come from the recipe; `settings` lists those that --set can change.

    The same command resumes a run that stopped. SIGTERM, SIGHUP and Ctrl-C save a checkpoint after the current step and
    exit with status 75; a second SIGTERM or Ctrl-C, at least one second later, exits at once.

    \b
    Example:
      python run.py pretrain --config wiki_mini --data 'wiki/*' --output runs/wiki
    """
    started_at = time.monotonic()
    by_key = set_by_key(PretrainConfig, overrides)
    init_given = init or settings.text_of(by_key, "init")
    flags = {
        **given({"data.files": list(data) or None, "data.text": text, "data.format": format, "training.seed": seed}),
        **given({"teacher.model": teacher}),
        **run_settings(by_key, **run),
    }
    strategy = flags.get("training.strategy", by_key.get("training.strategy"))
    recipe_file = find_config("pretrain", config or default_recipe(bool(data), init_given, strategy))
    flags |= phase_settings(recipe_file, by_key, batch_size, max_length)
    require_agreement(by_key, {**flags, **given({"init": init, "vocabulary.lower_case": lower_case})})
    require_files(data)  # Before a model is fetched from the hub.
    output = output or os.path.join("runs", recipe_name(recipe_file, by_key))
    to_resume = None if fresh else RunFolder(output)
    if to_resume:
        to_resume.require(PRETRAINING)
    recipe = pretraining_recipe(recipe_file, init_given, lower_case, to_resume, {**by_key, **flags})
    recipe.require_text()

    load_tensorflow()
    from keras_bert.tasks.pretraining.run import pretrain as run_pretraining

    require_tpu(recipe)
    folder = to_resume or RunFolder.fresh(output)
    click.get_current_context().meta["keras_bert.run_folder"] = folder.path
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
        DECODED: f"finetune --task seq2seq --init {run} --train pairs.tsv",
        BOTH: f"finetune --task ner --features weighted_all --init {run} --data-dir …",
        **dict.fromkeys((PERMUTED, REPLACED), f"finetune --task sst2 --init {run}"),
    }[predicts]
    return f"{PROGRAM} {command}   |   tensorboard --logdir {run}"


def _estimate(recipe: PretrainConfig, run: RunFolder) -> None:
    from keras_bert.tasks.pretraining.estimate import estimate
    from keras_bert.tasks.pretraining.run import Pretraining

    with run:
        pretraining = Pretraining(recipe, run)
        pretraining.build()
        found = estimate(pretraining)
        for line in found.lines() if pretraining.is_chief else ():
            click.echo(line)
    _log.info(f"Written: the run's data, {run.data}. Next: {same_command()}, without --estimate.")


def _show(results: dict[str, Any]) -> None:
    trained = [term for term in all_terms() if f"eval_{term.name}_loss" in results]
    of_tokens = next((term for term in trained if term.predicts_tokens), None)
    parts = []
    if of_tokens:
        nats, perplexity = results[f"eval_{of_tokens.name}_loss"], results["eval_perplexity"] or math.inf
        parts = [f"{of_tokens.title} loss {nats:.3f} nats", f"perplexity {perplexity:.1f}"]
    for term in trained:
        accuracy, majority = (results.get(f"eval_{term.name}_{metric}") for metric in ("accuracy", "majority"))
        if term != of_tokens and accuracy is not None:
            beside = "" if majority is None else f" (the majority's {majority:.1%})"
            parts.append(f"{term.title} {accuracy:.1%}{beside}")
    click.echo(f"Held-out documents, after {results['steps']} steps: {', '.join(parts)}.")
    if not of_tokens:
        return
    token, where = (
        ("mask_token", "At [MASK] positions only")
        if "eval_mask_token_loss" in results
        else ("text_token", "Of these, at tokens of text, without special tokens")
    )
    loss, unigram = results[f"eval_{token}_loss"], results.get(f"eval_{token}_unigram_loss")
    compared = ""
    if unigram is not None:
        side = "below" if unigram > loss else "above"
        compared = f", {abs(unigram - loss):.3f} {side} the training text's unigram ({unigram:.3f})"
    click.echo(f"{where}: {loss:.3f} nats{compared}.")
    for example in results["examples"]:
        click.echo(f"  {example['text']}\n    → {example.get('filled') or example['continued']}")
