"""One signature of an export, before it is traced."""

from typing import Callable, NamedTuple

import tensorflow as tf


class Signature(NamedTuple):
    """A function from tensors to `{output: tensor}`, each with the batch first, and what it takes.

    Attributes:
        function: called with a tensor for each of `inputs`, in their order.
        inputs: `tf.TensorSpec`s with names.
    """

    function: Callable
    inputs: tuple

    def traced(self):
        """The concrete function, whose inputs and outputs bear their names."""
        return tf.function(self.function, autograph=False).get_concrete_function(*self.inputs)
