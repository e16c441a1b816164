"""Files of arrays that record the versions of the packages that computed them."""

import importlib.metadata
import os
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np

Path: TypeAlias = str | os.PathLike[str]


def save(path: Path, packages: Iterable[str], arrays: Mapping[str, Any]) -> None:
    """Writes arrays by name to a compressed .npz file, with the versions of `packages` under `made_with`."""
    versions = [f"{name} {importlib.metadata.version(name)}" for name in (*packages, "numpy")]
    np.savez_compressed(path, made_with=np.array(versions), **arrays)


def load(path: Path) -> dict[str, np.ndarray]:
    """Reads a file written by `save`."""
    with np.load(path, allow_pickle=False) as stored:
        return dict(stored)
