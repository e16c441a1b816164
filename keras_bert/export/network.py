"""The network as a graph for serving: the precision of its stored weights, and compilation by XLA."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import keras
import tensorflow as tf

from keras_bert.checkpoints.stored_tensors import require_finite
from keras_bert.core.errors import UserError
from keras_bert.inputs.rows import doubling_lengths, padded_length
from keras_bert.layers.encoder_block import EncoderBlock
from keras_bert.layers.visibility import PADDING_BIAS
from keras_bert.models.bert.config import BertConfig
from keras_bert.models.bert.encoder import BertEncoder, last_place, last_state
from keras_bert.models.kind import ModelKind, kind_of_config
from keras_bert.models.tensor_names import encoder_of


def encode(
    encoder: BertEncoder,
    inputs: Mapping[str, tf.Tensor],
    keeps_padding: bool = False,
    look_up: Callable[[tf.Variable, tf.Tensor], tf.Tensor] = tf.gather,
    only_pooled: bool = False,
) -> dict[str, tf.Tensor]:
    """The result of `encoder(inputs)`, computed by the encoder's own layers on matrices with one row per token.

    Only attention needs a padded batch; everything else is computed for real tokens only, so that a long text does not
    make the short ones in its batch as expensive. Matrices with one row per token also avoid Keras' many small ops for
    multiplying [batch, seq, hidden], which take most of the time of one short text.

    Args:
        inputs: the encoder's inputs, each [batch, seq] int32; seq is at least 1.
        keeps_padding: computes padding too, for XLA and LiteRT, which need shapes that do not depend on values.
        look_up: looks up rows of an embedding table, such as one stored in fewer bits.
        only_pooled: leaves out `sequence_output`, and computes the last block only at the token that the pooler reads;
            requires a pooler.

    Returns: `sequence_output` [batch, seq, hidden], 0 at padding, and, if there is a pooler, `pooled_output`
        [batch, hidden].
    """
    if not kind_of_config(encoder.config).attends:
        outputs = _whole_rows(encoder, inputs)
        return {"pooled_output": outputs["pooled_output"]} if only_pooled else outputs
    tokens = _Tokens(inputs["input_mask"], keeps_padding, encoder.config)
    ids, types = (tokens.taken(tf.reshape(inputs[name], [-1])) for name in ("input_word_ids", "input_type_ids"))
    states = encoder.embeddings.of_tokens(ids, tokens.positions, types, look_up)
    for block in encoder.blocks[:-1]:
        states = _after_block(block, states, tokens, tokens)
    queried = _PooledTokens(tokens) if only_pooled else tokens
    states = encoder.after_blocks(_after_block(encoder.blocks[-1], states, tokens, queried))
    if only_pooled:
        assert encoder.pooler is not None
        return {"pooled_output": encoder.pooler(tf.expand_dims(states, 1))}
    sequence = tokens.padded(states)
    outputs = {"sequence_output": tf.where(tf.expand_dims(tokens.is_real, -1), sequence, 0.0)}
    if encoder.pooler is not None:
        pooled = last_state(sequence, inputs["input_mask"]) if encoder.config.pools_last else sequence[:, :1]
        outputs["pooled_output"] = encoder.pooler(pooled)
    return outputs


def _whole_rows(encoder: BertEncoder, inputs: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """The result of `encode` for an encoder without attention blocks, which computes padding too."""
    outputs = encoder(dict(inputs))
    is_real = tf.not_equal(inputs["input_mask"], 0) | tf.equal(tf.range(tf.shape(inputs["input_mask"])[1]), 0)
    sequence = tf.where(tf.expand_dims(is_real, -1), outputs["sequence_output"], 0.0)
    pooled = {"pooled_output": outputs["pooled_output"]} if encoder.pooler is not None else {}
    return {"sequence_output": sequence, **pooled}


class _Tokens:
    """The computed tokens of a batch, and their positions.

    They always include the first token of a row, because a row of nothing but padding attends to it.

    Attributes:
        config: the model's config.
        is_real: [batch, seq] bool.
        positions: int32 [tokens], the position of each in its row.
        attention_bias: [batch, 1, 1 or seq, seq].
    """

    def __init__(self, mask: tf.Tensor, keeps_padding: bool, config: BertConfig) -> None:
        self.config = config
        self._shape = tf.shape(mask)
        places = tf.range(self._shape[1])
        self.is_real = tf.not_equal(mask, 0) | tf.equal(places, 0)
        is_seen = tf.expand_dims(tf.expand_dims(self.is_real, 1), 1)  # LiteRT has no op for several new axes at once.
        if config.is_causal:
            is_seen &= places <= tf.expand_dims(places, 1)
        self.attention_bias = tf.where(is_seen, 0.0, PADDING_BIAS)
        self._keeps_padding = keeps_padding
        positions = tf.reshape(tf.broadcast_to(places, self._shape), [-1])
        if not keeps_padding:
            is_real = tf.reshape(self.is_real, [-1])
            self._taken = tf.cast(tf.where(is_real)[:, 0], tf.int32)
            # The index among the real tokens of each token of the padded batch; at padding, that of an earlier token.
            self._place = tf.cumsum(tf.cast(is_real, tf.int32)) - 1
            heads, (batch, seq) = tf.range(config.num_attention_heads), tf.unstack(self._shape)
            place = tf.reshape(self._place, [batch, 1, seq])
            # The index of each head of each token: [batch, heads, seq] among the real tokens' heads, and back.
            self._to_heads = place * tf.size(heads) + tf.expand_dims(heads, 1)
            row, column = self._taken // seq, self._taken % seq
            self._from_heads = tf.expand_dims(row, 1) * tf.size(heads) + heads
            self._from_heads = self._from_heads * seq + tf.expand_dims(column, 1)
        self.positions = self.taken(positions)

    def taken(self, values: tf.Tensor) -> tf.Tensor:
        """Selects the computed tokens from `[batch * seq, …]`."""
        return values if self._keeps_padding else tf.gather(values, self._taken)

    def of(self, values: tf.Tensor) -> tf.Tensor:
        """Selects the queried tokens from `[tokens, hidden]`: here all."""
        return values

    def number(self, indices: tf.Tensor) -> tf.Tensor:
        """Converts indices into `[batch * seq]` to indices among the computed tokens."""
        return indices if self._keeps_padding else tf.gather(self._place, indices)

    def padded(self, values: tf.Tensor, *shape: int) -> tf.Tensor:
        """`[tokens, hidden]` as `[batch, seq, *shape]`, by default with shape hidden. Values at padding are finite."""
        values = values if self._keeps_padding else tf.gather(values, self._place)
        return tf.reshape(values, tf.concat([self._shape, shape or values.shape[1:]], axis=0))

    def split_heads(self, vectors: tf.Tensor, heads: int, head_size: int) -> tf.Tensor:
        """`[tokens, hidden]` as `[batch, heads, seq, head_size]`. Values at padding are finite."""
        if self._keeps_padding:
            return tf.transpose(self.padded(vectors, heads, head_size), [0, 2, 1, 3])
        # Gathering the heads avoids a transpose: oneDNN's wakes other threads, even for one short text.
        return tf.gather(tf.reshape(vectors, [-1, head_size]), self._to_heads)

    def join_heads(self, vectors: tf.Tensor) -> tf.Tensor:
        """`[batch, heads, seq, head_size]` as `[tokens, hidden]`."""
        heads, head_size = vectors.shape[1], vectors.shape[3]
        if self._keeps_padding:
            return tf.reshape(tf.transpose(vectors, [0, 2, 1, 3]), [-1, heads * head_size])
        taken = tf.gather(tf.reshape(vectors, [-1, head_size]), self._from_heads)
        return tf.reshape(taken, [-1, heads * head_size])


class _PooledTokens:
    """The tokens that the pooler reads, one per row, with the interface of `_Tokens` for attention."""

    def __init__(self, tokens: _Tokens) -> None:
        is_real, config = tokens.is_real, tokens.config
        batch, seq = tf.unstack(tf.shape(is_real))
        places = tf.zeros([batch], tf.int32)
        if config.pools_last:
            places = last_place(tf.cast(is_real, tf.int32))[:, 0]
        self._numbers = tokens.number(tf.range(batch) * seq + places)
        self.attention_bias = tokens.attention_bias
        if config.is_causal:
            self.attention_bias = tf.gather(tokens.attention_bias, tf.expand_dims(places, 1), axis=2, batch_dims=1)

    def of(self, values: tf.Tensor) -> tf.Tensor:
        """Selects these tokens from `[tokens, hidden]`."""
        return tf.gather(values, self._numbers)

    def split_heads(self, vectors: tf.Tensor, heads: int, head_size: int) -> tf.Tensor:
        """`[batch, hidden]` as `[batch, heads, 1, head_size]`."""
        return tf.reshape(vectors, [-1, heads, 1, head_size])

    def join_heads(self, vectors: tf.Tensor) -> tf.Tensor:
        """`[batch, heads, 1, head_size]` as `[batch, hidden]`."""
        return tf.reshape(vectors, [-1, vectors.shape[1] * vectors.shape[3]])


def _after_block(
    block: EncoderBlock, states: tf.Tensor, tokens: _Tokens, queried: _Tokens | _PooledTokens
) -> tf.Tensor:
    """A block's output for `[tokens, hidden]`, at the `queried` tokens."""
    attention, seen = block.attention, block.attention_input(states)
    heads, head_size = attention.num_attention_heads, attention.head_size
    query = queried.split_heads(attention.query(queried.of(seen)) * head_size**-0.5, heads, head_size)
    key, value = (
        tokens.split_heads(vectors, heads, head_size) for vectors in (attention.key(seen), attention.value(seen))
    )
    scores = tf.cast(tf.matmul(query, key, transpose_b=True), tf.float32) + queried.attention_bias
    probabilities = tf.cast(tf.nn.softmax(scores), value.dtype)
    attended = attention.output_projection(queried.join_heads(tf.matmul(probabilities, value)))
    return block.after_attention(queried.of(states), attended)


