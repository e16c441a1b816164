"""The options that have Apache Beam do a command's work."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from keras_bert.data.pipeline.runners import Runner

RUNNERS = ("direct", "dataflow", "spark", "flink")
_RUNNER_OPTIONS = (
    click.option(
        "--runner",
        type=click.Choice(RUNNERS),
        help="Run on Apache Beam, on this machine (direct) or a cluster. Beam's own options follow --.",
    ),
    click.argument("beam_options", nargs=-1, metavar="[-- --BEAM_OPTION=VALUE …]"),
)


def runner_options(command: Callable) -> Callable:
    """Adds these options to a command; `beam_runner` takes their values."""
    for option in reversed(_RUNNER_OPTIONS):
        command = option(command)
    return command


def beam_runner(name: str | None, beam_options: tuple[str, ...], workers: int = 0) -> Runner | None:
    """Returns the `Runner` for the `runner_options` that were given, or None without `--runner`."""
    if name is None:
        if beam_options:
            raise click.UsageError(f"Got an unexpected argument ({beam_options[0]}). Options of Beam need --runner.")
        return None
    from keras_bert.data.pipeline.runners import Runner

    return Runner(name, beam_options, workers)
