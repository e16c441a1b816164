"""Noise in Chinese: characters replaced by some that look or sound alike, lost, or doubled."""

import functools
import importlib.resources
import re
from collections.abc import Callable, Iterator

import numpy as np

from keras_bert.tasks.noise.edits import Edit

HAN = "\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003fffd"  # For a character class of a regular expression.
_CHARACTER = re.compile(f"[{HAN}]")
SHAPE, SOUND = "shape", "sound"

Replacement = Callable[[str, np.random.Generator], str | None]


def character_edits(text: str, share: float, random: np.random.Generator, change: Replacement) -> Iterator[Edit]:
    """Edits of a share of the Chinese characters that can be changed.

    Args:
        text: the text.
        share: the probability of each such character.
        random: draws the characters and the changes.
        change: function (character, random) -> what replaces it, or None if nothing can.
    """
    places = [match.start() for match in _CHARACTER.finditer(text)]
    for place, drawn in zip(places, random.random(len(places)).tolist()):
        character = text[place]
        new = change(character, random) if drawn < share else None
        if new is not None:
            kept = len(character) if new.startswith(character) else 0
            yield Edit(place + kept, place + 1, new[kept:])


def look_alike(character: str, random: np.random.Generator) -> str | None:
    """A character with a similar shape."""
    return _other(SHAPE, character, random)


def sound_alike(character: str, random: np.random.Generator) -> str | None:
    """A character with the same reading, as input methods offer it."""
    return _other(SOUND, character, random)


def dropped(character: str, random: np.random.Generator) -> str | None:
    """Nothing."""
    return ""


def doubled(character: str, random: np.random.Generator) -> str | None:
    """The character twice."""
    return character * 2


def _other(kind: str, character: str, random: np.random.Generator) -> str | None:
    others = alike_characters(kind).get(character, "")
    return others[int(random.integers(len(others)))] if others else None


@functools.cache
def alike_characters(kind: str) -> dict[str, str]:
    """`{character: those that are alike}` in `SHAPE` or `SOUND`, as tools/make_alike_characters.py wrote them."""
    content = importlib.resources.files(__package__).joinpath("alike_characters.txt").read_text(encoding="utf-8")
    found: dict[str, str] = {}
    for line in content.splitlines():
        name, key, characters = line.split("\t")
        if name != kind:
            continue
        if kind == SHAPE:
            found[key] = characters
        else:
            found |= {character: characters.replace(character, "") for character in characters}
    return found
