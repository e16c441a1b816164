"""The activation functions that BERT configs name."""

from collections.abc import Callable

from keras import ops


def activation(name: str) -> Callable:
    """The function for a config's `hidden_act`. BERT's own is `gelu` in the exact form, with erf."""
    functions = {
        "gelu": lambda x: ops.gelu(x, approximate=False),
        "gelu_new": lambda x: ops.gelu(x, approximate=True),
        "relu": ops.relu,
        "tanh": ops.tanh,
    }
    if name not in functions:
        raise ValueError(f"hidden_act: needs one of {', '.join(functions)}. Received: {name!r}.")
    return functions[name]
