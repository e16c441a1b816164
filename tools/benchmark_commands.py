"""Time of whole fine-tuning commands, from their start to the score on dev examples, beside transformers'.

    pip install -r requirements/bench.txt
    python tools/benchmark_commands.py --task mrpc --init MODEL --data-dir glue --turns 3

A person waits for all of a command: imports, tokenizing, tracing and compiling, the steps, validation and writing the
model. The contestants do all of it, each in a process of its own, one after the other:

    ours       `run.py finetune` with the task's recipe
    loop       transformers' class in a plain loop of torch: batches padded to their longest row, rows grouped by length
    trainer    the same with transformers' Trainer
    compiled   `loop` under torch.compile with dynamic shapes

All train on the same examples for one epoch or `--steps`, with the same batch size, maximum length and learning rate,
with dropout, AdamW, clipping and linear decay, in float32 or, with `--precision bfloat16`, in half precision (theirs
under torch's autocast). The score is accuracy (for ner, of tags at the first piece of each word) or, for squad, the
share of exact matches. They take turns, A B C A B C, and each round is compared within itself, in CPU seconds (of all
threads) and in wall seconds: look at the median of the rounds' ratios, with quartiles. Wall seconds mean something only
if nothing else runs. `--examples` and `--dev-examples` shorten the data for all alike. With `--vocab` instead of
`--init`, all start from a BERT-mini with random weights.
"""

import csv
import gzip
import json
import os
import re
import shutil
import statistics
import string
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import click
from benchmark_squad import windows
from contestant import spread
from epochs import SEED, autocast, start_torch, their_training

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OURS, THEIRS = "ours", ("loop", "trainer", "compiled")
_FLAG = "--theirs"
_MEGABATCH, _LONGEST_ANSWER, _STRIDE = 50, 30, 128


class Settings(NamedTuple):
    """What all contestants share; `steps` 0 stands for one epoch."""

    task: str
    init: str
    data_dir: str
    batch_size: int
    max_length: int
    learning_rate: float
    steps: int
    threads: int
    precision: str


class Task(NamedTuple):
    """Attributes:
    files: the names of the training and the dev file.
    model: transformers' class.
    read: function (path) -> examples.
    cut: function (path, how many examples, path to write).
    encode: function (tokenizer, examples, maximum length, {label: id}, whether to train) -> rows.
    score: function (logits of each row, rows, examples) -> a score between 0 and 1.
    """

    files: tuple[str, str]
    model: str
    read: Callable
    cut: Callable
    encode: Callable
    score: Callable


def _read_pairs(path):
    """[(texts, label)] of MRPC."""
    with open(path, encoding="utf-8-sig") as lines:
        return [(row[3:5], row[0]) for row in list(csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))[1:]]


def _read_sentences(path):
    """[(texts, label)] of SST-2."""
    with open(path, encoding="utf-8") as lines:
        return [(line.rstrip("\n").split("\t")[:1], line.rstrip("\n").split("\t")[1]) for line in list(lines)[1:]]


def _read_words(path):
    """[(words, labels)] of CoNLL 2003."""
    with open(path, encoding="utf-8") as lines:
        blocks = [block.splitlines() for block in lines.read().split("\n\n")]
    sentences = [[line.split() for line in block if line and not line.startswith("-DOCSTART-")] for block in blocks]
    return [([word[0] for word in one], [word[-1] for word in one]) for one in sentences if one]


def _read_questions(path):
    """[(question, passage, answers, start of the first)] of SQuAD."""
    with _open(path) as file:
        articles = json.load(file)["data"]
    return [
        (qa["question"], paragraph["context"], [one["text"] for one in qa["answers"]], qa["answers"][0]["answer_start"])
        for article in articles
        for paragraph in article["paragraphs"]
        for qa in paragraph["qas"]
    ]


def _open(path, mode="rt"):
    return gzip.open(path, mode, encoding="utf-8") if path.endswith(".gz") else open(path, mode, encoding="utf-8")


def _cut_lines(path, count, target):
    with open(path, encoding="utf-8") as lines, open(target, "w", encoding="utf-8") as cut:
        cut.writelines(list(lines)[: count + 1])


