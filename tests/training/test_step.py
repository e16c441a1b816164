"""One step of training: equal on one device and two, compiled or not, and the same when done again."""

import dataclasses
import functools
import gc
import time

import numpy as np
import pytest
import tensorflow as tf
from tiny import model_and_optimizer, pretraining_batch, tiny_config, without_dropout

import keras_bert
from keras_bert.models.pretraining import BertForPreTraining, PretrainingObjective
from keras_bert.training.metrics import MetricSums, Throughput
from keras_bert.training.step import Step, gathered

STEPS = 10
CONFIG = without_dropout(num_hidden_layers=1)


def make_step(strategy, config, jit_compile=False, clip_norm=0.5, seed=1, **options):
    model, optimizer = model_and_optimizer(strategy, config, STEPS)
    return Step(strategy, model, PretrainingObjective(4), optimizer, clip_norm, seed, jit_compile, **options)


def train(step, config):
    """10 steps on unequal batches; returns (weights, results of the steps)."""
    strategy, model = step.strategy, step.model
    batches = [pretraining_batch(config, batch=8, seed=index) for index in range(STEPS)]
    dataset = tf.data.Dataset.from_tensor_slices({name: np.stack([b[name] for b in batches]) for name in batches[0]})
    results = [
        step.train(batch, tf.constant(index, tf.int64))
        for index, batch in enumerate(strategy.experimental_distribute_dataset(dataset))
    ]
    return [variable.numpy() for variable in model.trainable_variables], results


@functools.cache
def one_device(rate=0.0, jit_compile=False):
    config = dataclasses.replace(CONFIG, hidden_dropout_prob=rate, attention_probs_dropout_prob=rate)
    return train(make_step(tf.distribute.get_strategy(), config, jit_compile), config)


