"""A run folder and the processes that train in it, one after the other, for tools/torture.py."""

import os
import random
import re
import signal
import subprocess
import sys

import click
import psutil

from keras_bert.training.stop_request import STOPPED_BY_SIGNAL

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

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

FULL_DISK = "by itself, on a full disk"
START, DATA, BUILD, TRAIN = "start-up", "vocabulary and shards", "model and restoring", "training"
SAVE, DROP, VALIDATE = "saving a checkpoint", "dropping an old checkpoint", "validation"
END, MODEL = "after the last step", "writing model/"
STAGES = [START, DATA, BUILD, TRAIN, VALIDATE, SAVE, DROP, END, MODEL]
BAD_INPUT = 2  # The exit status of a command that ends with one line for the user.


class Run:
    """One run folder and the processes that train in it, one after the other."""

    def __init__(self, folder, recipe, data, steps, workers=1, **afflictions):
        self.folder, self.steps, self.starts = folder, steps, 0
        self._workers, self._environment = workers, {**os.environ, **afflictions}
        self._command = [
            sys.executable,
            os.path.join(ROOT, "tools", "bad_machine.py"),
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

    def start(self, **afflictions):
        """Starts a process; `afflictions` are variables of tools/bad_machine.py for this start alone."""
        self.starts += 1
        self._left = self._traces()
        self._output_file = f"{self.folder}-{self.starts}.log"
        with open(self._output_file, "wb") as output:
            self.process = subprocess.Popen(
                self._command,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=ROOT,
                env={**self._environment, **afflictions},
                start_new_session=True,
            )

    def end(self, number):
        """Sends it a signal; returns whether that ended it. Raises if it did not stop as promised."""
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
            return True  # The signal came after the last step; the run wrote what was left.
        if stopped:
            saved = os.path.join(
                self.folder, "checkpoints", f"step-{int(stopped[1].replace(',', '')):09d}", "state.json"
            )
            if status == STOPPED_BY_SIGNAL and os.path.exists(saved):
                return True
        elif self.look()[0] in (START, DATA, BUILD, END, MODEL):
            return True  # No training to save yet, or any more: it ends at once.
        raise click.ClickException(f"Start {self.starts} ended with status {status} on signal {number}:\n{output}")

    def ends_by_itself(self):
        """Waits for a process whose disk gets full; returns whether it ended for that, and raises if otherwise."""
        status, output = self.process.wait(), self._output()
        if status and (status != BAD_INPUT or "File too large" not in output or "Traceback" in output):
            raise click.ClickException(f"Start {self.starts} ended with status {status} on a full disk:\n{output}")
        return status != 0

    def is_over(self):
        """Whether the process has ended by itself; raises if it failed."""
        if self.process.poll() is None:
            return False
        if self.process.returncode:
            raise click.ClickException(f"Start {self.starts} in {self.folder} failed:\n{self._output()}")
        return True

    def look(self):
        """(stage, last step printed) of the process, now or when it was killed."""
        output = self._output()
        # Rows of the table of figures: `    1,200   30%  …  validation`.
        steps = re.findall(r"^ +([\d,]+) +\d+% .*?( validation)?$", output, re.MULTILINE)
        step, was_validated = (int(steps[-1][0].replace(",", "")), bool(steps[-1][1])) if steps else (0, False)
        new = {kind for kind, *_ in self._traces() - self._left}
        for kind in (MODEL, SAVE, DROP):
            if kind in new:
                return kind, step
        last = os.path.join(self.folder, "checkpoints", f"step-{self.steps:09d}")
        if f"Resuming from step {self.steps}." in output or (step == self.steps and os.path.exists(last)):
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
        """What is in the folder while something is written or removed, without what earlier kills left."""
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
