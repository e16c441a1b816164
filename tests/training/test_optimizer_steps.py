"""Steps with every optimizer, rate factors and averaged weights: equal on one device and two, compiled, accumulated."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from tiny import pretraining_batch, without_dropout

from keras_bert.config.training import OptimizerConfig
from keras_bert.models.pretraining import BertForPreTraining, PretrainingObjective
from keras_bert.training.optimizer import make_optimizer
from keras_bert.training.step import Step
from keras_bert.training.variable_names import gradient_parts

STEPS = 10
CONFIG = without_dropout(num_hidden_layers=1)
VARIANTS = {
    "adamw": {"layer_decay": 0.8, "rates": {"embeddings": 0.5}, "weight_average": 0.9},
    "lamb": {"name": "lamb", "layer_decay": 0.9, "rates": {"embeddings": 0.5}, "weight_average": 0.9},
    "adafactor": {"name": "adafactor", "first_moment": True, "relative_step": True, "weight_average": 0.9},
}


def train(strategy, settings, jit_compile=False, accumulation=1):
    """({name: weight or average}, results) of 10 steps on unequal batches."""
    keras.utils.set_random_seed(0)
    with strategy.scope():
        model = BertForPreTraining(CONFIG)
        settings = OptimizerConfig(learning_rate=1e-2, warmup_steps=3, **settings)
        optimizer = make_optimizer(settings, STEPS, model=model)
        optimizer.build(model.trainable_variables)
    objective, parts = PretrainingObjective(4), gradient_parts(model)
    step = Step(strategy, model, objective, optimizer, 0.5, 1, jit_compile, accumulation, gradient_parts=parts)
    batches = [pretraining_batch(CONFIG, batch=8, seed=index) for index in range(STEPS)]
    dataset = tf.data.Dataset.from_tensor_slices({name: np.stack([b[name] for b in batches]) for name in batches[0]})
    results = [
        step.train(batch, tf.constant(index, tf.int64))
        for index, batch in enumerate(strategy.experimental_distribute_dataset(dataset))
    ]
    variables = model.trainable_variables
    values = {variable.path: variable.numpy() for variable in variables}
    averages = {f"{variable.path} average": each.numpy() for variable, each in zip(variables, optimizer.averages)}
    return {**values, **averages}, results


def slow_but_adamw(name):  # What the others compute is compared with NumPy in test_optimizers.py.
    return name if name == "adamw" else pytest.param(name, marks=pytest.mark.slow)


@pytest.fixture(scope="module", params=map(slow_but_adamw, VARIANTS))
def one_device(request):
    """(settings, values, results) without accumulation or XLA."""
    settings = VARIANTS[request.param]
    return settings, *train(tf.distribute.get_strategy(), settings)


def is_invariant(path):
    """Whether the loss does not depend on a variable, whose gradient is then rounding error.

    The bias of a key adds the same to all scores of a query, and softmax takes it out again. Adafactor divides a
    gradient by its own size, however small.
    """
    return "/key/bias" in path


@pytest.mark.slow
@pytest.mark.parametrize(("mirrored", "jit_compile", "accumulation"), [(True, False, 2), (True, True, 4)])
def test_replicas_xla_and_accumulation_change_nothing(
    one_device, mirrored_strategy, mirrored, jit_compile, accumulation
):
    """It would show if a replica took the norm of its part of a gradient, or updated an average twice."""
    settings, expected, expected_results = one_device
    strategy = mirrored_strategy if mirrored else tf.distribute.get_strategy()
    received, results = train(strategy, settings, jit_compile, accumulation)
    for (path, ours), theirs in zip(received.items(), expected.values(), strict=True):
        if not is_invariant(path):
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5, err_msg=path)
    for ours, theirs in zip(results, expected_results, strict=True):
        for result, reference in zip(tf.nest.flatten(ours), tf.nest.flatten(theirs), strict=True):
            np.testing.assert_allclose(result, reference, rtol=1e-4, atol=1e-6)


def test_the_norms_of_the_parts_make_up_the_norm(one_device):
    """Of the gradient before clipping, and clipping was at work."""
    norms = []
    for result in one_device[2]:
        parts = {name: float(value) for name, value in result.items() if name.startswith("grad_norm_")}
        assert list(parts) == [
            f"grad_norm_{part}" for part in ("embeddings", "block_0", "pooler", "mlm_head", "nsp_head")
        ]
        norms.append(float(result["grad_norm"]))
        assert sum(value**2 for value in parts.values()) == pytest.approx(norms[-1] ** 2, rel=1e-5)
    assert max(norms) > 0.5