@pytest.mark.parametrize(
    ("mirrored", "jit_compile", "accumulation", "parallel", "rate"),
    [
        (False, True, 1, 1, 0.0),
        (False, False, 2, 2, 0.1),
        pytest.param(False, True, 1, 4, 0.1, marks=pytest.mark.slow),
        pytest.param(True, False, 2, 1, 0.1, marks=pytest.mark.slow),
        pytest.param(True, True, 2, 1, 0.1, marks=pytest.mark.slow),
    ],
)
def test_replicas_xla_and_slices_change_nothing(mirrored_strategy, mirrored, jit_compile, accumulation, parallel, rate):
    """Guards the order reduce, clip, update, the division by global counts, Keras' private hook, and the dropout masks.

    XLA draws other masks, so it is compared without dropout, or with itself.
    """
    strategy = mirrored_strategy if mirrored else tf.distribute.get_strategy()
    config = dataclasses.replace(CONFIG, hidden_dropout_prob=rate, attention_probs_dropout_prob=rate)
    step = make_step(strategy, config, jit_compile, accumulation=accumulation, parallel=parallel)
    weights, results = train(step, config)
    reference = one_device(rate, jit_compile and rate > 0)
    for received, expected in zip(weights, reference[0], strict=True):
        np.testing.assert_allclose(received, expected, rtol=0, atol=1e-5)
    for received, expected in zip(results, reference[1], strict=True):
        for result, other in zip(tf.nest.flatten(received), tf.nest.flatten(expected), strict=True):
            np.testing.assert_allclose(result, other, rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_two_replicas_change_the_embeddings_of_a_row_as_one_does(mirrored_strategy):
    strategies = tf.distribute.get_strategy(), mirrored_strategy
    one, two = (train(make_step(strategy, CONFIG, adversarial=0.2), CONFIG)[0] for strategy in strategies)
    for received, expected in zip(two, one, strict=True):
        np.testing.assert_allclose(received, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("mirrored", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_step_that_is_gone_leaves_no_graph(mirrored, mirrored_strategy):
    """Otherwise fine-tuning with several seeds in one process would keep the weights and moments of each."""

    def graphs():
        for _ in range(3):  # What the first takes apart may hold more.
            gc.collect()
        return sum(isinstance(thing, tf.__internal__.FuncGraph) for thing in gc.get_objects())

    def train_and_evaluate():
        step = make_step(mirrored_strategy if mirrored else tf.distribute.get_strategy(), CONFIG)
        dataset = tf.data.Dataset.from_tensors(pretraining_batch(CONFIG))
        (batch,) = step.strategy.experimental_distribute_dataset(dataset)
        step.train(batch, tf.constant(0, tf.int64))
        step.evaluate(batch)

    before = graphs()
    train_and_evaluate()
    assert graphs() <= before


def test_clipping_was_at_work():
    """Otherwise the comparison over replicas would not notice clipping before the reduction."""
    assert max(float(result["grad_norm"]) for result in one_device(0.1)[1]) > 0.5


def test_slices_of_a_batch_draw_different_dropout_masks():
    """Four copies of one slice, accumulated: with the same mask in all, the loss would be four times the first's."""
    config = tiny_config(num_hidden_layers=1)
    model = BertForPreTraining(config)
    part = pretraining_batch(config, batch=2)
    batch = {name: tf.constant(np.concatenate([value] * 4)) for name, value in part.items()}
    key = tf.constant([1, 2], tf.uint32)
    losses = []
    for accumulation, rows in ((4, 8), (1, 2)):
        step = Step(tf.distribute.get_strategy(), model, PretrainingObjective(4), accumulation=accumulation)
        piece = {name: value[:rows] for name, value in batch.items()}
        losses.append(float(step.gradients(piece, step.objective.counts(batch), key)[1]["mlm"]["loss"]))
    assert abs(losses[0] - 4 * losses[1]) > 1e-3


def test_dropout_of_what_all_rows_share_is_the_same_in_all_slices():
    """An XLNet's distances have no batch rows."""
    rates = dict.fromkeys(("hidden_dropout_prob", "attention_probs_dropout_prob"), 0.1)
    model = BertForPreTraining(keras_bert.XlnetConfig(60, 16, 1, 2, 32, initializer_range=0.3, **rates), terms=("plm",))
    rows = 8
    batch = {
        "input_word_ids": np.random.default_rng(0).integers(10, 60, (rows, 16)),
        "input_mask": np.ones((rows, 16)),
        "input_type_ids": np.zeros((rows, 16)),
        "masked_lm_positions": np.tile([2, 5, 9], (rows, 1)),
        "permutation_ranks": np.tile([{2: 0, 5: 1, 9: 2}.get(place, -1) for place in range(16)], (rows, 1)),
    }
    batch = {name: tf.constant(values, tf.int32) for name, values in batch.items()}
    batch["masked_lm_ids"] = tf.gather(batch["input_word_ids"], batch["masked_lm_positions"], batch_dims=1)
    batch |= {"masked_lm_weights": tf.ones((rows, 3)), "example_weights": tf.ones(rows)}
    losses = []
    for accumulation in (1, 4):
        objective = PretrainingObjective(4, terms=("plm",))
        step = Step(tf.distribute.get_strategy(), model, objective, accumulation=accumulation)
        totals, key = objective.counts(batch), tf.constant([1, 2], tf.uint32)
        losses.append(float(step.gradients(batch, totals, key)[1]["plm"]["loss"]))
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def test_slices_of_a_batch_are_computed_one_after_the_other(monkeypatch):
    """Several at once would need the memory that accumulation is meant to save."""
    step = Step(tf.distribute.get_strategy(), None, PretrainingObjective(4), accumulation=4)
    running, together = [], []

    def compute(rows):
        running.append(rows)
        time.sleep(0.02)
        together.append(len(running))
        running.pop()
        return np.float32(rows.sum())

    def slice_gradients(batch, totals, key, part):
        return [tf.numpy_function(compute, [batch["rows"]], tf.float32, stateful=False)], {}

    monkeypatch.setattr(step, "_slice_gradients", slice_gradients)
    gradients = tf.function(lambda rows: step.gradients({"rows": rows}, {}, tf.constant([1, 2], tf.uint32))[0])
    assert float(gradients(tf.range(8.0))[0]) == 28.0
    assert together == [1, 1, 1, 1]


@pytest.mark.parametrize("jit_compile", [False, True])
def test_parts_of_a_slice_do_not_wait_for_each_other(monkeypatch, jit_compile):
    """One after the other, they would leave cores idle."""
    step = make_step(tf.distribute.get_strategy(), CONFIG, jit_compile, parallel=2)
    if not jit_compile:  # Otherwise each part is a call already.
        monkeypatch.setattr(step, "_compiled_part", tf.function(step._part_gradients, autograph=False))
    batch = {name: tf.constant(value) for name, value in pretraining_batch(CONFIG, batch=8).items()}
    gradients = tf.function(lambda: step.gradients(batch, step.objective.counts(batch), tf.constant([1, 2], tf.uint32)))

    def needed(op):
        before = {*(tensor.op for tensor in op.inputs), *op.control_inputs}
        return before.union(*map(needed, before))

    graph = gradients.get_concrete_function().graph
    first, second = (op for op in graph.get_operations() if "part_gradients" in str(op.node_def.attr.get("f")))
    assert first not in needed(second) and second not in needed(first)


@pytest.mark.parametrize("jit_compile", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_dropout_repeats_with_its_seed_and_differs_without(jit_compile):
    config = tiny_config(num_hidden_layers=1)
    step, other_step = (make_step(tf.distribute.get_strategy(), config, jit_compile, seed=seed) for seed in (1, 2))
    variables = [*step.model.trainable_variables, *step.optimizer.variables]
    begun = [variable.numpy() for variable in variables]
    first = train(step, config)[0]
    for variable, value in zip(variables, begun, strict=True):
        variable.assign(value)
    again, other = train(step, config)[0], train(other_step, config)[0]
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(first, other, strict=True))


def test_replicas_draw_different_dropout_masks(mirrored_strategy):
    """The same example on both replicas must not get the same mask: their losses differ."""
    config = tiny_config(num_hidden_layers=1)
    with mirrored_strategy.scope():
        model = BertForPreTraining(config)
    step = Step(mirrored_strategy, model, PretrainingObjective(4), seed=1)
    half = pretraining_batch(config, batch=2)
    doubled = {name: np.concatenate([value, value]) for name, value in half.items()}
    dataset = tf.data.Dataset.from_tensors(doubled)
    (batch,) = mirrored_strategy.experimental_distribute_dataset(dataset)

    def losses(batch):
        replica = tf.convert_to_tensor(tf.distribute.get_replica_context().replica_id_in_sync_group)
        key = tf.constant([1, 2], tf.uint32)
        return step.gradients(batch, step.objective.counts(batch), key, replica)[1]["mlm"]["loss"]

    first, second = mirrored_strategy.experimental_local_results(
        tf.function(lambda batch: mirrored_strategy.run(losses, (batch,)), autograph=False)(batch)
    )
    assert float(first) != float(second)


def test_metrics_divide_sums_by_counts_over_all_steps():
    def result(loss, count):
        return {"sums": {"mlm": {"loss": loss, "accuracy": 1.0}}, "counts": {"mlm": count}}

    sums = MetricSums(("mlm",))
    sums.add(result(6.0, 2.0))
    sums.add(result(4.0, 8.0))
    # A mean of the two steps' means would be 1.75.
    assert sums.take() == {"loss": 1.0, "mlm_loss": 1.0, "mlm_accuracy": 0.2}


def test_figures_go_on_from_totals_as_without_a_break():
    """Bit for bit: a checkpoint between two lines of the log must not change the second."""
    results = [
        {"sums": {"mlm": {"loss": tf.constant(0.1 * n)}}, "counts": {"mlm": tf.constant(n)}} for n in (1.0, 7.0, 3.0)
    ]
    whole, begun = MetricSums(("mlm",)), MetricSums(("mlm",))
    assert begun.totals() is None
    for result in results:
        whole.add(result)
    for result in results[:2]:
        begun.add(result)
    going_on = MetricSums(("mlm",), begun.totals())
    going_on.add(results[2])
    assert going_on.take() == whole.take()
    assert going_on.totals() is None


def test_throughput_leaves_pauses_out_and_sees_the_wait(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("time.perf_counter", lambda: now[0])
    monkeypatch.setattr("time.process_time", lambda: 2.0 * now[0])
    throughput = Throughput()
    with throughput.waiting():
        now[0] += 1.0
    now[0] += 3.0
    with throughput.paused():
        now[0] += 10.0
    throughput.add({"examples": 8, "tokens": 100, "grad_norm": 1.0})
    assert throughput.take() == {
        "seconds": 4.0,
        "cpu_seconds": 8.0,
        "examples_per_second": 2.0,
        "tokens_per_second": 25.0,
        "data_wait_fraction": 0.25,
    }


def test_what_replicas_computed_is_joined_without_a_collective_operation(mirrored_strategy, monkeypatch):
    """TensorFlow traces one at each call: 70 ms for each output of each batch of a validation."""
    monkeypatch.setattr(type(mirrored_strategy), "gather", lambda *_, **__: 1 / 0)
    batches = mirrored_strategy.experimental_distribute_dataset(tf.data.Dataset.range(8).batch(4))
    found = [gathered(mirrored_strategy, batch).tolist() for batch in batches]
    assert found == [[0, 1, 2, 3], [4, 5, 6, 7]]
