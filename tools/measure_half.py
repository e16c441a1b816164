"""What storing an export's weights in half precision changes: the dev scores of a fine-tuned model, by dtype.

    python tools/measure_half.py --model runs/sst2 [--data-dir glue]

The matrices are rounded as `run.py export` stores them; the computation is in float32, as in the export.
"""

import argparse
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from keras_bert.core.runtime import import_tensorflow  # noqa: E402

import_tensorflow()

import tensorflow as tf  # noqa: E402

from keras_bert.export.network import DTYPES  # noqa: E402
from keras_bert.tasks.finetuned_model import FinetunedModel  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", required=True, help="a run folder or a model folder")
    parser.add_argument("--data-dir", help="in place of the folder that it was trained on")
    arguments = parser.parse_args()
    data = {"folder": arguments.data_dir} if arguments.data_dir else {}
    finetuned = FinetunedModel(arguments.model, data)
    matrices = [variable for variable in finetuned.model.variables if len(variable.shape) > 1]
    split, weights, exact = finetuned.problem.dev_splits[0], [matrix.numpy() for matrix in matrices], {}
    for dtype in DTYPES:
        for matrix, values in zip(matrices, weights, strict=True):
            matrix.assign(tf.cast(tf.cast(values, dtype), tf.float32))
        answers, _ = finetuned.evaluate.answers(split)
        found = finetuned.problem.evaluate(split, answers)
        exact = exact or found
        changes = ", ".join(f"{name} {value:.4f} ({value - exact[name]:+.4f})" for name, value in found.items())
        print(f"{dtype}: {changes}", flush=True)


if __name__ == "__main__":
    main()
