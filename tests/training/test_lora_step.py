"""A step of LoRA against its definition (Hu et al. 2021, section 4.1) in NumPy."""

import numpy as np
import tensorflow as tf
from numpy_optimizers import adamw
from tiny import pretraining_batch, random_model

from keras_bert.models.pretraining import BertForPreTraining, PretrainingObjective
from keras_bert.models.tensor_names import lora_layers, model_values, model_variables
from keras_bert.training.optimizers.adamw import AdamW
from keras_bert.training.step import Step

RATE, DECAY, RANK, ALPHA = 1e-2, 0.1, 3, 6.0


def merged(model):
    """A plain model with the sums of the kernels and their additions."""
    plain, values = BertForPreTraining(model.config), model_values(model)
    for name, variable in model_variables(plain):
        variable.assign(values[name])
    return plain


def loss_of(model, batch):
    objective = PretrainingObjective(4)
    sums, counts = objective.sums(model(batch, training=True), batch), objective.counts(batch)
    return tf.add_n([sums[term]["loss"] / counts[term] for term in objective.terms])


def test_a_step_moves_the_factors_by_the_gradient_of_their_product():
    """With kernel + alpha / rank · A · B, dA is alpha / rank · dW · Bᵀ and dB is alpha / rank · Aᵀ · dW; both decay."""
    model = random_model()
    model.encoder.enable_lora(RANK, ALPHA)
    random = np.random.default_rng(1)
    layers = lora_layers(model)
    assert len(layers) == 6 * model.config.num_hidden_layers
    for layer in layers.values():
        layer.lora_kernel_b.assign(random.normal(0, 0.1, layer.lora_kernel_b.shape))
    batch = {name: tf.constant(value) for name, value in pretraining_batch(model.config).items()}
    plain = merged(model)
    with tf.GradientTape() as tape:
        loss = loss_of(plain, batch)
    np.testing.assert_allclose(loss, loss_of(model, batch), rtol=1e-5)
    variables = dict(model_variables(plain))
    gradients = dict(zip(layers, tape.gradient(loss, [variables[name].value for name in layers])))
    before = {name: (layer.lora_kernel_a.numpy(), layer.lora_kernel_b.numpy()) for name, layer in layers.items()}
    frozen = [weight.numpy() for weight in model.encoder.non_trainable_weights]
    optimizer = AdamW(RATE, decay=DECAY)
    optimizer.build(model.trainable_variables)
    step = Step(tf.distribute.get_strategy(), model, PretrainingObjective(4), optimizer, clip_norm=1e9)
    step.train(batch, tf.constant(0, tf.int64))
    for name, layer in layers.items():
        (a, b), of_sum = before[name], ALPHA / RANK * gradients[name].numpy()
        of_factors = (a, of_sum @ b.T, layer.lora_kernel_a), (b, a.T @ of_sum, layer.lora_kernel_b)
        for value, gradient, variable in of_factors:
            (expected,) = adamw(value, gradient[None], RATE, DECAY)
            # Adam's first step is as long for any gradient: of one near zero only the sign counts.
            is_clear = abs(gradient) > 1e-6
            assert is_clear.mean() > 0.9, name
            np.testing.assert_allclose(variable.numpy()[is_clear], expected[is_clear], atol=2e-5, err_msg=str(name))
    for weight, value in zip(model.encoder.non_trainable_weights, frozen, strict=True):
        np.testing.assert_array_equal(weight.numpy(), value)
