"""One signature of an export, before it is traced."""

from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf


class Signature(NamedTuple):
    """A function from tensors to `{output: tensor}`, each with a leading batch dimension, and its inputs.

    Attributes:
        function: called with a tensor for each of `inputs`, in order.
        inputs: named specs.
    """

    function: Callable[..., dict[str, tf.Tensor]]
    inputs: tuple[tf.TensorSpec, ...]

    def traced(self) -> tf.types.experimental.ConcreteFunction:
        """The concrete function, with the names of the inputs and outputs."""
        return tf.function(self.function, autograph=False).get_concrete_function(*self.inputs)
