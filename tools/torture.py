"""A pretraining run stopped again and again must give the numbers of one left alone, bit for bit.

    python tools/torture.py --kills 20
    python tools/torture.py --kills 20 --signal TERM --workers 2 --slow-save 1.5

Trains a tiny model (dropout on, two phases, a checkpoint every few steps) with `run.py pretrain`: once left alone, and
once stopped at random instants and started again with the same command until it is finished. Of ten stops, three are
aimed at a save and one each at the start-up, the vocabulary and shards, the building of the model, the validation, and
the end of the run, where model/ is written; the others come anywhere in training. Then every line of metrics.jsonl, the
weights, the last checkpoint and results.json are compared. The exit status is 1 on any difference.

--accident adds other faults of a machine. `checkpoint`: after a stop, a file of the newest checkpoint is truncated,
zeroed or gone, and every other start finds the disk full in the middle of a save, where the run must end by itself with
status 2. `clock`: the clock jumps by an hour either way while the run trains and between two starts. `log`: a part of
the last record of metrics.jsonl and of TensorBoard's events is missing.

SIGKILL ends the process or, with --workers, one of them, and `launch` must end the others. SIGTERM goes to the process
or to `launch`, SIGINT to the whole group as from a terminal; after either, once training has begun, the run must say
that it stopped with a checkpoint, have one of that step, and end with status 75.
"""

import collections
import os
import random
import signal
import statistics
import sys
import tempfile
import time

import click
import yaml

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, ROOT)

from tools import accidents  # noqa: E402
from tools.compare_runs import compare, show  # noqa: E402
from tools.tortured_run import (  # noqa: E402
    BUILD,
    DATA,
    END,
    EVALUATE_EVERY,
    FULL_DISK,
    MODEL,
    RECIPE,
    SAVE,
    STAGES,
    START,
    TRAIN,
    VALIDATE,
    Run,
)  # fmt: skip

ACCIDENTS = ["checkpoint", "clock", "log"]
AIMS = [SAVE, TRAIN, END, SAVE, VALIDATE, START, SAVE, BUILD, TRAIN, DATA, SAVE, TRAIN, MODEL]
AIMS += [SAVE, VALIDATE, START, SAVE, BUILD, TRAIN, DATA]

SECONDS_BETWEEN_LOOKS = 0.005


def write_text(path, documents=80, seed=0):
    """Generates English-like text to pretrain on."""
    generator = random.Random(seed)
    nouns = "cat dog bird fish horse mouse child teacher farmer sailor house river garden street".split()
    verbs = "sees hears likes follows calls finds".split()
    with open(path, "w", encoding="utf-8") as stream:
        for _ in range(documents):
            for _ in range(generator.randint(4, 12)):
                one, other, place = generator.sample(nouns, 3)
                stream.write(f"The {one} {generator.choice(verbs)} the {other} in the {place}. ")
            stream.write("\n\n")


def leave_alone(run):
    """Lets a run go to its end; returns {stage: median seconds of a visit}."""
    visits, stage, started_at = collections.defaultdict(list), START, time.perf_counter()
    run.start()
    while not run.is_over():
        now = run.look()[0]
        if now != stage:
            visits[stage].append(time.perf_counter() - started_at)
            stage, started_at = now, time.perf_counter()
        time.sleep(SECONDS_BETWEEN_LOOKS)
    return {stage: statistics.median(seconds) for stage, seconds in visits.items()}


def stop_at(run, aim, after_step, delay, number):
    """Ends the process `delay` seconds into the first fitting visit to a stage, or once that stage is passed.

    Returns the stage that the signal hit, or None if the process ended before.
    """
    while not run.is_over():
        stage, step = run.look()
        is_passed = STAGES.index(aim) < STAGES.index(BUILD) <= STAGES.index(stage)
        if is_passed or (stage == aim and step >= after_step):
            time.sleep(delay)
            if is_passed or run.look()[0] == aim:
                hit = run.look()[0]
                return hit if run.end(number) else None
        time.sleep(SECONDS_BETWEEN_LOOKS)
    return None


def plan_kills(kills, steps, generator):
    """[(stage to aim at, earliest step, part of the stage's time)], in the order in which a run passes them."""
    planned = []
    for index in range(kills):
        aim = AIMS[index % len(AIMS)]
        place = {DATA: -1, END: steps, MODEL: steps}.get(aim, generator.randrange(int(0.9 * steps)))
        planned.append((place, aim, generator.random()))
    return [(aim, place if aim in (SAVE, TRAIN, VALIDATE) else 0, part) for place, aim, part in sorted(planned)]