def _cut_blocks(path, count, target):
    with open(path, encoding="utf-8") as lines, open(target, "w", encoding="utf-8") as cut:
        cut.write("\n\n".join(lines.read().split("\n\n")[:count]) + "\n\n")


def _cut_questions(path, count, target):
    with _open(path) as file:
        whole = json.load(file)
    for article in whole["data"]:
        for paragraph in article["paragraphs"]:
            paragraph["qas"], count = paragraph["qas"][:count], max(count - len(paragraph["qas"]), 0)
        article["paragraphs"] = [one for one in article["paragraphs"] if one["qas"]]
    whole["data"] = [article for article in whole["data"] if article["paragraphs"]]
    with _open(target, "wt") as file:
        json.dump(whole, file)


def _encode_texts(tokenizer, examples, max_length, labels, trains):
    columns = list(zip(*(texts for texts, _ in examples)))
    encoded = tokenizer(*map(list, columns), truncation=True, max_length=max_length)
    return [
        {**{name: values[index] for name, values in encoded.items()}, "labels": labels[label]}
        for index, (_, label) in enumerate(examples)
    ]


def _encode_words(tokenizer, examples, max_length, labels, trains):
    texts = [words for words, _ in examples]
    encoded = tokenizer(texts, is_split_into_words=True, truncation=True, max_length=max_length)
    rows = []
    for index, (_, tags) in enumerate(examples):
        words = encoded.word_ids(index)
        first = [word is not None and word != before for word, before in zip(words, [None, *words])]
        row = {name: values[index] for name, values in encoded.items()}
        rows.append(
            {**row, "labels": [labels[tags[word]] if is_first else -100 for word, is_first in zip(words, first)]}
        )
    return rows


def _encode_questions(tokenizer, examples, max_length, labels, trains):
    questions, passages = [one[0] for one in examples], [one[1] for one in examples]
    if trains:
        spans = [(start, start + len(answers[0])) for _, _, answers, start in examples]
        return windows(tokenizer, questions, passages, spans, padding=False, max_length=max_length)
    encoded = tokenizer(
        questions,
        passages,
        truncation="only_second",
        max_length=max_length,
        stride=_STRIDE,
        return_overflowing_tokens=True,
        return_offsets_mapping=True,
    )
    names = ("input_ids", "attention_mask", "token_type_ids", "offset_mapping")
    return [
        {
            **{name: encoded[name][index] for name in names},
            "example": example,
            "passage": [sequence == 1 for sequence in encoded.sequence_ids(index)],
        }
        for index, example in enumerate(encoded["overflow_to_sample_mapping"])
    ]


def _accuracy(logits, rows, examples):
    import numpy as np

    right = total = 0
    for found, row in zip(logits, rows):
        wanted = np.asarray(row["labels"])
        right += int(((found[: wanted.size] if wanted.ndim else found).argmax(-1) == wanted)[wanted >= 0].sum())
        total += int((wanted >= 0).sum())
    return right / total


def _exact_match(logits, rows, examples):
    import numpy as np

    best = [(-np.inf, "")] * len(examples)
    for (starts, ends), row in zip(logits, rows):
        length = len(row["input_ids"])
        passage = np.where(row["passage"], 0.0, -np.inf)
        scores = (starts[:length] + passage)[:, None] + (ends[:length] + passage)
        is_span = np.triu(np.tril(np.ones((length, length), bool), _LONGEST_ANSWER - 1))
        start, end = divmod(int(np.where(is_span, scores, -np.inf).argmax()), length)
        text = examples[row["example"]][1][row["offset_mapping"][start][0] : row["offset_mapping"][end][1]]
        best[row["example"]] = max(best[row["example"]], (float(scores[start, end]), text))
    pairs = [(_normalized(text), map(_normalized, one[2])) for (_, text), one in zip(best, examples)]
    return sum(text in answers for text, answers in pairs) / len(examples)


def _normalized(text):
    """As ours compares answers; importing that would bring TensorFlow."""
    without = text.lower().translate(str.maketrans("", "", string.punctuation))
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", without).split())


