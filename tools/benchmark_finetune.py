"""Time of an SST-2 epoch, beside transformers' Trainer.

    pip install -r requirements/bench.txt
    python tools/benchmark_finetune.py --init MODEL --data-dir glue --examples 2048 --rounds 3

The contestants train on the same sentences in batches of 32, float32, with AdamW, clipping and linear decay:

    ours             batches by length, the step compiled by XLA, as in configs/finetune/sst2.yaml
    uncompiled       the same without XLA
    run_glue         transformers' Trainer with the defaults of its run_glue.py: every row padded to 128
    dynamic          the same, each batch padded to its longest row
    grouped          the same, rows grouped by length too

Each lives in a process of its own and sleeps while it is not its turn. A turn is an epoch over the examples, after one
that is not counted (in which ours compiles). They take turns, and each round is compared within itself: look at the
median of the rounds' ratios. The seconds of compiling are printed beside them, since they are paid once per run.
`--clock cpu --threads 1` counts processor seconds, for machines that are never idle.
"""

import itertools
import os
import sys

import click
from contestant import run
from epochs import compare, options, our_training, serve_epochs, start_tensorflow, start_torch, their_training

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BATCH, MAX_LENGTH, RATE = 32, 128, 3e-5


def build_ours(jit_compile):
    def build(init, data_dir, examples, threads, scratch):
        start_tensorflow(threads)
        from keras_bert.checkpoints.model_folder import open_model_folder
        from keras_bert.config.finetuning import InputConfig
        from keras_bert.inference.loading import model_tokenizer
        from keras_bert.tasks.classification.network import BertForSequenceClassification, ClassificationObjective
        from keras_bert.tasks.sequence_rows import SequenceRows

        texts, labels = sentences(data_dir, examples)
        folder = open_model_folder(init)
        tokenizer = model_tokenizer(folder)
        found = SequenceRows(tokenizer, InputConfig(max_length=MAX_LENGTH))
        found.add([texts])
        rows = found.rows()
        rows.extra["labels"] = labels
        model = BertForSequenceClassification(folder.config, 2)
        folder.load_into(model)
        objective = ClassificationObjective("single_label_classification")
        train_on = our_training(model, objective, tokenizer.vocabulary.pad_id, BATCH, RATE, jit_compile)
        return lambda: (len(rows), train_on(rows))

    return build


def build_theirs(kind):
    def build(init, data_dir, examples, threads, scratch):
        start_torch(threads)
        import transformers

        texts, labels = sentences(data_dir, examples)
        tokenizer = transformers.AutoTokenizer.from_pretrained(init)
        padding = "max_length" if kind == "run_glue" else False
        encoded = tokenizer(texts, truncation=True, max_length=MAX_LENGTH, padding=padding)
        rows = [
            {**{name: values[index] for name, values in encoded.items()}, "labels": int(labels[index])}
            for index in range(len(texts))
        ]
        model = transformers.AutoModelForSequenceClassification.from_pretrained(init, num_labels=2)
        collator = transformers.default_data_collator if padding else transformers.DataCollatorWithPadding(tokenizer)
        sampling = "group_by_length" if kind == "grouped" else "random"
        train_on = their_training(model, collator, BATCH, RATE, scratch, train_sampling_strategy=sampling)
        return lambda: (len(rows), train_on(rows))

    return build


def sentences(data_dir, count):
    """The first `count` sentences of SST-2's training file, and their labels."""
    import numpy as np

    from keras_bert.tasks.classification.benchmarks import GLUE
    from keras_bert.tasks.classification.data import ExampleRows

    rows = list(itertools.islice(ExampleRows(GLUE["sst2"], "train", data_dir), count))
    return [row.texts[0] for row in rows], np.array([row.label for row in rows], "int32")


BUILDERS = {
    "ours": build_ours(jit_compile=True),
    "uncompiled": build_ours(jit_compile=False),
    **{kind: build_theirs(kind) for kind in ("run_glue", "dynamic", "grouped")},
}


@click.command()
@click.option("--init", required=True, metavar="MODEL", help="A Hugging Face folder.")
@click.option("--data-dir", required=True, metavar="DIR", help="GLUE's folder, or SST-2's.")
@click.option("--examples", default=2048, show_default=True, help="Sentences of an epoch.")
@options(BUILDERS, rounds=3)
def main(init, data_dir, examples, **turns):
    """Train on SST-2 by turns with the others, and compare."""
    compare([init, data_dir, examples], **turns)


if __name__ == "__main__":
    run(main, serve_epochs(BUILDERS))
