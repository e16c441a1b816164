"""Options that several commands have."""

import click

from keras_bert.config.training import STRATEGIES

casing_option = click.option(
    "--uncased/--cased",
    "lower_case",
    default=None,
    help="Whether the model lower-cases. Default: as its folder says, or, in Google's, as its vocabulary looks.",
)

text_option = click.option(
    "--input",
    "inputs",
    multiple=True,
    required=True,
    metavar="GLOB",
    help="Text: files, folders, quoted globs or tfds:NAME[/CONFIG][:SPLIT]. Repeatable.",
)

model_option = click.option(
    "--model", required=True, metavar="MODEL", help="A run folder, or a folder of Hugging Face's or Google's."
)

_RUN_OPTIONS = (
    click.option("--strategy", type=click.Choice(STRATEGIES), help="The devices to train on."),
    click.option("--devices", metavar="GPU:0,GPU:1", help="For one and mirrored: which devices."),
    click.option("--tpu", metavar="NAME", help="For tpu: its name or address; local on a TPU VM."),
    click.option("--steps", type=click.IntRange(min=1), help="Steps in all; a run that goes on may be given more."),
    click.option(
        "--minutes",
        type=click.FloatRange(min=0, min_open=True),
        help="Instead of steps: the run's time in all; the learning rate follows the clock.",
    ),
    click.option(
        "--max-minutes",
        type=click.FloatRange(min=0, min_open=True),
        help="Stop this start after so long, with a checkpoint.",
    ),
    click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Any setting: training.log_every=10"),
    click.option("--fresh", is_flag=True, help="Start over in a new folder."),
)


def run_options(command):
    """Gives a command the options of every training run; `run_settings` takes what they were given."""
    for option in reversed(_RUN_OPTIONS):
        command = option(command)
    return command


def run_settings(strategy, devices, tpu, steps, minutes, max_minutes):
    """`{key: value}` of a recipe's settings for those of `run_options` that were given."""
    return given(
        {
            "training.strategy": strategy,
            "training.devices": devices.split(",") if devices else None,
            "training.tpu": tpu,
            "training.steps": steps,
            # A recipe may run by the clock; steps asked for are steps.
            "training.minutes": 0.0 if steps and not minutes else minutes,
            "training.max_minutes": max_minutes,
        }
    )


def given(values):
    """Those of the settings that are not None."""
    return {key: value for key, value in values.items() if value is not None}