_T = TypeVar("_T")

FLOAT32, BFLOAT16, FLOAT16 = DTYPES = ("float32", "bfloat16", "float16")

_ROWS_AT_ONCE = 32
_NOTHING: list[float] = []


class Network:
    """Runs parts of a model with weights that a SavedModel can hold.

    Args:
        model: a model of `keras_bert.models`.
        dtype: the type in which matrices are stored, one of `DTYPES`; the computation is in float32.
        jit: whether XLA compiles the encoder for single rows, once for each of a few lengths. Larger batches are not
            compiled: XLA cannot skip their padding, which costs more than it gains.
        compute: `bfloat16` computes the products of the encoder's blocks in bfloat16, with their kernels stored in it,
            and all else in float32. Faster on processors with bfloat16 arithmetic (AMX, AVX-512), slower on others.

    Raises:
        UserError: a weight is NaN or infinite, after training in this process (loading refuses such files); the dtype
            is unknown; or `compute` does not fit the kind of model or another option.
    """

    def __init__(self, model: keras.Model, dtype: str = FLOAT32, jit: bool = False, compute: str = FLOAT32) -> None:
        if dtype not in DTYPES:
            raise UserError(f"dtype: needs one of {', '.join(DTYPES)}. Received: {dtype!r}.")
        for variable in model.variables:
            require_finite(variable.numpy(), variable.path)
        self._dense: list[keras.layers.Dense] = []
        if compute != FLOAT32:
            _require_products_in(compute, kind_of_config(model.config), dtype, jit)
            layers = encoder_of(model).layers_of_blocks()
            self._dense = [layer for layer in layers if isinstance(layer, keras.layers.Dense)]
        self._model, self._jit = model, jit
        self._compiled_lengths = doubling_lengths(model.config.max_position_embeddings)
        self._widened: list[tuple[keras.Variable, WidenedWeight]] = []
        kernels = {id(layer.kernel): layer.kernel for layer in self._dense}
        self._narrow = [
            (kernel, tf.Variable(tf.cast(kernel.value, compute), trainable=False, name=kernel.path.replace("/", ".")))
            for kernel in kernels.values()
        ]
        if dtype != FLOAT32:
            others = (variable for variable in model.variables if id(variable) not in kernels)
            self._widened = [(one, WidenedWeight(one, dtype)) for one in others if len(one.shape) > 1]

    def encode(self, inputs: Mapping[str, tf.Tensor], only_pooled: bool = False) -> dict[str, tf.Tensor]:
        """The result of the function `encode` for the encoder's inputs."""
        if not self._jit:
            return self._encode(inputs, only_pooled=only_pooled)
        return tf.cond(
            tf.equal(tf.shape(inputs["input_mask"])[0], 1),
            lambda: self._encode_compiled(inputs, only_pooled),
            lambda: self._encode(inputs, only_pooled=only_pooled),
        )

    def encoded(self, inputs: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """The input of a task's head: the result of `encode`, passed through the BiLSTM if there is one."""
        outputs = self.encode(inputs)
        return self.run(lambda model: model.on_top(outputs, inputs["input_mask"]))

    def pooled(self, inputs: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """The pooled vector of `encoded`, [batch, hidden], without computing more than it needs."""
        if self._model.bilstm is not None:
            return self.encoded(inputs)["pooled_output"]
        return self.encode(inputs, only_pooled=True)["pooled_output"]

    def _encode(self, inputs: Mapping[str, tf.Tensor], **options: Any) -> dict[str, tf.Tensor]:
        """The result of the function `encode` with its `options`."""
        return self.run(lambda model: encode(encoder_of(model), inputs, **options))

    def _encode_compiled(self, inputs: Mapping[str, tf.Tensor], only_pooled: bool = False) -> dict[str, tf.Tensor]:
        seq = tf.shape(inputs["input_mask"])[1]
        beyond = padded_length(self._compiled_lengths, seq) - seq
        padded = {name: tf.pad(value, [[0, 0], [0, beyond]]) for name, value in inputs.items()}
        compiled = tf.function(
            lambda inputs: self._encode(inputs, keeps_padding=True, only_pooled=only_pooled),
            autograph=False,
            jit_compile=True,
        )
        outputs = compiled(padded)
        if only_pooled:
            return outputs
        return {**outputs, "sequence_output": outputs["sequence_output"][:, :seq]}

    def by_parts(
        self, function: Callable[[dict[str, tf.Tensor]], tf.Tensor], inputs: Mapping[str, tf.Tensor]
    ) -> tf.Tensor:
        """`function(inputs)`, float32 [batch, …], computed for some rows after the others.

        So a text of any length, read in windows, takes no more memory than a batch of short ones.
        """
        computed = tf.function(function, autograph=False).get_concrete_function(dict(inputs))
        rows = tf.maximum(tf.shape(inputs["input_mask"])[0], 1)  # No rows are a part too.

        def next_part(first: tf.Tensor, found: tf.TensorArray) -> tuple[tf.Tensor, tf.TensorArray]:
            part = computed({name: column[first : first + _ROWS_AT_ONCE] for name, column in inputs.items()})
            return first + _ROWS_AT_ONCE, found.write(first // _ROWS_AT_ONCE, part)

        parts = (rows + _ROWS_AT_ONCE - 1) // _ROWS_AT_ONCE
        found = tf.TensorArray(tf.float32, parts, infer_shape=False, element_shape=computed.output_shapes)
        return tf.while_loop(lambda first, _: first < rows, next_part, (0, found), parallel_iterations=1)[1].concat()

    def run(self, function: Callable[[keras.Model], _T]) -> _T:
        """`function(model)`, such as a head on the result of `encode`, with the stored weights."""
        widened = [(variable, weight.read()) for variable, weight in self._widened]
        with _products_in_bfloat16(self._dense), keras.StatelessScope(widened) as scope:
            for variable, stored in self._narrow:
                scope.add_update((variable, stored.read_value()))  # The scope's mapping would convert it to float32.
            return function(self._model)

    @contextlib.contextmanager
    def tracked(self, functions: Iterable[tf.types.experimental.ConcreteFunction]) -> Iterator[tf.Module]:
        """Yields an object that holds the variables that the functions read, to be saved with them in this context."""
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


def _require_products_in(compute: str, kind: ModelKind, dtype: str, jit: bool) -> None:
    """Raises `UserError` unless products can be computed in this type for this kind of model and options."""
    if compute != BFLOAT16:
        raise UserError(f"--compute: needs {FLOAT32} or {BFLOAT16}. Received: {compute}.")
    if not kind.attends:
        needed = "a model with BERT's attention"
        raise UserError(f"--compute bfloat16: needs {needed}. Received: {kind.model_type}. Leave it out.")
    if jit:
        raise UserError("--compute bfloat16: needs a graph that XLA does not compile. Received: --jit. Leave one out.")
    if dtype == FLOAT16:
        raise UserError("--compute bfloat16: needs --dtype bfloat16 or float32. Received: --dtype float16.")


@contextlib.contextmanager
def _products_in_bfloat16(layers: Iterable[keras.layers.Dense]) -> Iterator[None]:
    """Makes these layers compute in and return bfloat16 within the context, whatever their inputs."""
    policies = [(layer, layer.dtype_policy) for layer in layers]
    try:
        for layer, _ in policies:
            layer.dtype_policy = "mixed_bfloat16"
        yield
    finally:
        for layer, policy in policies:
            layer.dtype_policy = policy


class WidenedWeight(tf.saved_model.experimental.TrackableResource):
    """A weight stored in half precision and converted to float32 once, when the model is loaded.

    With a cast in the graph, every request would write a copy of the whole network. The float32 copy is a variable that
    is empty when saved and filled by this resource's initializer when the model is loaded. A variable is private to the
    model and freed with the last function that reads it; TensorFlow restores a resource by name and never frees it.

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
        """Fills the float32 copy."""
        self.wide.assign(tf.cast(self.stored, tf.float32))

    def clear(self) -> None:
        """Empties the float32 copy."""
        self.wide.assign(_NOTHING)

    def _create_resource(self) -> tf.Tensor:
        # TensorFlow requires a handle; nothing is stored under it.
        return tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=[], shared_name=self._name)

    def _initialize(self) -> None:
        self.fill()
