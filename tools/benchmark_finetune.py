"""Time of an SST-2 epoch, beside transformers' Trainer.

    pip install -r requirements-bench.txt
    python tools/benchmark_finetune.py --init MODEL --data-dir glue --examples 2048 --rounds 3

The contestants train on the same sentences in batches of 32, float32, with AdamW, clipping and linear decay:

    ours             batches by length, the step compiled by XLA, as configs/finetune/sst2.yaml
    run_glue         transformers' Trainer with the defaults of its run_glue.py: every row padded to 128
    dynamic          the same, each batch padded to its longest row
    grouped          the same, rows grouped by length too

Each lives in a process of its own and sleeps while it is not its turn. A turn is an epoch over the examples, after one
that is not counted (which compiles, here). They take turns, and each round is compared within itself: look at the
median of the rounds' ratios. The seconds that compiling took are printed beside them, for they are paid once a run.
`--clock cpu --threads 1` counts processor seconds, for machines that are never idle.
"""

import os
import statistics
import sys
import tempfile

import click
from contestant import CLOCKS, Contestant, run

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BATCH, MAX_LENGTH, RATE, SEED = 32, 128, 3e-5, 1
NAMES = ("ours", "run_glue", "dynamic", "grouped")


def build_ours(init, data_dir, examples, threads):
    """Function () that trains one epoch."""
    from keras_bert.quiet import import_tensorflow

    import_tensorflow()
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(threads)
    from keras_bert.checkpoints.model_folder import open_model_folder
    from keras_bert.config.finetuning import FinetuneOptimizerConfig, InputConfig
    from keras_bert.data.length_batches import LengthBatches, choose_widths
    from keras_bert.models.classification_objective import ClassificationObjective
    from keras_bert.models.loading import model_tokenizer
    from keras_bert.models.sequence_classification import BertForSequenceClassification
    from keras_bert.tasks.sequence_rows import sequence_rows
    from keras_bert.training.optimizer import make_optimizer
    from keras_bert.training.step import Step

    texts, labels = sentences(data_dir, examples)
    folder = open_model_folder(init)
    tokenizer = model_tokenizer(folder)
    rows, _ = sequence_rows([texts], tokenizer, InputConfig(max_length=MAX_LENGTH))
    rows.extra["labels"] = labels
    reader = LengthBatches(rows, BATCH, SEED, tokenizer.vocabulary.pad_id, choose_widths(rows.lengths))
    model = BertForSequenceClassification(folder.config, 2)
    folder.load_into(model)
    optimizer = make_optimizer(FinetuneOptimizerConfig(learning_rate=RATE), total_steps=10**6)
    optimizer.build(model.trainable_variables)
    objective = ClassificationObjective("single_label_classification")
    step = Step(tf.distribute.get_strategy(), model, objective, optimizer, jit_compile=True)
    epochs, steps = iter(range(10**6)), iter(range(10**6))

    def epoch():
        loss = 0.0
        for batch in reader.epoch(next(epochs)):
            loss += float(step.train(batch, tf.constant(next(steps), tf.int64))["sums"]["loss"]["loss"])
        return loss / len(rows)

    return epoch


def build_theirs(kind):
    def build(init, data_dir, examples, threads):
        import torch
        import transformers

        torch.set_num_threads(threads)
        transformers.logging.set_verbosity_error()
        texts, labels = sentences(data_dir, examples)
        tokenizer = transformers.AutoTokenizer.from_pretrained(init)
        padding = "max_length" if kind == "run_glue" else False
        encoded = tokenizer(texts, truncation=True, max_length=MAX_LENGTH, padding=padding)
        data = [
            {**{name: values[index] for name, values in encoded.items()}, "labels": int(labels[index])}
            for index in range(len(texts))
        ]
        model = transformers.AutoModelForSequenceClassification.from_pretrained(init, num_labels=2)
        collator = (
            transformers.default_data_collator
            if kind == "run_glue"
            else transformers.DataCollatorWithPadding(tokenizer)
        )

        scratch = tempfile.mkdtemp()

        def epoch():
            # A Trainer's epoch is all of its run, so each turn has its own, on the same model.
            arguments = transformers.TrainingArguments(
                output_dir=scratch,
                per_device_train_batch_size=BATCH,
                num_train_epochs=1,
                learning_rate=RATE,
                train_sampling_strategy="group_by_length" if kind == "grouped" else "random",
                save_strategy="no",
                logging_strategy="no",
                report_to=[],
                use_cpu=True,
                disable_tqdm=True,
                seed=SEED,
            )
            trainer = transformers.Trainer(model, arguments, data_collator=collator, train_dataset=data)
            return trainer.train().training_loss

        return epoch

    return build


def sentences(data_dir, count):
    """The first so many sentences of SST-2's training file, and their labels."""
    from keras_bert.tasks.classification.examples import load_examples
    from keras_bert.tasks.classification.glue import GLUE

    examples = load_examples(GLUE["sst2"], "train", data_dir)
    return examples.texts[0][:count], examples.labels[:count]


def serve(name, settings):
    """A contestant: each turn is an epoch, of which it tells the seconds and the loss."""
    *given, clock = settings
    build = build_ours if name == "ours" else build_theirs(name)
    epoch = build(*given)

    def turn(_):
        began = CLOCKS[clock]()
        loss = epoch()
        return {"seconds": CLOCKS[clock]() - began, "loss": loss}

    return turn


@click.command()
@click.option("--init", required=True, metavar="MODEL", help="A Hugging Face folder.")
@click.option("--data-dir", required=True, metavar="DIR", help="GLUE's folder, or SST-2's.")
@click.option("--examples", default=2048, show_default=True, help="Sentences of an epoch.")
@click.option("--rounds", default=3, show_default=True)
@click.option("--contestants", default=",".join(NAMES), show_default=True)
@click.option("--threads", default=os.cpu_count(), show_default=True)
@click.option("--clock", type=click.Choice(list(CLOCKS)), default="wall", show_default=True)
def main(init, data_dir, examples, rounds, contestants, threads, clock):
    """Train on SST-2 by turns with the others, and compare."""
    names = contestants.split(",")
    settings = [init, data_dir, examples, threads, clock]
    running = {name: Contestant(name, settings, threads) for name in names}
    first = {name: one.ask()["seconds"] for name, one in running.items()}
    found = []
    for number in range(1, rounds + 1):
        found.append({name: one.ask()["seconds"] for name, one in running.items()})
        click.echo(f"round {number}: " + ", ".join(f"{name} {seconds:.1f} s" for name, seconds in found[-1].items()))
    for name, one in running.items():
        one.close()
        seconds = [turn[name] for turn in found]
        median = statistics.median(seconds)
        line = f"{name:10} {median:8.1f} s an epoch of {examples:,}, first {first[name]:.1f} s"
        if "ours" in running and name != "ours":
            ratios = sorted(turn[name] / turn["ours"] for turn in found)
            line += f"; ours is {statistics.median(ratios):.2f} times as fast [{ratios[0]:.2f}, {ratios[-1]:.2f}]"
        click.echo(line)


if __name__ == "__main__":
    run(main, serve)
