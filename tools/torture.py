"""A pretraining run stopped again and again must give the numbers of one left alone, bit for bit.

    python tools/torture.py --kills 20
    python tools/torture.py --kills 20 --signal TERM --workers 2 --slow-save 1.5

Trains a tiny model (dropout on, two phases, a checkpoint every few steps) by `run.py pretrain`, once left alone and
once stopped at random instants and started again with the same command until it is finished. Of ten stops three are
aimed at a save and one each at the start-up, the vocabulary and shards, the building of the model, the validation, and
the end of the run, where model/ is written; the others are anywhere in training. Then every line of metrics.jsonl, the
weights, the last checkpoint and results.json are compared. Exit status 1 on any difference.

SIGKILL ends the process, or with --workers one of them, and `launch` must end the others. SIGTERM goes to the process
or to `launch`, SIGINT to all of the group as from a terminal; after either, once training has begun, the run must say
that it stopped with a checkpoint, have one of that step, and end with status 75.
"""

import collections
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import click
import psutil
import yaml

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, ROOT)

from keras_bert.training.stop_request import STOPPED_BY_SIGNAL  # noqa: E402
from tools.compare_runs import compare, show  # noqa: E402

# Five is no multiple of three, so that checkpoints fall between the lines of metrics.jsonl.
LOG_EVERY, CHECKPOINT_EVERY, EVALUATE_EVERY = 3, 5, 12
RECIPE = {
    "model": {
        "vocab_size": 200,
        "hidden_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 64,
        "max_position_embeddings": 32,
        "hidden_dropout_prob": 0.1,
        "attention_probs_dropout_prob": 0.1,
    },
    "data": {"validation_share": 0.1, "shard_megabytes": 0.003, "shards_per_group": 2},
    "phases": [
        {"share": 0.6, "sequence_length": 16, "batch_size": 16, "max_predictions_per_seq": 3},
        {"share": 0.4, "sequence_length": 32, "batch_size": 8, "max_predictions_per_seq": 5},
    ],
    "optimizer": {"learning_rate": 2e-3, "warmup_steps": 10},
    "training": {
        "log_every": LOG_EVERY,
        "checkpoint_every": CHECKPOINT_EVERY,
        "evaluate_every": EVALUATE_EVERY,
        "evaluation_examples": 64,
        "keep_checkpoints": 2,
    },
    "examples": ["The cat sees the [MASK] in the house."],
}

START, DATA, BUILD, TRAIN = "start-up", "vocabulary and shards", "model and restoring", "training"
SAVE, DROP, VALIDATE = "saving a checkpoint", "dropping an old checkpoint", "validation"
END, MODEL = "after the last step", "writing model/"
STAGES = [START, DATA, BUILD, TRAIN, VALIDATE, SAVE, DROP, END, MODEL]
AIMS = [SAVE, TRAIN, END, SAVE, VALIDATE, START, SAVE, BUILD, TRAIN, DATA, SAVE, TRAIN, MODEL]
AIMS += [SAVE, VALIDATE, START, SAVE, BUILD, TRAIN, DATA]

SECONDS_BETWEEN_LOOKS = 0.002


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


