"""float16: the loss scale falls and rises, skipped steps change nothing, and a resumed run gives the same bits."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from tiny import model_and_optimizer, pretraining_batch, without_dropout

from keras_bert.models.bert.encoder import BertEncoder
from keras_bert.models.pretraining import PretrainingObjective
from keras_bert.training.checkpoints import Checkpoints
from keras_bert.training.loss_scale import CEILING, LossScale
from keras_bert.training.metrics import MetricSums, each_step
from keras_bert.training.optimizers.adamw import AdamW
from keras_bert.training.step import Step
from keras_bert.training.step_loop import taking, trainer

CONFIG = without_dropout(num_hidden_layers=1)
INF, NAN = float("inf"), float("nan")
START = 2.0**20  # The first gradients of these batches overflow at this scale.


class Scaled:
    """One weight under a loss scale; each call applies one gradient in every replica."""

    def __init__(self, strategy, initial, growth_steps=2):
        self.strategy = strategy
        with strategy.scope():
            self.weight = keras.Variable([1.0], name="kernel")
            self.optimizer = AdamW(0.1)
            self.optimizer.build([self.weight])
            self.scale = LossScale(initial, growth_steps)

        def apply(gradient):
            is_finite = tf.math.is_finite(gradient[0])
            return self.scale.apply(self.optimizer, [gradient], [self.weight], is_finite)

        self._run = tf.function(lambda gradient: strategy.run(apply, (gradient,)), autograph=False)

    def step(self, gradient):
        """(loss scale of the step, was it skipped, steps skipped so far), after the check that replicas agree."""
        result = self._run(tf.constant([gradient]))
        values = [self.strategy.experimental_local_results(value) for value in result.values()]
        assert all(float(one) == float(replicas[0]) for replicas in values for one in replicas)
        return tuple(float(replicas[0]) for replicas in values)

    def state(self):
        copies = [self.strategy.experimental_local_results(getattr(v, "value", v)) for v in self.variables()]
        return [copy.numpy().tolist() for replicas in copies for copy in replicas]

    def variables(self):
        return [self.weight, *self.optimizer.variables]


@pytest.mark.parametrize("mirrored", [False, True])
def test_the_scale_falls_and_rises_and_a_skipped_step_changes_nothing(mirrored_strategy, mirrored):
    """Weights, moments and the optimizer's step count stay as they are, in every replica."""
    scaled = Scaled(mirrored_strategy if mirrored else tf.distribute.get_strategy(), 8.0)
    assert scaled.step(0.5) == (8.0, 0.0, 0.0)
    before = scaled.state()
    assert scaled.step(INF) == (8.0, 1.0, 1.0)
    assert scaled.step(NAN) == (4.0, 1.0, 2.0)
    assert scaled.state() == before
    assert [scaled.step(0.5)[0] for _ in range(5)] == [2.0, 2.0, 4.0, 4.0, 8.0]
    assert scaled.state() != before and int(scaled.optimizer.iterations.numpy()) == 6
    assert scaled.step(INF) == (8.0, 1.0, 3.0)
    # The finite steps before the overflow no longer count.
    assert [scaled.step(0.5)[0] for _ in range(3)] == [4.0, 4.0, 8.0]


def test_at_the_floor_a_gradient_that_is_not_finite_is_an_error():
    scaled, sums = Scaled(tf.distribute.get_strategy(), 2.0), MetricSums(("mlm",))
    before = scaled.state()

    def add(gradient):
        _, was_skipped, _ = scaled.step(gradient)
        loss = {"sums": {"mlm": {"loss": NAN}}, "counts": {"mlm": 1.0}}
        sums.add({**loss, "grad_norm": gradient, "was_skipped": was_skipped})

    add(INF)
    assert sums.first_not_finite() is None
    add(INF)
    assert sums.first_not_finite() == 1
    assert scaled.state() == before and float(scaled.scale.scale) == 1.0


