"""One text at a time, on one and two threads: exports for LiteRT beside the SavedModel, PyTorch and onnxruntime.

    pip install -r requirements/bench.txt
    python tools/benchmark_edge.py --vocab vocab.txt [--models minilm,base] [--turns 7] [--seconds 2] [--threads 1,2]

Strings in, probabilities out, in turns, as in benchmark_serving.py: a classifier of each size with random weights, on
texts of 16, 64 and 128 tokens. The exports for LiteRT tokenize in plain Python. It prints sizes and milliseconds, and
ratios to the pipeline.
"""

import argparse
import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from benchmark_serving import SHAPES, SIZES, compare, is_installed, make_texts, serve, write_classifier  # noqa: E402
from contestant import run  # noqa: E402

CONTESTANTS = "ours,ours_jit,litert,litert_float16,litert_int8,pipeline,onnxruntime,onnxruntime_int8"


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--vocab", required=True, help="a vocab.txt of whole English words, as bert-base-uncased's")
    parser.add_argument("--models", default="minilm", help=", ".join(SIZES))
    parser.add_argument("--contestants", default=CONTESTANTS)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=2.0, help="how long a turn lasts, for each shape")
    parser.add_argument("--threads", default="1,2", help="each number in a comparison of its own")
    arguments = parser.parse_args()
    contestants = [name for name in arguments.contestants.split(",") if is_installed(name)]
    texts = make_texts(arguments.vocab, {name: shape for name, shape in SHAPES.items() if shape[0] == 1})
    for size in arguments.models.split(","):
        with tempfile.TemporaryDirectory() as scratch:
            folder = write_classifier(os.path.join(scratch, size), SIZES[size], arguments.vocab)
            for threads in map(int, arguments.threads.split(",")):
                compare(size, contestants, folder, texts, threads, arguments)


if __name__ == "__main__":
    run(main, serve)
