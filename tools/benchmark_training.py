"""Time of a whole pretraining step, beside transformers' and KerasHub's.

    pip install -r requirements/bench.txt
    python tools/benchmark_training.py --models mini --shapes 8x128

A step is forward, backward, clipping and AdamW, in float32 with dropout, on rows without padding. The contestants:

    ours                   `training.step.Step`, compiled by XLA, but not in bfloat16 on CPUs
    transformers-gathered  transformers' BertForPreTraining, the masked positions gathered by hand before the head
    transformers-compiled  the same under torch.compile
    transformers           as published: logits over the vocabulary at every position, and its own loss
    keras-hub              BertMaskedLM with its masked positions, compiled by XLA; no next sentence prediction
    ours-fed               ours, its batches from a data set, one step per call (on request only, like those below)
    ours-loop10            the same with training.steps_per_loop 10
    ours-loop50            the same with 50

Each kind of model is pretrained in its own way: an XLNet (`--models xlnet-mini`) by permutations, a BART or a T5 by
restoring corrupted text with its decoder, which predicts as many tokens as in our batches. transformers' class is that
of the kind, such as BartForConditionalGeneration. An XLNet and a decoder, as published, compute only the logits that
are needed, so compare them with `--baseline transformers`. Only a BERT has transformers-gathered and KerasHub's model;
for others they are left out.

If the frameworks have a GPU, all train on the first, by the wall clock:

    python tools/benchmark_training.py --models base --shapes 32x128,8x512 --precision bfloat16

There our compiled step computes attention without dropout (`--no-attention-dropout`) with cuDNN's fused kernels.
torch's contestants have its fused AdamW; all have the same shapes, numbers of predictions and threads. Each lives in a
process of its own and sleeps while it is not its turn. They take turns, A B C A B C, and as a machine's speed drifts,
each round is compared within itself: look at the median of the rounds' ratios, with quartiles. A round during which
other processes took more than a tenth of the processors is left out.

If a machine is never idle, `--clock cpu --threads 1` counts processor seconds of one thread each, and no round is left
out: this is rougher, since other processes use up caches and memory bandwidth, but does not measure who waited longest.
(It needs one thread, because torch's threads are busy while they wait for each other.)

The share of peak is the kind's `training_flops` (predicted positions only, for all alike) per second, divided by the
best rate of a product in that precision, of 3072 x 3072 numbers on a CPU and 8192 x 8192 on a GPU, by any framework in
the same round.
"""

import dataclasses
import importlib.util
import statistics
import time

import click
import psutil
from contestant import CLOCKS, Contestant, run, spread
from random_batches import make_batch, predictions_of
from training_contestants import BUILDERS, PACKAGES, takes

from keras_bert.config.recipes import find_config
from keras_bert.models.bert.config import BertConfig
from keras_bert.models.kind import kind_of_config

BASELINE = "transformers-gathered"
BY_DEFAULT = [name for name in BUILDERS if not name.startswith("ours-")]
STEPS_BEFORE_THE_CLOCK, MATMULS = 3, 3
OTHERS_SHARE, ROUNDS_NEEDED = 0.10, 3


@dataclasses.dataclass
class Shape:
    model: str
    batch_size: int
    sequence_length: int
    predictions: int | None = None
    drops_attention: bool = True

    def __post_init__(self):
        self.predictions = self.predictions or predictions_of(self.config, self.sequence_length)

    @property
    def config(self):
        config = BertConfig.from_file(find_config("models", self.model))
        return config if self.drops_attention else dataclasses.replace(config, attention_probs_dropout_prob=0.0)

    @property
    def gigaflops(self):
        flops = kind_of_config(self.config).training_flops(self.config, self.sequence_length, self.predictions)
        return self.batch_size * flops / 1e9


def serve(name, settings, _):
    """A contestant, whose turn of some seconds returns a step's seconds, a product's GFLOP/s and its CPU time."""
    shape, threads, clock, precision = settings
    shape = Shape(**shape)
    config = shape.config
    batch = make_batch(config, shape.batch_size, shape.sequence_length, shape.predictions)
    step, matmul = BUILDERS[name](config, batch, threads, precision)
    for _ in range(STEPS_BEFORE_THE_CLOCK):
        step()
        matmul()

    def turn(seconds):
        cpu = time.process_time()
        step()  # Brings its memory back into the caches.
        times = _times(step, seconds, clock)
        products = [_times(matmul, 0, clock)[0] for _ in range(MATMULS)]
        return {
            "step": statistics.median(times) / step.steps,
            "gigaflops": 2 * matmul.size**3 / min(products) / 1e9,
            "cpu": time.process_time() - cpu,
        }

    return turn


def take_turn(contestant, seconds):
    """Seconds per step, the best product's GFLOP/s, and the share of the processors that others took."""
    before, started_at = psutil.cpu_times(), time.perf_counter()
    answer = contestant.ask(seconds)
    elapsed = (time.perf_counter() - started_at) * psutil.cpu_count()
    after = psutil.cpu_times()
    busy = sum(getattr(after, kind) - getattr(before, kind) for kind in ("user", "system", "softirq", "steal"))
    busy += after.nice - before.nice
    return answer["step"], answer["gigaflops"], max(0.0, busy - answer["cpu"]) / elapsed


