"""Hugging Face folders as others write them: every way of naming tensors, heads or none, shards, half precision."""

import json
import os

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy
from tiny import VOCABULARY, pretraining_batch, random_model, without_dropout

from keras_bert.checkpoints.model_folder import open_model_folder
from keras_bert.checkpoints.writing import convert_folder, write_huggingface_folder, write_model_folder
from keras_bert.core.errors import UserError
from keras_bert.inference.loading import load
from keras_bert.models.bert.encoder import BertEncoder
from keras_bert.models.pretraining import BertForPreTraining
from keras_bert.models.tensor_names import model_variables
from keras_bert.text.tokenizer_files import TokenizerSettings


@pytest.fixture(scope="module")
def model():
    return random_model()


@pytest.fixture
def folder(tmp_path, model):
    path = str(tmp_path / "model")
    write_model_folder(path, model, VOCABULARY, lower_case=True)
    return path


def rewrite(folder, change):
    """Replaces the folder's tensors with `change(tensors)`."""
    path = os.path.join(folder, "model.safetensors")
    safetensors.numpy.save_file(change(safetensors.numpy.load_file(path)), path)


def renamed(function):
    return lambda tensors: {function(name): value for name, value in tensors.items()}


def without(*starts):
    return lambda tensors: {name: value for name, value in tensors.items() if not name.startswith(starts)}


def assert_loads(folder, model, new=(), unused=()):
    """Every tensor but those that start with `new` gets the model's value; those keep what they had."""
    fresh = BertForPreTraining(without_dropout())
    before = {name: variable.numpy() for name, variable in model_variables(fresh)}
    report = open_model_folder(folder).load_into(fresh)
    for (name, received), (_, expected) in zip(model_variables(fresh), model_variables(model), strict=True):
        is_new = bool(new) and name.huggingface.name.startswith(new)
        np.testing.assert_array_equal(received, before[name] if is_new else expected, name.attribute)
        assert (name.huggingface.name in report.made_new) == is_new
    assert report.unused == sorted(unused)
    return report


@pytest.mark.parametrize(
    "rename",
    [
        lambda name: name,
        lambda name: name.removeprefix("bert."),
        lambda name: f"module.{name}",
        lambda name: name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"),
    ],
    ids=["with bert.", "without bert.", "wrapped", "gamma and beta"],
)
def test_names_as_others_write_them(folder, model, rename):
    rewrite(folder, renamed(rename))
    assert_loads(folder, model)


def test_buffers_and_tied_duplicates_are_passed_over(folder, model):
    def add(tensors):
        return {
            **tensors,
            "bert.embeddings.position_ids": np.arange(24)[None],
            "cls.predictions.decoder.weight": tensors["bert.embeddings.word_embeddings.weight"],
            "cls.predictions.decoder.bias": tensors["cls.predictions.bias"],
        }

    rewrite(folder, add)
    assert_loads(folder, model)


@pytest.mark.parametrize("name", ["cls.predictions.decoder.weight", "cls.predictions.decoder.bias"])
def test_a_decoder_that_is_not_tied_is_refused(folder, model, name):
    tied = {"weight": "bert.embeddings.word_embeddings.weight", "bias": "cls.predictions.bias"}[name.split(".")[-1]]
    rewrite(folder, lambda tensors: {**tensors, name: tensors[tied] + 1})
    with pytest.raises(UserError, match=f"needs {name} equal to {tied}.*tie_word_embeddings: false"):
        open_model_folder(folder).load_into(model)


def test_an_untied_decoder_is_read_used_and_written(tmp_path):
    """It used to be refused. In transformers the bias beside the decoder's is unused, and may have any value."""
    model = random_model(tie_word_embeddings=False)
    folder, again = str(tmp_path / "model"), str(tmp_path / "again")
    write_model_folder(folder, model, VOCABULARY, lower_case=True)
    rewrite(folder, lambda tensors: {**tensors, "cls.predictions.bias": np.zeros(60, "float32")})
    loaded, batch = load(folder), pretraining_batch(model.config)
    expected = model(batch)["mlm_logits"]
    np.testing.assert_array_equal(loaded.model(batch)["mlm_logits"], expected)
    states = model.mlm_head.activation(model.mlm_head.transform(model.encoder(batch)["sequence_output"]))
    by_hand = model.mlm_head.layer_norm(states) @ np.transpose(model.mlm_head.decoder) + model.mlm_head.bias
    by_hand = np.take_along_axis(np.array(by_hand), batch["masked_lm_positions"][..., None], axis=1)
    np.testing.assert_allclose(by_hand, expected, rtol=1e-4, atol=1e-4)
    assert not loaded.report.unused and not loaded.report.made_new
    convert_folder(loaded.folder, "huggingface", again, VOCABULARY)
    np.testing.assert_array_equal(load(again).model(batch)["mlm_logits"], expected)
    with pytest.raises(UserError, match="needs a decoder that is tied"):
        convert_folder(loaded.folder, "google", tmp_path / "google", VOCABULARY)


