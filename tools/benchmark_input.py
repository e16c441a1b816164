"""Sequences per second of the input pipelines, beside Hugging Face's collators and a training step.

    pip install -r requirements/bench.txt
    python tools/benchmark_input.py --vocab vocab.txt 'wiki/*'

The text is prepared once into shards. Then, at each length, these run in turns, and medians are printed: batches from
shards (segment pairs and packed rows, masks in units of tokens, whole words, n-grams and spans), batches from raw text
in one graph, and a PyTorch DataLoader over rows tokenised beforehand with `DataCollatorForLanguageModeling`, plain and
with whole words. At length 128 the training step of BERT-mini takes its turn too, on batches made beforehand. A
pipeline is opened for its turn, before the clock starts, and closed after it, so that none works in another's turn.
From shards, one epoch is read over and over: opening one takes half a second, for a small text as for a large one.

Rates are per CPU second of the process, so that other work on the machine weighs on all alike. With `--workers` the
DataLoader has processes of its own, and rates are per wall second.
"""

import os
import statistics
import sys
import tempfile
import time
import warnings
from itertools import cycle, islice, repeat
from types import SimpleNamespace

import click
import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["TOKENIZERS_PARALLELISM"] = "false"
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

LENGTHS = {128: 20, 512: 77}  # And the predictions of each.
BATCHES_BEFORE_THE_CLOCK = 10
COLLATOR_GOAL, STEP_GOAL = 10, 20
TEXT_FILES = 8
UNITS = {"token": "tokens", "word": "whole words", "ngram": "n-grams", "span": "spans"}


class Corpus:
    """Shards, plain text files and plans of one text, in a folder."""

    def __init__(self, folder, files, vocab, lower_case, megabytes):
        from keras_bert.core.patterns import expand
        from keras_bert.data.corpus.documents import read_documents
        from keras_bert.data.shards.document_tokenizer import DocumentTokenizer
        from keras_bert.data.shards.prepare import ShardSettings, prepare
        from keras_bert.data.shards.shard_files import ShardSet
        from keras_bert.text.wordpiece import WordPieceTokenizer

        self.folder = folder
        self.tokenizer = WordPieceTokenizer(vocab, lower_case)
        documents, size = [], 0
        for document in read_documents(expand(files)):
            documents.append(document)
            size += len(document)
            if size >= megabytes * 1e6:
                break
        # Wikipedia's paragraphs are lines with blank lines between them, which here would separate documents.
        plain = ["\n".join(line for line in document.split("\n") if line.strip()) for document in documents]
        os.mkdir(os.path.join(folder, "text"))
        for number in range(TEXT_FILES):
            with open(os.path.join(folder, "text", f"{number}.txt"), "w", encoding="utf-8") as stream:
                stream.write("\n\n".join(plain[number::TEXT_FILES]))
        text = SimpleNamespace(
            documents=lambda: documents, fingerprint=list, settings=dict, record=dict, local_files=list
        )
        tokenizer = DocumentTokenizer(self.tokenizer.vocabulary, self.tokenizer.lower_case)
        prepare(text, ShardSettings(tokenizer, 0.01), os.path.join(folder, "shards"))
        self.shards = ShardSet.open(os.path.join(folder, "shards", "train"))

    def tokens(self, count):
        """The first `count` ids of the training text."""
        found = []
        for name in self.shards.names:
            found.append(self.shards.read(name)[0])
            if sum(map(len, found)) >= count:
                break
        return np.concatenate(found)[:count].astype(np.int64)


def from_shards(corpus, length, batch_size, unit, pair):
    from keras_bert.config.objectives import MaskingConfig, ObjectiveConfig
    from keras_bert.data.batches.shard_batches import ShardBatches

    plans = os.path.join(corpus.folder, "plans")
    masking, vocabulary = MaskingConfig(unit=unit), corpus.tokenizer.vocabulary
    phase = _phase(length, batch_size)
    source = ShardBatches(corpus.shards, vocabulary, phase, ObjectiveConfig(pair=pair), masking, 1, plans)
    return lambda: (batch for batch in source.epoch(0).repeat())


