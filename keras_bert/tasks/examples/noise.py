"""Adds noise to texts, as from hasty typing, to see how much a model's score drops."""

import hashlib
import re
from collections.abc import Callable
from functools import partial

import numpy as np

from keras_bert.errors import UserError

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_WORD = re.compile(r"\w+")


def noise(setting: str) -> Callable[[str], str]:
    """The function (text) -> text for a setting, `typo=SHARE` or `nospace`. Raises `UserError` for any other."""
    name, _, value = setting.partition("=")
    if name == "nospace" and not value:
        return without_spaces
    try:
        share = float(value) if name == "typo" else None
    except ValueError:
        share = None
    if share is None or not 0.0 < share <= 1.0:
        raise UserError(
            f"noise: needs typo=SHARE, a share of the words above 0 and at most 1, or nospace. Received: {setting!r}."
        )
    return partial(with_typos, share=share)


def with_typos(text: str, share: float) -> str:
    """Puts one typo into a share of the words of at least two letters; the same text always gets the same typos.

    A typo is one of four: two neighbouring letters swapped, a letter omitted, doubled, or replaced by another.
    """
    random = np.random.default_rng(int.from_bytes(hashlib.blake2b(text.encode("utf-8"), digest_size=8).digest()))

    def mistyped(match: re.Match[str]) -> str:
        word = match.group()
        if len(word) < 2 or random.random() >= share:
            return word
        place, kind = int(random.integers(len(word) - 1)), int(random.integers(4))
        before, letter, following, after = word[:place], word[place], word[place + 1], word[place + 2 :]
        other = _LETTERS[int(random.integers(len(_LETTERS)))]
        return before + (following + letter, following, letter + letter + following, other + following)[kind] + after

    return _WORD.sub(mistyped, text)


def without_spaces(text: str) -> str:
    """The text without any white space."""
    return "".join(text.split())
