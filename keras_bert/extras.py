"""Optional packages: imported on first use, with a message that says how to install a missing one.

Each belongs to an extra of the distribution: `pip install 'bert-in-keras[zh]'`.
"""

import importlib
import importlib.util
from types import ModuleType

from keras_bert.errors import UserError

EXTRA_OF = {
    "ai_edge_litert": "edge",
    "apache_beam": "beam",
    "backports.zstd": "web",
    "huggingface_hub": "hub",
    "jieba": "zh",
    "matplotlib": "plots",
    "mwparserfromhell": "wikipedia",
    "mwxml": "tfds-wikipedia",
    "nltk": "zh",
    "pyarrow": "datasets",
    "sentencepiece": "sentencepiece",
    "tensorflow_datasets": "datasets",
    "usearch": "search",
    "warcio": "web",
}


def is_installed(package: str) -> bool:
    """Whether a package can be imported, without importing it."""
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:  # Not even the `backports` of "backports.zstd".
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


def import_extra(module: str, needed_by: str) -> ModuleType:
    """Imports a module of an extra's package. Raises `UserError` if it is not installed; see `require`."""
    require(next(package for package in EXTRA_OF if f"{module}.".startswith(f"{package}.")), needed_by)
    return importlib.import_module(module)