def from_text(corpus, length, batch_size, unit):
    from keras_bert.config.objectives import MaskingConfig, ObjectiveConfig
    from keras_bert.data.batches.raw_lines import RawLines
    from keras_bert.data.batches.text_batches import TextBatches

    lines = RawLines([os.path.join(corpus.folder, "text")], 0.01)
    masking, objective = MaskingConfig(unit=unit), ObjectiveConfig(pair="none")
    source = TextBatches(lines, corpus.tokenizer, _phase(length, batch_size), objective, masking, 1)
    return lambda: (batch for batch in source.epoch(0))


def from_collator(corpus, length, batch_size, whole_word, vocab, lower_case, rows, workers):
    import torch
    import transformers

    warnings.filterwarnings("ignore", message="Random token replacement is not supported")
    tokenizer = transformers.BertTokenizerFast(vocab, do_lower_case=lower_case)
    collator = transformers.DataCollatorForLanguageModeling(tokenizer, whole_word_mask=whole_word, mlm_probability=0.15)
    loader = torch.utils.data.DataLoader(
        _tokenized_rows(corpus, length, rows, whole_word),
        batch_size,
        shuffle=True,
        collate_fn=collator,
        num_workers=workers,
        drop_last=True,
    )
    return lambda: (batch for again in repeat(loader) for batch in again)


def _tokenized_rows(corpus, length, rows, whole_word):
    """Rows as `run_mlm.py` keeps them, filled to the length: a `datasets.Dataset`, or a list without that library."""
    vocabulary = corpus.tokenizer.vocabulary
    ids = np.resize(corpus.tokens(rows * (length - 2)), (rows, length - 2))
    ids = np.pad(ids, [(0, 0), (1, 1)], constant_values=((0, 0), (vocabulary.cls_id, vocabulary.sep_id)))
    special = np.zeros_like(ids)
    special[:, [0, -1]] = 1
    columns = {"input_ids": ids, "attention_mask": np.ones_like(ids), "special_tokens_mask": special}
    if whole_word:
        # One character per piece, and a space before each word: all that the collator looks at.
        ends = np.cumsum(2 - vocabulary.is_continuation[ids], axis=1)
        columns["offset_mapping"] = np.where(special[:, :, None] > 0, 0, np.stack([ends - 1, ends], axis=2))
    columns = {name: values.tolist() for name, values in columns.items()}
    try:
        from datasets import Dataset
    except ImportError:
        return [dict(zip(columns, row)) for row in zip(*columns.values())]
    return Dataset.from_dict(columns)


def train_steps(corpus, length, batch_size):
    """Steps of BERT-mini, compiled by XLA."""
    import dataclasses

    import tensorflow as tf

    from keras_bert.config.recipes import find_config
    from keras_bert.config.training import OptimizerConfig
    from keras_bert.models.bert.config import BertConfig
    from keras_bert.models.pretraining import BertForPreTraining, PretrainingObjective
    from keras_bert.training.optimizer import make_optimizer
    from keras_bert.training.step import Step

    vocabulary = corpus.tokenizer.vocabulary
    config = BertConfig.from_file(find_config("models", "mini"))
    model = BertForPreTraining(dataclasses.replace(config, vocab_size=len(vocabulary)))
    optimizer = make_optimizer(OptimizerConfig(), 10**6)
    optimizer.build(model.trainable_variables)
    objective = PretrainingObjective(vocabulary.mask_id)
    step = Step(tf.distribute.get_strategy(), model, objective, optimizer, jit_compile=True)
    batches = list(islice(from_shards(corpus, length, batch_size, "token", "nsp")(), 20))
    return lambda: (float(step.train(batch, tf.constant(0, tf.int64))["grad_norm"]) for batch in cycle(batches))


def _phase(length, batch_size):
    from keras_bert.config.objectives import PhaseConfig

    return PhaseConfig(sequence_length=length, batch_size=batch_size, max_predictions_per_seq=LENGTHS[length])


def _rate(open_batches, batch_size, seconds, clock):
    """Sequences per second over a turn."""
    batches = open_batches()
    for _ in islice(batches, BATCHES_BEFORE_THE_CLOCK):
        pass
    start, count = clock(), 0
    while (elapsed := clock() - start) < seconds:
        next(batches)
        count += batch_size
    batches.close()
    return count / elapsed


