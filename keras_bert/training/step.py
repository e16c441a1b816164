"""One optimizer step and one evaluation step, over all replicas of a strategy."""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import tensorflow as tf
from keras import ops

from keras_bert.layers.dropout import counter_bits, dropout_key, is_static
from keras_bert.layers.in_training import attention_kernel, perturbation
from keras_bert.training.adversary import adversarial_change
from keras_bert.training.cudnn_attention import cudnn_attention
from keras_bert.training.device_integers import narrowed
from keras_bert.training.loss_scale import LossScale
from keras_bert.training.metrics import MetricSums
from keras_bert.training.optimizers.base import BertOptimizer
from keras_bert.training.strategy import is_multiworker, on_gpus
from keras_bert.training.variable_names import gradient_norms

_VALUES_OF_A_BLOCK = 8  # 16 bits each.
SUM = tf.distribute.ReduceOp.SUM

# A global batch: tensors [batch, …] by name, or each replica's part of them.
Batch = dict[str, tf.Tensor]
# {term: {metric: float32 scalar}}.
Sums = dict[str, dict[str, tf.Tensor]]


class Objective(Protocol):
    """What is minimized and measured; see `PretrainingObjective`.

    Attributes:
        terms: names of the terms of the loss.
    """

    @property
    def terms(self) -> tuple[str, ...]: ...

    def counts(self, batch: Batch) -> dict[str, tf.Tensor]:
        """{term: float32 scalar that its sums are divided by}."""
        ...

    def sums(self, outputs: dict[str, tf.Tensor], batch: Batch) -> Sums:
        """{term: {metric: float32 scalar}} of the model's outputs; each term of the loss has a metric `loss`."""
        ...


# The key of a memory's part in the sums of a step.
MEMORY = "memory"


class Memory(Protocol):
    """What a step remembers for the steps after it, in variables; see `SegmentMemory` and `TokenWeights`."""

    @property
    def variables(self) -> Sequence[tf.Variable]: ...

    def with_memory(self, batch: Batch, replica: int | tf.Tensor) -> Batch:
        """A replica's batch with what is remembered."""
        ...

    def of_rows(self, outputs: dict[str, tf.Tensor], batch: Batch, part: int | tf.Tensor) -> dict[str, tf.Tensor]:
        """What to remember of a part of the global batch, in float32; the values of all parts are added up."""
        ...

    def remember(self, rows: dict[str, tf.Tensor], batch: Batch) -> None:
        """Assigns the variables, in the context of a replica."""
        ...


