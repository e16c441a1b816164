"""T5: its files are transformers', and its encoder works alone.

That it computes what transformers' does is in test_encoder_decoders.py.
"""

import json
import os
import shutil

import keras
import numpy as np
import pytest
import safetensors.numpy
from coming_back import assert_a_keras_file_keeps
from goldens import COMMITTED, read_tensors, write_again
from hub_server import load_from_hub
from tiny import random_weights

import keras_bert
from keras_bert.checkpoints.writing import convert_folder
from keras_bert.config.training import OptimizerConfig
from keras_bert.export.serving_function import serving_function
from keras_bert.layers.bucketed_bias import BucketedBias, distance_buckets
from keras_bert.models.bert.config import BertConfig
from keras_bert.models.encoder_decoder import EncoderDecoder
from keras_bert.models.sizes import training_flops, whole_model
from keras_bert.training.optimizer import make_optimizer

ROOM = os.path.join(COMMITTED, "encoder_decoders")
CASES = ("t5", "t5_gated")
TEXTS = ["The cat, hé.", " the\tcat", ""]
TINY = keras_bert.T5Config(60, 16, 1, 3, 32, head_size=8, num_decoder_layers=2, is_gated=True, hidden_act="gelu_new")


@pytest.mark.parity
@pytest.mark.parametrize("case", CASES)
def test_is_written_as_transformers_writes_it(opened, case, tmp_path):
    """Converted, and written from the model: names, values and the ids of a text."""
    golden, loaded, _ = opened(case)
    convert_folder(loaded.folder, "huggingface", str(tmp_path / "converted"), loaded.folder.vocabulary)
    write_again(str(tmp_path / "written"), loaded)
    expected = read_tensors(golden.path)
    for folder in ("converted", "written"):
        received = read_tensors(str(tmp_path / folder))
        assert {name: value.tobytes() for name, value in received.items()} == {
            name: value.tobytes() for name, value in expected.items()
        }
        again = keras_bert.load(str(tmp_path / folder))
        assert again.config == loaded.config and again.tokenizer(TEXTS).to_list() == loaded.tokenizer(TEXTS).to_list()
    fields, theirs = (
        json.loads(open(os.path.join(path, "config.json")).read()) for path in (tmp_path / "converted", golden.path)
    )
    # transformers 5 says so by another field, and reads either.
    assert fields.pop("tie_word_embeddings") is theirs.pop("scale_decoder_outputs")
    del theirs["tie_word_embeddings"]
    own = {"n_positions": 512, "dtype": "float32", "transformers_version": theirs["transformers_version"]}
    assert {**fields, **own} == {**theirs, "n_positions": 512}
    ids = loaded.tokenizer([str(golden.arrays["text"])]).to_list()[0]
    assert ids == golden.arrays["text_ids"].tolist() and len(ids) > 5


def test_buckets_are_those_of_the_published_code():
    """t5/mesh_tensorflow transformer_layers.py, `_relative_position_bucket`, with 32 buckets up to 128."""
    exact, halves = distance_buckets(32, 128), distance_buckets(16, 128)
    assert exact[:16].tolist() == [*range(16)] and halves[:8].tolist() == [*range(8)]
    edges = [int(np.argmax(halves == bucket)) for bucket in range(8, 16)]
    assert edges == [8, 12, 16, 23, 32, 46, 64, 91] and halves[-1] == 15
    bias = BucketedBias(2, 32, 128)
    bias.build()
    table = bias.bias.numpy()
    found = bias.between(3, 200).numpy()
    assert found.shape == (1, 2, 3, 200)
    np.testing.assert_array_equal(found[0, :, 2, 0], table[2])  # The key is two tokens before the query.
    np.testing.assert_array_equal(found[0, :, 1, 190], table[16 + 15])
    causal = BucketedBias(2, 32, 128, both_sides=False)
    causal.build()
    np.testing.assert_array_equal(causal.between(3, 3).numpy()[0, :, 0, 2], causal.bias.numpy()[0])


