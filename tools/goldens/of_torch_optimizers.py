"""What PyTorch's optimizers do to a matrix and a vector in float64. See `__main__.py`.

python tools/goldens/of_torch_optimizers.py make FOLDER
"""

import os
import sys

import arrays
import numpy as np
import torch

STEPS = 20
RATE, DECAY = 0.01, 0.1


def make(folder):
    rng = np.random.default_rng(0)
    start = {"kernel": rng.normal(size=(5, 3)).astype("float32"), "bias": rng.normal(size=6).astype("float32")}
    # Sizes from 1 to 1e-4, so that clipping has steps to act on and epsilon shows.
    sizes = 10.0 ** -rng.integers(0, 5, STEPS)
    gradients = {
        name: np.stack([rng.normal(size=value.shape) * size for size in sizes]).astype("float32")
        for name, value in start.items()
    }
    found = {f"start/{name}": value for name, value in start.items()}
    found |= {f"gradients/{name}": value for name, value in gradients.items()}
    found |= {"rate": RATE, "decay": DECAY}
    makers = {
        "adamw": lambda groups: torch.optim.AdamW(groups, lr=RATE, eps=1e-6),
        # Its root mean square of weights times `min(rate, 1 / sqrt(step))` is the paper's relative step.
        "adafactor": lambda groups: torch.optim.Adafactor(groups, lr=RATE, eps=(1e-15, 1e-3)),
    }
    for name, make_optimizer in makers.items():
        found |= {f"{name}/{key}": value for key, value in trained(make_optimizer, start, gradients).items()}
    arrays.save(os.path.join(folder, "optimizers.npz"), ["torch"], found)


def trained(make_optimizer, start, gradients):
    """{name: value after all steps, float64}; the bias is not decayed."""
    parameters = {name: torch.nn.Parameter(torch.tensor(value, dtype=torch.float64)) for name, value in start.items()}
    optimizer = make_optimizer(
        [
            {"params": [parameter], "weight_decay": DECAY if name == "kernel" else 0.0}
            for name, parameter in parameters.items()
        ]
    )
    for step in range(STEPS):
        for name, parameter in parameters.items():
            parameter.grad = torch.tensor(gradients[name][step], dtype=torch.float64)
        optimizer.step()
    return {name: parameter.detach().numpy() for name, parameter in parameters.items()}


if __name__ == "__main__":
    {"make": make}[sys.argv[1]](sys.argv[2])