class Run:
    """One run folder and the processes that train in it, one after the other."""

    def __init__(self, folder, recipe, data, steps, workers=1, slow_save=0.0):
        self.folder, self.steps, self.starts = folder, steps, 0
        self._workers, self._environment = workers, {**os.environ, "SECONDS_A_SAVE": str(slow_save)}
        self._command = [
            sys.executable,
            os.path.join(ROOT, *(("tools", "slow_save.py") if slow_save else ("run.py",))),
            *(("launch", "--workers", str(workers), "--") if workers > 1 else ()),
            "pretrain",
            "--config",
            recipe,
            "--data",
            data,
            "--steps",
            str(steps),
            "--output",
            folder,
        ]

    def start(self):
        self.starts += 1
        self._left = self._traces()
        self._output_file = f"{self.folder}-{self.starts}.log"
        with open(self._output_file, "wb") as output:
            self.process = subprocess.Popen(
                self._command,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=ROOT,
                env=self._environment,
                start_new_session=True,
            )

    def end(self, number):
        """Ends it by a signal; returns whether the signal ended it. Raises if it did not stop as promised."""
        if number == signal.SIGKILL:
            workers = psutil.Process(self.process.pid).children() if self._workers > 1 else []
            (random.choice(workers) if workers else self.process).kill()
        elif number == signal.SIGINT:
            os.killpg(self.process.pid, number)
        else:
            self.process.send_signal(number)
        status = self.process.wait()
        output = self._output()
        stopped = re.search(r"Stopped by \w+ after step ([\d,]+), .* with a checkpoint", output)
        if number == signal.SIGKILL:
            return status != 0
        if not status:
            return True  # It came after the last step, and all that was left was written.
        if stopped:
            saved = os.path.join(
                self.folder, "checkpoints", f"step-{int(stopped[1].replace(',', '')):09d}", "state.json"
            )
            if status == STOPPED_BY_SIGNAL and os.path.exists(saved):
                return True
        elif self.look()[0] in (START, DATA, BUILD, END, MODEL):
            return True  # No training to save yet, or any more: it ends at once.
        raise click.ClickException(f"Start {self.starts} ended with status {status} on signal {number}:\n{output}")

    def is_over(self):
        """Whether the process has ended by itself; raises where it failed."""
        if self.process.poll() is None:
            return False
        if self.process.returncode:
            raise click.ClickException(f"Start {self.starts} in {self.folder} failed:\n{self._output()}")
        return True

    def look(self):
        """(stage, last step printed) of the process, or of what it was at when it was killed."""
        output = self._output()
        # Rows of the table of figures: `    1,200   30%  …  validation`.
        steps = re.findall(r"^ +([\d,]+) +\d+% .*?( validation)?$", output, re.MULTILINE)
        step, was_validated = (int(steps[-1][0].replace(",", "")), bool(steps[-1][1])) if steps else (0, False)
        new = {kind for kind, *_ in self._traces() - self._left}
        for kind in (MODEL, SAVE, DROP):
            if kind in new:
                return kind, step
        last = os.path.join(self.folder, "checkpoints", f"step-{self.steps:09d}")
        if f"Going on from step {self.steps}." in output or (step == self.steps and os.path.exists(last)):
            return END, step
        if steps:
            return (VALIDATE if step % EVALUATE_EVERY == 0 and not was_validated else TRAIN), step
        if "Training examples:" in output:
            return BUILD, step
        return (DATA if "Learning a vocabulary" in output or "Preparing the text" in output else START), step

    def _output(self):
        with open(self._output_file, encoding="utf-8", errors="replace") as stream:
            return stream.read()

    def _traces(self):
        """What lies in the folder while something is written or removed, told apart from what earlier kills left."""
        traces = set()
        checkpoints = os.path.join(self.folder, "checkpoints")
        paths = [(MODEL, os.path.join(self.folder, "model.partial"))]
        for name in os.listdir(checkpoints) if os.path.isdir(checkpoints) else []:
            paths.append((SAVE if name.startswith(".partial") else DROP, os.path.join(checkpoints, name)))
        for kind, path in paths:
            try:
                # A whole checkpoint is an index, its data and state.json.
                if kind != DROP or len(os.listdir(path)) < 3:
                    traces.add((kind, path, os.stat(path).st_ino))
            except FileNotFoundError:
                pass
        return traces


def leave_alone(run):
    """Lets a run go to its end; returns {stage: median seconds of a visit}."""
    visits, stage, began = collections.defaultdict(list), START, time.perf_counter()
    run.start()
    while not run.is_over():
        now = run.look()[0]
        if now != stage:
            visits[stage].append(time.perf_counter() - began)
            stage, began = now, time.perf_counter()
        time.sleep(SECONDS_BETWEEN_LOOKS)
    return {stage: statistics.median(seconds) for stage, seconds in visits.items()}


