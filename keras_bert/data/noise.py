"""Texts as people who hurry write them: to see how a model's score falls."""

import hashlib
import re
from functools import partial

import numpy as np

from keras_bert.errors import UserError

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_WORD = re.compile(r"\w+")


def noise(setting):
    """The function (text) -> text that a setting names: `typo=SHARE` or `nospace`. Raises `UserError`."""
    name, _, value = setting.partition("=")
    if name == "nospace" and not value:
        return without_spaces
    try:
        share = float(value) if name == "typo" else None
    except ValueError:
        share = None
    if share is None or not 0.0 < share <= 1.0:
        raise UserError(
            f"noise: needs typo=SHARE, a share of the words from 0 to 1, or nospace. Received: {setting!r}."
        )
    return partial(with_typos, share=share)


def with_typos(text, share):
    """One typing error in so great a share of the words of two letters and more, always the same ones for a text.

    Each is one of four: two neighbours change places, a letter is left out, comes twice, or is another.
    """
    random = np.random.default_rng(int.from_bytes(hashlib.blake2b(text.encode("utf-8"), digest_size=8).digest()))

    def mistyped(match):
        word = match.group()
        if len(word) < 2 or random.random() >= share:
            return word
        place, kind = int(random.integers(len(word) - 1)), int(random.integers(4))
        before, letter, following, after = word[:place], word[place], word[place + 1], word[place + 2 :]
        other = _LETTERS[int(random.integers(len(_LETTERS)))]
        return before + (following + letter, following, letter + letter + following, other + following)[kind] + after

    return _WORD.sub(mistyped, text)


def without_spaces(text):
    """The text with its white space lost."""
    return "".join(text.split())
