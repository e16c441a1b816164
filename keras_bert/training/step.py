"""One optimiser step and one evaluation step, over every replica of a strategy."""

import tensorflow as tf

from keras_bert.layers.dropout import counter_bits, dropout_key

SUM = tf.distribute.ReduceOp.SUM


class Step:
    """Runs a model and an objective on global batches.

    The order is what makes many replicas equal one: forward and backward, gradients made dense, summed over
    replicas, clipped by their global norm, applied. The loss is divided by the counts of the global batch.

    Args:
        strategy: a `tf.distribute.Strategy`; model and optimizer were made in its scope.
        model: `model(batch, training=...)` gives what `objective.sums` takes.
        objective: has `terms`, `counts(batch)` and `sums(outputs, batch)`; see `PretrainingObjective`.
        optimizer: a `training.optimizer.AdamW`; None where the model is only evaluated.
        clip_norm: the bound on the norm over all gradients together.
        seed: of the dropout masks.
        jit_compile: compile by XLA: the whole step of one replica, of several forward and backward.
        accumulation: how many slices of a replica's batch are computed one after the other.

    Attributes:
        update: what `train` does, to be called inside another `tf.function`; see `StepLoop`.
    """

    def __init__(
        self, strategy, model, objective, optimizer=None, clip_norm=1.0, seed=0, jit_compile=False, accumulation=1
    ):
        self.strategy = strategy
        self.model = model
        self.objective = objective
        self.optimizer = optimizer
        self.clip_norm = clip_norm
        self.seed = seed
        self.accumulation = accumulation
        # Inside XLA a hash of each element's index fuses with what uses it; outside, one kernel that
        # draws all bits is faster than six elementwise ones.
        self._bits = counter_bits if jit_compile else stateless_bits
        # One replica's step is one program, clipping and update in it. On several devices a reduction stands
        # between, which does not compile; there forward and backward do. A TPU compiles whatever it runs.
        on_tpu = isinstance(strategy, tf.distribute.TPUStrategy)
        jit_compile = jit_compile and not on_tpu
        one_replica = strategy.num_replicas_in_sync == 1
        self._compiled_gradients = _compiled(self.gradients, jit_compile and not one_replica)
        self._compiled_replica = _compiled(self._train_replica, jit_compile and one_replica)
        # TensorFlow rewrites a graph as a whole. Were the step inlined where it is called from, alone or in a loop, its
        # sums would be added up in another order there.
        whole = {} if on_tpu else {"_noinline": True}
        self.update = tf.function(self._update, autograph=False, experimental_attributes=whole)

    @tf.function(autograph=False)
    def train(self, batch, step):
        """One update. `step` is an int64 scalar tensor, the number of steps before this one.

        Returns a dict of scalars: `sums` and `counts` as the objective's, `examples` and `tokens` (padding
        not counted) of the global batch, `grad_norm` before clipping, `learning_rate`.
        """
        return self.update(batch, step)

    def _update(self, batch, step):
        return self._first_replica(self.strategy.run(self._compiled_replica, (batch, step)))

    @tf.function(autograph=False)
    def evaluate(self, batch):
        """Sums and counts of one batch, dropout off, nothing updated."""
        return self._first_replica(self.strategy.run(self._evaluate_replica, (batch,)))

    @tf.function(autograph=False)
    def predict(self, batch):
        """`(outputs, results)`: what the model gives for one batch, each replica's part, and what `evaluate` gives."""
        outputs, results = self.strategy.run(self._predict_replica, (batch,))
        return outputs, self._first_replica(results)

    def _first_replica(self, results):
        # All replicas hold the same reduced values.
        return tf.nest.map_structure(lambda value: self.strategy.experimental_local_results(value)[0], results)

    def _train_replica(self, batch, step):
        context = tf.distribute.get_replica_context()
        totals = _all_reduce(context, self.objective.counts(batch))
        key = dropout_key_of(self.seed, step, context.replica_id_in_sync_group)
        gradients, sums = self._compiled_gradients(batch, totals, key)
        gradients = context.all_reduce(SUM, gradients)
        gradients, norm = tf.clip_by_global_norm(gradients, self.clip_norm)
        learning_rate = tf.convert_to_tensor(self.optimizer.learning_rate)
        self.optimizer.apply(gradients, self.model.trainable_variables)
        # Floats, because an all-reduce does not take int32 on the host beside floats on the devices.
        mask = tf.cast(batch["input_mask"], tf.float32)
        seen = {"examples": tf.cast(tf.shape(mask)[0], tf.float32), "tokens": tf.reduce_sum(mask)}
        return {
            "sums": _all_reduce(context, sums),
            "counts": totals,
            **_all_reduce(context, seen),
            "grad_norm": norm,
            "learning_rate": learning_rate,
        }

    def gradients(self, batch, totals, key):
        """(gradients, sums) of a replica's batch, in `accumulation` slices; see `_slice_gradients`."""
        if self.accumulation == 1:
            return self._slice_gradients(batch, totals, key)
        slices = {
            name: tf.reshape(value, [self.accumulation, value.shape[0] // self.accumulation, *value.shape[1:]])
            for name, value in batch.items()
        }

        def slice_number(index):
            slice_key = tf.stack([key[0], key[1] ^ (tf.cast(index, tf.uint32) * tf.constant(0x9E3779B9, tf.uint32))])
            return self._slice_gradients({name: value[index] for name, value in slices.items()}, totals, slice_key)

        def add_slice(index, so_far):
            return index + 1, tf.nest.map_structure(tf.add, so_far, slice_number(index))

        state = (tf.constant(1), slice_number(tf.constant(0)))
        return tf.while_loop(
            lambda index, so_far: index < self.accumulation, add_slice, state, maximum_iterations=self.accumulation - 1
        )[1]

    def _slice_gradients(self, batch, totals, key):
        """(dense gradients of this slice's share in the loss of the global batch, its sums)."""
        with tf.GradientTape() as tape, dropout_key(key, self._bits):
            sums = self.objective.sums(self.model(batch, training=True), batch)
            loss = tf.add_n([tf.math.divide_no_nan(sums[term]["loss"], totals[term]) for term in self.objective.terms])
        gradients = tape.gradient(loss, self.model.trainable_variables)
        # Keras' optimisers square an embedding's sparse gradient before its repeated rows are summed.
        return [tf.convert_to_tensor(gradient) for gradient in gradients], sums

    def _evaluate_replica(self, batch):
        return self._predict_replica(batch)[1]

    def _predict_replica(self, batch):
        context = tf.distribute.get_replica_context()
        outputs = self.model(batch, training=False)
        return outputs, {
            "sums": _all_reduce(context, self.objective.sums(outputs, batch)),
            "counts": _all_reduce(context, self.objective.counts(batch)),
        }


def _compiled(function, jit_compile):
    return tf.function(function, autograph=False, jit_compile=True) if jit_compile else function


def dropout_key_of(seed, step, replica):
    """[2] uint32, a hash of the three: what makes a step's masks its own."""
    step = tf.cast(step, tf.int64)
    seeds = tf.stack([tf.constant(seed, tf.int64), step * 65_536 + tf.cast(replica, tf.int64)])
    return tf.random.stateless_uniform([2], seeds, minval=None, maxval=None, dtype=tf.uint32)


def stateless_bits(key, call, shape):
    """Random bits by TensorFlow's own counter-based generator, one kernel a mask."""
    seed = tf.stack([tf.bitcast(key[0], tf.int32), tf.bitcast(key[1], tf.int32) + call])
    return tf.random.stateless_uniform(shape, seed, minval=None, maxval=None, dtype=tf.uint32)


def _all_reduce(context, values):
    flat = tf.nest.flatten(values)
    return tf.nest.pack_sequence_as(values, context.all_reduce(SUM, flat))