def _measure(contenders, batch_size, seconds, turns, clock):
    """Prints and returns the median of each; `contenders` maps a name to a function that opens its batches."""
    rates = {name: [] for name in contenders}
    for _ in range(turns):
        for name, open_batches in contenders.items():
            rates[name].append(_rate(open_batches, batch_size, seconds, clock))
    for name, values in rates.items():
        click.echo(f"  {name:36} {statistics.median(values):10,.0f}   ({min(values):,.0f} to {max(values):,.0f})")
    return {name: statistics.median(values) for name, values in rates.items()}


def _compare(what, ours, theirs, goal=None):
    ratio = ours / theirs
    against = "" if goal is None else f" (goal {goal}x{'' if ratio >= goal else ', MISSED'})"
    click.echo(f"  {what}: {ratio:.1f}x{against}")


@click.command()
@click.option("--vocab", required=True, type=click.Path(exists=True), help="A vocab.txt.")
@click.option("--cased", is_flag=True, help="Keep case and accents.")
@click.option("--megabytes", default=40.0, show_default=True, help="How much text, in million characters.")
@click.option("--batch-size", default=32, show_default=True, help="Sequences a batch, for all alike.")
@click.option("--seconds", default=4.0, show_default=True, help="Length of a turn.")
@click.option("--turns", default=5, show_default=True, help="Turns of each.")
@click.option("--rows", default=4000, show_default=True, help="Rows of the tokenised dataset, gone through again.")
@click.option("--workers", default=0, show_default=True, help="Processes of the DataLoader.")
@click.argument("files", nargs=-1, required=True)
def main(vocab, cased, megabytes, batch_size, seconds, turns, rows, workers, files):
    """Prints sequences a second on the text of FILES, and the ratios that are the goals."""
    try:
        import torch  # noqa: F401
        import transformers  # noqa: F401
    except ImportError as error:
        raise click.ClickException(f"{error.name} is missing: pip install -r requirements/bench.txt") from None
    clock, second = (time.perf_counter, "second") if workers else (time.process_time, "CPU second")
    with tempfile.TemporaryDirectory() as folder:
        corpus = Corpus(folder, files, vocab, not cased, megabytes)
        click.echo(
            f"{corpus.shards.meta['tokens']:,} tokens in {len(corpus.shards.names)} shards; sequences a {second}:"
        )
        for length in LENGTHS:
            click.echo(f"length {length}, batches of {batch_size}")
            contenders = {}
            for unit, masks in UNITS.items():
                contenders[f"shards, packed, {masks}"] = from_shards(corpus, length, batch_size, unit, "none")
                if unit not in ("token", "word"):
                    continue
                contenders[f"shards, pairs, {masks}"] = from_shards(corpus, length, batch_size, unit, "nsp")
                contenders[f"raw text, {masks}"] = from_text(corpus, length, batch_size, unit)
                contenders[f"Hugging Face's collator, {masks}"] = from_collator(
                    corpus, length, batch_size, unit == "word", vocab, not cased, rows, workers
                )
            if length == 128:
                contenders["training step of BERT-mini"] = train_steps(corpus, length, batch_size)
            medians = _measure(contenders, batch_size, seconds, turns, clock)
            for masks in ("tokens", "whole words"):
                collator = medians[f"Hugging Face's collator, {masks}"]
                # The collator's rows are packed; pairs are planned too, and raw text is tokenised on the way.
                _compare(f"packed / collator, {masks}", medians[f"shards, packed, {masks}"], collator, COLLATOR_GOAL)
                _compare(f"pairs / collator, {masks}", medians[f"shards, pairs, {masks}"], collator)
                _compare(f"raw text / collator, {masks}", medians[f"raw text, {masks}"], collator)
            for unit in ("ngram", "span"):
                packed = (medians[f"shards, packed, {UNITS[of]}"] for of in (unit, "word"))
                _compare(f"packed, {UNITS[unit]} / whole words", *packed)
            if length == 128:
                step = medians["training step of BERT-mini"]
                for source in medians:
                    if source.startswith(("shards", "raw text")):
                        _compare(f"{source} / training step", medians[source], step, STEP_GOAL)


if __name__ == "__main__":
    main()
