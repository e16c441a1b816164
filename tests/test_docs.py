"""The examples of docs/python.md and of README.md run, and no page needs more than the public names."""

import glob
import os
import re
import shlex

import kubernetes_validate
import pytest
import yaml
from command_line import give
from pages import ROOT, blocks, text_of
from tiny import random_weights, tiny_config

import keras_bert
from keras_bert.checkpoints.writing import write_model_folder
from keras_bert.models.pretraining import BertForPreTraining
from keras_bert.text.vocabulary import SPECIAL_TOKENS, Vocabulary

WORDS = "the cat dog sat slept on mat a . ##s".split()
HOUSE = ("", "keras_bert")


@pytest.mark.parametrize("page", ["README.md", "docs/python.md"])
def test_every_example_runs(page, tmp_path, monkeypatch):
    """In order and in one namespace, as a reader would; a message names the page and its line."""
    vocabulary = Vocabulary([*SPECIAL_TOKENS, *WORDS])
    model = BertForPreTraining(tiny_config(vocab_size=len(vocabulary)))
    random_weights(model)
    write_model_folder(str(tmp_path / "runs" / "demo"), model, vocabulary, lower_case=True)
    monkeypatch.chdir(tmp_path)
    names, ran = {}, 0
    for language, content, line in blocks(page):
        if language == "python":
            # The empty lines in front make the numbers in a traceback those of the page.
            exec(compile("\n" * line + content, page, "exec"), names)
            ran += 1
        elif language == "sh":
            for command in content.splitlines():
                assert command.startswith("python run.py ")
                give(*shlex.split(command)[2:])
    assert ran > 0


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "docs/design.md"])
def test_every_file_that_a_page_points_to_exists(page):
    """Where to look is worth its line only as long as the file is there. KIND and NAME stand for any."""
    named = re.findall(r"`([\w/]+\.py)`", text_of(page))
    named = [name for name in named if not {"KIND", "NAME.py"} & set(name.split("/"))]
    assert len(named) > 10
    missing = [name for name in named if not any(os.path.exists(os.path.join(ROOT, at, name)) for at in HOUSE)]
    assert not missing


def test_the_house_map_names_every_file_of_signatures():
    for path in glob.glob(os.path.join(ROOT, "keras_bert", "export", "*.py")):
        with open(path, encoding="utf-8") as stream:
            makes_some = re.search(r"^def [a-z]\w+_signatures\(", stream.read(), re.MULTILINE)
        assert not makes_some or f"`export/{os.path.basename(path)}`" in text_of("README.md")


MANIFESTS = ["docs/scale.md", "docs/serving.md"]


@pytest.mark.parametrize("page", MANIFESTS)
def test_manifests_fit_the_schemas_of_kubernetes(page):
    manifests = [
        manifest
        for language, content, _ in blocks(page)
        if language == "yaml" and "apiVersion" in content
        for manifest in yaml.safe_load_all(content)
    ]
    assert manifests
    for manifest in manifests:
        kubernetes_validate.validate(manifest, "1.30", strict=True)


PAGES = sorted(
    os.path.relpath(path, ROOT) for folder in ("", "docs") for path in glob.glob(os.path.join(ROOT, folder, "*.md"))
)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_needs_no_more_than_the_public_names(page):
    """An import from a deeper module, or a name that is not public, breaks a reader's program with the next version."""
    content = text_of(page)
    deeper = re.findall(r"(?:from|import) +keras_bert\.[\w.]+", content)
    assert set(deeper) <= {"import keras_bert.text", "from keras_bert.text"}
    named = re.findall(r"\bkeras_bert\.(\w+)", content)
    named += re.findall(r"\w+", " ".join(re.findall(r"from keras_bert(?:\.text)? import (.*)", content)))
    assert set(named) <= {*keras_bert.__all__, "text"}
