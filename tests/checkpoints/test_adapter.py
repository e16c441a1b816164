"""Adapters in peft's format: what is written and read again, and what is refused."""

import dataclasses
import json
import shutil

import numpy as np
import pytest
import safetensors.numpy
from served import write_served

import keras_bert
from keras_bert.checkpoints.adapter import Adapter, write_adapter
from keras_bert.checkpoints.model_folder import open_model_folder
from keras_bert.checkpoints.sentence_transformers import vector_files
from keras_bert.checkpoints.writing import convert_folder
from keras_bert.config.inference import VectorConfig
from keras_bert.core.errors import UserError
from keras_bert.core.yaml_and_json import read_json
from keras_bert.models.tensor_names import lora_layers, model_values
from keras_bert.tasks.sentence_vectors.task import SentenceVectorsConfig


@pytest.fixture(scope="module", params=["single", "albert", "crf"])
def adapted(request, tmp_path_factory):
    """(model with LoRA, its base's folder, its adapter's)."""
    folder = tmp_path_factory.mktemp(request.param)
    base = write_served(folder / "base", request.param)
    bert = keras_bert.load(base)
    bert.encoder.enable_lora(2, 3.0)
    random = np.random.default_rng(0)
    for layer in lora_layers(bert.model).values():
        layer.lora_kernel_b.assign(random.normal(0, 0.1, layer.lora_kernel_b.shape))
    for variable in bert.model.trainable_variables:
        if "lora" not in variable.path:
            variable.assign(random.normal(0, 0.1, variable.shape))
    adapter = str(folder / "adapter")
    write_adapter(adapter, bert.model, base, base, read_json(folder / "base" / "config.json"))
    return bert.model, base, adapter


def changed(adapter, path, **fields):
    """The adapter with other fields in its adapter_config.json; None leaves one out."""
    path.mkdir()
    config = {**read_json(f"{adapter}/adapter_config.json"), **fields}
    (path / "adapter_config.json").write_text(json.dumps(config), encoding="utf-8")
    tensors = safetensors.numpy.load_file(f"{adapter}/adapter_model.safetensors")
    safetensors.numpy.save_file(tensors, path / "adapter_model.safetensors")
    return str(path)


def values_of(folder):
    return {name.attribute: value for name, value in model_values(keras_bert.load(folder).model).items()}


def test_what_was_written_opens_as_the_sums(adapted):
    model, _, adapter = adapted
    found = values_of(adapter)
    for name, value in model_values(model).items():
        np.testing.assert_allclose(found[name.attribute], value, atol=1e-6, err_msg=name.attribute)


def test_layers_that_share_a_part_have_one_addition(tmp_path):
    """The file repeats it for each layer, as transformers' class does; copies that differ are refused."""
    bert = keras_bert.load(write_served(tmp_path / "albert", "albert"))
    config = dataclasses.replace(bert.model.config, num_hidden_layers=2, sharing="attention")
    model, base, path = type(bert.model)(config, bert.head.num_outputs), str(tmp_path / "base"), str(tmp_path / "lora")
    keras_bert.write_model_folder(base, model, bert.tokenizer.vocabulary, lower_case=True, head=bert.head)
    model.encoder.enable_lora(2, 3.0)
    for layer in lora_layers(model).values():
        layer.lora_kernel_b.assign(np.random.default_rng(0).normal(0, 0.1, layer.lora_kernel_b.shape))
    write_adapter(path, model, base, base, read_json(f"{base}/config.json"))
    found = values_of(path)
    for name, value in model_values(model).items():
        np.testing.assert_allclose(found[name.attribute], value, atol=1e-6, err_msg=name.attribute)

    weights = f"{path}/adapter_model.safetensors"
    tensors = safetensors.numpy.load_file(weights)
    copy = next(name for name in tensors if ".albert_layer_groups.1." in name and ".query.lora_B" in name)
    safetensors.numpy.save_file({**tensors, copy: 2 * tensors[copy]}, weights)
    with pytest.raises(UserError, match=r"needs the same LoRA of albert\.encoder\.albert_layer_groups\.1\..*query"):
        keras_bert.load(path)


def test_converted_it_is_a_whole_model(adapted, tmp_path):
    _, _, adapter = adapted
    folder = open_model_folder(adapter)
    assert convert_folder(folder, "huggingface", str(tmp_path / "model"), folder.vocabulary) == []
    merged, found = values_of(adapter), values_of(str(tmp_path / "model"))
    for name, value in merged.items():
        np.testing.assert_array_equal(found[name], value, name)


