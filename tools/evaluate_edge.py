"""Scores of a fine-tuned model's exports for LiteRT, beside those of the model itself.

    python tools/evaluate_edge.py --model runs/sst2 [--data-dir glue] [--split dev] [--quantize int8] [--threads 2]

LiteRT's interpreter answers every row of the split by itself, as on a device; the task scores the answers.
"""

import argparse
import os
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import numpy as np

import keras_bert
from keras_bert.core.errors import UserError
from keras_bert.data.batches.length_batches import every_row_once
from keras_bert.export.litert import QUANTIZATIONS, write_litert
from keras_bert.tasks.finetuned_model import FinetunedModel, splits_like
from tools.litert_model import LiteRTModel


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", required=True, help="a run folder or a model folder, fine-tuned here")
    parser.add_argument("--data-dir", help="the task's files, as for finetune")
    parser.add_argument("--split", default="dev")
    parser.add_argument("--quantize", default=",".join(QUANTIZATIONS), help=", ".join(QUANTIZATIONS))
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    if unknown := set(arguments.quantize.split(",")) - set(QUANTIZATIONS):
        parser.error(f"--quantize: needs some of {', '.join(QUANTIZATIONS)}. Received: {', '.join(sorted(unknown))}.")
    try:
        compare(arguments)
    except UserError as error:
        sys.exit(f"Error: {error}")


def compare(arguments):
    finetuned = FinetunedModel(arguments.model, {"folder": arguments.data_dir} if arguments.data_dir else {})
    problem, pad_id = finetuned.problem, finetuned.tokenizer.vocabulary.pad_id
    bert = keras_bert.load(arguments.model)
    for split in splits_like(problem, arguments.split):
        show(split, "the model", finetuned.evaluate(split), problem)
        for quantization in arguments.quantize.split(","):
            with tempfile.TemporaryDirectory() as folder:
                size = write_litert(os.path.join(folder, "export"), bert, quantization)
                model = LiteRTModel(os.path.join(folder, "export"), arguments.threads)
                outputs = edge_outputs(model, problem.rows(split), problem.by_token, pad_id)
            scores = problem.evaluate(split, problem.answers(split, outputs))
            show(split, f"litert {quantization}, {size / 1e6:.1f} MB", scores, problem)


def show(split, name, scores, problem):
    scale = 1 if problem.per_cent else 100
    figures = (f"{metric} {scale * scores[metric]:.2f}" for metric in problem.metric_names if metric in scores)
    print(f"{split:<6} {name:<26} {'  '.join(figures)}", flush=True)


def edge_outputs(model, rows, by_token, pad_id):
    """The outputs of an export as `Problem.answers` takes them: in order, cut to each row's length for `by_token`."""
    found, numbers = {}, []
    for batch in every_row_once(rows, 1, pad_id).as_numpy_iterator():
        numbers.append(batch["row_numbers"][0])
        for name, values in model(batch).items():
            values = values[0, : batch["input_mask"].sum()] if name in by_token else values[0]
            if name == "score":  # A regression's, which the task takes as its only logit.
                name, values = "logits", np.atleast_1d(values)
            found.setdefault(name, []).append(values)
    order = np.argsort(numbers)
    return {name: [values[place] for place in order] for name, values in found.items()}


if __name__ == "__main__":
    main()
