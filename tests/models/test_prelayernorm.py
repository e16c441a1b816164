"""Pre-norm encoders, without and with gates: what they compute, their size, their folders, and their training.

That the one without gates computes what transformers does is in test_transformers_folders.py.
"""

import json
import math
import os

import numpy as np
import pytest
import tensorflow as tf
from coming_back import assert_a_keras_file_keeps, reopened
from corpus import write_corpus
from pretraining import MODEL, WITHOUT_DROPOUT, assert_resumes_like, losses_on, recipe
from tiny import VOCABULARY, pretraining_batch, random_weights

import keras_bert
from keras_bert.checkpoints.writing import convert_folder, write_model_folder
from keras_bert.core.errors import UserError
from keras_bert.export.network import encode
from keras_bert.models import sizes
from keras_bert.models.kind import kind_of_config
from keras_bert.models.prelayernorm_glu.encoder import PreLayerNormGluEncoder
from keras_bert.models.prelayernorm_glu.kind import PreLayerNormGluConfig
from keras_bert.models.pretraining import BertForPreTraining
from keras_bert.models.roberta_prelayernorm.kind import RobertaPreLayerNormConfig
from keras_bert.tasks.classification.head import ClassificationConfig
from keras_bert.tasks.kind import kind_of_head
from keras_bert.training.optimizer import depth_factors
from keras_bert.training.run_folder import RunFolder
from keras_bert.training.variable_names import trainable_names

