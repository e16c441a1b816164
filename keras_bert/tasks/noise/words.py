"""Noise in words of letters: typing errors, capitals, and letters of other scripts that look the same."""

import re
from collections.abc import Callable, Iterator

import numpy as np

from keras_bert.tasks.noise.edits import Edit
from keras_bert.tasks.noise.han import HAN

_WORD = re.compile(rf"(?:(?![{HAN}])\w)+")

# The keys around each letter on a QWERTY keyboard.
_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
# Unicode's confusables (UTS #39, confusables.txt): Cyrillic and Greek letters drawn like a Latin one.
_HOMOGLYPHS = dict(
    zip(
        "aceijlopsxyABCEHIJKMNOPSTXYZ",
        "асеіјӏорѕхуАВСЕНІЈКМΝОРЅТХΥΖ",
    )
)

WordEdit = Callable[[str, np.random.Generator], Edit | None]


def word_edits(text: str, share: float, random: np.random.Generator, change: WordEdit) -> Iterator[Edit]:
    """Edits in a share of the words that can be changed.

    Args:
        text: the text.
        share: the probability of each such word.
        random: draws the words and the changes.
        change: function (word, random) -> an edit of the word, or None if there is none.
    """
    for match in _WORD.finditer(text):
        edit = change(match.group(), random) if random.random() < share else None
        if edit is not None:
            start, end, new = edit
            yield Edit(match.start() + start, match.start() + end, new)


def typo(word: str, random: np.random.Generator) -> Edit | None:
    """Two neighbouring letters swapped, or a letter lost, doubled or replaced by a key beside it."""
    if len(word) < 2:
        return None
    kind, place = int(random.integers(4)), int(random.integers(len(word)))
    letter = word[place]
    if kind == 0:
        return swap(word, random)
    if kind == 1:
        return Edit(place, place + 1, "")
    neighbours = _NEIGHBOURS.get(letter.lower(), "")
    if kind == 2 or not neighbours:
        return Edit(place + 1, place + 1, letter)
    other = neighbours[int(random.integers(len(neighbours)))]
    return Edit(place, place + 1, other.upper() if letter.isupper() else other)


def swap(word: str, random: np.random.Generator) -> Edit | None:
    """Two neighbouring letters that differ change places."""
    places = [place for place in range(len(word) - 1) if word[place] != word[place + 1]]
    if not places:
        return None
    place = places[int(random.integers(len(places)))]
    return Edit(place, place + 2, word[place + 1] + word[place])


def case(word: str, random: np.random.Generator) -> Edit | None:
    """The word in capitals or, if it is in capitals, in small letters."""
    changed = word.upper() if word.upper() != word else word.lower()
    return Edit(0, len(word), changed) if changed != word else None


def homoglyph(word: str, random: np.random.Generator) -> Edit | None:
    """A letter replaced by one of another script that looks the same."""
    places = [place for place, letter in enumerate(word) if letter in _HOMOGLYPHS]
    if not places:
        return None
    place = places[int(random.integers(len(places)))]
    return Edit(place, place + 1, _HOMOGLYPHS[word[place]])


def added_blank(word: str, random: np.random.Generator) -> Edit | None:
    """A blank inside the word."""
    if len(word) < 2:
        return None
    place = 1 + int(random.integers(len(word) - 1))
    return Edit(place, place, " ")


def _keyboard() -> dict[str, str]:
    """{letter: the letters on the keys around it}; each row is shifted by a third of a key to the right."""
    keys = {
        letter: (row, column + row / 3) for row, letters in enumerate(_ROWS) for column, letter in enumerate(letters)
    }
    return {
        letter: "".join(
            other
            for other, (other_row, other_column) in keys.items()
            if other != letter and abs(other_row - row) <= 1 and abs(other_column - column) <= 1
        )
        for letter, (row, column) in keys.items()
    }


_NEIGHBOURS = _keyboard()
