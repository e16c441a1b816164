"""Public names of a package that are imported on first use."""

import importlib
import importlib.util
from collections.abc import Callable, Mapping


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
