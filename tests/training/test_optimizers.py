"""AdamW, LAMB and Adafactor against their papers in NumPy, against torch, and stopped and resumed."""

import keras
import numpy as np
import numpy_optimizers
import pytest
import tensorflow as tf
from goldens import load_arrays

from keras_bert.training.checkpoints import Checkpoints
from keras_bert.training.engine import averaged_weights, start_average
from keras_bert.training.optimizers.adafactor import Adafactor
from keras_bert.training.optimizers.adamw import AdamW
from keras_bert.training.optimizers.lamb import LAMB, trust_ratio

STEPS, RATE, DECAY = 20, 0.01, 0.1
SHAPES = {"kernel": (5, 3), "table": (4, 6), "bias": (6,), "gamma": (3,), "beta": (3,)}
VARIANTS = {
    "adamw": (AdamW, {}),
    "lamb": (LAMB, {}),
    "lamb of ALBERT": (LAMB, {"bias_correction": False}),
    "adafactor": (Adafactor, {}),
    "adafactor with a relative step": (Adafactor, {"relative_step": True}),
    "adafactor with a first moment": (Adafactor, {"beta_1": 0.9, "relative_step": True}),
}


def expected_values(kind, options, name, start, gradients, rate):
    decay = DECAY if name in ("kernel", "table") else 0.0
    if kind is LAMB:
        options = {**options, "adapts": decay > 0.0}
    reference = getattr(numpy_optimizers, kind.__name__.lower())
    return list(reference(start, gradients, rate, decay, **options))


def starting_point(seed=0):
    """({name: value}, {name: gradients [steps, …]}), from 1 to 1e-6, near which it shows where epsilon stands."""
    rng = np.random.default_rng(seed)
    start = {name: rng.normal(size=shape).astype("float32") for name, shape in SHAPES.items()}
    sizes = 10.0 ** -(np.arange(STEPS) % 7)
    gradients = {
        name: np.stack([rng.normal(size=shape) * size for size in sizes]).astype("float32")
        for name, shape in SHAPES.items()
    }
    return start, gradients


def train(optimizer, start, gradients):
    variables = [keras.Variable(value, name=name) for name, value in start.items()]
    optimizer.build(variables)
    for step in range(STEPS):
        optimizer.apply([gradients[name][step] for name in start], variables)
    return variables


def assert_close(received, expected):
    """To a millionth of the tensor's largest value."""
    np.testing.assert_allclose(received, expected, rtol=0, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("variant", VARIANTS)
def test_it_follows_its_paper_and_spares_bias_and_layer_norm(variant):
    kind, options = VARIANTS[variant]
    start, gradients = starting_point()
    variables = train(kind(RATE, decay=DECAY, **options), start, gradients)
    for name, variable in zip(start, variables):
        assert_close(variable.numpy(), expected_values(kind, options, name, start[name], gradients[name], RATE)[-1])


@pytest.mark.parametrize("variant", VARIANTS)
def test_rate_factors_and_the_average_follow_the_definition(variant):
    """The average begins as the weights, not as zeros; a factor of 0 leaves a variable as it is."""
    kind, options = VARIANTS[variant]
    start, gradients = starting_point(1)
    factors = (1.0, 0.5, 0.0, 0.1, 1.0)
    optimizer = kind(RATE, decay=DECAY, rate_factors=factors, weight_average=0.9, **options)
    variables = train(optimizer, start, gradients)
    for name, variable, average, factor in zip(start, variables, optimizer.averages, factors, strict=True):
        values = expected_values(kind, options, name, start[name], gradients[name], RATE * factor)
        assert_close(variable.numpy(), values[-1])
        assert_close(average.numpy(), list(numpy_optimizers.moving_average(start[name], values, 0.9))[-1])
    assert np.array_equal(variables[2].numpy(), start["bias"])


def test_a_factor_stays_when_adafactors_own_rate_is_below_the_given_one():
    """The factor then multiplies 1 / √step."""
    start, gradients = np.ones(6, "float32"), np.ones(6, "float32")
    optimizer = Adafactor(1.0, decay=0.0, rate_factors=(1.0, 0.5), relative_step=True)
    whole, half = variables = [keras.Variable(start, name="kernel") for _ in range(2)]
    optimizer.build(variables)
    optimizer.iterations.assign(99)
    optimizer.apply([tf.constant(gradients)] * 2, variables)
    np.testing.assert_allclose(1 - whole.numpy(), 0.1, rtol=1e-4)
    np.testing.assert_allclose(1 - half.numpy(), 0.05, rtol=1e-4)


@pytest.mark.parametrize("variant", VARIANTS)
def test_compiled_by_xla_it_does_the_same(variant):
    """Three steps at once, to show an update that reads a variable before its last assignment."""
    kind, options = VARIANTS[variant]
    start, gradients = starting_point(2)

    def updated(compiled):
        variables = [keras.Variable(value, name=name) for name, value in start.items()]
        optimizer = kind(RATE, decay=DECAY, weight_average=0.9, **options)
        optimizer.build(variables)

        def update():
            for step in range(3):
                optimizer.apply([tf.constant(gradients[name][step]) for name in start], variables)

        (tf.function(update, jit_compile=True, autograph=False) if compiled else update)()
        return [variable.numpy() for variable in (*variables, *optimizer.averages)]

    for received, expected in zip(updated(compiled=True), updated(compiled=False), strict=True):
        assert_close(received, expected)


@pytest.mark.parity
@pytest.mark.parametrize(("name", "kind", "options"), [("adamw", AdamW, {}), ("adafactor", Adafactor, {})])
def test_it_equals_torch(goldens, name, kind, options):
    arrays = load_arrays(f"{goldens}/optimizers.npz")
    start, gradients = (
        {key: arrays[f"{group}/{key}"] for key in ("kernel", "bias")} for group in ("start", "gradients")
    )
    if name == "adafactor":
        options = {"relative_step": True}
    variables = train(kind(float(arrays["rate"]), decay=float(arrays["decay"]), **options), start, gradients)
    for key, variable in zip(start, variables):
        assert_close(variable.numpy(), arrays[f"{name}/{key}"])


def test_a_tensor_or_an_update_of_norm_0_has_a_trust_ratio_of_1():
    """Otherwise a tensor that begins at zero would stay there, or become NaN."""
    zero, one = np.zeros(3, "float32"), np.ones(3, "float32")
    assert [float(trust_ratio(*pair)) for pair in ((zero, one), (one, zero), (zero, zero), (2 * one, one))] == [
        1,
        1,
        1,
        2,
    ]


def test_adafactor_keeps_a_row_and_a_column_of_a_matrix_and_no_first_moment():
    optimizer = Adafactor(RATE)
    optimizer.build([keras.Variable(np.zeros((50, 40), "float32"), name="kernel")])
    sizes = [int(np.prod(variable.shape)) for variable in optimizer.variables]
    assert sum(sizes) == 50 + 40 + 2  # And the step and the learning rate.


def model_and_optimizer(kind, options):
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(4), keras.layers.LayerNormalization()])
    optimizer = kind(RATE, decay=DECAY, weight_average=0.9, rate_factors=(1.0, 0.5, 1.0, 1.0), **options)
    optimizer.build(model.trainable_variables)
    return model, optimizer


