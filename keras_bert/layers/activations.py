"""The activation functions that BERT configs name."""

from collections.abc import Callable

from keras import ops

from keras_bert.layers.tensors import Tensor


def _tanh_gelu(x: Tensor) -> Tensor:
    return ops.gelu(x, approximate=True)


def _gelu(x: Tensor) -> Tensor:
    return ops.gelu(x, approximate=False)


# transformers has several names for some: they differ in how it computes them.
_FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    **dict.fromkeys(("gelu", "gelu_python"), _gelu),
    "gelu_10": lambda x: ops.clip(_gelu(x), -10.0, 10.0),
    **dict.fromkeys(("gelu_new", "gelu_pytorch_tanh", "gelu_python_tanh", "gelu_fast", "gelu_accurate"), _tanh_gelu),
    "quick_gelu": lambda x: x * ops.sigmoid(1.702 * x),
    "relu": ops.relu,
    "relu2": lambda x: ops.square(ops.relu(x)),
    "relu6": ops.relu6,
    "leaky_relu": lambda x: ops.leaky_relu(x, negative_slope=0.01),  # PyTorch's slope; that of Keras is 0.2.
    **dict.fromkeys(("silu", "swish"), ops.silu),
    "mish": lambda x: x * ops.tanh(ops.softplus(x)),
    "hardswish": ops.hard_silu,
    "sigmoid": ops.sigmoid,
    "tanh": ops.tanh,
    "linear": lambda x: x,
}


def activation(name: str) -> Callable[[Tensor], Tensor]:
    """The function for a config's `hidden_act`. BERT's own is `gelu` in the exact form, with erf."""
    if name not in _FUNCTIONS:
        raise ValueError(f"hidden_act: needs one of {', '.join(_FUNCTIONS)}. Received: {name!r}.")
    return _FUNCTIONS[name]
