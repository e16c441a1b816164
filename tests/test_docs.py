"""The examples of docs/python.md, README.md and docstrings run, and no page needs more than the public names."""

import glob
import inspect
import os
import re
import shlex
import textwrap

import keras
import kubernetes_validate
import numpy as np
import pytest
import tensorflow as tf
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


@pytest.fixture
def beside_a_demo(tmp_path, monkeypatch):
    """The current folder is one in which `python run.py pretrain` has run."""
    vocabulary = Vocabulary([*SPECIAL_TOKENS, *WORDS])
    model = BertForPreTraining(tiny_config(vocab_size=len(vocabulary)))
    random_weights(model)
    write_model_folder(str(tmp_path / "runs" / "demo"), model, vocabulary, lower_case=True)
    monkeypatch.chdir(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("page", ["README.md", "docs/python.md"])
@pytest.mark.usefixtures("beside_a_demo")
def test_every_example_runs(page):
    """In order and in one namespace, as a reader would; a message names the page and its line."""
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


def docstring_examples():
    """(name, code) of each `Example:` in the docstrings of the public names and of their own members."""
    for name in keras_bert.__all__:
        value = getattr(keras_bert, name)
        members = vars(value).items() if inspect.isclass(value) else ()
        for of, documented in ((name, value), *((f"{name}.{member}", function) for member, function in members)):
            found = re.search(r"^Example:\n((?:    .*\n?|\n)+)", inspect.getdoc(documented) or "", re.MULTILINE)
            if found and (of == name or inspect.isfunction(documented)):
                yield of, textwrap.dedent(found[1])


@pytest.mark.slow
@pytest.mark.usefixtures("beside_a_demo")
def test_every_example_of_a_docstring_runs(capsys):
    """A message names the docstring and the line in its example. A docstring leaves the imports to its reader."""
    ran = 0
    for name, code in docstring_examples():
        exec(
            compile(code, f"the example of {name}", "exec"),
            {"keras": keras, "keras_bert": keras_bert, "np": np, "tf": tf},
        )
        ran += 1
    assert ran > 30


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "docs/design.md"])
def test_every_file_that_a_page_points_to_exists(page):
    """A pointer to a file is of use only while the file exists. KIND and NAME stand for any."""
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
