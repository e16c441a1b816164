"""`run.py pretrain`."""

import os

import click

from keras_bert import settings
from keras_bert.checkpoints.model_folder import open_model_folder
from keras_bert.cli.options import casing_option
from keras_bert.config.pretraining import PretrainConfig
from keras_bert.config.recipes import find_config
from keras_bert.config.training import STRATEGIES
from keras_bert.errors import UserError
from keras_bert.quiet import import_tensorflow


@click.command()
@click.option("--config", metavar="FILE", help="A recipe: a file, or a name in configs/pretrain.")
@click.option(
    "--data",
    multiple=True,
    metavar="GLOB",
    help="Text: files, folders, quoted globs or tfds:NAME[/CONFIG][:SPLIT], repeatable; or a folder of `prepare`.",
)
@click.option("--init", metavar="MODEL", help="Go on from a model's weights, with its vocabulary or an extended one.")
@casing_option
@click.option("--output", metavar="RUN", help="The run's folder. Default: runs/<recipe>.")
@click.option("--strategy", type=click.Choice(STRATEGIES), help="The devices to train on.")
@click.option("--devices", metavar="GPU:0,GPU:1", help="For one and mirrored: which devices.")
@click.option("--tpu", metavar="NAME", help="For tpu: its name or address; local on a TPU VM.")
@click.option("--steps", type=click.IntRange(min=1), help="Steps in all; a run that goes on may be given more.")
@click.option(
    "--minutes",
    type=click.FloatRange(min=0, min_open=True),
    help="Instead of steps: the run's time in all; the learning rate follows the clock.",
)
@click.option(
    "--max-minutes",
    type=click.FloatRange(min=0, min_open=True),
    help="Stop this start after so long, with a checkpoint.",
)
@click.option("--seed", type=click.IntRange(min=0), help="Of weights, masks, pairs, order and dropout.")
@click.option(
    "--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Any setting: optimizer.learning_rate=1e-3"
)
@click.option("--estimate", is_flag=True, help="Time a few steps, print what the run will take, and stop.")
@click.option("--fresh", is_flag=True, help="Start over in a new folder.")
@click.pass_context
def pretrain(
    context,
    config,
    data,
    init,
    lower_case,
    output,
    strategy,
    devices,
    tpu,
    steps,
    minutes,
    max_minutes,
    seed,
    overrides,
    estimate,
    fresh,
):
    """Pretrain a BERT: masked LM, and next sentence prediction unless the recipe says objective.pair: none.

    Without a config, data or strategy it is the demo: a small model on the documentation that every Python
    installation carries. The same command again goes on where it stopped. SIGTERM and Ctrl-C stop it after the
    step, with a checkpoint and exit status 75; a second one leaves at once.

    \b
    Example:
      python run.py pretrain --config wiki_mini --data 'wiki/*.txt' --output runs/wiki
    """
    recipe_file = find_config("pretrain", config or ("bert_base" if data or strategy or init else "demo"))
    flags = {
        "data.files": list(data) or None,
        "training.strategy": strategy,
        "training.devices": devices.split(",") if devices else None,
        "training.tpu": tpu,
        "training.steps": steps,
        # A recipe may run by the clock; steps asked for are steps.
        "training.minutes": 0.0 if steps and not minutes else minutes,
        "training.max_minutes": max_minutes,
        "training.seed": seed,
    }
    chosen = {
        **_of_model(init, lower_case),
        **dict(settings.parse_override(text) for text in overrides),
        **{key: value for key, value in flags.items() if value is not None},
    }
    recipe = PretrainConfig.from_file(recipe_file, chosen)
    recipe.require_text()
    output = output or os.path.join("runs", recipe.name)

    import_tensorflow(context.find_root().params["debug"])
    from keras_bert.tasks.pretraining import pretrain as run_pretraining
    from keras_bert.training.run_folder import RunFolder

    run = RunFolder.fresh(output) if fresh else RunFolder(output)
    context.meta["keras_bert.run_folder"] = run.path
    if estimate:
        _estimate(recipe, run)
        return
    click.echo(f"{os.path.relpath(recipe_file)} → {run.path}")
    results = run_pretraining(recipe, run, click.echo)
    if results is None:  # One of several workers, and not the one that writes.
        return
    _show(results)
    click.echo(
        f'Written: {run.path}. Next: python run.py fill --model {run.path} "…[MASK]…"   |   '
        f"tensorboard --logdir {run.path}"
    )


def _estimate(recipe, run):
    from keras_bert.tasks.estimate import estimate
    from keras_bert.tasks.pretraining import Pretraining

    pretraining = Pretraining(recipe, run, click.echo)
    pretraining.build()
    for line in estimate(pretraining).lines():
        click.echo(line)
    click.echo(f"Written: the run's data, {run.data}. Next: the same command without --estimate.")


def _of_model(init, lower_case):
    """The settings that come from a model whose weights are gone on from."""
    if not init:
        return {} if lower_case is None else {"vocabulary.lower_case": lower_case}
    folder = open_model_folder(init, lower_case)
    for line in folder.notes:
        click.echo(line)
    if not folder.tokenizer.is_berts_own():
        raise UserError(
            f"{init}: needs a tokenizer that lower_case says all of, to pretrain. Received: strip_accents "
            f"{folder.tokenizer.strip_accents}, tokenize_chinese_chars {folder.tokenizer.split_chinese}."
        )
    return {"init": init, "model": settings.to_mapping(folder.config), "vocabulary.lower_case": folder.lower_case}


def _show(results):
    next_sentence = f", next sentence {results['eval_nsp_accuracy']:.1%}" if "eval_nsp_accuracy" in results else ""
    click.echo(
        f"Held-out documents, after {results['steps']} steps: masked LM loss {results['eval_mlm_loss']:.3f} nats, "
        f"perplexity {results['eval_perplexity']:.1f}{next_sentence}."
    )
    loss, unigram = results["eval_mask_token_loss"], results.get("eval_mask_token_unigram_loss")
    compared = "" if unigram is None else (
        f"; the training text's unigram has {unigram:.3f} there, "
        f"{abs(unigram - loss):.3f} {'more' if unigram > loss else 'less'}"
    )  # fmt: skip
    click.echo(f"At [MASK]ed positions alone: {loss:.3f} nats{compared}.")
    for example in results["examples"]:
        click.echo(f"  {example['text']}\n    → {example['filled']}")
