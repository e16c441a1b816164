"""The network as a graph for serving: its weights, in what precision they are stored, and whether XLA compiles it."""

import hashlib

import keras
import tensorflow as tf

from keras_bert.export.packing import doubling_lengths, padded_length
from keras_bert.export.unpadded import encode

FLOAT32, BFLOAT16, FLOAT16 = DTYPES = ("float32", "bfloat16", "float16")


class Network:
    """Runs parts of a model on weights that a SavedModel can hold.

    Args:
        model: a model of `keras_bert.models`.
        dtype: what the matrices are stored in, one of `DTYPES`; all is computed in float32.
        jit: whether XLA compiles the encoder for one row, once for each of a few lengths. Several rows go without: XLA
            cannot leave their padding out, which costs more than it gains.
    """

    def __init__(self, model, dtype=FLOAT32, jit=False):
        self._model, self._jit = model, jit
        self._compiled_lengths = doubling_lengths(model.config.max_position_embeddings)
        self._widened = []
        if dtype != FLOAT32:
            matrices = (variable for variable in model.variables if len(variable.shape) > 1)
            self._widened = [(variable, WidenedWeight(variable, dtype)) for variable in matrices]

    def encode(self, inputs):
        """What `unpadded.encode` gives for the encoder's dict."""
        if not self._jit:
            return self._encode(inputs)
        rows = tf.shape(inputs["input_mask"])[0]
        return tf.cond(tf.equal(rows, 1), lambda: self._encode_compiled(inputs), lambda: self._encode(inputs))

    def _encode(self, inputs, keeps_padding=False):
        return self.run(lambda model: encode(getattr(model, "encoder", model), inputs, keeps_padding))

    def _encode_compiled(self, inputs):
        seq = tf.shape(inputs["input_mask"])[1]
        beyond = padded_length(self._compiled_lengths, seq) - seq
        padded = {name: tf.pad(value, [[0, 0], [0, beyond]]) for name, value in inputs.items()}
        compiled = tf.function(
            lambda inputs: self._encode(inputs, keeps_padding=True), autograph=False, jit_compile=True
        )
        outputs = compiled(padded)
        return {**outputs, "sequence_output": outputs["sequence_output"][:, :seq]}

    def run(self, function):
        """`function(model)`, such as a head on what `encode` gave, with the weights as they are stored."""
        with keras.StatelessScope([(variable, weight.read()) for variable, weight in self._widened]):
            return function(self._model)

    def tracked(self, functions):
        """An object that holds what the concrete functions read, to be saved with them; nothing of training."""
        holder = tf.Module()
        variables = {id(variable): variable for function in functions for variable in function.graph.variables}
        holder.variables_read = list(variables.values())
        holder.widened = [weight for _, weight in self._widened]
        holder.stored = [weight.stored for weight in holder.widened]  # A resource does not track its own variables.
        return holder


class WidenedWeight(tf.saved_model.experimental.TrackableResource):
    """A weight that is stored in half precision and made float32 once, when the model is loaded.

    A cast in the graph would cost every request the time to write the whole network. The float32 copy is a resource
    that is made by an initializer, as a look-up table is, and so is not stored itself.
    """

    def __init__(self, variable, dtype):
        super().__init__()
        self._name, self._shape = variable.path.replace("/", "."), tuple(variable.shape)
        self.stored = tf.Variable(tf.cast(variable.value, dtype), trainable=False, name=self._name)
        # A process has one resource of a name, and all models call their weights alike.
        described = f"{dtype} {self._shape}".encode() + self.stored.numpy().tobytes()
        self._resource_name = f"{self._name}.float32.{hashlib.blake2b(described, digest_size=16).hexdigest()}"
        self._initialize()

    def read(self):
        value = tf.raw_ops.ReadVariableOp(resource=self.resource_handle, dtype=tf.float32)
        return tf.ensure_shape(value, self._shape)

    def _create_resource(self):
        return tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=self._shape, shared_name=self._resource_name)

    def _initialize(self):
        tf.raw_ops.AssignVariableOp(resource=self.resource_handle, value=tf.cast(self.stored, tf.float32))
