"""The network as a graph for serving: its weights, in what precision they are stored, and whether XLA compiles it."""

import keras
import tensorflow as tf

FLOAT32, BFLOAT16, FLOAT16 = DTYPES = ("float32", "bfloat16", "float16")


class Network:
    """Runs parts of a model on weights that a SavedModel can hold.

    Args:
        model: a model of `keras_bert.models`.
        dtype: what the matrices are stored in, one of `DTYPES`; all is computed in float32.
        jit: whether XLA compiles what is run; a server on CPUs must be told to have it on.
    """

    def __init__(self, model, dtype=FLOAT32, jit=False):
        self._model, self._jit = model, jit
        self._widened = []
        if dtype != FLOAT32:
            matrices = (variable for variable in model.trainable_variables if len(variable.shape) > 1)
            self._widened = [(variable, WidenedWeight(variable, dtype)) for variable in matrices]

    def run(self, function, *arguments, jit=True):
        """`function(model, *arguments)`; with `jit` it is what XLA may compile, once for every shape."""

        def compute(*arguments):
            with self._stored_weights():
                return function(self._model, *arguments)

        return tf.function(compute, jit_compile=True)(*arguments) if self._jit and jit else compute(*arguments)

    def tracked(self, functions):
        """An object that holds what the concrete functions read, to be saved with them; nothing of training."""
        holder = tf.Module()
        variables = {id(variable): variable for function in functions for variable in function.graph.variables}
        holder.variables_read = list(variables.values())
        holder.widened = [weight for _, weight in self._widened]
        holder.stored = [weight.stored for weight in holder.widened]  # A resource does not track its own variables.
        return holder

    def _stored_weights(self):
        return keras.StatelessScope([(variable, weight.read()) for variable, weight in self._widened])


class WidenedWeight(tf.saved_model.experimental.TrackableResource):
    """A weight that is stored in half precision and made float32 once, when the model is loaded.

    A cast in the graph would cost every request the time to write the whole network. The float32 copy is a resource
    that is made by an initializer, as a look-up table is, and so is not stored itself.
    """

    def __init__(self, variable, dtype):
        super().__init__()
        self._name, self._shape = variable.path.replace("/", "."), tuple(variable.shape)
        self.stored = tf.Variable(tf.cast(variable.value, dtype), trainable=False, name=self._name)
        self._initialize()

    def read(self):
        value = tf.raw_ops.ReadVariableOp(resource=self.resource_handle, dtype=tf.float32)
        return tf.ensure_shape(value, self._shape)

    def _create_resource(self):
        return tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=self._shape, shared_name=f"{self._name}.float32")

    def _initialize(self):
        tf.raw_ops.AssignVariableOp(resource=self.resource_handle, value=tf.cast(self.stored, tf.float32))