def torture(
    folder,
    kills,
    steps,
    seed,
    data=None,
    jit_compile=False,
    report=print,
    number=signal.SIGKILL,
    workers=1,
    slow_save=0.0,
    tried=(),
):
    """Does what the docstring of this file says.

    Args:
        folder: where everything is written; new or empty.
        data: text; None for generated text.
        jit_compile: as in a recipe.
        report: takes one line of text at a time.
        number: the signal.
        workers: processes of each run.
        slow_save: seconds that each checkpoint takes longer.
        tried: the accidents to try, of `ACCIDENTS`.

    Returns: ({stage: stops that hit it}, number of restarts, rows of `compare` for each stopped run,
        {accident: times}).
    """
    recipe_file = os.path.join(folder, "torture.yaml")
    with open(recipe_file, "w", encoding="utf-8") as stream:
        yaml.safe_dump({**RECIPE, "training": {**RECIPE["training"], "jit_compile": jit_compile}}, stream)
    if data is None:
        data = os.path.join(folder, "text.txt")
        write_text(data)
    afflictions = {"SECONDS_A_SAVE": str(slow_save)} if slow_save else {}
    alone = Run(os.path.join(folder, "alone"), recipe_file, data, steps, workers, **afflictions)
    seconds = leave_alone(alone)
    report("Left alone. Seconds of a stage: " + ", ".join(f"{name} {taken:.3g}" for name, taken in seconds.items()))
    afflictions |= {"CLOCK_JUMPS": "1"} if "clock" in tried else {}
    generator = random.Random(seed)
    planned = plan_kills(kills, steps, generator)
    hits, happened, runs, rows = collections.Counter(), collections.Counter(), [], []
    while planned:
        if len(runs) > 3 * kills:
            raise click.ClickException(
                f"{len(runs)} runs ended without a visit to {planned[0][0]!r} that could be hit."
            )
        run = Run(os.path.join(folder, f"killed-{len(runs) + 1}"), recipe_file, data, steps, workers, **afflictions)
        runs.append(run)
        is_full = next_is_full(tried, planned, generator)
        run.start(**is_full)
        while planned:
            aim, after_step, part = planned[0]
            if is_full:
                hit = FULL_DISK if run.ends_by_itself() else None
            else:
                # Half, because a stage can be shorter than it was, and some come only once.
                hit = stop_at(run, aim, after_step, 0.5 * part * seconds.get(aim, 0.0), number)
            if hit is None:
                break  # The rest goes to another run.
            planned.pop(0)
            hits[hit] += 1
            found = accidents.cause(run.folder, tried, generator)
            happened.update(found.keys())
            happened["clock"] += "clock" in tried
            report(f"Stopped: {hit}, after step {run.look()[1] or '-'}. {' '.join(found.values())}".rstrip())
            is_full = next_is_full(tried, planned, generator)
            run.start(**is_full)
        while not run.is_over():
            time.sleep(0.1)
        rows += compare(alone.folder, run.folder)
        rows.append(("files of TensorBoard", *accidents.unreadable_events(run.folder, steps)))
    return hits, sum(run.starts - 1 for run in runs), rows, happened


def next_is_full(tried, planned, generator):
    """The variables for the next process to find its disk full, every other time; else nothing."""
    if "checkpoint" not in tried or not planned or len(planned) % 2:
        return {}
    return {"DISK_IS_FULL_AT": str(generator.randint(1, 2))}


@click.command()
@click.option("--kills", default=20, show_default=True, type=click.IntRange(min=1))
@click.option("--seed", default=0, show_default=True, help="Seed of the moments of the kills.")
@click.option("--steps", default=120, show_default=True, type=click.IntRange(min=2 * EVALUATE_EVERY))
@click.option("--data", metavar="GLOB", help="Text, as for pretrain. Default: generated.")
@click.option("--keep", metavar="FOLDER", help="Work here and keep everything.")
@click.option("--jit-compile", is_flag=True, help="Compile by XLA.")
@click.option("--signal", "name", default="KILL", show_default=True, type=click.Choice(["KILL", "TERM", "INT"]))
@click.option("--workers", default=1, show_default=True, type=click.IntRange(min=1), help="Processes of each run.")
@click.option("--slow-save", default=0.0, metavar="SECONDS", help="Make each checkpoint take so much longer.")
@click.option(
    "--accident", "tried", multiple=True, type=click.Choice(ACCIDENTS), help="Further damage at every stop. Repeatable."
)
def main(kills, seed, steps, data, keep, jit_compile, name, workers, slow_save, tried):
    with tempfile.TemporaryDirectory() as scratch:
        folder = os.path.abspath(keep or scratch)
        os.makedirs(folder, exist_ok=True)
        if os.listdir(folder):
            raise click.UsageError(f"{folder}: needs to be new or empty.")
        number = getattr(signal, f"SIG{name}")
        hits, restarts, rows, happened = torture(
            folder, kills, steps, seed, data, jit_compile, click.echo, number, workers, slow_save, tried
        )
    click.echo(f"\nSIG{name} by the stage that it hit")
    for stage in [*STAGES, *([FULL_DISK] if "checkpoint" in tried else [])]:
        click.echo(f"  {stage:34}{hits[stage]:5}")
    for accident, times in sorted(happened.items()):
        click.echo(f"  {accident:34}{times:5}")
    click.echo(f"  {'together':34}{hits.total():5}\nstarted again {restarts} times\n")
    show(rows)
    sys.exit(any(different for _, _, different in rows))


if __name__ == "__main__":
    main()
