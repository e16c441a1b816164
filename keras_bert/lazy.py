"""Public names of a package that are imported when they are first used."""

import importlib


def lazy_names(package, modules):
    """The `__getattr__` and `__dir__` of a package whose public names lie in other modules.

    Importing TensorFlow takes seconds, so `import keras_bert` and the command line's help do without it.

    Args:
        package: the package's `__name__`.
        modules: `{public name: module}`.
    """

    def get(name):
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(modules[name]), name)

    return get, lambda: sorted(modules)
