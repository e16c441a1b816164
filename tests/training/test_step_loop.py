"""Many steps in one call: the same numbers as one call a step, and settings that do not fit are refused."""

from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf
from tiny import model_and_optimizer, pretraining_batch, tiny_config

from keras_bert.config.finetuning import FinetuneConfig
from keras_bert.config.pretraining import PretrainConfig
from keras_bert.core.errors import UserError
from keras_bert.data.batches.length_batches import LengthBatches
from keras_bert.data.batches.token_rows import TargetRows, TokenRows
from keras_bert.models.pretraining import PretrainingObjective
from keras_bert.training.metrics import MetricSums, Throughput
from keras_bert.training.step import Step
from keras_bert.training.step_loop import StepLoop, taking, trainer

# A step that is inlined into a loop is rewritten with it, and its sums are added up in another order.
pytestmark = pytest.mark.usefixtures("rewritten_graphs")

STEPS = 7


def train(strategy, steps_per_loop, widths, jit_compile, accumulation):
    """`STEPS` steps on batches whose widths alternate: (logged figures, gradient norms and rates, all variables)."""
    config = tiny_config(num_hidden_layers=1)
    model, optimizer = model_and_optimizer(strategy, config, STEPS)
    step = Step(strategy, model, PretrainingObjective(4), optimizer, 0.5, 1, jit_compile, accumulation)
    batches = [pretraining_batch(config, batch=4, seq=widths[n % len(widths)], seed=n) for n in range(STEPS)]
    several = len(widths) > 1
    spec = {
        name: tf.TensorSpec([4, None] if several and name.startswith("input") else value.shape, value.dtype)
        for name, value in batches[0].items()
    }
    dataset = tf.data.Dataset.from_generator(lambda: iter(batches), output_signature=spec)
    take = taking(iter(strategy.experimental_distribute_dataset(dataset)), dataset, widths, steps_per_loop)
    training, sums, results, done = trainer(step, steps_per_loop), MetricSums(("mlm", "nsp")), [], 0
    while done < STEPS:
        count = min(steps_per_loop, STEPS - done)
        results.append(training.train(take(count), tf.constant(done, tf.int64)))
        sums.add(results[-1])
        done += count
    assert len(sums) == STEPS
    seen = {name: np.hstack([result[name] for result in results]) for name in ("grad_norm", "learning_rate", "tokens")}
    return sums.take(), seen, [variable.numpy() for variable in (*model.variables, *optimizer.variables)]


@pytest.mark.parametrize(
    ("mirrored", "widths", "jit_compile", "accumulation"),
    [
        pytest.param(False, (12,), False, 2, id="accumulation", marks=pytest.mark.slow),
        pytest.param(False, (12,), True, 1, id="XLA", marks=pytest.mark.slow),
        pytest.param(True, (12, 16), False, 1, id="two replicas, two widths", marks=pytest.mark.slow),
    ],
)
def test_a_loop_of_steps_gives_the_bits_of_single_steps(mirrored_strategy, mirrored, widths, jit_compile, accumulation):
    """Weights, moments, sums, norms and rates; dropout is on, so every step must also draw its own masks."""
    strategy = mirrored_strategy if mirrored else tf.distribute.OneDeviceStrategy("CPU:0")
    single, looped = (train(strategy, loop, widths, jit_compile, accumulation) for loop in (1, 3))
    assert looped[0] == single[0]
    for name, values in single[1].items():
        np.testing.assert_array_equal(looped[1][name], values)
    for received, expected in zip(looped[2], single[2], strict=True):
        np.testing.assert_array_equal(received, expected)


def test_each_batch_with_targets_is_trained_on_once_in_its_own_shape():
    """Two shapes of one width used to share batches or get none, and a text's width was taken for its target's."""
    widths, sizes = (4, 10), (2, 6)
    lengths, wanted = (np.repeat(pair, 6) for pair in (np.tile(widths, 2), np.repeat(sizes, 2)))
    starts, target_starts = (np.concatenate([[0], np.cumsum(counts)]) for counts in (lengths, wanted))
    rows = TokenRows(np.full(starts[-1], 7, "int32"), starts, lengths.astype("int32"), {})
    rows.targets = TargetRows(np.full(target_starts[-1], 8, "int32"), target_starts)
    source = LengthBatches(rows, 4, 0, 0, widths, sizes=sizes)
    dataset, seen = source.epoch(0), []

    def update(batch, step):
        seen.append(step)
        shapes = [batch[name].shape[1] for name in ("input_word_ids", "target_ids")]
        return {"shape": tf.constant(10.0 * shapes[0] + shapes[1])}

    step = SimpleNamespace(strategy=tf.distribute.OneDeviceStrategy("CPU:0"), objective=None, update=update)
    count = source.batches_per_epoch
    taken = taking(iter(dataset), dataset, source.widths, count)(count)
    results = StepLoop(step).train(taken, tf.constant(0, tf.int64))
    expected = [10.0 * batch["input_word_ids"].shape[1] + batch["target_ids"].shape[1] for batch in dataset]
    assert results["shape"].numpy().tolist() == expected and len(set(expected)) == len(seen) == 4


def test_what_a_loop_hides_is_left_out():
    """Nobody sees waits inside the loop: a data_wait_fraction of 0 would be a lie."""
    throughput = Throughput()
    throughput.add({"steps": 2, **{name: np.array([8.0, 9.0]) for name in ("examples", "tokens", "grad_norm")}})
    assert set(throughput.take()) == {"seconds", "cpu_seconds", "examples_per_second", "tokens_per_second"}


def test_no_number_inside_a_loop_is_found_at_its_step():
    """The loop goes on to its end with weights that are no numbers; the step named must be where that began."""
    losses = np.array([1.0, 1.0, np.nan, np.nan], "float32")
    sums = MetricSums(("mlm",))
    sums.add({"sums": {"mlm": {"loss": 1.0}}, "counts": {"mlm": 1.0}, "grad_norm": 1.0})
    sums.add({"steps": 4, "sums": {"mlm": {"loss": losses}}, "counts": {"mlm": np.ones(4)}, "grad_norm": np.ones(4)})
    assert len(sums) == 5 and sums.first_not_finite() == 3


def pretrain_config(shares=(1.0,), **training):
    return PretrainConfig.from_mapping(
        {"phases": [{"share": share} for share in shares], "training": {"steps_per_loop": 20, **training}}
    )


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"log_every": 25}, r"training.log_every: .*multiple of steps_per_loop \(20\).* 20 or 40. Received: 25"),
        ({"evaluate_every": 110}, "training.evaluate_every: .* 100 or 120. Received: 110"),
        ({"checkpoint_every": 5}, "training.checkpoint_every: .* being 20. Received: 5"),
        ({"profile_at": 50}, "training.profile_at: .* 40 or 60"),
    ],
)
def test_settings_that_no_loop_ends_at_are_refused(settings, line):
    with pytest.raises(UserError, match=line):
        pretrain_config(**settings)


def test_settings_that_fit_are_taken():
    # A loop ends where the run or a phase does.
    pretrain_config(steps=1005, shares=(0.9, 0.1))
    FinetuneConfig.from_mapping({"task": "sst2", "training": {"steps_per_loop": 10}})
    with pytest.raises(UserError, match="training.evaluate_every: .* 10 or 20. Received: 15"):
        FinetuneConfig.from_mapping({"task": "sst2", "training": {"steps_per_loop": 10, "evaluate_every": 15}})