def test_the_encoder_alone_pools_the_mean_of_the_tokens(opened):
    """T5 has no [CLS]; padding does not count."""
    _, loaded, inputs = opened("t5")
    encoder = keras_bert.T5Encoder(loaded.config)
    loaded.folder.load_into(encoder)
    outputs = encoder(inputs, return_attentions=True)
    rows = zip(outputs["sequence_output"].numpy(), inputs["input_mask"] > 0)
    expected = [states[real].mean(axis=0) for states, real in rows]
    np.testing.assert_allclose(outputs["pooled_output"], expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(np.sum(outputs["attentions"][0], axis=-1), 1.0, rtol=1e-5)


def test_a_task_is_learned_on_the_encoder_and_served(opened, tmp_path):
    """Its folder names the class of the encoder, and the head in our own field. Compiled, rows are padded further."""
    golden, _, _ = opened("t5")
    task = keras_bert.load(golden.path, task="text", labels=["bad", "good"])
    folder = str(tmp_path / "classifier")
    write_again(folder, task)
    fields = json.loads(open(os.path.join(folder, "config.json")).read())
    assert fields["architectures"] == ["T5EncoderModel"]
    assert fields["keras_bert"]["architecture"] == "BertForSequenceClassification"
    tensors, expected = read_tensors(folder), read_tensors(golden.path)
    assert tensors.keys() == {name for name in expected if "decoder" not in name} | {
        "classifier.weight",
        "classifier.bias",
    }
    again = keras_bert.load(folder)
    assert not again.report.made_new and not again.report.unused
    answers = [answer.probabilities for answer in again.predict(TEXTS[:1])]
    assert answers == [answer.probabilities for answer in task.predict(TEXTS[:1])]
    served = serving_function(again, jit=True)(TEXTS[:1])["probabilities"]
    np.testing.assert_allclose(served, [[*answers[0].values()]], rtol=1e-4, atol=1e-5)


def test_tags_of_transformers_open(opened, tmp_path):
    """T5ForTokenClassification has the encoder under a name of its own, and no decoder."""
    golden, loaded, inputs = opened("t5")
    tensors = {
        f"transformer.{name}": value for name, value in read_tensors(golden.path).items() if "decoder" not in name
    }
    tensors |= {"classifier.weight": np.eye(3, 8, dtype="float32"), "classifier.bias": np.zeros(3, "float32")}
    fields = json.loads(open(os.path.join(golden.path, "config.json")).read())
    labels = {str(index): label for index, label in enumerate(("O", "B-PER", "I-PER"))}
    fields |= {"architectures": ["T5ForTokenClassification"], "id2label": labels}
    folder = tmp_path / "tags"
    shutil.copytree(golden.path, folder)
    (folder / "config.json").write_text(json.dumps(fields))
    safetensors.numpy.save_file(tensors, folder / "model.safetensors")
    tagger = keras_bert.load(folder)
    assert not tagger.report.made_new and not tagger.report.unused and tagger.head.labels == ("O", "B-PER", "I-PER")
    states = loaded.encoder(inputs)["sequence_output"]
    np.testing.assert_allclose(tagger.model(inputs)["logits"], states[..., :3], rtol=1e-5, atol=1e-5)


def test_it_opens_by_its_name_on_the_hub(opened, tmp_path, monkeypatch):
    """google/t5-v1_1-small has spiece.model, no tokenizer.json, and its embeddings under three names."""
    golden, local, _ = opened("t5_gated")
    local.tokenizer.vocabulary.to_file(str(tmp_path / "spiece.model"))
    tensors = read_tensors(golden.path)
    tensors |= {f"{side}.embed_tokens.weight": tensors["shared.weight"] for side in ("encoder", "decoder")}
    safetensors.numpy.save_file(tensors, tmp_path / "model.safetensors")
    fields = json.loads(open(os.path.join(golden.path, "config.json")).read())
    # As transformers 4 said it.
    fields = {key: value for key, value in fields.items() if key != "scale_decoder_outputs"}
    (tmp_path / "config.json").write_text(json.dumps({**fields, "tie_word_embeddings": False}))
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "T5Tokenizer", "extra_ids": 4}')
    files = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    fetched = load_from_hub(
        "google/t5-v1_1-small", {**files, "flax_model.msgpack": b""}, tmp_path / "cache", monkeypatch
    )
    assert fetched.folder.vocabulary_file.endswith("spiece.model") and not fetched.report.unused
    assert fetched.config == local.config and not fetched.config.tie_word_embeddings
    assert fetched.tokenizer(TEXTS).to_list() == local.tokenizer(TEXTS).to_list()
    np.testing.assert_array_equal(fetched.encode(TEXTS), local.encode(TEXTS))


