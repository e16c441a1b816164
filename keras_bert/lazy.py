"""Public names of a package that are imported on first use."""

import importlib
from collections.abc import Callable, Mapping


def lazy_names(package: str, modules: Mapping[str, str]) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package whose public names are defined in other modules.

    Importing TensorFlow takes seconds, so `import keras_bert` and `--help` do without it.

    Args:
        package: the package's `__name__`.
        modules: `{public name: module}`.
    """

    def get(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(modules[name]), name)

    return get, lambda: sorted(modules)
