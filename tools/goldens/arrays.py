"""Files of arrays that say which versions made them."""

import importlib.metadata

import numpy as np


def save(path, packages, arrays):
    """Writes `{name: array}` to a compressed .npz file, with the `packages`' versions under `made_with`."""
    versions = [f"{name} {importlib.metadata.version(name)}" for name in (*packages, "numpy")]
    np.savez_compressed(path, made_with=np.array(versions), **arrays)


def load(path):
    """`{name: array}` of a file that `save` wrote."""
    with np.load(path, allow_pickle=False) as stored:
        return dict(stored)