_GLUE = ("train.tsv", "dev.tsv")
_CLASSIFIER = ("AutoModelForSequenceClassification",)
TASKS = {
    "mrpc": Task(_GLUE, *_CLASSIFIER, _read_pairs, _cut_lines, _encode_texts, _accuracy),
    "sst2": Task(_GLUE, *_CLASSIFIER, _read_sentences, _cut_lines, _encode_texts, _accuracy),
    "ner": Task(
        ("eng.train", "eng.testa"),
        "AutoModelForTokenClassification",
        _read_words,
        _cut_blocks,
        _encode_words,
        _accuracy,
    ),
    "squad": Task(
        ("train-v1.1.json", "dev-v1.1.json"),
        "AutoModelForQuestionAnswering",
        _read_questions,
        _cut_questions,
        _encode_questions,
        _exact_match,
    ),
}
_FOLDERS = {"mrpc": "MRPC", "sst2": "SST-2"}


def train_theirs(kind, settings, output):
    """Trains a contestant of transformers in its process, writes the model and returns the score."""
    start_torch(settings.threads)
    import torch
    import transformers

    torch.manual_seed(SEED)
    task = TASKS[settings.task]
    train, dev = (task.read(_found(settings.data_dir, name)) for name in task.files)
    labels: dict[Any, int] = {}
    if settings.task != "squad":
        found = [label for one in [*train, *dev] for label in (one[1] if settings.task == "ner" else [one[1]])]
        labels = {label: index for index, label in enumerate(sorted(set(found)))}
    tokenizer = transformers.AutoTokenizer.from_pretrained(settings.init)
    more = {"num_labels": len(labels)} if labels else {}
    model = getattr(transformers, task.model).from_pretrained(settings.init, **more)
    collator = transformers.DataCollatorWithPadding(tokenizer)
    if settings.task == "ner":
        collator = transformers.DataCollatorForTokenClassification(tokenizer)
    rows = task.encode(tokenizer, train, settings.max_length, labels, True)
    if kind == "trainer":
        limits = {"max_steps": settings.steps} if settings.steps else {}
        sampling = {"train_sampling_strategy": "group_by_length", "weight_decay": 0.01}
        batch_size, rate = settings.batch_size, settings.learning_rate
        with tempfile.TemporaryDirectory() as scratch:
            in_half = {"bf16": settings.precision == "bfloat16"}
            their_training(model, collator, batch_size, rate, scratch, **in_half, **sampling, **limits)(rows)
    else:
        stepped = torch.compile(model, dynamic=True) if kind == "compiled" else model
        _loop(stepped, collator, rows, settings)
    dev_rows = task.encode(tokenizer, dev, settings.max_length, labels, False)
    with autocast(torch, "cpu", settings.precision):
        logits = _logits(model, collator, dev_rows, settings.batch_size)
    score = task.score(logits, dev_rows, dev)
    model.save_pretrained(output)
    tokenizer.save_pretrained(output)
    return score


def _loop(model, collator, rows, settings):
    import torch

    optimizer = torch.optim.AdamW(model.parameters(), lr=settings.learning_rate, weight_decay=0.01, fused=True)
    steps = settings.steps or -(-len(rows) // settings.batch_size)
    decay = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: max(1.0 - step / steps, 0.0))
    model.train()
    done = 0
    while done < steps:
        for numbers in _grouped(rows, settings.batch_size)[: steps - done]:
            optimizer.zero_grad()
            with autocast(torch, "cpu", settings.precision):
                loss = model(**collator([rows[number] for number in numbers])).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            decay.step()
            done += 1


def _grouped(rows, batch_size):
    """Batches of row numbers, by length within stretches of `_MEGABATCH` batches, as transformers groups them."""
    import torch

    order = torch.randperm(len(rows)).tolist()
    size = _MEGABATCH * batch_size
    ordered = [
        number
        for begin in range(0, len(order), size)
        for number in sorted(order[begin : begin + size], key=lambda number: -len(rows[number]["input_ids"]))
    ]
    batches = [ordered[begin : begin + batch_size] for begin in range(0, len(ordered), batch_size)]
    return [batches[number] for number in torch.randperm(len(batches)).tolist()]