@pytest.mark.parametrize("variant", VARIANTS)
def test_resumed_it_goes_on_bit_for_bit(variant, tmp_path):
    """Ten steps equal five, a checkpoint, new objects as in another process, and five more."""

    def step(model, optimizer, number):
        rng = np.random.default_rng(number)
        variables = model.trainable_variables
        optimizer.apply([rng.normal(size=each.shape).astype("float32") for each in variables], variables)

    def state(model, optimizer):
        return [variable.numpy() for variable in (*model.variables, *optimizer.variables)]

    straight = model_and_optimizer(*VARIANTS[variant])
    for number in range(10):
        step(*straight, number)
    stopped = model_and_optimizer(*VARIANTS[variant])
    for number in range(5):
        step(*stopped, number)
    Checkpoints(tmp_path, 1, model=stopped[0], optimizer=stopped[1]).save(5)
    resumed = model_and_optimizer(*VARIANTS[variant])
    assert Checkpoints(tmp_path, 1, model=resumed[0], optimizer=resumed[1]).restore_newest() == 5
    for number in range(5, 10):
        step(*resumed, number)
    assert all(np.array_equal(ours, theirs) for ours, theirs in zip(state(*resumed), state(*straight), strict=True))


def test_a_configuration_makes_the_same_optimizer_again():
    for kind, options in VARIANTS.values():
        optimizer = kind(RATE, decay=0.2, rate_factors=(0.5, 1.0), weight_average=0.9, **options)
        again = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
        assert type(again) is kind and again.get_config() == optimizer.get_config()


def test_amsgrad_is_refused():
    """Keras' Adam, from which AdamW inherits, would keep its moments and never use them."""
    with pytest.raises(ValueError, match="amsgrad: is not supported by keras_bert.AdamW. Received: True"):
        AdamW(RATE, amsgrad=True)
    assert not AdamW(RATE, amsgrad=False).amsgrad


def test_keras_own_weight_decay_is_refused():
    """It would come on top of `decay`, and shrink biases and LayerNorm too, which `decay` spares."""
    with pytest.raises(ValueError, match="weight_decay: needs to be given as decay, .* Received: 0.1. Give decay=0.1"):
        AdamW(RATE, weight_decay=0.1)
    assert AdamW.from_config(AdamW(RATE, decay=0.1).get_config()).decay == 0.1


def test_the_weights_come_back_bit_for_bit_after_their_average_stood_in():
    """Also if validation fails; and the average starts from the weights that training starts from."""
    model, optimizer = model_and_optimizer(AdamW, {})
    model.set_weights([np.full(weight.shape, 0.1, "float32") for weight in model.get_weights()])
    start_average(model, optimizer)
    assert all(
        np.array_equal(weight, average.numpy()) for weight, average in zip(model.get_weights(), optimizer.averages)
    )
    optimizer.apply([np.ones(each.shape, "float32") for each in model.trainable_variables], model.trainable_variables)
    weights, averages = model.get_weights(), [average.numpy() for average in optimizer.averages]
    with pytest.raises(ZeroDivisionError), averaged_weights(model, optimizer):
        assert all(np.array_equal(weight, average) for weight, average in zip(model.get_weights(), averages))
        raise ZeroDivisionError
    assert all(np.array_equal(weight, before) for weight, before in zip(model.get_weights(), weights))
    assert all(np.array_equal(each.numpy(), before) for each, before in zip(optimizer.averages, averages))
