"""What storing an export's weights in half precision changes: the dev scores of a fine-tuned classifier, by dtype.

    python tools/measure_half.py --model runs/sst2 --task sst2 --data-dir glue

All texts go through the function that `run.py export` writes.
"""

import argparse
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import numpy as np  # noqa: E402

import keras_bert  # noqa: E402
from keras_bert.config.classification import REGRESSION  # noqa: E402
from keras_bert.export.network import DTYPES  # noqa: E402
from keras_bert.export.serving_function import serving_function  # noqa: E402
from keras_bert.tasks.classification.examples import load_examples  # noqa: E402
from keras_bert.tasks.classification.glue import GLUE  # noqa: E402
from keras_bert.tasks.classification.scores import predictions, scores  # noqa: E402

BATCH = 32


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--task", required=True, choices=sorted(name for name in GLUE if GLUE[name].dev_splits))
    parser.add_argument("--data-dir", required=True)
    arguments = parser.parse_args()
    task = GLUE[arguments.task]
    examples = load_examples(task, task.dev_splits[0], arguments.data_dir, needs_labels=True)
    bert = keras_bert.load(arguments.model)
    output = "score" if bert.classification.problem_type == REGRESSION else "logits"
    exact = None
    for dtype in DTYPES:
        answers = answer_all(serving_function(bert, dtype), examples.texts, output)
        found = scores(bert.classification, task.metrics, examples.labels, predictions(bert.classification, answers))
        exact = (found, answers) if exact is None else exact
        changes = ", ".join(f"{name} {value:.4f} ({value - exact[0][name]:+.4f})" for name, value in found.items())
        print(f"{dtype}: {changes}; {output} change by {np.abs(answers - exact[1]).max():.1e} at most", flush=True)


def answer_all(function, columns, output):
    """[examples, labels] of texts in columns; batched by length, in the order given."""
    order = np.argsort([sum(map(len, row)) for row in zip(*columns, strict=True)], kind="stable")
    answers = None
    for start in range(0, len(order), BATCH):
        batch = order[start : start + BATCH]
        found = function(*([column[index] for index in batch] for column in columns))[output]
        found = found.reshape(len(batch), -1)
        answers = np.empty((len(order), found.shape[1]), "float32") if answers is None else answers
        answers[batch] = found
    return answers


if __name__ == "__main__":
    main()