def test_a_scale_that_only_rises_ends_at_the_ceiling():
    scaled = Scaled(tf.distribute.get_strategy(), CEILING, growth_steps=1)
    assert [scaled.step(0.5)[0] for _ in range(3)] == [CEILING] * 3


def test_a_skipped_step_without_a_loss_stays_out_of_the_figures():
    def result(loss, was_skipped):
        return {"sums": {"mlm": {"loss": loss}}, "counts": {"mlm": 2.0}, "was_skipped": was_skipped}

    sums = MetricSums(("mlm",))
    for loss, was_skipped in ((6.0, 0.0), (INF, 1.0), (2.0, 1.0)):
        sums.add(result(loss, was_skipped))
    assert sums.totals() == {"sums": {"mlm": {"loss": 8.0}}, "counts": {"mlm": 4.0}}
    assert sums.take()["loss"] == 2.0
    sums.add(result(NAN, 1.0))
    assert sums.totals() is None and np.isnan(sums.take()["loss"])


def make_step(strategy, precision="float16", initial=2.0**15, growth_steps=2000, accumulation=1, jit_compile=False):
    dtype = "mixed_float16" if precision == "float16" else "float32"
    model, optimizer = model_and_optimizer(strategy, CONFIG, 20, dtype)
    with strategy.scope():
        scale = LossScale(initial, growth_steps) if precision == "float16" else None
    return Step(strategy, model, PretrainingObjective(4), optimizer, 0.5, 1, jit_compile, accumulation, scale)


def train(step, first=0, steps=8, steps_per_loop=1):
    """The result of each step, as floats by name, and all variables."""
    batches = [pretraining_batch(step.model.config, batch=8, seed=index) for index in range(first, first + steps)]
    dataset = tf.data.Dataset.from_tensor_slices({name: np.stack([b[name] for b in batches]) for name in batches[0]})
    take = taking(iter(step.strategy.experimental_distribute_dataset(dataset)), dataset, (12,), steps_per_loop)
    results, training = [], trainer(step, steps_per_loop)
    for done in range(first, first + steps, steps_per_loop):
        results += each_step(training.train(take(steps_per_loop), tf.constant(done, tf.int64)))
    scale = [] if step.loss_scale is None else step.loss_scale.variables
    variables = [*step.model.variables, *step.optimizer.variables, *scale]
    return results, [variable.numpy() for variable in variables]


def column(results, name):
    return [float(result[name]) for result in results]


def losses(results):
    return [float(r["sums"]["mlm"]["loss"]) / float(r["counts"]["mlm"]) for r in results]


@pytest.fixture(scope="module")
def overflowing():
    """8 steps from a scale at which the first ones overflow, on one device."""
    return train(make_step(tf.distribute.get_strategy(), initial=START, growth_steps=2))


@pytest.fixture(scope="module")
def half():
    """8 steps in float16 from the scale that runs start at, on one device."""
    return train(make_step(tf.distribute.get_strategy()))[0]


def test_float16_learns_as_float32_does(half):
    single = train(make_step(tf.distribute.get_strategy(), "float32"))[0]
    assert column(half, "skipped_steps")[-1] == 0
    np.testing.assert_allclose(losses(half), losses(single), rtol=5e-3)
    np.testing.assert_allclose(column(half, "grad_norm"), column(single, "grad_norm"), rtol=2e-2)
    assert losses(half)[-1] < losses(half)[0]


def test_a_real_overflow_is_skipped(overflowing):
    results, _ = overflowing
    skipped = column(results, "was_skipped")
    scales = column(results, "loss_scale")
    for scale, after, was_skipped in zip(scales, scales[1:], skipped):
        assert after == scale / 2 if was_skipped else after in (scale, 2 * scale)
    assert scales[0] == START and min(scales) < START / 2 and any(b > a for a, b in zip(scales, scales[1:]))
    assert column(results, "skipped_steps") == np.cumsum(skipped).tolist()


