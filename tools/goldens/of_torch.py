"""PyTorch's results: the fine-tuning losses. See `__main__.py`.

python tools/goldens/of_torch.py make FOLDER
"""

import os
import sys
from collections.abc import Callable
from typing import Any

import arrays
import numpy as np
import torch

EXAMPLE_WEIGHTS = np.array([1, 1, 0, 1, 1], "float32")  # The third is a padding example.
KEPT = EXAMPLE_WEIGHTS > 0
# The weights of `small`, summed over the batch, are less than one.
CLASS_WEIGHTS = {"three": [0.2, 3.0, 1.0], "small": [0.01, 0.02, 0.0]}


def make(folder: str) -> None:
    """Writes losses.npz: `{task/name: array}` of inputs and losses."""
    losses = {**classification(), **spans(), **tagging()}
    arrays.save(os.path.join(folder, "losses.npz"), ["torch"], losses)


def random_logits(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Draws float32 logits. The first row is large enough to overflow a naive exp."""
    logits = rng.normal(0, 3, shape).astype("float32")
    logits[0] *= 100
    return logits


def classification() -> dict[str, Any]:
    """The losses for single-label, weighted single-label and multi-label classification, and regression."""
    rng, found = np.random.default_rng(0), {"classification/example_weights": EXAMPLE_WEIGHTS}

    def add(
        name: str, loss: Callable[..., torch.Tensor], logits: np.ndarray, labels: np.ndarray, **others: Any
    ) -> None:
        kept = [torch.tensor(value[KEPT]) for value in (logits, labels)]
        values = {"logits": logits, "labels": labels, "loss": loss(*kept).numpy(), **others}
        found.update({f"classification/{name}/{key}": value for key, value in values.items()})

    logits, labels = random_logits(rng, 5, 3), rng.integers(0, 3, 5)
    add("single", torch.nn.CrossEntropyLoss(), logits, labels)
    for name, weights in CLASS_WEIGHTS.items():
        add(f"single_{name}", torch.nn.CrossEntropyLoss(torch.tensor(weights)), logits, labels, class_weights=weights)
    for count in (1, 3):
        labels = rng.integers(0, 2, (5, count)).astype("float32")
        add(f"multi_{count}", torch.nn.BCEWithLogitsLoss(), random_logits(rng, 5, count), labels)
    labels = rng.normal(0, 2, (5, 1)).astype("float32")
    add("regression", torch.nn.MSELoss(), random_logits(rng, 5, 1), labels)
    return found


def spans() -> dict[str, Any]:
    """Question answering: the mean of the cross-entropies of start and end. Some answers are at [CLS]."""
    rng, found, losses = np.random.default_rng(1), {"spans/example_weights": EXAMPLE_WEIGHTS}, []
    positions = {"start": np.array([3, 0, 8, 1, 5]), "end": np.array([3, 0, 8, 3, 7])}
    for end, labels in positions.items():
        logits = random_logits(rng, 5, 9)
        losses.append(torch.nn.functional.cross_entropy(torch.tensor(logits[KEPT]), torch.tensor(labels[KEPT])))
        found.update({f"spans/{end}_logits": logits, f"spans/{end}_positions": labels})
    return {**found, "spans/loss": torch.stack(losses).mean().numpy()}


def tagging() -> dict[str, Any]:
    """Cross-entropy at the first pieces of words; the label is -1 at other pieces, [CLS], [SEP] and padding."""
    logits = np.random.default_rng(2).normal(0, 3, (3, 6, 3)).astype("float32")
    labels = np.array([[-1, 2, -1, 0, 1, -1], [-1, 1, -1, -1, -1, -1], [-1, 0, 0, 0, 0, -1]])
    weights = np.array([1, 1, 0], "float32")
    counted = torch.tensor(np.where(weights[:, None] > 0, labels, -1)).reshape(-1)
    loss = torch.nn.CrossEntropyLoss(ignore_index=-1)(torch.tensor(logits).reshape(-1, 3), counted)
    values = {"logits": logits, "labels": labels, "example_weights": weights, "loss": loss.numpy()}
    return {f"tagging/{key}": value for key, value in values.items()}


if __name__ == "__main__":
    {"make": make}[sys.argv[1]](sys.argv[2])