class Step:
    """Runs a model and an objective on global batches.

    Many replicas give the same result as one because of the order: forward and backward, gradients made dense, summed
    over replicas, clipped by their global norm, applied. The loss is divided by the counts of the global batch.

    Args:
        strategy: the run's strategy; model and optimizer were created in its scope.
        model: `model(batch, training=...)` returns what `objective.sums` takes. Without an optimizer, any function.
        optimizer: None if the model is only evaluated.
        clip_norm: the largest norm of all gradients together.
        seed: seed of the dropout masks.
        jit_compile: compile with XLA: the whole step on one replica, forward and backward on several or in `parallel`
            slices.
        accumulation: how many slices of a replica's batch are computed one after the other.
        loss_scale: for a model that computes in float16.
        gradient_parts: parts of the model whose gradients' norms `train` returns; see `gradient_norms`.
        memory: what training remembers of earlier batches.
        parallel: how many parts of each slice are computed side by side, which suits the cores of a CPU.
        adversarial: the size of an `adversarial_change`; gradients are then the mean of those with and without it.

    Attributes:
        update: what `train` does, to be called inside another `tf.function`; see `StepLoop`.
    """

    def __init__(
        self,
        strategy: tf.distribute.Strategy,
        model: Any,
        objective: Objective,
        optimizer: BertOptimizer | None = None,
        clip_norm: float = 1.0,
        seed: int = 0,
        jit_compile: bool = False,
        accumulation: int = 1,
        loss_scale: LossScale | None = None,
        gradient_parts: Mapping[str, Sequence[int]] | None = None,
        memory: Memory | None = None,
        parallel: int = 1,
        adversarial: float = 0.0,
    ):
        self.strategy = strategy
        self.model = model
        self.objective = objective
        self.optimizer = optimizer
        self.clip_norm = clip_norm
        self.seed = seed
        self.accumulation = accumulation
        self.loss_scale = loss_scale
        self.gradient_parts = gradient_parts or {}
        self.memory = memory
        self.parallel = parallel
        self.adversarial = adversarial
        # The step of a single replica compiles as one program, including clipping and update. With several, the
        # reduction in between does not compile, so only forward and backward do. A TPU compiles whatever it runs.
        on_tpu = isinstance(strategy, tf.distribute.TPUStrategy)
        # In XLA a hash of each element's index fuses with the operations that use it; elsewhere one kernel that draws
        # all bits is faster than six elementwise ones.
        self._bits = counter_bits if jit_compile or on_tpu else stateless_bits
        jit_compile = jit_compile and not on_tpu
        self._attention = cudnn_attention if jit_compile and on_gpus(strategy) else None
        one_replica, whole = strategy.num_replicas_in_sync == 1, jit_compile and parallel == 1
        self._compiled_part = _compiled(self._part_gradients, jit_compile and not whole)
        self._compiled_gradients = _compiled(self.gradients, whole and not one_replica)
        self._compiled_replica = _compiled(self._train_replica, whole and one_replica)
        # TensorFlow optimizes a graph as a whole. If the step were inlined into its caller, it would add its sums in
        # a different order when run alone than in a loop.
        attributes = {} if on_tpu else {"_noinline": True}
        self.update = tf.function(self._update, autograph=False, experimental_attributes=attributes)

    @tf.function(autograph=False)
    def train(self, batch: Batch, step: tf.Tensor) -> dict[str, Any]:
        """Runs one update. `step` is an int64 scalar, the number of steps before this one.

        Returns a dict of scalars: the objective's `sums` and `counts`, the global batch's `examples` and `tokens`
        (without padding), `grad_norm` before clipping, `learning_rate` and, for each of `gradient_parts`,
        `grad_norm_PART` before clipping; with a loss scale also what `LossScale.apply` returns.
        """
        return self.update(batch, step)

    def trace(self, spec: Mapping[str, tf.TensorSpec]) -> None:
        """Traces `train` once for all batches of a spec, whose unknown dimensions may have any size.

        Steps of the traced function take a few per cent longer than with static shapes.
        """
        self.train.get_concrete_function(spec, tf.TensorSpec([], tf.int64))

    def _update(self, batch: Batch, step: tf.Tensor) -> dict[str, Any]:
        return self._first_replica(self.strategy.run(self._compiled_replica, (batch, step)))

    @tf.function(autograph=False)
    def evaluate(self, batch: Batch) -> dict[str, Any]:
        """`{"sums", "counts"}` of one batch, without dropout and without an update."""
        return self._first_replica(self.strategy.run(self._evaluate_replica, (batch,)))

    @tf.function(autograph=False)
    def predict(self, batch: Batch) -> tuple[dict[str, tf.Tensor], dict[str, Any]]:
        """(the model's outputs for one batch, each replica holding its part; what `evaluate` returns)."""
        outputs, results = self.strategy.run(self._predict_replica, (batch,))
        return outputs, self._first_replica(results)

    def _first_replica(self, results: dict[str, Any]) -> dict[str, Any]:
        # After the all-reduce every replica holds the same values.
        return tf.nest.map_structure(lambda value: self.strategy.experimental_local_results(value)[0], results)

    def _train_replica(self, batch: Batch, step: tf.Tensor) -> dict[str, Any]:
        assert self.optimizer is not None, "This Step was made for evaluation only."
        context = tf.distribute.get_replica_context()
        batch = narrowed(batch)
        replica = tf.convert_to_tensor(context.replica_id_in_sync_group) if context.num_replicas_in_sync > 1 else 0
        if self.memory is not None:
            batch = self.memory.with_memory(batch, replica)
        totals = _all_reduce(context, self.objective.counts(batch))
        gradients, sums = self._compiled_gradients(batch, totals, dropout_key_of(self.seed, step), replica)
        gradients = _all_reduce(context, gradients)
        if self.loss_scale is not None:
            gradients = self.loss_scale.unscaled(gradients)
        sums = _all_reduce(context, sums)
        if self.memory is not None:
            self.memory.remember(sums.pop(MEMORY), batch)
        part_norms = gradient_norms(gradients, self.gradient_parts)
        gradients, norm = tf.clip_by_global_norm(gradients, self.clip_norm)
        learning_rate = tf.convert_to_tensor(self.optimizer.learning_rate)
        variables, scaling = self.model.trainable_variables, {}
        if self.loss_scale is None:
            self.optimizer.apply(gradients, variables)
        else:
            scaling = self.loss_scale.apply(self.optimizer, gradients, variables, tf.math.is_finite(norm))
        # Floats, because an all-reduce cannot mix int32 on the host with floats on the devices.
        mask = tf.cast(batch["input_mask"], tf.float32)
        seen = {"examples": tf.cast(tf.shape(mask)[0], tf.float32), "tokens": tf.reduce_sum(mask)}
        return {
            "sums": sums,
            "counts": totals,
            **_all_reduce(context, seen),
            "grad_norm": norm,
            "learning_rate": learning_rate,
            **scaling,
            **{f"grad_norm_{part}": value for part, value in part_norms.items()},
        }

    def gradients(
        self, batch: Batch, totals: dict[str, tf.Tensor], key: tf.Tensor, replica: int | tf.Tensor = 0
    ) -> tuple[list[tf.Tensor], Sums]:
        """(gradients, sums) of a replica's batch, computed in `accumulation` slices; see `_slice_gradients`.

        The gradients are those of the scaled loss if there is a loss scale. `key` is the key of the dropout masks. With
        a `memory`, the sums have this replica's part of it under `MEMORY`.
        """
        if self.accumulation == 1:
            return self._slice_gradients(batch, totals, key, replica)
        slices = tf.nest.map_structure(
            lambda value: tf.reshape(
                value, [self.accumulation, value.shape[0] // self.accumulation, *ops.shape(value)[1:]]
            ),
            batch,
        )

        def slice_number(index: tf.Tensor) -> tuple[list[tf.Tensor], Sums]:
            part = replica * self.accumulation + index
            return self._slice_gradients(tf.nest.map_structure(lambda value: value[index], slices), totals, key, part)

        def add_slice(
            index: tf.Tensor, so_far: tuple[list[tf.Tensor], Sums]
        ) -> tuple[tf.Tensor, tuple[list[tf.Tensor], Sums]]:
            return index + 1, tf.nest.map_structure(tf.add, so_far, slice_number(index))

        # One slice after the other, or TensorFlow would compute several at once and need the memory of all of them.
        first = slice_number(tf.constant(0))
        with tf.control_dependencies(tf.nest.flatten(first)):
            second = tf.constant(1)
        return tf.while_loop(
            lambda index, so_far: index < self.accumulation,
            add_slice,
            (second, first),
            parallel_iterations=1,
            maximum_iterations=self.accumulation - 1,
        )[1]

    def _slice_gradients(
        self, batch: Batch, totals: dict[str, tf.Tensor], key: tf.Tensor, part: int | tf.Tensor
    ) -> tuple[list[tf.Tensor], Sums]:
        """`_part_gradients` of a whole slice, whose parts do not wait for each other."""
        if self.parallel == 1:
            return self._part_gradients(batch, totals, key, part)
        pieces = {name: tf.split(value, self.parallel) for name, value in batch.items()}
        results = []
        for number in range(self.parallel):
            piece = {name: values[number] for name, values in pieces.items()}
            results.append(self._compiled_part(piece, totals, key, tf.constant(self.parallel) * part + number))
        return tf.nest.map_structure(lambda *values: tf.add_n(values), *results)

    def _part_gradients(
        self, batch: Batch, totals: dict[str, tf.Tensor], key: tf.Tensor, part: int | tf.Tensor
    ) -> tuple[list[tf.Tensor], Sums]:
        """(dense gradients of this part's contribution to the loss of the global batch, the part's sums)."""
        with attention_kernel(self._attention):
            gradients, sums, read = self._derived(batch, totals, key, part)
            if self.adversarial:
                changes = [adversarial_change(*both, self.adversarial) for both in read]
                changed, _, _ = self._derived(batch, totals, key, part, changes)
                gradients = [(one + other) / 2 for one, other in zip(gradients, changed)]
        return gradients, sums

    def _derived(
        self,
        batch: Batch,
        totals: dict[str, tf.Tensor],
        key: tf.Tensor,
        part: int | tf.Tensor,
        changes: Sequence[tf.Tensor] = (),
    ) -> tuple[list[tf.Tensor], Sums, list[tuple[tf.Tensor, tf.Tensor]]]:
        """(gradients, sums, the embeddings that encoders read, each with its gradient) of a part.

        `changes` are added to these embeddings, in their order.
        """
        read: list[tf.Tensor] = []

        def change(embeddings: tf.Tensor) -> tf.Tensor:
            tape.watch(embeddings)
            read.append(embeddings)
            return embeddings + changes[len(read) - 1] if changes else embeddings

        with tf.GradientTape() as tape, dropout_key(key, self._bits, part):
            with perturbation(change if self.adversarial else None):
                outputs = self.model(batch, training=True)
            if self.adversarial and not read:
                raise ValueError("training.adversarial: needs an encoder that calls `perturbed` on its embeddings.")
            sums = self.objective.sums(outputs, batch)
            terms = [tf.math.divide_no_nan(sums[term]["loss"], totals[term]) for term in self.objective.terms]
            loss = tf.add_n(terms)
            if self.loss_scale is not None:
                loss = loss * self.loss_scale.scale
        # It may call blocks again.
        gradients, of_read = tape.gradient(loss, (self.model.trainable_variables, read))
        if self.memory is not None:
            sums[MEMORY] = self.memory.of_rows(outputs, batch, part)
        # Dense, because Keras' optimizers would square an embedding's sparse gradient before summing repeated rows.
        gradients = [tf.convert_to_tensor(gradient) for gradient in gradients]
        return gradients, sums, list(zip(read, of_read))

    def _evaluate_replica(self, batch: Batch) -> dict[str, Any]:
        return self._predict_replica(batch)[1]

    def _predict_replica(self, batch: Batch) -> tuple[dict[str, tf.Tensor], dict[str, Any]]:
        context = tf.distribute.get_replica_context()
        batch = narrowed(batch)
        outputs = self.model(batch, training=False)
        return outputs, {
            "sums": _all_reduce(context, self.objective.sums(outputs, batch)),
            "counts": _all_reduce(context, self.objective.counts(batch)),
        }


def _compiled(function: Callable, jit_compile: bool) -> Callable:
    return tf.function(function, autograph=False, jit_compile=True) if jit_compile else function


def dropout_key_of(seed: int, step: tf.Tensor) -> tf.Tensor:
    """uint32 [2], a hash of seed and step, so that every step has its own masks."""
    seeds = tf.stack([tf.constant(seed, tf.int64), tf.cast(step, tf.int64) * 65_536])  # The factor keeps older masks.
    return tf.random.stateless_uniform([2], seeds, minval=None, maxval=None, dtype=tf.uint32)


def stateless_bits(key: tf.Tensor, call: int, shape: Sequence[int | tf.Tensor], part: int | tf.Tensor = 0) -> tf.Tensor:
    """Random bits (uint16 `shape`) from TensorFlow's own counter-based generator, one kernel per mask.

    It draws 32 bits at a time, which takes longer than all else that dropout does, and each half serves one element.
    With 16 bits a rate of 0.1 becomes 0.100006.
    """
    seed = tf.stack([tf.bitcast(key[0], tf.int32), tf.bitcast(key[1], tf.int32) + call])
    size = math.prod(shape) if is_static(shape) else tf.reduce_prod(tf.cast(shape, tf.int64))
    # Each part reads the same generator from further on. It counts in blocks of eight values, of which the first ones
    # may belong to the part before.
    is_aligned = isinstance(part, int) and part == 0 or is_static(shape) and size % _VALUES_OF_A_BLOCK == 0
    words = (size + 1) // 2 if is_aligned else (size + _VALUES_OF_A_BLOCK) // 2
    first = tf.cast(part, tf.int64) * tf.cast(size, tf.int64)
    philox_key, counter = tf.raw_ops.StatelessRandomGetKeyCounter(seed=seed)
    counter = tf.bitcast(tf.bitcast(counter, tf.int64) + tf.stack([first // _VALUES_OF_A_BLOCK, 0]), tf.uint64)
    drawn = tf.raw_ops.StatelessRandomUniformFullIntV2(
        shape=[words], key=philox_key, counter=counter, alg=tf.random.Algorithm.PHILOX.value, dtype=tf.uint32
    )
    values = tf.reshape(tf.bitcast(drawn, tf.uint16), [-1])
    if not is_aligned:
        values = values[first % _VALUES_OF_A_BLOCK :]
    return tf.reshape(values[:size], shape)


def _all_reduce(context: tf.distribute.ReplicaContext, values: Any) -> Any:
    if context.num_replicas_in_sync == 1:
        return values
    # What `context.all_reduce` calls. The latter also registers a gradient with TensorFlow for good, which keeps this
    # graph, with all its weights, until the process ends.
    return context.strategy.extended._replica_ctx_all_reduce(SUM, values)


def all_outputs(
    step: Step,
    batches: Iterable[Batch],
    by_token: Collection[str] = (),
    spec: Mapping[str, tf.TensorSpec] | None = None,
) -> tuple[dict[str, np.ndarray | list[np.ndarray]], dict[str, float]]:
    """Computes the outputs and the objective's figures over all batches.

    Args:
        batches: global batches with `row_numbers` [batch] (see `length_batches.LengthBatches`), each row once.
        by_token: names of the outputs [batch, seq, …], which are cut to each row's length.
        spec: the spec of all batches, for which the model is traced once; None traces it for each shape.

    Returns: ({name: outputs [rows, …]}, {name: figure}). Outputs whose shape differs between rows are a list with one
        array per row.
    """
    predict = step.predict.get_concrete_function(spec) if spec else step.predict
    sums = MetricSums(step.objective.terms)
    numbers: list[np.ndarray] = []
    found: dict[str, list[np.ndarray | list[np.ndarray]]] = {}
    for batch in batches:
        outputs, results = predict(batch)
        sums.add(results)
        row_numbers = gathered(step.strategy, batch["row_numbers"])
        is_real = row_numbers >= 0
        numbers.append(row_numbers[is_real])
        lengths = gathered(step.strategy, batch["input_mask"]).sum(axis=-1)[is_real] if by_token else ()
        for name, values in outputs.items():
            values = gathered(step.strategy, values)[is_real]
            if name in by_token:
                values = [value[:length] for value, length in zip(values, lengths)]
            found.setdefault(name, []).append(values)
    order = np.argsort(np.concatenate(numbers), kind="stable")
    return {name: _in_order(batches, order) for name, batches in found.items()}, sums.take()


def _in_order(batches: list[np.ndarray | list[np.ndarray]], order: np.ndarray) -> np.ndarray | list[np.ndarray]:
    """The rows of a list of arrays, or of lists of arrays, in the given order."""
    arrays = [batch for batch in batches if isinstance(batch, np.ndarray)]
    if len(arrays) == len(batches) and all(array.shape[1:] == arrays[0].shape[1:] for array in arrays):
        return np.concatenate(arrays)[order]
    rows = [row for batch in batches for row in batch]
    return [rows[number] for number in order]


def gathered(strategy: tf.distribute.Strategy, values: tf.Tensor) -> np.ndarray:
    """The parts of a global tensor on all replicas as one array."""
    if is_multiworker(strategy):
        return strategy.gather(values, axis=0).numpy()
    # Not by `gather`, which traces a collective operation anew each time.
    return np.concatenate([part.numpy() for part in strategy.experimental_local_results(values)])
