"""Learning rates that differ between parts of a model: by depth, and by patterns of names."""

import difflib
import fnmatch
import itertools
from collections.abc import Iterator, Sequence

from keras_bert.config.training import OptimizerConfig
from keras_bert.errors import UserError
from keras_bert.training.variable_names import EMBEDDINGS, block_of, part_of

_NAMES_SHOWN = 3


def rate_factors(config: OptimizerConfig, names: Sequence[str]) -> list[float]:
    """The factor on the learning rate of each variable, by `optimizer.layer_decay` and `optimizer.rates`.

    With L blocks, block i (from 0) has the factor `layer_decay^(L - i)` and the embeddings have `layer_decay^(L + 1)`;
    pooler and heads have 1. A variable is multiplied by the factors of all patterns that match its name.

    Args:
        config: the recipe's `optimizer` section.
        names: what `variable_names.trainable_names` returned.

    Raises:
        UserError: a pattern matches no name; the nearest names are given.
    """
    factors = depth_factors(config.layer_decay, names)
    for pattern, factor in config.rates.items():
        matched = [matches(name, pattern) for name in names]
        if not any(matched):
            raise UserError(
                f"optimizer.rates: needs patterns that match trainable variables. Received: {pattern!r}, which "
                f"matches none. The nearest names are {', '.join(_nearest(pattern, names))}."
            )
        factors = [old * factor if is_matched else old for old, is_matched in zip(factors, matched)]
    return factors


def depth_factors(layer_decay: float, names: Sequence[str]) -> list[float]:
    """The factors of `layer_decay` alone; see `rate_factors`."""
    blocks = 1 + max((index for name in names if (index := block_of(name)) is not None), default=-1)

    def depth(name: str) -> int:
        """How many blocks and heads lie above a variable."""
        if part_of(name) == EMBEDDINGS:
            return blocks + 1
        index = block_of(name)
        return 0 if index is None else blocks - index

    return [layer_decay ** depth(name) for name in names]


def matches(name: str, pattern: str) -> bool:
    """Whether a pattern is one or more whole steps of a dotted name; `*`, `?` and `[…]` as in file names."""
    return fnmatch.fnmatchcase(f".{name}.", f"*.{pattern}.*")


def _nearest(pattern: str, names: Sequence[str]) -> list[str]:
    """Names similar to a misspelt pattern, or else the parts of the model."""
    known = dict.fromkeys(piece for name in names for piece in _pieces(name.split(".")))
    parts = dict.fromkeys(part_of(name) if block_of(name) is None else "blocks" for name in names)
    return difflib.get_close_matches(pattern, known, _NAMES_SHOWN) or list(parts)


def _pieces(steps: Sequence[str]) -> Iterator[str]:
    """Yields every contiguous part of a name, which is given as its steps."""
    for start, end in itertools.combinations(range(len(steps) + 1), 2):
        yield ".".join(steps[start:end])