SIZES = {"vocab_size": 60, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48}
ROWS = {"max_position_embeddings": 24, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
CONFIGS = {
    made.model_type: made(**SIZES, **ROWS, pad_token_id=0)
    for made in (RobertaPreLayerNormConfig, PreLayerNormGluConfig)
}
GATED = "prelayernorm-glu"
INPUTS = ("input_word_ids", "input_mask", "input_type_ids")


@pytest.fixture(scope="module", params=CONFIGS)
def model(request):
    made = BertForPreTraining(CONFIGS[request.param])
    random_weights(made)
    return made


@pytest.fixture(scope="module")
def batch():
    return pretraining_batch(CONFIGS[GATED])


def normed(layer, states):
    """LayerNorm in NumPy."""
    mean, variance = states.mean(-1, keepdims=True), states.var(-1, keepdims=True)
    return (states - mean) / np.sqrt(variance + layer.epsilon) * layer.gamma.numpy() + layer.beta.numpy()


def dense(layer, states):
    return states @ layer.kernel.numpy().astype("float64") + layer.bias.numpy()


def attended(attention, states):
    """Self-attention in NumPy of an unpadded row [seq, hidden]."""

    def split(vectors):
        return vectors.reshape(len(vectors), attention.num_attention_heads, -1).transpose(1, 0, 2)

    query, key, value = (split(dense(one, states)) for one in (attention.query, attention.key, attention.value))
    scores = np.exp(query @ key.transpose(0, 2, 1) / math.sqrt(attention.head_size))
    context = scores / scores.sum(-1, keepdims=True) @ value
    return dense(attention.output_projection, context.transpose(1, 0, 2).reshape(len(states), -1))


def test_gated_blocks_are_those_of_a_reference_in_numpy():
    """LayerNorm before both parts, gelu on the gate alone, the residual untouched, and a LayerNorm at the end."""
    encoder = PreLayerNormGluEncoder(CONFIGS[GATED])
    random_weights(encoder)
    batch = {name: value[:1, :6] for name, value in pretraining_batch(encoder.config).items() if name in INPUTS}
    received = encoder(batch)
    states = received["hidden_states"][0][0].numpy().astype("float64")
    gelu = np.vectorize(lambda x: x * (1 + math.erf(x / math.sqrt(2))) / 2)
    for block, expected in zip(encoder.blocks, (received["hidden_states"][1], None)):
        states = states + attended(block.attention, normed(block.attention_layer_norm, states))
        read = normed(block.output_layer_norm, states)
        states = states + dense(block.output_dense, gelu(dense(block.gate, read)) * dense(block.intermediate, read))
        if expected is not None:
            np.testing.assert_allclose(expected[0], states, rtol=1e-5, atol=1e-5)
    states = normed(encoder.final_layer_norm, states)
    np.testing.assert_allclose(received["sequence_output"][0], states, rtol=1e-5, atol=1e-5)


def test_its_size_is_that_of_the_table(model):
    counted = sum(int(np.prod(variable.shape)) for variable in model.weights)
    encoder = [part for part in sizes.encoder_parts(model.config) if part.name != sizes.POOLER]
    assert counted == sizes.total(encoder) + sizes.total(sizes.head_parts(model.config))


@pytest.mark.parametrize("hidden, inner, width", [(768, 3072, 2048), (128, 512, 344)])
def test_gates_cost_no_parameters_and_no_products(hidden, inner, width):
    """Otherwise a comparison at equal size would not be one."""
    fields = {"hidden_size": hidden, "num_attention_heads": 2, "intermediate_size": inner}
    plain, gated = RobertaPreLayerNormConfig(**fields), PreLayerNormGluConfig(**fields)
    assert gated.feed_forward_width == width
    of = {type(one): sizes.total(sizes.encoder_parts(one)) for one in (plain, gated)}
    assert of[PreLayerNormGluConfig] == pytest.approx(of[RobertaPreLayerNormConfig], rel=2e-3)
    flops = [kind_of_config(one).training_flops(one, 64, 10) for one in (plain, gated)]
    # Three kernels [hidden, width] for two [hidden, inner]; a product is two FLOPs, and backwards twice as many.
    assert flops[1] - flops[0] == 3 * 12 * 64 * (6 * hidden * width - 4 * hidden * inner)


def test_serving_and_recomputing_give_what_the_encoder_does(model, batch):
    encoder, inputs = model.encoder, {name: tf.constant(batch[name]) for name in INPUTS}
    real, expected = batch["input_mask"] > 0, encoder(inputs)
    np.testing.assert_array_equal(expected["hidden_states"][-1], expected["sequence_output"])
    for keeps_padding in (False, True):
        served = encode(encoder, inputs, keeps_padding)["sequence_output"]
        np.testing.assert_allclose(served[real], expected["sequence_output"][real], rtol=1e-4, atol=1e-5)

    def gradients(recompute_every):
        encoder.recompute_every = recompute_every
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(encoder(inputs, training=True)["sequence_output"] ** 3)
        encoder.recompute_every = 0
        return tape.gradient(loss, [variable.value for variable in encoder.blocks[0].trainable_variables])

    for one, other in zip(gradients(1), gradients(0), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


def test_layer_decay_leaves_the_final_layer_norm_the_full_rate(model):
    names = trainable_names(model)
    factors = dict(zip(names, depth_factors(0.5, names)))
    assert factors["encoder.final_layer_norm.gamma"] == 1.0
    assert factors["encoder.blocks.0.output_layer_norm.gamma"] == 0.25


def test_lora_trains_its_additions_alone_and_is_written_merged(batch, tmp_path):
    for config in CONFIGS.values():
        made = BertForPreTraining(config)
        random_weights(made)
        made.encoder.enable_lora(2)
        names = {variable.path.split("/")[-1] for variable in made.encoder.trainable_variables}
        assert names == {"lora_kernel_a", "lora_kernel_b"}
        for block in made.encoder.blocks:
            for layer in block._flatten_layers():
                if getattr(layer, "lora_enabled", False):
                    layer.lora_kernel_b.assign(layer.lora_kernel_b + 0.1)
        write_model_folder(str(tmp_path / config.model_type), made, VOCABULARY, lower_case=True)
        again = keras_bert.load(str(tmp_path / config.model_type)).model
        np.testing.assert_allclose(again(batch)["mlm_logits"], made(batch)["mlm_logits"], rtol=1e-4, atol=1e-4)


def test_its_folder_opens_again_and_says_who_else_opens_it(model, batch, tmp_path):
    """transformers has no gates: it knows neither the type nor the class of such a folder."""
    folder, is_gated = str(tmp_path / "model"), model.config.model_type == GATED
    again = reopened(model, batch, folder)
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as stream:
        fields = json.load(stream)
    prefix = "PreLayerNormGlu" if is_gated else "RobertaPreLayerNorm"
    assert fields["architectures"] == [f"{prefix}ForMaskedLM"] and fields["max_position_embeddings"] == 25
    with open(os.path.join(folder, "README.md"), encoding="utf-8") as stream:
        assert ("from transformers" in stream.read()) != is_gated
    with pytest.raises(UserError, match="Google has no format for a RoBERTa-PreLayerNorm"):
        convert_folder(again.folder, "google", str(tmp_path / "google"), VOCABULARY)


def test_a_task_head_is_on_top_of_it(batch, tmp_path):
    head = ClassificationConfig(("no", "yes"))
    for config in CONFIGS.values():
        made = kind_of_head(head).make_model(config, head)
        random_weights(made)
        reopened(made, batch, tmp_path / config.model_type, head)
        assert_a_keras_file_keeps(made, batch, tmp_path)


def test_a_left_to_right_model_is_refused():
    with pytest.raises(UserError, match="attention: needs bidirectional"):
        recipe("text.txt", **{"model.model_type": GATED, "model.attention": "causal"})


@pytest.mark.slow
def test_it_is_pretrained_resumes_and_is_the_same_on_two_replicas(tmp_path, mirrored_strategy, monkeypatch):
    """From vectors of its text and mimetic attention."""
    settings = {"model": {**MODEL, "model_type": GATED, "pad_token_id": 0}, "initialization": "corpus"}
    settings |= {"objective.pair": "none", **WITHOUT_DROPOUT}
    config, run = recipe(write_corpus(tmp_path / "text.txt"), **settings), RunFolder(str(tmp_path / "one"))
    mirrored = losses_on(mirrored_strategy, config, tmp_path / "mirrored", monkeypatch)
    one = losses_on(tf.distribute.OneDeviceStrategy("CPU:0"), config, run.path, monkeypatch)
    assert one[-1] < one[0]
    np.testing.assert_allclose(mirrored, one, rtol=1e-4)
    straight = (run, run.results())
    assert_resumes_like(straight, config, RunFolder(str(tmp_path / "stopped")), monkeypatch, 8, 6)
