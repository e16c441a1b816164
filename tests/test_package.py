"""What the distribution promises: its extras, one list of requirements, one version, recipes inside."""

import glob
import os
import re

import pytest

import keras_bert
from keras_bert.core import imports
from keras_bert.core.errors import UserError

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


NOT_IN_ALL = ("notebook", "beam", "mlflow", "onnx", "tfds-wikipedia", "wandb")


def requirements(name):
    """Normalised names of the packages that a file of requirements/ asks for."""
    with open(os.path.join(ROOT, "requirements", f"{name}.txt"), encoding="utf-8") as stream:
        lines = [line for line in stream if line.strip() and not line.startswith(("#", "-r"))]
    return {re.split(r"[<>=!~\[; ]", line.strip())[0].lower().replace("-", "_") for line in lines}


def pyproject():
    tomllib = pytest.importorskip("tomllib", reason="Python 3.11")
    with open(os.path.join(ROOT, "pyproject.toml"), "rb") as stream:
        return tomllib.load(stream)


@pytest.mark.parametrize(("package", "extra"), imports.EXTRA_OF.items())
def test_a_missing_package_is_named_with_its_extra(package, extra, monkeypatch):
    """Otherwise a user without it would see a ModuleNotFoundError, or be told to install an extra that lacks it."""
    assert package in requirements(extra)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UserError, match=rf"^Reading: needs the package {package}, .*'bert-in-keras\[{extra}\]'"):
        imports.import_extra(package, "Reading")


def test_requirements_txt_holds_every_extra_that_is_not_large():
    """`pip install -r requirements.txt` must be enough for every command without `--runner` or `training.log_to`."""
    with open(os.path.join(ROOT, "requirements.txt"), encoding="utf-8") as stream:
        included = {line.split()[1] for line in stream if line.startswith("-r")}
    of_package = pyproject()["tool"]["hatch"]["metadata"]["hooks"]["requirements_txt"]
    optional = of_package["optional-dependencies"]
    assert included == {*of_package["files"], *optional["all"]}
    assert set(optional["all"]) == {
        path for extra, paths in optional.items() if extra not in ("all", *NOT_IN_ALL) for path in paths
    }
    assert set(imports.EXTRA_OF.values()) == set(optional) - {"all"}


def test_make_installs_again_when_any_file_of_requirements_txt_changes():
    """Otherwise an environment from before a package was added would lack it."""
    with open(os.path.join(ROOT, "requirements.txt"), encoding="utf-8") as stream:
        included = {os.path.basename(line.split()[1]) for line in stream if line.startswith("-r")}
    with open(os.path.join(ROOT, "Makefile"), encoding="utf-8") as stream:
        [watched] = re.findall(r"^REQUIREMENTS := .*addprefix requirements/,(.*)\)$", stream.read(), re.MULTILINE)
    assert set(watched.split()) == included


def test_the_version_stands_in_one_place_and_the_changelog_tells_of_it():
    assert "version" in pyproject()["project"]["dynamic"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", keras_bert.__version__)
    with open(os.path.join(ROOT, "CHANGELOG.md"), encoding="utf-8") as stream:
        newest = next(line for line in stream if line.startswith("## "))
    assert newest.split()[1].rstrip(",") == keras_bert.__version__


def test_every_recipe_goes_into_the_wheel():
    included = pyproject()["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert included == {"configs": "keras_bert/configs"}
    assert len(glob.glob(os.path.join(ROOT, "configs", "*", "*.yaml"))) > 20
