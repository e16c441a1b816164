"""The network as a graph for serving: the precision of its stored weights, and compilation by XLA."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

import keras
import tensorflow as tf

from keras_bert.checkpoints.stored_tensors import require_finite
from keras_bert.export.unpadded import encode
from keras_bert.inputs.padding import doubling_lengths, padded_length

_T = TypeVar("_T")

FLOAT32, BFLOAT16, FLOAT16 = DTYPES = ("float32", "bfloat16", "float16")

_NOTHING: list[float] = []


class Network:
    """Runs parts of a model on weights that a SavedModel can hold.

    Args:
        model: a model of `keras_bert.models`.
        dtype: the type in which matrices are stored, one of `DTYPES`; the computation is in float32.
        jit: whether XLA compiles the encoder for single rows, once for each of a few lengths. Several rows are not
            compiled: XLA cannot skip their padding, which costs more than it gains.

    Raises:
        UserError: a weight is NaN or infinite, after training in this process; a file's are refused when it is loaded.
    """

    def __init__(self, model: keras.Model, dtype: str = FLOAT32, jit: bool = False) -> None:
        for variable in model.variables:
            require_finite(variable.numpy(), variable.path)
        self._model, self._jit = model, jit
        self._compiled_lengths = doubling_lengths(model.config.max_position_embeddings)
        self._widened: list[tuple[keras.Variable, WidenedWeight]] = []
        if dtype != FLOAT32:
            matrices = (variable for variable in model.variables if len(variable.shape) > 1)
            self._widened = [(variable, WidenedWeight(variable, dtype)) for variable in matrices]

    def encode(self, inputs: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """The result of `unpadded.encode` for the encoder's inputs."""
        if not self._jit:
            return self._encode(inputs)
        rows = tf.shape(inputs["input_mask"])[0]
        return tf.cond(tf.equal(rows, 1), lambda: self._encode_compiled(inputs), lambda: self._encode(inputs))

    def encoded(self, inputs: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """What a task's head reads: the result of `encode` or, with a BiLSTM, what it makes of that."""
        outputs = self.encode(inputs)
        return self.run(lambda model: model.on_top(outputs, inputs["input_mask"]))

    def _encode(
        self,
        inputs: Mapping[str, tf.Tensor],
        keeps_padding: bool = False,
        look_up: Callable[[tf.Variable, tf.Tensor], tf.Tensor] = tf.gather,
    ) -> dict[str, tf.Tensor]:
        return self.run(lambda model: encode(getattr(model, "encoder", model), inputs, keeps_padding, look_up))

    def _encode_compiled(self, inputs: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        seq = tf.shape(inputs["input_mask"])[1]
        beyond = padded_length(self._compiled_lengths, seq) - seq
        padded = {name: tf.pad(value, [[0, 0], [0, beyond]]) for name, value in inputs.items()}
        compiled = tf.function(
            lambda inputs: self._encode(inputs, keeps_padding=True), autograph=False, jit_compile=True
        )
        outputs = compiled(padded)
        return {**outputs, "sequence_output": outputs["sequence_output"][:, :seq]}

    def run(self, function: Callable[[keras.Model], _T]) -> _T:
        """`function(model)`, such as a head on the result of `encode`, with the stored weights."""
        with keras.StatelessScope([(variable, weight.read()) for variable, weight in self._widened]):
            return function(self._model)

    @contextlib.contextmanager
    def tracked(self, functions: Iterable[tf.types.experimental.ConcreteFunction]) -> Iterator[tf.Module]:
        """An object with the variables that the concrete functions read, to be saved with them in this context."""
        holder = tf.Module()
        variables = {id(variable): variable for function in functions for variable in function.graph.variables}
        holder.variables_read = list(variables.values())
        holder.widened = [weight for _, weight in self._widened]
        # A resource does not track its own variables.
        holder.stored = [(weight.stored, weight.wide) for weight in holder.widened]
        for weight in holder.widened:
            weight.clear()
        try:
            yield holder
        finally:
            for weight in holder.widened:
                weight.fill()


class WidenedWeight(tf.saved_model.experimental.TrackableResource):
    """A weight stored in half precision and converted to float32 once, when the model is loaded.

    With a cast in the graph, every request would write a copy of the whole network. The float32 copy is a variable that
    is empty when it is saved, and that this resource's initializer fills when the model has been loaded. Being a
    variable, it is no other model's and is freed with the last function that reads it; TensorFlow restores a resource
    of a name, which is never freed.

    Attributes:
        stored: the variable in half precision.
        wide: its copy in float32.
    """

    def __init__(self, variable: keras.Variable, dtype: str) -> None:
        super().__init__()
        self._name, self._shape = variable.path.replace("/", "."), tuple(variable.shape)
        self.stored = tf.Variable(tf.cast(variable.value, dtype), trainable=False, name=self._name)
        self.wide = tf.Variable(_NOTHING, trainable=False, shape=tf.TensorShape(None), name=f"{self._name}.float32")
        self.fill()

    def read(self) -> tf.Tensor:
        """The weight in float32."""
        return tf.ensure_shape(self.wide.read_value(), self._shape)

    def fill(self) -> None:
        """Computes the copy."""
        self.wide.assign(tf.cast(self.stored, tf.float32))

    def clear(self) -> None:
        """Drops the copy."""
        self.wide.assign(_NOTHING)

    def _create_resource(self) -> tf.Tensor:
        # TensorFlow wants a handle. Nothing is ever kept under it.
        return tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=[], shared_name=self._name)

    def _initialize(self) -> None:
        self.fill()
