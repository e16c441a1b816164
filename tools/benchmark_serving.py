"""Strings in, probabilities out: the export beside transformers' pipeline and onnxruntime, on CPU.

    pip install -r requirements/bench.txt
    python tools/benchmark_serving.py --vocab vocab.txt [--models minilm,base] [--turns 7] [--seconds 2] [--threads 2]

A classifier of each size with random weights is written once and opened by every contestant in a process of its own.
They take turns, one measuring while the others wait; before that their probabilities are compared. They answer one text
of 16, 64 or 128 tokens at a time, and 32 texts of mixed lengths together (lengths log-normal, as in SST-2: median 13
tokens, 66 at most). It prints medians of the turns' medians, their quartiles, and ratios to the pipeline.
"""

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from contestant import Contestant, run, spread  # noqa: E402
from serving_contestants import CONTESTANTS  # noqa: E402

SIZES = {
    "minilm": {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 1536},
    "base": {},
    "tiny": {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64},
}
SHAPES = {"1 x 16": (1, 16), "1 x 64": (1, 64), "1 x 128": (1, 128), "32 mixed": (32, None)}
BATCHES = 8  # Different ones of each shape, so that nothing is answered from memory.
_HALF = dict.fromkeys(("ours_bfloat16", "ours_computed_in_bfloat16", "pipeline_bfloat16"), 0.02)
TOLERANCE = {**_HALF, "litert_float16": 0.01, "litert_int8": 0.05, "onnxruntime_int8": 0.05}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--vocab", required=True, help="a vocab.txt of whole English words, as bert-base-uncased's")
    parser.add_argument("--models", default="minilm,base", help=", ".join(SIZES))
    parser.add_argument("--contestants", default="ours,pipeline,onnxruntime", help=", ".join(CONTESTANTS))
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=2.0, help="how long a turn lasts, for each shape")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    contestants = [name for name in arguments.contestants.split(",") if is_installed(name)]
    for size in arguments.models.split(","):
        with tempfile.TemporaryDirectory() as scratch:
            folder = write_classifier(os.path.join(scratch, size), SIZES[size], arguments.vocab)
            compare(size, contestants, folder, make_texts(arguments.vocab), arguments.threads, arguments)


def is_installed(name):
    missing = [package for package in CONTESTANTS[name][1] if importlib.util.find_spec(package) is None]
    if missing:
        print(f"{name} is left out: {', '.join(missing)} not installed")
    return not missing


def write_classifier(folder, size, vocab):
    program = (
        "import json, sys\n"
        "from keras_bert.checkpoints.writing import write_model_folder\n"
        "from keras_bert.models.bert.config import BertConfig\n"
        "from keras_bert.tasks.classification.head import ClassificationConfig\n"
        "from keras_bert.tasks.classification.network import BertForSequenceClassification\n"
        "from keras_bert.text.vocabulary import Vocabulary\n"
        "folder, size, vocab = sys.argv[1:]\n"
        "vocabulary = Vocabulary.from_file(vocab)\n"
        "config = BertConfig(vocab_size=len(vocabulary), **json.loads(size))\n"
        "labels = ClassificationConfig(('negative', 'positive'))\n"
        "model = BertForSequenceClassification(config, 2)\n"
        "write_model_folder(folder, model, vocabulary, lower_case=True, head=labels)\n"
    )
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    environment = {**os.environ, "PYTHONPATH": root, "TF_CPP_MIN_LOG_LEVEL": "3"}
    subprocess.run([sys.executable, "-c", program, folder, json.dumps(size), vocab], check=True, env=environment)
    return folder


def make_texts(vocab, shapes=SHAPES):
    """`{shape: [texts, …]}` of words that are one token each."""
    rng = np.random.default_rng(0)
    with open(vocab, encoding="utf-8") as file:
        words = [word for word in file.read().split("\n") if word.isascii() and word.isalpha() and word.islower()]

    def text(tokens):
        return " ".join(rng.choice(words, max(1, tokens - 2)))

    made = {}
    for name, (batch, tokens) in shapes.items():
        lengths = np.clip(rng.lognormal(np.log(13), 0.6, (BATCHES, batch)), 3, 66).astype(int)
        lengths = lengths if tokens is None else np.full((BATCHES, batch), tokens)
        made[name] = [[text(length) for length in row] for row in lengths]
    return made


def compare(size, contestants, folder, texts, threads, arguments):
    """Prints the milliseconds of every contestant for `{shape: [texts, …]}`, and their ratios to the first's."""
    workers = {name: Contestant(name, [folder, threads], threads) for name in contestants}
    shapes, last = list(texts), list(texts.values())[-1]
    try:
        first = {name: worker.ask([last[:1], 0]) for name, worker in workers.items()}
        answers = {name: np.array(answer["answer"]) for name, answer in first.items()}
        for name, answer in answers.items():
            difference = np.abs(answer - answers[contestants[0]]).max()
            if difference > TOLERANCE.get(name, 1e-4):
                sys.exit(f"{name} answers other probabilities: {difference:.1e}")
        turns = {shape: {name: [] for name in contestants} for shape in shapes}
        for turn in range(arguments.turns):
            for shape, batches in texts.items():
                for name in contestants if turn % 2 == 0 else contestants[::-1]:
                    times = workers[name].ask([batches, arguments.seconds])["times"]
                    turns[shape][name].append(1000 * statistics.median(times))
    finally:
        for worker in workers.values():
            worker.close()
    print(f"{size}: milliseconds, medians of {arguments.turns} turns [quartiles], threads: {threads}")
    for name in contestants:
        print(f"{name:<16} {first[name]['megabytes']:.1f} MB of files")
    base = "pipeline" if "pipeline" in contestants else contestants[0]
    for shape in shapes:
        for name in contestants:
            ratios = [other / own for own, other in zip(turns[shape][name], turns[shape][base], strict=True)]
            print(f"{shape:<9} {name:<16} {spread(turns[shape][name], 2)}   {spread(ratios, 2)} times {base}'s speed")


def serve(name, settings, scratch):
    """A contestant: a turn answers batches for some seconds and returns the first answer and the seconds of each."""
    predict = CONTESTANTS[name][0](*settings, scratch)
    # Of what it wrote, else of the folder that it opened.
    megabytes = (bytes_below(scratch) or bytes_below(settings[0])) / 1e6

    def turn(request):
        batches, seconds = request
        answer, times = predict(batches[0]), []  # The first call is not measured.
        end = time.perf_counter() + seconds
        while not times or time.perf_counter() < end:
            for texts in batches:
                start = time.perf_counter()
                predict(texts)
                times.append(time.perf_counter() - start)
        return {"answer": np.asarray(answer).tolist(), "times": times, "megabytes": megabytes}

    return turn


def bytes_below(folder):
    return sum(os.path.getsize(os.path.join(path, file)) for path, _, names in os.walk(folder) for file in names)


if __name__ == "__main__":
    run(main, serve)