def _times(function, seconds, clock):
    """The seconds of each call, at least one, until `seconds` are over."""
    now = CLOCKS[clock]
    times = []
    while not times or sum(times) < seconds:
        started_at = now()
        function()
        times.append(now() - started_at)
    return times


def run_rounds(shape, names, turns, seconds, threads, clock, precision, baseline):
    """`[{name: (seconds per step, GFLOP/s of a product, share of others)}]`, one dict per round."""
    contestants, rounds = {}, []
    try:
        for name in names:
            # Keras would import TensorFlow, beside which some versions of PyTorch's Triton crash.
            backend = {"KERAS_BACKEND": "torch"} if "torch" in PACKAGES[name] else {}
            settings = [dataclasses.asdict(shape), threads, clock, precision]
            contestants[name] = Contestant(name, settings, threads, **backend)
            contestants[name].ask(0)  # Builds and compiles; the others wait.
        for number in range(1, turns + 1):
            rounds.append({name: take_turn(contestant, seconds) for name, contestant in contestants.items()})
            _print_round(number, rounds[-1], clock, baseline)
    finally:
        for contestant in contestants.values():
            contestant.close()
    return rounds


def _print_round(number, turns, clock, baseline):
    base = turns.get(baseline, (None,))[0]
    shown = [
        f"{name} {step * 1e3:,.0f} ms" + (f" ({base / step:.2f}x)" if base else "")
        for name, (step, _, _) in turns.items()
    ]
    others = _others(turns)
    crowded = f"  CROWDED: others took {others:.0%}" if clock == "wall" and others > OTHERS_SHARE else ""
    click.echo(f"  round {number}: {', '.join(shown)}, peak {_peak(turns):,.0f} GFLOP/s{crowded}")


def _others(turns):
    return max(others for _, _, others in turns.values())


def _peak(turns):
    return max(gigaflops for _, gigaflops, _ in turns.values())


def report(shape, rounds, clock, baseline):
    quiet = [turns for turns in rounds if clock == "cpu" or _others(turns) <= OTHERS_SHARE]
    if len(quiet) < min(ROUNDS_NEEDED, len(rounds)):
        click.echo(f"  Only {len(quiet)} of {len(rounds)} rounds were undisturbed: all are counted, do not trust them.")
        quiet = rounds
    click.echo(f"  {'':24}{'ms a step':>22}{'sequences/s':>13}{f'times {baseline}':>30}{'share of peak':>15}")
    for name in rounds[0]:
        steps = [turns[name][0] for turns in quiet]
        share = statistics.median(shape.gigaflops / turns[name][0] / _peak(turns) for turns in quiet)
        ratio = ""
        if baseline in rounds[0]:
            ratio = spread([turns[baseline][0] / turns[name][0] for turns in quiet], 2)
        click.echo(
            f"  {name:24}{spread([step * 1e3 for step in steps], 1):>22}"
            f"{shape.batch_size / statistics.median(steps):13.1f}{ratio:>30}{share:15.0%}"
        )


def _installed(names):
    for name in names:
        if name not in BUILDERS:
            raise click.ClickException(f"--contestants: needs some of {', '.join(BUILDERS)}. Received: {name}.")
        missing = [package for package in PACKAGES[name] if importlib.util.find_spec(package) is None]
        if missing:
            click.echo(f"{name} is left out: {', '.join(missing)} is not installed.")
        else:
            yield name


@click.command()
@click.option("--models", default="mini,base", show_default=True, help="Names of configs/models.")
@click.option("--shapes", default="8x128,32x128,4x512", show_default=True, help="Batch size x tokens.")
@click.option("--contestants", default=",".join(BY_DEFAULT), show_default=True, help="Who takes part, in this order.")
@click.option("--baseline", default=BASELINE, show_default=True, help="To whom the others are compared.")
@click.option("--turns", default=7, show_default=True, help="Rounds.")
@click.option("--seconds", default=3.0, show_default=True, help="Length of a turn, one step at least.")
@click.option("--threads", default=2, show_default=True, help="Threads of each.")
@click.option("--clock", default="wall", show_default=True, type=click.Choice(list(CLOCKS)), help="What is counted.")
@click.option(
    "--precision", default="float32", show_default=True, type=click.Choice(["float32", "bfloat16"]), help="Of products."
)
@click.option("--attention-dropout/--no-attention-dropout", default=True, help="As the model's config says, or none.")
def main(models, shapes, contestants, baseline, turns, seconds, threads, clock, precision, attention_dropout):
    """Prints a table for each model and shape."""
    names = list(_installed(contestants.split(",")))
    for model in models.split(","):
        for text in shapes.split(","):
            shape = Shape(model, *map(int, text.split("x")), drops_attention=attention_dropout)
            click.echo(
                f"{model}, {text}, {shape.predictions} predictions a sequence, {shape.gigaflops:.1f} GFLOP a step"
            )
            able = [name for name in names if takes(name, shape.config)]
            rounds = run_rounds(shape, able, turns, seconds, threads, clock, precision, baseline)
            report(shape, rounds, clock, baseline)


if __name__ == "__main__":
    run(main, serve)