@pytest.mark.parametrize(("mirrored", "accumulation"), [(False, 4), pytest.param(True, 2, marks=pytest.mark.slow)])
def test_replicas_and_accumulation_learn_the_same_and_skip_together(half, mirrored_strategy, mirrored, accumulation):
    strategy = mirrored_strategy if mirrored else tf.distribute.get_strategy()
    step = make_step(strategy, accumulation=accumulation)
    np.testing.assert_allclose(losses(train(step)[0]), losses(half), rtol=5e-3)

    def copies():
        variables = [getattr(v, "value", v) for v in (*step.model.variables, *step.optimizer.variables)]
        return [[copy.numpy() for copy in strategy.experimental_local_results(v)] for v in variables]

    before = copies()
    step.loss_scale.scale.assign(CEILING)
    assert column(train(step, steps=2)[0], "was_skipped") == [1.0, 1.0]
    for received, expected in zip(copies(), before, strict=True):
        for copy in received:
            np.testing.assert_array_equal(copy, expected[0])
    assert step.loss_scale.scale.numpy() == CEILING / 4


@pytest.mark.slow
def test_xla_learns_the_same_and_skips(half):
    step = make_step(tf.distribute.get_strategy(), jit_compile=True)
    np.testing.assert_allclose(losses(train(step)[0]), losses(half), rtol=5e-3)
    before = [variable.numpy() for variable in step.model.variables]
    step.loss_scale.scale.assign(CEILING)
    assert column(train(step, steps=2)[0], "was_skipped") == [1.0, 1.0]
    for variable, value in zip(step.model.variables, before, strict=True):
        np.testing.assert_array_equal(variable.numpy(), value)


@pytest.mark.slow
@pytest.mark.usefixtures("rewritten_graphs")
def test_a_loop_of_steps_gives_the_bits_of_single_steps():
    strategy = tf.distribute.OneDeviceStrategy("CPU:0")
    single, looped = (
        train(make_step(strategy, initial=START, growth_steps=2), steps_per_loop=steps) for steps in (1, 4)
    )
    assert column(looped[0], "loss_scale") == column(single[0], "loss_scale")
    assert column(looped[0], "skipped_steps") == column(single[0], "skipped_steps")
    for received, expected in zip(looped[1], single[1], strict=True):
        np.testing.assert_array_equal(received, expected)


@pytest.mark.slow
def test_a_resumed_run_gives_the_same_bits(tmp_path):
    """The scale, the finite steps that it has seen and the count of skipped steps come back with the weights."""

    def part(first, **options):
        step = make_step(tf.distribute.get_strategy(), initial=START, growth_steps=2)
        checkpoints = Checkpoints(
            str(tmp_path), 1, model=step.model, optimizer=step.optimizer, loss_scale=step.loss_scale
        )
        assert checkpoints.restore_newest() == first
        results, variables = train(step, first, **options)
        checkpoints.save(first + len(results))
        return results, variables

    expected = train(make_step(tf.distribute.get_strategy(), initial=START, growth_steps=2))
    before, _ = part(0, steps=5)
    after, variables = part(5, steps=3)
    for name in ("loss_scale", "skipped_steps", "grad_norm"):
        np.testing.assert_array_equal(column([*before, *after], name), column(expected[0], name))
    for received, wanted in zip(variables, expected[1], strict=True):
        np.testing.assert_array_equal(received, wanted)


def test_an_example_that_is_all_padding_is_finite_in_float16():
    """A bias of -inf on every position would make its softmax NaN, and the loss too: a weight of 0 times NaN is NaN."""
    encoder = BertEncoder(CONFIG, dtype="mixed_float16")
    ids = np.array([[2, 7, 3], [0, 0, 0]], "int32")
    mask = (ids > 0).astype("int32")
    output = encoder({"input_word_ids": ids, "input_mask": mask, "input_type_ids": ids * 0})["sequence_output"]
    assert np.isfinite(output).all()
