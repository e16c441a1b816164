"""What single changes of a pretraining recipe save, in tokens and CPU seconds to reach the same loss."""

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from keras_bert.config.pretraining import PretrainConfig
from keras_bert.config.recipes import find_config
from keras_bert.config.studies import PilotsPlan
from keras_bert.config.training import phase_ends
from keras_bert.core import files
from keras_bert.core.errors import UserError
from keras_bert.studies.runs import pretrained
from keras_bert.studies.study import Findings, StudyFolder, crossing, curves_picture, median_and_range, rows_of_markdown
from keras_bert.tasks.pretraining.prepared_shards import require_collocations
from keras_bert.training.metrics_log import read_metrics

GOALS = (0.5, 1.0, 2.0)  # Nats below the unigram.

Point = tuple[float, float, float]  # (tokens, CPU seconds, nats below the unigram)
# (the points of all validations; the last validation's figures, with the CPU seconds up to it, or {})
Run = tuple[list[Point], Mapping[str, Any]]


def pilots(study: StudyFolder, plan: PilotsPlan, names: Iterable[str], data: str, seeds: int) -> Findings:
    """Trains the plan's recipe with the changes of each pilot, once for each seed.

    The findings say how much text and CPU time it took to come 0.5, 1 and 2 nats below the training text's unigram at
    [MASK]ed positions of the held-out documents, medians and ranges over the seeds. The times are CPU seconds of
    training alone, without start-up, validation and checkpoints: other work on the machine does not count, but it
    slows this down.

    Args:
        study: the study's folder; the runs of a pilot are in PILOT/seed-SEED.
        names: the pilots to train.
        data: a folder that `prepare` wrote, or whatever `pretrain --data` takes.
        seeds: the number of seeds, from 1.

    Raises:
        UserError: a pilot has an unknown setting, several phases limited by minutes, or no collocations to mask.
    """
    names, numbers = list(names), range(1, seeds + 1)
    for name in names:
        _require_trainable(name, plan, data)
    made = study.made(
        {
            (name, seed): functools.partial(
                pretrained, study.join(name, f"seed-{seed}"), plan.recipe, {**plan.set, **plan.pilots[name]}, data, seed
            )
            for seed, name in itertools.product(numbers, names)
        },
        "Pretrained",
        "{}, seed {}",
    )
    found = {name: [read(made[name, seed]) for seed in numbers] for name in names}
    title = "What changes to the recipe save"
    curves = {
        f"{name}, seed {seed}" if seeds > 1 else name: [(tokens / 1e6, below) for tokens, _, below in curve]
        for name, runs in found.items()
        for seed, (curve, _) in zip(numbers, runs)
    }
    picture = curves_picture({"": curves}, "million tokens", "nats below the unigram at [MASK]", title)
    return Findings(title, list(table(found)), {"pilots": picture})


def _require_trainable(name: str, plan: PilotsPlan, data: str) -> None:
    """Raises `UserError` unless a pilot's phases end at known steps, to count tokens by, and its data fits."""
    try:
        config = PretrainConfig.from_file(find_config("pretrain", plan.recipe), {**plan.set, **plan.pilots[name]})
        config.require_before_end()
    except UserError as error:
        raise UserError(f"pilots.{name}: {error}") from None
    if config.training.minutes and len(config.phases) > 1:
        raise UserError(
            f"pilots.{name}: needs training.minutes 0 with several phases, whose tokens are counted by training.steps. "
            f"Received: {config.training.minutes:g} and {len(config.phases)} phases. Set training.minutes: 0."
        )
    config.data.source, config.data.files = "files", [data]
    try:
        require_collocations(config)
    except UserError as error:
        raise UserError(f"{error} Or leave the pilot {name} out: name the others with --only.") from None


def read(folder: str) -> Run:
    """What a finished run learned and what it cost; the curve is empty for a model without [MASK]."""
    config = PretrainConfig.from_file(files.join(folder, "config.yaml"))
    ends: list[float] = [*phase_ends(config.training.steps, [phase.share for phase in config.phases])]
    ends[-1] = math.inf  # A single phase that is limited by minutes has any number of steps.
    curve: list[Point] = []
    seconds, figures = 0.0, {}
    for line in read_metrics(files.join(folder, "metrics.jsonl")):
        seconds += line.get("cpu_seconds", 0.0)
        if "eval_mask_token_loss" in line:
            tokens = sum(
                (min(line["step"], end) - begin) * phase.batch_size * phase.sequence_length
                for begin, end, phase in zip([0, *ends], ends, config.phases)
                if line["step"] > begin
            )
            curve.append((tokens, seconds, line["eval_mask_token_unigram_loss"] - line["eval_mask_token_loss"]))
        if "eval_perplexity" in line:
            figures = {**line, "cpu_seconds": seconds}
    return curve, figures


def described(values: Sequence[float | None], shown: Callable[[float], str]) -> str:
    """The median and range of several seeds' values; a dash if a seed has none."""
    there = [value for value in values if value is not None]
    return median_and_range(there, shown) if len(there) == len(values) else "–"


def table(found: Mapping[str, Sequence[Run]]) -> Iterator[str]:
    """Lines of Markdown. `found` is `{pilot: its runs, one for each seed}`."""
    header = ["pilot"]
    for goal in GOALS:
        header += [f"{goal:g} nats: million tokens", "CPU s"]
    rows = (_row(name, runs) for name, runs in found.items())
    return rows_of_markdown([*header, "CPU s in all", "nats below at the end", "perplexity"], rows)


def _row(name: str, runs: Sequence[Run]) -> list[str]:
    cells = [name.replace("_", " ")]
    for goal in GOALS:
        tokens = [crossing([(tokens, below) for tokens, _, below in curve], goal) for curve, _ in runs]
        seconds = [crossing([(seconds, below) for _, seconds, below in curve], goal) for curve, _ in runs]
        cells.append(described(tokens, lambda value: f"{value / 1e6:.2f}"))
        cells.append(described(seconds, "{:.0f}".format))
    cells.append(described([figures.get("cpu_seconds") for _, figures in runs], "{:.0f}".format))
    cells.append(described([curve[-1][2] if curve else None for curve, _ in runs], "{:.3f}".format))
    cells.append(described([figures.get("eval_perplexity") for _, figures in runs], "{:.1f}".format))
    return cells