def stop_at(run, aim, after_step, delay, number):
    """Ends the process `delay` seconds into the first fitting visit to a stage, or once that stage is passed.

    Returns the stage that the signal hit, or None where the process came to its end before.
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
    """[(stage to aim at, step from which on, part of the stage's time)], in the order in which a run passes them."""
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
):
    """Does what the docstring of this file says.

    Args:
        folder: where all of it is written; new or empty.
        data: text; None for generated text.
        jit_compile: as in a recipe.
        report: takes one line of text at a time.
        number: the signal.
        workers: processes of each run.
        slow_save: seconds that each checkpoint takes longer.

    Returns: ({stage: kills that hit it}, times started again, rows of `compare` for each killed run).
    """
    recipe_file = os.path.join(folder, "torture.yaml")
    with open(recipe_file, "w", encoding="utf-8") as stream:
        yaml.safe_dump({**RECIPE, "training": {**RECIPE["training"], "jit_compile": jit_compile}}, stream)
    if data is None:
        data = os.path.join(folder, "text.txt")
        write_text(data)
    alone = Run(os.path.join(folder, "alone"), recipe_file, data, steps, workers, slow_save)
    seconds = leave_alone(alone)
    report("Left alone. Seconds of a stage: " + ", ".join(f"{name} {taken:.3g}" for name, taken in seconds.items()))
    planned = plan_kills(kills, steps, random.Random(seed))
    hits, runs, rows = collections.Counter(), [], []
    while planned:
        if len(runs) > 3 * kills:
            raise click.ClickException(
                f"{len(runs)} runs ended without a visit to {planned[0][0]!r} that could be hit."
            )
        run = Run(os.path.join(folder, f"killed-{len(runs) + 1}"), recipe_file, data, steps, workers, slow_save)
        runs.append(run)
        run.start()
        while planned:
            aim, after_step, part = planned[0]
            # Half, because a stage can be shorter than it was, and some come but once.
            hit = stop_at(run, aim, after_step, 0.5 * part * seconds.get(aim, 0.0), number)
            if hit is None:
                break  # The rest goes to another run.
            planned.pop(0)
            hits[hit] += 1
            report(f"Stopped: {hit}, after step {run.look()[1] or '-'}.")
            run.start()
        while not run.is_over():
            time.sleep(0.1)
        rows += compare(alone.folder, run.folder)
    return hits, sum(run.starts - 1 for run in runs), rows


@click.command()
@click.option("--kills", default=20, show_default=True, type=click.IntRange(min=1))
@click.option("--seed", default=0, show_default=True, help="Of the instants.")
@click.option("--steps", default=120, show_default=True, type=click.IntRange(min=2 * EVALUATE_EVERY))
@click.option("--data", metavar="GLOB", help="Text, as for pretrain. Default: generated.")
@click.option("--keep", metavar="FOLDER", help="Work here and keep everything.")
@click.option("--jit-compile", is_flag=True, help="Compile by XLA.")
@click.option("--signal", "name", default="KILL", show_default=True, type=click.Choice(["KILL", "TERM", "INT"]))
@click.option("--workers", default=1, show_default=True, type=click.IntRange(min=1), help="Processes of each run.")
@click.option("--slow-save", default=0.0, metavar="SECONDS", help="Make each checkpoint take so much longer.")
def main(kills, seed, steps, data, keep, jit_compile, name, workers, slow_save):
    with tempfile.TemporaryDirectory() as scratch:
        folder = os.path.abspath(keep or scratch)
        os.makedirs(folder, exist_ok=True)
        if os.listdir(folder):
            raise click.UsageError(f"{folder}: needs to be new or empty.")
        hits, restarts, rows = torture(
            folder, kills, steps, seed, data, jit_compile, click.echo, getattr(signal, f"SIG{name}"), workers, slow_save
        )
    click.echo(f"\nSIG{name} by the stage that it hit")
    for stage in STAGES:
        click.echo(f"  {stage:34}{hits[stage]:5}")
    click.echo(f"  {'together':34}{hits.total():5}\nstarted again {restarts} times\n")
    show(rows)
    sys.exit(any(different for _, _, different in rows))


if __name__ == "__main__":
    main()