def test_converted_it_has_a_card_of_its_own(adapted, tmp_path):
    """With the card of peft's folder, the hub would look for an adapter."""
    path = changed(adapted[2], tmp_path / "adapter")
    (tmp_path / "adapter" / "README.md").write_text("---\nlibrary_name: peft\n---\n", encoding="utf-8")
    folder = open_model_folder(path)
    convert_folder(folder, "huggingface", str(tmp_path / "model"), folder.vocabulary)
    card = (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
    assert "peft" not in card and "The weights of `adapter`, converted without loss." in card


def test_modules_are_named_so_that_peft_adapts_no_others(adapted):
    """peft compares the ends of modules' names: `dense` would adapt the pooler too."""
    model, base, adapter = adapted
    config = read_json(f"{adapter}/adapter_config.json")
    tensors = safetensors.numpy.load_file(f"{adapter}/adapter_model.safetensors")
    adapted_modules = {name.split(".lora_")[0] for name in tensors if ".lora_" in name}
    weights = safetensors.numpy.load_file(f"{base}/model.safetensors")
    modules = {f"base_model.model.{name.removesuffix('.weight')}" for name in weights if name.endswith(".weight")}
    matched = {name for name in modules if name.endswith(tuple(f".{end}" for end in config["target_modules"]))}
    assert matched == adapted_modules and len(adapted_modules) == len(lora_layers(model))


def test_a_root_of_the_rank_scales_less(adapted, tmp_path):
    _, base, adapter = adapted
    before, plain, rooted = (
        values_of(folder)["encoder.blocks.0.attention.query.kernel"]
        for folder in (base, adapter, changed(adapter, tmp_path / "rooted", use_rslora=True))
    )
    np.testing.assert_allclose(rooted - before, (plain - before) * 2**0.5, atol=1e-6)


def test_a_base_on_the_hub_keeps_its_revision(adapted, tmp_path):
    """Another revision would be another model."""
    commit = "0123456789" * 4
    model, base, adapter = adapted
    of_hub, fields = str(tmp_path / "of_hub"), read_json(f"{base}/config.json")
    write_adapter(of_hub, model, f"hf:org/bert@{commit}", base, fields)
    written = read_json(f"{of_hub}/adapter_config.json")
    assert (written["base_model_name_or_path"], written["revision"]) == ("org/bert", commit)
    assert Adapter(of_hub).base == f"hf:org/bert@{commit}"
    assert Adapter(changed(adapter, tmp_path / "newest", base_model_name_or_path="org/bert")).base == "hf:org/bert"


def test_vectors_are_made_as_the_base_says_unless_the_adapter_has_a_config(adapted, tmp_path):
    """Otherwise means by an adapter of peft would not be of length 1, as those of its base are."""
    _, base, adapter = adapted
    copied = tmp_path / "base"
    shutil.copytree(base, copied)
    for name, content in vector_files(width=8, max_length=7).items():
        (copied / name).parent.mkdir(exist_ok=True)
        (copied / name).write_text(json.dumps(content), encoding="utf-8")
    raw = open_model_folder(changed(adapter, tmp_path / "raw", base_model_name_or_path=str(copied)))
    assert (raw.vectors(), raw.vector_length) == (VectorConfig("mean", normalize=True), 7)
    shutil.copy(f"{adapter}/config.json", tmp_path / "raw")
    assert open_model_folder(tmp_path / "raw").vectors() == VectorConfig("mean", normalize=False)


def test_vectors_are_made_as_by_the_sums(tmp_path):
    """Vectors of `RUN/adapter` used to lack the length 1 that those of `RUN/model` have."""
    base, adapter = write_served(tmp_path / "base", "vectors", SentenceVectorsConfig(("score",))), tmp_path / "adapter"
    bert = keras_bert.load(base)
    bert.encoder.enable_lora(2)
    write_adapter(adapter, bert.model, base, base, read_json(f"{base}/config.json"))
    assert open_model_folder(adapter).vectors() == open_model_folder(base).vectors() == VectorConfig("mean", True)


def test_parts_that_it_replaces_are_counted_once(adapted, tmp_path):
    """The adapter has the names of transformers' class, and the base's file may have shorter ones."""
    _, base, adapter = adapted
    shutil.copytree(base, tmp_path / "base")
    tensors = safetensors.numpy.load_file(f"{base}/model.safetensors")
    shorter = {name.removeprefix("bert.").removeprefix("albert."): value for name, value in tensors.items()}
    safetensors.numpy.save_file(shorter, tmp_path / "base" / "model.safetensors")
    path = changed(adapter, tmp_path / "adapter", base_model_name_or_path=str(tmp_path / "base"))
    found, expected = (sorted(open_model_folder(folder).tensor_shapes().values()) for folder in (path, base))
    assert found == expected


def test_a_folder_with_the_name_of_its_base_is_not_its_base(adapted, tmp_path, monkeypatch):
    """It used to be added to itself without end."""
    monkeypatch.chdir(tmp_path)
    path = changed(adapted[2], tmp_path / "bert-base", base_model_name_or_path="bert-base")
    assert Adapter(path).base == "hf:bert-base"


def test_an_adapter_is_found_where_a_kill_during_its_replacement_left_it(adapted, tmp_path):
    """It used to be taken for a model without weights."""
    path = tmp_path / "adapter"
    shutil.copytree(adapted[2], f"{path}.replaced")
    folder = open_model_folder(path)
    assert folder.base and folder.name == str(path)
    assert folder.fingerprint == open_model_folder(adapted[2]).fingerprint


def test_a_task_type_that_is_no_name_is_no_task(adapted, tmp_path):
    assert Adapter(changed(adapted[2], tmp_path / "changed", task_type=["SEQ_CLS"])).fields == {}


@pytest.mark.parametrize("named", [[3], "BertForSequenceClassification"])
def test_classes_that_are_no_names_are_refused_in_one_line(adapted, tmp_path, named):
    path = changed(adapted[2], tmp_path / "changed")
    (tmp_path / "changed" / "config.json").write_text(json.dumps({"architectures": named}), encoding="utf-8")
    with pytest.raises(UserError, match="changed/config.json: architectures: needs a list of names of classes"):
        open_model_folder(path)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"peft_type": "IA3"}, "needs peft_type LORA. Received: 'IA3'. Merge the adapter with peft"),
        ({"bias": "lora_only"}, "needs bias 'none'. Received: 'lora_only'. Merge the adapter with peft"),
        ({"lora_bias": True}, "needs lora_bias False. Received: True. Merge the adapter with peft"),
        ({"use_dora": True}, "needs use_dora False. Received: True. Merge the adapter with peft"),
        ({"rank_pattern": {"query": 4}}, "needs rank_pattern {}. Received: {'query': 4}"),
        ({"init_lora_weights": "pissa_niter_4"}, "needs init_lora_weights True. Received: 'pissa_niter_4'"),
        ({"r": 0}, "needs the numbers r and lora_alpha, above 0"),
        ({"r": -2}, "needs the numbers r and lora_alpha, above 0"),
        ({"r": 2.5}, "needs the numbers r and lora_alpha, above 0"),
        ({"r": float("inf")}, "needs the numbers r and lora_alpha, above 0"),
        ({"lora_alpha": float("nan")}, "needs the numbers r and lora_alpha, above 0"),
        ({"base_model_name_or_path": None}, "needs base_model_name_or_path, the model that it adds to. Received: None"),
        (
            {"base_model_name_or_path": "/not/there"},
            "another folder that is there or a name on the hub. Received: /not/there",
        ),
    ],
)
def test_what_cannot_be_added_is_refused_in_one_line(adapted, tmp_path, fields, told):
    with pytest.raises(UserError, match=told) as error:
        open_model_folder(changed(adapted[2], tmp_path / "changed", **fields))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("decoder.layers.0.q_proj.lora_A.weight", "Received: base_model.model.decoder.layers.0.q_proj.lora_A.weight"),
        ("bert.embeddings.word_embeddings.lora_embedding_A", "needs LoRA of dense layers, or whole modules"),
    ],
)
def test_unknown_tensors_are_refused(adapted, tmp_path, name, told):
    """Without them the model would answer otherwise."""
    path = changed(adapted[2], tmp_path / "changed")
    weights = f"{path}/adapter_model.safetensors"
    tensors = {**safetensors.numpy.load_file(weights), f"base_model.model.{name}": np.ones((2, 2), "float32")}
    safetensors.numpy.save_file(tensors, weights)
    with pytest.raises(UserError, match=told):
        keras_bert.load(path)


@pytest.mark.parametrize("lacks", ["lora_A", "lora_B"])
def test_half_of_an_addition_is_refused(adapted, tmp_path, lacks):
    """Without `lora_A`, the layer would answer as in the base model."""
    path = changed(adapted[2], tmp_path / "changed")
    weights = f"{path}/adapter_model.safetensors"
    tensors = safetensors.numpy.load_file(weights)
    name = next(name for name in tensors if f".query.{lacks}" in name)
    safetensors.numpy.save_file({other: tensors[other] for other in tensors if other != name}, weights)
    with pytest.raises(UserError, match=f"needs the tensor {name} and lacks it. Write the adapter again"):
        keras_bert.load(path)


def test_a_rank_that_the_tensors_do_not_have_is_refused(adapted, tmp_path):
    """The additions would count for a quarter of what they were trained to."""
    with pytest.raises(UserError, match=r"lora_B.weight needs shape \[16, 8\] by the config. Received: \[16, 2\]"):
        keras_bert.load(changed(adapted[2], tmp_path / "changed", r=8))
