"""Keras' LoRA and int8 on our models: what is trained, what is computed, and the plain weights that are written."""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf
from coming_back import assert_a_keras_file_keeps
from served import write_served
from tiny import tiny_config

import keras_bert
from keras_bert.models.recurrent.encoder import RecurrentEncoder
from keras_bert.models.recurrent.kind import RecurrentConfig

TEXTS = ["the cat", "sat sat", "the cat sat", "cats"]


def _classifier(folder):
    bert = keras_bert.load(folder, task="text", labels=["bad", "good"])
    return bert, bert.preprocessor(max_length=12)(TEXTS)


def _written(path, bert):
    vocabulary = bert.tokenizer.vocabulary
    keras_bert.write_model_folder(path, bert.model, vocabulary, bert.tokenizer.lower_case, head=bert.head)
    return keras_bert.load(path).model


def _cosine(one, other):
    one, other = np.ravel(one), np.ravel(other)
    return one @ other / np.linalg.norm(one) / np.linalg.norm(other)


@pytest.fixture(scope="module", params=["masked_lm", "albert"])
def folder(request, tmp_path_factory):
    return write_served(tmp_path_factory.mktemp(request.param) / "model", request.param)


@pytest.mark.slow
def test_lora_trains_its_additions_and_the_head_alone_and_is_written_merged(folder, tmp_path):
    bert, inputs = _classifier(folder)
    before = bert.encoder(inputs)["sequence_output"]
    bert.encoder.enable_lora(2, alpha=4)
    np.testing.assert_array_equal(bert.encoder(inputs)["sequence_output"], before)
    names = {variable.path.split("/")[-1] for block in bert.encoder.blocks for variable in block.trainable_variables}
    assert names == {"lora_kernel_a", "lora_kernel_b"} and not bert.encoder.embeddings.trainable_variables
    frozen = [variable.numpy() for variable in bert.model.non_trainable_variables if "seed" not in variable.path]
    text = keras.Input((), dtype="string")
    model = keras.Model(text, bert.model(bert.preprocessor(max_length=12)(text))["logits"])
    optimizer = keras_bert.AdamW(1e-2)
    model.compile(optimizer, keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=False)
    examples = tf.data.Dataset.from_tensor_slices((TEXTS[:2] * 8, [1, 0] * 8)).batch(4)
    losses = model.fit(examples, epochs=5, verbose=0).history["loss"]
    assert losses[-1] < losses[0]
    after = [variable.numpy() for variable in bert.model.non_trainable_variables if "seed" not in variable.path]
    for one, other in zip(frozen, after, strict=True):
        np.testing.assert_array_equal(one, other)
    slots = {tuple(slot.shape) for slot in optimizer.variables if slot.shape}
    assert tuple(bert.encoder.embeddings.word_embeddings.shape) not in slots
    again = _written(tmp_path / "lora", bert)
    np.testing.assert_allclose(again(inputs)["logits"], bert.model(inputs)["logits"], rtol=1e-4, atol=1e-5)
    assert again.encoder.trainable_variables


def test_what_lora_cannot_do_is_named(folder):
    bert, _ = _classifier(folder)
    with pytest.raises(ValueError, match="rank: needs at least 1. Received: 0"):
        bert.encoder.enable_lora(0)


@pytest.mark.slow
def test_int8_is_close_and_is_written_dequantized(folder, tmp_path):
    bert, inputs = _classifier(folder)
    before = bert.model(inputs)["logits"]
    bert.model.quantize("int8")
    assert bert.encoder.blocks[0].intermediate._kernel.dtype == "int8"
    after = bert.model(inputs)["logits"]
    assert _cosine(before, after) > 0.99
    again = _written(tmp_path / "int8", bert)
    assert _cosine(again(inputs)["logits"], after) > 0.99
    assert again.encoder.blocks[0].intermediate.kernel.dtype == "float32"


@pytest.mark.slow
@pytest.mark.parametrize("change", ["lora", "int8"])
def test_a_changed_model_comes_back_from_a_keras_file(folder, tmp_path, change):
    bert, inputs = _classifier(folder)
    if change == "lora":
        bert.encoder.enable_lora(2)
        rng = np.random.default_rng(0)
        for dense in (bert.encoder.blocks[0].intermediate, bert.encoder.blocks[-1].output_dense):
            dense.lora_kernel_b.assign(rng.normal(size=dense.lora_kernel_b.shape))
    else:
        bert.model.quantize("int8")
    assert_a_keras_file_keeps(bert.model, inputs, tmp_path)


def test_lora_needs_self_attention():
    config = RecurrentConfig(**dataclasses.asdict(tiny_config()), block="gru")
    with pytest.raises(ValueError, match="enable_lora: needs blocks of self-attention. Received: a RecurrentEncoder"):
        RecurrentEncoder(config).enable_lora(2)
