"""What storing an export's weights in half precision changes: the dev scores of a fine-tuned model, by dtype.

    python tools/measure_half.py --model runs/sst2 [--data-dir glue]

All examples go through the function that `run.py export` writes.
"""

import argparse
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from keras_bert.core.runtime import import_tensorflow  # noqa: E402

import_tensorflow()

import keras_bert  # noqa: E402
from keras_bert.export.network import DTYPES  # noqa: E402
from keras_bert.export.serving_function import serving_function  # noqa: E402
from keras_bert.tasks.evaluation import FinetunedModel  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", required=True, help="a run folder or a model folder")
    parser.add_argument("--data-dir", help="in place of the folder that it was trained on")
    arguments = parser.parse_args()
    data = {"folder": arguments.data_dir} if arguments.data_dir else {}
    problem = FinetunedModel(arguments.model, data).problem
    split, exact = problem.dev_splits[0], {}
    for dtype in DTYPES:
        # Each opens the model anew: the function holds its weights in its dtype.
        function = serving_function(keras_bert.load(arguments.model), dtype)
        found = problem.evaluate(split, problem.served_answers(split, function))
        exact = exact or found
        changes = ", ".join(f"{name} {value:.4f} ({value - exact[name]:+.4f})" for name, value in found.items())
        print(f"{dtype}: {changes}", flush=True)


if __name__ == "__main__":
    main()
