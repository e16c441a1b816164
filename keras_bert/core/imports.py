"""Imports on first use: optional packages, with how to install a missing one, and a package's own names."""

import importlib
import importlib.util
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from keras_bert.core.errors import UserError

EXTRA_OF = {
    "ai_edge_litert": "edge",
    "apache_beam": "beam",
    "backports.zstd": "web",
    "huggingface_hub": "hub",
    "jieba": "zh",
    "matplotlib": "plots",
    "mlflow": "mlflow",
    "mwparserfromhell": "wikipedia",
    "mwxml": "tfds-wikipedia",
    "nltk": "zh",
    "onnx": "onnx",
    "onnxruntime": "onnx",
    "pandas": "notebook",
    "pyarrow": "datasets",
    "rouge_score": "seq2seq",
    "sacrebleu": "seq2seq",
    "sentencepiece": "sentencepiece",
    "tensorflow_datasets": "datasets",
    "tf2onnx": "onnx",
    "usearch": "search",
    "wandb": "wandb",
    "warcio": "web",
}


def is_installed(package: str) -> bool:
    """Whether a package can be imported, without importing it."""
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:  # The parent package, such as `backports` of "backports.zstd", is missing too.
        return False


def require(package: str, needed_by: str, extra: str | None = None) -> None:
    """Raises `UserError` if a package of an extra is not installed.

    Args:
        package: its import name, one of `EXTRA_OF`.
        needed_by: what the user asked for, as the subject of the message: "--whole-words jieba".
        extra: the extra to install if not the package's own, such as one with all that is needed.
    """
    extra = extra or EXTRA_OF[package]
    if not is_installed(package):
        raise UserError(
            f"{needed_by}: needs the package {package}, which is not installed. "
            f"Install it with: pip install 'bert-in-keras[{extra}]', or in a checkout: "
            f"pip install '.[{extra}]'"
        )


def require_extra(extra: str, needed_by: str) -> None:
    """Raises `UserError` if one of an extra's packages is not installed; see `require`."""
    for package, its_extra in EXTRA_OF.items():
        if its_extra == extra:
            require(package, needed_by)


def import_extra(module: str, needed_by: str) -> ModuleType:
    """Imports a module of an extra's package. Raises `UserError` if it is not installed; see `require`."""
    require(next(package for package in EXTRA_OF if f"{module}.".startswith(f"{package}.")), needed_by)
    return importlib.import_module(module)


def named_class(place: str) -> Any:
    """The class at `module:class`."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


def lazy_names(package: str, modules: Mapping[str, str]) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package whose public names are defined in other modules.

    Importing TensorFlow takes seconds, so `import keras_bert` and `--help` do without it. Modules and sub-packages are
    imported as attributes too, so that `keras_bert.text` works after `import keras_bert` alone.

    Args:
        package: the package's `__name__`.
        modules: `{public name: module}`.
    """

    def get(name: str) -> object:
        if name in modules:
            return getattr(importlib.import_module(modules[name]), name)
        if not name.startswith("_") and importlib.util.find_spec(f"{package}.{name}"):
            return importlib.import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return get, lambda: sorted(modules)