def _logits(model, collator, rows, batch_size):
    """The logits of each row; for a reader, of starts and of ends."""
    import torch

    order = sorted(range(len(rows)), key=lambda number: len(rows[number]["input_ids"]))
    found: list[Any] = [None] * len(rows)
    needed = ("input_ids", "attention_mask", "token_type_ids", "labels")
    model.eval()
    with torch.inference_mode():
        for begin in range(0, len(order), batch_size):
            numbers = order[begin : begin + batch_size]
            batch = collator([{name: rows[n][name] for name in needed if name in rows[n]} for n in numbers])
            outputs = model(**batch)
            if "logits" in outputs:
                logits = outputs.logits.float().numpy()
            else:
                logits = list(zip(outputs.start_logits.float().numpy(), outputs.end_logits.float().numpy()))
            for number, values in zip(numbers, logits):
                found[number] = values
    return found


def run_command(name, settings, scratch):
    """`{"cpu", "wall", "score"}` of a command, which runs in a process of its own."""
    output = os.path.join(scratch, name)
    shutil.rmtree(output, ignore_errors=True)
    threads = str(settings.threads)
    names = ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS")
    environment = {**os.environ, **dict.fromkeys(names, threads), "TF_CPP_MIN_LOG_LEVEL": "3"}
    environment["TOKENIZERS_PARALLELISM"] = "false"
    arguments = [os.path.abspath(__file__), _FLAG, name, json.dumps(settings), output]
    if name == OURS:
        arguments = [os.path.join(ROOT, "run.py"), *_our_arguments(settings, output)]
    log = os.path.join(scratch, f"{name}.log")
    with open(log, "w", encoding="utf-8") as messages:
        started_at = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", *arguments], stdout=messages, stderr=messages, env=environment
        )
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - started_at
    if status:
        with open(log, encoding="utf-8") as messages:
            sys.exit(f"{name} failed:\n{messages.read()[-3000:]}")
    return {"cpu": used.ru_utime + used.ru_stime, "wall": wall, "score": _score(name, output)}


def _our_arguments(settings, output):
    """The arguments of `run.py` for the same training."""
    length = ["--steps", str(settings.steps)] if settings.steps else ["--epochs", "1"]
    shared = {
        "--task": settings.task,
        "--init": settings.init,
        "--data-dir": settings.data_dir,
        "--batch-size": settings.batch_size,
        "--max-length": settings.max_length,
        "--learning-rate": settings.learning_rate,
        "--set": f"training.precision={settings.precision}",
        "--output": output,
    }
    return ["finetune", *length, *(str(part) for pair in shared.items() for part in pair)]


def _score(name, output):
    if name != OURS:
        with open(os.path.join(output, "score.json"), encoding="utf-8") as file:
            return json.load(file)
    with open(os.path.join(output, "results.json"), encoding="utf-8") as file:
        results = json.load(file)
    figures = next(iter(results["splits"].values()))
    return figures["accuracy"] if "accuracy" in figures else figures["exact_match"] / 100


def _found(folder, name):
    """The path of a file of the data, which may be compressed."""
    for ending in ("", ".gz"):
        if os.path.exists(path := os.path.join(folder, name + ending)):
            return path
    raise click.ClickException(f"--data-dir: needs {name}. Received: {folder}, which has none.")


def cut_data(task, data_dir, scratch, counts):
    """A folder with the first examples of each file, as many as `counts` says; 0 for all."""
    inner = os.path.join(data_dir, _FOLDERS.get(task, ""))
    source = inner if os.path.isdir(inner) else data_dir
    target = os.path.join(scratch, "data")
    os.makedirs(target)
    for name, count in zip(TASKS[task].files, counts):
        path = _found(source, name)
        copy = os.path.join(target, os.path.basename(path))
        TASKS[task].cut(path, count, copy) if count else shutil.copy(path, copy)
    return target