def test_saving_and_half_precision(tmp_path):
    """float16 cannot hold the bias that hides padding in float32; one row here is nothing but padding."""
    model = EncoderDecoder(TINY)
    random_weights(model)
    rng = np.random.default_rng(0)
    ids = rng.integers(3, 60, (3, 8)).astype("int32")
    mask = (np.arange(8) < np.array([[8], [5], [0]])).astype("int32")
    inputs = {"input_word_ids": ids, "input_mask": mask, "input_type_ids": 0 * ids, "decoder_input_ids": ids[:, :5]}
    assert_a_keras_file_keeps(model, inputs, tmp_path)
    logits = EncoderDecoder(TINY, dtype="mixed_float16")(inputs)["logits"]
    assert logits.dtype == "float32" and np.isfinite(logits).all()
    with pytest.raises(ValueError, match="causal: is not supported by a T5"):
        model.encoder(inputs, causal=True)


def test_sizes_are_those_of_the_model():
    model = EncoderDecoder(TINY)
    assert whole_model(TINY) == model.count_params()
    assert whole_model(keras_bert.T5Config()) == 60_506_624  # t5-small
    small = keras_bert.T5Config(
        num_hidden_layers=8,
        num_attention_heads=6,
        intermediate_size=1024,
        is_gated=True,
        hidden_act="gelu_new",
        tie_word_embeddings=False,
    )
    assert whole_model(small) == 76_961_152  # google/t5-v1_1-small
    assert training_flops(small, 8, 4) > 0


def test_initial_weights_have_t5s_deviations():
    """In place of scaled attention, and of logits that are scaled where the embeddings are tied."""
    config = keras_bert.T5Config(500, 64, 1, 4, 128, head_size=32, tie_word_embeddings=False)
    keras.utils.set_random_seed(0)
    model = EncoderDecoder(config)
    attention, feed_forward = model.decoder.blocks[0].cross_attention, model.encoder.blocks[0].feed_forward
    for variable, expected in (
        (model.encoder.embeddings.word_embeddings, 1.0),
        (model.lm_head.kernel, 1.0),
        (attention.query.kernel, (64 * 32) ** -0.5),
        (attention.key.kernel, 64**-0.5),
        (attention.output_projection.kernel, (4 * 32) ** -0.5),
        (feed_forward.inner.kernel, 64**-0.5),
        (feed_forward.output_dense.kernel, 128**-0.5),
    ):
        assert np.std(variable.numpy()) == pytest.approx(expected, rel=0.05), variable.path


def test_norms_and_relative_biases_are_not_decayed():
    encoder = keras_bert.T5Encoder(TINY)
    optimizer = make_optimizer(OptimizerConfig(), 10)
    optimizer.build(encoder.trainable_variables)
    kept = {
        variable.path for variable, is_decayed in zip(encoder.trainable_variables, optimizer._decayed) if not is_decayed
    }
    assert {path.rpartition("/")[2] for path in kept} == {"scale", "bias"} and len(kept) == 4


@pytest.mark.parametrize(
    "named, changes",
    [
        ("relu", {"hidden_act": "relu"}),
        ("gated-gelu", {"hidden_act": "gelu_new", "is_gated": True}),
        ("gated-silu", {"hidden_act": "silu", "is_gated": True, "num_decoder_layers": 3, "hidden_dropout_prob": 0.2}),
    ],
)
def test_fields_of_a_config_come_back(named, changes, tmp_path):
    """Attention dropout and longer rows, for which transformers has no fields, have fields of their own."""
    config = keras_bert.T5Config(72, 8, 1, 2, 16, max_position_embeddings=900, initializer_range=0.1, **changes)
    config.to_file(tmp_path / "config.json")
    fields = json.loads((tmp_path / "config.json").read_text("utf-8"))
    assert fields["feed_forward_proj"] == named and fields["n_positions"] == 900
    assert ("attention_dropout_rate" in fields) == ("hidden_dropout_prob" in changes)
    assert BertConfig.from_file(tmp_path / "config.json") == config
    config.to_file(tmp_path / "config.yaml")
    assert BertConfig.from_file(tmp_path / "config.yaml") == config
