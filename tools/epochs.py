"""What benchmarks of fine-tuning share: contestants whose turns are epochs, ours or transformers' Trainer's."""

import itertools
import os
import statistics

import click
from contestant import CLOCKS, Contestant

SEED = 1


def our_training(model, objective, pad_id, batch_size, rate, jit_compile=True):
    """Function (TokenRows) that trains on them once, by length, and returns the mean loss."""
    import tensorflow as tf

    from keras_bert.config.finetuning import FinetuneOptimizerConfig
    from keras_bert.data.batches.length_batches import LengthBatches, choose_widths
    from keras_bert.training.optimizer import make_optimizer
    from keras_bert.training.step import Step

    optimizer = make_optimizer(FinetuneOptimizerConfig(learning_rate=rate, warmup_share=0.0), total_steps=10**6)
    optimizer.build(model.trainable_variables)
    step = Step(tf.distribute.get_strategy(), model, objective, optimizer, jit_compile=jit_compile)
    epochs, steps = itertools.count(), itertools.count()

    def train(rows):
        source = LengthBatches(rows, batch_size, SEED, pad_id, choose_widths(rows.lengths))
        loss = 0.0
        for batch in source.epoch(next(epochs)):
            loss += float(step.train(batch, tf.constant(next(steps), tf.int64))["sums"]["loss"]["loss"])
        return loss / len(rows)

    return train


def their_training(model, collator, batch_size, rate, scratch, **arguments):
    """Function (rows) that trains on them once with transformers' Trainer and returns the mean loss."""
    import transformers

    settings = transformers.TrainingArguments(
        output_dir=scratch,
        per_device_train_batch_size=batch_size,
        num_train_epochs=1,
        learning_rate=rate,
        save_strategy="no",
        logging_strategy="no",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        seed=SEED,
        **arguments,
    )

    def train(rows):
        # A Trainer's run is one epoch, so each turn has a Trainer of its own, on the same model.
        return transformers.Trainer(model, settings, data_collator=collator, train_dataset=rows).train().training_loss

    return train


def start_tensorflow(threads):
    from keras_bert.core.runtime import import_tensorflow

    import_tensorflow()
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(threads)


def start_torch(threads):
    import torch
    import transformers

    torch.set_num_threads(threads)
    transformers.logging.set_verbosity_error()


def autocast(torch, device, precision):
    """The context in which products are computed in `precision`; weights stay float32."""
    return torch.autocast(device, torch.bfloat16, enabled=precision == "bfloat16")


def serve_epochs(builders):
    """The `serve` of `contestant.run`: each turn returns the seconds, the rows and the loss of an epoch.

    Args:
        builders: `{name: build}`; `build(*settings, threads, scratch)` returns a function () -> (rows, loss).
    """

    def serve(name, settings, scratch):
        *given, threads, clock = settings
        epoch = builders[name](*given, threads, scratch)

        def turn(_):
            started_at = CLOCKS[clock]()
            rows, loss = epoch()
            return {"seconds": CLOCKS[clock]() - started_at, "rows": rows, "loss": loss}

        return turn

    return serve


def options(names, rounds):
    """The command line's options that `compare` takes, for these contestants."""

    def decorate(command):
        for option in (
            click.option("--clock", type=click.Choice(list(CLOCKS)), default="wall", show_default=True),
            click.option("--threads", default=os.cpu_count(), show_default=True),
            click.option("--contestants", default=",".join(names), show_default=True),
            click.option("--rounds", default=rounds, show_default=True),
        ):
            command = option(command)
        return command

    return decorate


def compare(settings, rounds, contestants, threads, clock):
    """Prints the seconds of each round, then medians, and how many times as fast as each other contestant ours is.

    Args:
        settings: the builders' first arguments.
        rounds, contestants, threads, clock: as in `options`.
    """
    running = {name: Contestant(name, [*settings, threads, clock], threads) for name in contestants.split(",")}
    first = {name: one.ask() for name, one in running.items()}
    found = []
    for number in range(1, rounds + 1):
        found.append({name: one.ask()["seconds"] for name, one in running.items()})
        click.echo(f"round {number}: " + ", ".join(f"{name} {seconds:.1f} s" for name, seconds in found[-1].items()))
    for name, one in running.items():
        one.close()
        line = (
            f"{name:10} {statistics.median(turn[name] for turn in found):8.1f} s for {first[name]['rows']:,} rows; "
            f"the first time {first[name]['seconds']:.1f} s, loss {first[name]['loss']:.3f}"
        )
        if "ours" in running and name != "ours":
            ratios = sorted(turn[name] / turn["ours"] for turn in found)
            line += f"; ours is {statistics.median(ratios):.2f} times as fast [{ratios[0]:.2f}, {ratios[-1]:.2f}]"
        click.echo(line)
