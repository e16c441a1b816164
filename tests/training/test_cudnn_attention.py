"""Fused attention: steps use it for what their own operations would compute, and only where its kernels work.

No test has a GPU. A stand-in computes what the kernels do, and the program that would run them is read.
"""

import logging

import numpy as np
import pytest
import tensorflow as tf
from shortened import shortened
from tiny import pretraining_batch, tiny_config, without_dropout

from keras_bert.models.pretraining import BertForPreTraining, PretrainingObjective
from keras_bert.training import cudnn_attention as fused
from keras_bert.training import step as steps

CONFIG = without_dropout(num_hidden_layers=3)
KEY = tf.constant([3, 5], tf.uint32)


class StandIn:
    """Computes what the kernels do, and counts its calls."""

    def __init__(self):
        self.calls = 0

    def __call__(self, query, key, value, attention_bias):
        if query.shape != key.shape:
            return None
        self.calls += 1
        return fused._plain(query, key, value, attention_bias)


def gradients(model, kernel, monkeypatch, recompute_every=0, jit_compile=True):
    """[loss, *gradients] of one batch with padding by a step whose attention is `kernel`."""
    monkeypatch.setattr(steps, "on_gpus", lambda strategy: kernel is not None)
    monkeypatch.setattr(steps, "cudnn_attention", kernel)
    model.encoder.recompute_every = recompute_every
    objective = PretrainingObjective(4)
    step = steps.Step(tf.distribute.get_strategy(), model, objective, jit_compile=jit_compile)
    batch = {name: tf.constant(value) for name, value in pretraining_batch(CONFIG, batch=4).items()}
    assert tf.reduce_min(batch["input_mask"]) == 0
    results, sums = tf.function(step.gradients, autograph=False)(batch, objective.counts(batch), KEY)
    return [sums["mlm"]["loss"], *results]


@pytest.mark.parametrize("recompute_every", shortened([0, 1]))
def test_a_step_hands_over_all_blocks_but_the_narrowed_one(monkeypatch, recompute_every):
    """Scores scaled twice, heads in another order or padding lost would change the loss and its gradients."""
    model, kernel = BertForPreTraining(CONFIG), StandIn()
    expected = gradients(model, None, monkeypatch)
    received = gradients(model, kernel, monkeypatch, recompute_every)
    for value, known in zip(received, expected, strict=True):
        np.testing.assert_allclose(value, known, rtol=1e-5, atol=1e-6)
    # Recomputed, a block is called again in the backward pass, where its probabilities must not be kept either.
    assert kernel.calls == (CONFIG.num_hidden_layers - 1) * (2 if recompute_every else 1)


@pytest.mark.parametrize(("rate", "jit_compile"), [(0.1, True), (0.0, False)])
def test_other_steps_do_not(monkeypatch, rate, jit_compile):
    """The kernels' masks could not be drawn again, and without XLA there are no kernels."""
    model, kernel = BertForPreTraining(tiny_config(attention_probs_dropout_prob=rate)), StandIn()
    gradients(model, kernel, monkeypatch, jit_compile=jit_compile)
    assert kernel.calls == 0


def test_its_program_has_no_probabilities(monkeypatch):
    """Keeping them in [batch, heads, seq, seq] is what the kernels are there to avoid."""
    monkeypatch.setattr(fused, "works", lambda dtype, head_size: True)
    query, key, value = (tf.cast(tf.random.normal([4, 2, 16, 8]), "bfloat16") for _ in range(3))
    bias = tf.zeros([4, 1, 1, 16])

    @tf.function(jit_compile=True, autograph=False)
    def with_gradients(query, key, value):
        with tf.GradientTape() as tape:
            tape.watch([query, key, value])
            output = fused.cudnn_attention(query, key, value, bias)
        return [output, *tape.gradient(output, [query, key, value])]

    program = with_gradients.experimental_get_compiler_ir(query, key, value)(stage="hlo")
    for call in ("__cudnn$fmhaScaleBiasSoftmax", "__cudnn$fmhaScaleBiasSoftmaxBackward"):
        assert program.count(f'custom_call_target="{call}"') == 1
    assert "[4,2,16,16]" not in program
    assert "[4,1,16,16]" in program  # The padding, of all heads.


@pytest.mark.parametrize(
    ("dtype", "shape", "bias"),
    [
        ("float32", (4, 2, 16, 8), (4, 1, 1, 16)),
        ("bfloat16", (None, 2, 16, 8), (None, 1, 1, 16)),
        ("bfloat16", (4, 2, 15, 8), (4, 1, 1, 15)),
        ("bfloat16", (4, 2, 16, 12), (4, 1, 1, 16)),
        ("bfloat16", (4, 2, 16, 256), (4, 1, 1, 16)),
        ("bfloat16", (4, 2, 16, 8), (4, 2, 16, 16)),  # A learned bias, which needs a gradient.
    ],
)
def test_what_the_kernels_do_not_take_is_left_to_tensorflow(monkeypatch, dtype, shape, bias):
    monkeypatch.setattr(fused, "works", lambda dtype, head_size: True)
    answers = []

    @tf.function(input_signature=[tf.TensorSpec(shape, dtype), tf.TensorSpec(bias)], autograph=False)
    def ask(query, attention_bias):
        answers.append(fused.cudnn_attention(query, query, query, attention_bias))

    ask.get_concrete_function()
    assert answers == [None]


def twice(query, key, value, attention_bias):
    return 2 * fused._plain(query, key, value, attention_bias)


@pytest.mark.parametrize(
    ("capability", "kernels", "said"),
    [
        ((9, 0), fused._plain, []),
        ((9, 0), twice, ["Attention is not fused: cuDNN's kernels are 100.0% off here."]),
        # The kernels themselves, which a CPU does not have.
        ((9, 0), fused._fused, ["Attention is not fused: cuDNN's kernels failed here, with No registered"]),
        ((7, 5), None, []),
        (None, None, []),  # Not one of NVIDIA's.
    ],
)
def test_kernels_that_fail_a_trial_are_not_used(monkeypatch, caplog, capability, kernels, said):
    """A GPU or a cuDNN that no one has tried may cost speed, but not the run or its gradients."""
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: ["a GPU"])
    details = {"compute_capability": capability} if capability else {}
    monkeypatch.setattr(tf.config.experimental, "get_device_details", lambda gpu: details)
    monkeypatch.setattr(fused, "_fused", kernels)
    fused.works.cache_clear()
    answers = []
    try:
        with caplog.at_level(logging.INFO, logger=fused.__name__):
            # Asked while a step is traced.
            tf.function(lambda: answers.append(fused.works("bfloat16", 8)), autograph=False).get_concrete_function()
    finally:
        fused.works.cache_clear()
    assert answers == [not said and kernels is not None]
    assert [record.getMessage()[: len(line)] for record, line in zip(caplog.records, said, strict=True)] == said