@pytest.mark.parametrize(
    "absent", [("cls.seq_relationship",), ("cls.",), ("cls.", "bert.pooler"), ("cls.seq_relationship", "bert.pooler")]
)
def test_what_is_missing_is_made_new_and_listed(folder, model, absent):
    rewrite(folder, without(*absent))
    report = assert_loads(folder, model, new=absent)
    (line,) = report.lines()
    assert line.startswith(f"Not in {folder}/model.safetensors, newly initialized: ") and absent[-1] in line


def test_what_is_not_used_is_listed(folder, model):
    extra = {"classifier.weight": np.ones((2, 16), "float32"), "bert.encoder.layer.2.output.dense.bias": np.ones(16)}
    rewrite(folder, lambda tensors: {**tensors, **extra})
    report = assert_loads(folder, model, unused=extra)
    (line,) = report.lines()
    assert line.endswith("but not used: bert.encoder.layer.2.output.dense.bias, classifier.weight.")


@pytest.mark.parametrize(
    "name", ["bert.encoder.layer.1.output.dense.bias", "cls.predictions.transform.LayerNorm.weight"]
)
def test_a_part_with_a_hole_is_refused(folder, name):
    rewrite(folder, without(name))
    with pytest.raises(UserError, match=f"model.safetensors: needs the tensor {name} and lacks it"):
        load(folder)


def test_an_encoder_alone_encodes_and_says_what_it_cannot(folder, model):
    rewrite(folder, without("cls."))
    loaded = load(folder)
    assert isinstance(loaded.model, BertEncoder) and loaded.model is loaded.encoder
    assert loaded.encode(["w1 w2"]).shape == (1, 16)
    with pytest.raises(UserError, match="needs a masked LM head"):
        loaded.predict(["[MASK]"])


def test_load_leaves_no_weight_unwritten(folder, model):
    """The model is built on memory that nothing has written, so every tensor must come from the file."""
    for (name, received), (_, expected) in zip(
        model_variables(load(folder).model), model_variables(model), strict=True
    ):
        np.testing.assert_array_equal(received, expected, name.attribute)


def test_load_draws_what_the_file_lacks(folder, model, caplog):
    rewrite(folder, without("cls.seq_relationship", "bert.pooler"))
    loaded = load(folder)
    kernels = [loaded.model.nsp_head.classifier.kernel, loaded.encoder.pooler.dense.kernel]
    assert all(0.005 < np.std(kernel) < 0.05 for kernel in kernels)
    np.testing.assert_array_equal(loaded.model.mlm_head.transform.kernel, model.mlm_head.transform.kernel)
    assert len(loaded.report.made_new) == 4 and "newly initialized: bert.pooler.dense.weight" in caplog.text


def shard(folder, count=3):
    """Cuts model.safetensors into shards with an index."""
    path = os.path.join(folder, "model.safetensors")
    tensors = safetensors.numpy.load_file(path)
    os.unlink(path)
    weight_map = {}
    for number in range(count):
        file = f"model-{number + 1:05d}-of-{count:05d}.safetensors"
        part = {name: tensors[name] for name in sorted(tensors)[number::count]}
        safetensors.numpy.save_file(part, os.path.join(folder, file))
        weight_map.update(dict.fromkeys(part, file))
    with open(f"{path}.index.json", "w", encoding="utf-8") as stream:
        json.dump({"metadata": {}, "weight_map": weight_map}, stream)


def test_a_missing_shard_is_named(folder):
    shard(folder)
    os.unlink(os.path.join(folder, "model-00002-of-00003.safetensors"))
    with pytest.raises(UserError, match="model-00002-of-00003.safetensors: is missing"):
        load(folder)