def random_mini(vocab, folder):
    """A folder with a BERT-mini with random weights, for transformers and for us."""
    import transformers

    tokenizer = transformers.BertTokenizerFast(vocab, do_lower_case=True)
    sizes = {"hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 1024}
    transformers.BertModel(transformers.BertConfig(vocab_size=len(tokenizer), **sizes)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    shutil.copy(vocab, os.path.join(folder, "vocab.txt"))
    return folder


def report(rounds):
    """Prints medians and quartiles, and how many times as fast as each other contestant ours is."""
    click.echo(f"{'':10}{'CPU seconds':>24}{'times ours':>22}{'seconds':>24}{'times ours':>22}{'score':>24}")
    for name in rounds[0]:
        line = f"{name:10}"
        for clock in ("cpu", "wall"):
            line += f"{spread([turns[name][clock] for turns in rounds], 1):>24}"
            ratios = [turns[name][clock] / turns[OURS][clock] for turns in rounds] if OURS in rounds[0] else []
            line += f"{spread(ratios, 2) if ratios and name != OURS else '':>22}"
        click.echo(line + f"{spread([100 * turns[name]['score'] for turns in rounds], 1):>24}")
    others = [name for name in rounds[0] if name != OURS]
    if OURS in rounds[0] and others:
        best = min(others, key=lambda name: statistics.median(turns[name]["cpu"] for turns in rounds))
        ratios = [turns[best]["cpu"] / turns[OURS]["cpu"] for turns in rounds]
        click.echo(f"Ours is {spread(ratios, 2)} times as fast as the quickest of the others, {best}, in CPU seconds.")


@click.command()
@click.option("--task", default="mrpc", show_default=True, type=click.Choice(list(TASKS)), help="What is learned.")
@click.option("--init", metavar="MODEL", help="A Hugging Face folder. Default: a BERT-mini of random weights.")
@click.option("--vocab", metavar="FILE", help="vocab.txt of the BERT-mini.")
@click.option("--data-dir", required=True, metavar="DIR", help="The task's folder, or GLUE's.")
@click.option("--contestants", default=f"{OURS},{THEIRS[0]}", show_default=True, help="Who takes part, in this order.")
@click.option("--steps", default=0, help="Training steps; by default one epoch.")
@click.option("--examples", default=0, help="Training examples; by default all.")
@click.option("--dev-examples", default=0, help="Dev examples; by default all.")
@click.option("--batch-size", default=32, show_default=True)
@click.option("--max-length", default=None, type=int, help="Of a row. Default: 128, for squad 384.")
@click.option("--learning-rate", default=1e-4, show_default=True)
@click.option("--precision", default="float32", show_default=True, type=click.Choice(["float32", "bfloat16"]))
@click.option("--turns", default=3, show_default=True, help="Rounds.")
@click.option("--threads", default=1, show_default=True, help="Threads of each.")
def main(task, init, vocab, data_dir, contestants, steps, examples, dev_examples, turns, threads, **training):
    """Run whole commands by turns, and compare."""
    names = contestants.split(",")
    for name in names:
        if name not in (OURS, *THEIRS):
            raise click.ClickException(f"--contestants: needs some of {OURS}, {', '.join(THEIRS)}. Received: {name}.")
    if not (init or vocab):
        raise click.ClickException("--init: needs a model, or --vocab for one of random weights. Received: neither.")
    training["max_length"] = training["max_length"] or (384 if task == "squad" else 128)
    rounds = []
    with tempfile.TemporaryDirectory() as scratch:
        init = os.path.abspath(init) if init else random_mini(vocab, os.path.join(scratch, "mini"))
        data = cut_data(task, data_dir, scratch, (examples, dev_examples))
        settings = Settings(task=task, init=init, data_dir=data, steps=steps, threads=threads, **training)
        for number in range(1, turns + 1):
            rounds.append({})
            for name in names:
                rounds[-1][name] = turn = run_command(name, settings, scratch)
                shown = (
                    f"{turn['cpu']:.1f} CPU seconds, {turn['wall']:.1f} of the wall, score {100 * turn['score']:.1f}"
                )
                click.echo(f"round {number}: {name} {shown}")
    report(rounds)


if __name__ == "__main__":
    if _FLAG in sys.argv:
        kind, given, folder = sys.argv[sys.argv.index(_FLAG) + 1 :]
        found = train_theirs(kind, Settings(*json.loads(given)), folder)
        with open(os.path.join(folder, "score.json"), "w", encoding="utf-8") as file:
            json.dump(found, file)
    else:
        main()
