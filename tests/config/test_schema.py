"""The schemas that editors check recipes by: those shipped, and that they agree with the reader."""

import functools
import glob
import json
import os

import jsonschema
import pytest

from keras_bert.config.finetuning import FinetuneConfig
from keras_bert.config.pretraining import PretrainConfig
from keras_bert.config.recipes import configs_folder
from keras_bert.core.errors import UserError
from keras_bert.core.yaml_and_json import read_yaml
from tools import make_schemas

CONFIGS = {"pretrain": PretrainConfig, "finetune": FinetuneConfig}
FILES = sorted(glob.glob(os.path.join(configs_folder(), "*", "*.yaml")))


@functools.cache
def schema(path):
    with open(path, encoding="utf-8") as file:
        found = jsonschema.Draft202012Validator(json.load(file))
    found.check_schema(found.schema)
    return found


def fits(kind, values):
    return schema(os.path.join(make_schemas.FOLDER, f"{kind}.json")).is_valid(values)


def reads(kind, values):
    try:
        CONFIGS[kind].from_mapping({"task": "text", **values} if kind == "finetune" else values)
    except UserError:
        return False
    return True


def test_the_schemas_are_up_to_date():
    for name, text in make_schemas.texts().items():
        with open(os.path.join(make_schemas.FOLDER, name), encoding="utf-8") as file:
            assert file.read() == text, "Run: python tools/make_schemas.py"
    assert sorted(os.listdir(make_schemas.FOLDER)) == sorted(make_schemas.texts())


@pytest.mark.parametrize("path", FILES, ids=lambda path: os.path.relpath(path, configs_folder()))
def test_a_shipped_file_names_the_schema_that_it_fits(path):
    with open(path, encoding="utf-8") as file:
        first = file.readline().rstrip()
    named = first.removeprefix("# yaml-language-server: $schema=")
    assert named != first
    schema(os.path.normpath(os.path.join(os.path.dirname(path), named))).validate(read_yaml(path))


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("pretrain", {"model": "tiny", "initialization": "corpus", "data": {"filters": "c4"}}),
        ("pretrain", {"model": {"extends": "albert-tiny", "embedding_size": 16, "sharing": "ffn"}}),
        ("pretrain", {"model": {"block": "lstm", "hidden_size": 768}, "init": None}),
        ("pretrain", {"training": {"jit_compile": "auto", "accumulation": 2}, "phases": [{"masking_share": None}]}),
        ("pretrain", {"optimizer": {"rates": {"embeddings": 0.1}}, "data": {"filters": {"extends": "c4"}}}),
        ("finetune", {"data": {"word": 3, "kind": "regression"}, "training": {"epochs": 2, "class_weights": {"a": 2}}}),
        ("finetune", {"features": {"kind": "last"}, "task": "ner"}),
    ],
)
def test_what_a_recipe_may_hold_fits(kind, values):
    assert fits(kind, values) and reads(kind, values)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("pretrain", {"optimiser": {}}),
        ("pretrain", {"model": {"extends": "tiny", "hidden": 64}}),
        ("pretrain", {"model": {"model_type": "gpt"}}),
        ("pretrain", {"model": {"hidden_dropout_prob": 1.0}}),
        ("pretrain", {"initialization": "papers"}),
        ("pretrain", {"objective": {"pair": "next"}}),
        ("pretrain", {"optimizer": {"name": "adam"}}),
        ("pretrain", {"optimizer": {"rates": {"embeddings": "low"}}}),
        ("pretrain", {"phases": [{"sequence_length": 7}]}),
        ("pretrain", {"phases": {"share": 1.0}}),
        ("pretrain", {"training": {"steps": 0}}),
        ("pretrain", {"training": {"steps": 1.5}}),
        ("pretrain", {"training": {"steps": True}}),
        ("pretrain", {"training": {"jit_compile": "yes please"}}),
        ("pretrain", {"training": {"seed": 2**32}}),
        ("finetune", {"data": {"dev_share": 1.0}}),
        ("finetune", {"training": {"freeze": "no"}}),
        ("finetune", {"training": {"patience": None}}),
        ("finetune", {"features": {"kind": "middle"}}),
        ("finetune", {"input": 128}),
    ],
)
def test_what_a_recipe_may_not_hold_does_not_fit(kind, values):
    assert not fits(kind, values) and not reads(kind, values)