@pytest.mark.parametrize("kind", ["float16", ml_dtypes.bfloat16, "float64"])
def test_other_floats(folder, model, kind):
    rewrite(folder, lambda tensors: {name: value.astype(kind) for name, value in tensors.items()})
    fresh = BertForPreTraining(without_dropout())
    open_model_folder(folder).load_into(fresh)
    for (name, received), (_, given) in zip(model_variables(fresh), model_variables(model), strict=True):
        expected = given.numpy().astype(kind).astype("float32")
        np.testing.assert_array_equal(received, expected, name.attribute)


def test_a_quantised_model_is_refused(folder):
    name = "bert.encoder.layer.0.output.dense.weight"
    rewrite(folder, lambda tensors: {**tensors, name: tensors[name].astype("int8")})
    with pytest.raises(UserError, match=f"{name} needs floating-point numbers. Received: I8"):
        load(folder)


def change_config(folder, **fields):
    """Changes fields of the folder's config.json; `...` leaves one out."""
    path = os.path.join(folder, "config.json")
    with open(path, encoding="utf-8") as stream:
        changed = {**json.load(stream), **fields}
    with open(path, "w", encoding="utf-8") as stream:
        json.dump({key: value for key, value in changed.items() if value is not ...}, stream)


def head_tensors(name, outputs):
    return {f"{name}.weight": np.ones((outputs, 16), "float32"), f"{name}.bias": np.ones(outputs, "float32")}


def test_heads_that_architectures_does_not_name_are_left_out(folder, tmp_path):
    """`convert` used to make a classifier of a masked LM that still had tensors of one."""
    stray = {**head_tensors("classifier", 3), "qa_outputs.bias": np.ones(2, "float32")}
    rewrite(folder, lambda tensors: {**tensors, **stray})
    change_config(folder, architectures=["BertForMaskedLM"])
    opened = open_model_folder(folder)
    assert opened.head is None and not {"classifier", "qa_outputs"} & set(opened.parts())
    assert convert_folder(opened, "huggingface", tmp_path / "again", VOCABULARY) == sorted(stray)
    again = open_model_folder(tmp_path / "again")
    assert again.other_fields["architectures"] == ["BertForPreTraining"] and again.parts() == opened.parts()


@pytest.mark.parametrize(
    ("absent", "head", "expected"),
    [
        ((), {}, None),
        (("cls.",), head_tensors("classifier", 3), "BertForSequenceClassification"),
        (("cls.", "bert.pooler"), head_tensors("classifier", 3), "BertForTokenClassification"),
        (("cls.", "bert.pooler"), head_tensors("qa_outputs", 2), "BertForQuestionAnswering"),
        (("cls.predictions",), {}, "BertForNextSentencePrediction"),
    ],
)
@pytest.mark.parametrize("named", [..., None])
def test_without_architectures_the_tensors_name_the_head(folder, tmp_path, absent, head, expected, named):
    """Such a folder used to lose its head; with null, a tagger was written as a classifier."""
    rewrite(folder, lambda tensors: {**without(*absent)(tensors), **head} if absent else tensors)
    change_config(folder, architectures=named)
    opened = open_model_folder(folder)
    assert (opened.head and opened.head.architecture) == expected
    assert not convert_folder(opened, "huggingface", tmp_path / "again", VOCABULARY)
    assert open_model_folder(tmp_path / "again").other_fields["architectures"] == [expected or "BertForPreTraining"]
    assert not load(folder).report.unused


@pytest.mark.parametrize("damage", [np.nan, np.inf])
def test_weights_that_are_not_numbers_are_refused(folder, damage):
    """Every answer of such a model would be NaN, yet with a label and status 0, and its export would serve them."""
    name = "bert.encoder.layer.1.output.dense.weight"
    rewrite(folder, lambda tensors: {**tensors, name: np.where(np.eye(16, 32), np.float32(damage), tensors[name])})
    with pytest.raises(UserError, match=f"{name} needs finite numbers. Received: 16 of 512 that are NaN or infinite"):
        load(folder)


@pytest.mark.parametrize("parts, architecture", [(("cls.",), "BertModel"), (("cls.seq",), "BertForMaskedLM")])
def test_a_folder_without_heads_names_its_architecture(tmp_path, model, parts, architecture):
    tensors = {
        name: variable.numpy()
        for name, variable in model_variables(model)
        if not name.huggingface.name.startswith(parts)
    }
    folder = str(tmp_path / "folder")
    write_huggingface_folder(folder, model.config, tensors, VOCABULARY, TokenizerSettings())
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as stream:
        assert json.load(stream)["architectures"] == [architecture]
    assert_loads(folder, model, new=parts)
