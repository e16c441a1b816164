"""Adds noise to texts, as from hasty typing, to see how much a model's score drops or to make it drop less."""

import bisect
import functools
import hashlib
import importlib.resources
import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from keras_bert.config.finetuning import noise_setting
from keras_bert.core.errors import UserError


class Edit(NamedTuple):
    """Replaces the code points from `start` to `end` by `text`; `start == end` inserts it there."""

    start: int
    end: int
    text: str


class EditedText:
    """A text after some edits.

    Args:
        before: the original text.
        edits: in the order of the text, without overlap.
    """

    def __init__(self, before: str, edits: Sequence[Edit]):
        places = [0, *itertools.chain.from_iterable((edit.start, edit.end) for edit in edits), len(before)]
        kept = [before[start:end] for start, end in zip(places[::2], places[1::2])]
        self.text = kept[0] + "".join(edit.text + after for edit, after in zip(edits, kept[1:]))
        self._edits = edits
        self._starts, self._ends = [edit.start for edit in edits], [edit.end for edit in edits]
        growth = (len(edit.text) - (edit.end - edit.start) for edit in edits)
        self._moved = list(itertools.accumulate(growth, initial=0))

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The span in the edited text of the original `start` to `end`.

        An edit that crosses a boundary is included as a whole; inserted text belongs to the character before it.
        """
        before = bisect.bisect_right(self._ends, start)
        first = start + self._moved[before]
        if before < len(self._edits) and self._starts[before] < start:
            first = self._starts[before] + self._moved[before]
        through = bisect.bisect_right(self._ends, end)
        last = end + self._moved[through]
        if through < len(self._edits) and self._starts[through] < end:
            last = self._ends[through] + self._moved[through + 1]
        return first, max(first, last)


HAN = "\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003fffd"  # For a character class of a regular expression.
_CHARACTER = re.compile(f"[{HAN}]")
SHAPE, SOUND = "shape", "sound"

Replacement = Callable[[str, np.random.Generator], str | None]


def character_edits(text: str, share: float, random: np.random.Generator, change: Replacement) -> Iterator[Edit]:
    """Edits of a share of the Chinese characters that can be changed.

    Args:
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


def _alike(kind: str, character: str, random: np.random.Generator) -> str | None:
    """A character of a similar shape (`SHAPE`), or with the same reading, as input methods offer it (`SOUND`)."""
    others = alike_characters(kind).get(character, "")
    return others[int(random.integers(len(others)))] if others else None


@functools.cache
def alike_characters(kind: str) -> dict[str, str]:
    """`{character: those alike}` in `SHAPE` or `SOUND`, as written by tools/make_alike_characters.py."""
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


_WORD = re.compile(rf"(?:(?![{HAN}])\w)+")

# The letters of a QWERTY keyboard.
_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
# Unicode's confusables (UTS #39, confusables.txt): Cyrillic and Greek letters drawn like a Latin one.
_HOMOGLYPHS = dict(zip("aceijlopsxyABCEHIJKMNOPSTXYZ", "асеіјӏорѕхуАВСЕНІЈКМΝОРЅТХΥΖ"))

WordEdit = Callable[[str, np.random.Generator], Edit | None]


def word_edits(text: str, share: float, random: np.random.Generator, change: WordEdit) -> Iterator[Edit]:
    """Edits in a share of the words that can be changed.

    Args:
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
    """Two different neighbouring letters swapped."""
    places = [place for place in range(len(word) - 1) if word[place] != word[place + 1]]
    if not places:
        return None
    place = places[int(random.integers(len(places)))]
    return Edit(place, place + 2, word[place + 1] + word[place])


def case(word: str, random: np.random.Generator) -> Edit | None:
    """The word in upper case or, if it already is, in lower case."""
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


_UNIT = re.compile(rf"[{HAN}]|(?:(?![{HAN}])\S)+")  # A Chinese character, or a run of other non-blanks.
_BLANKS = re.compile(r"\s+")

Edits = Callable[[str, float, np.random.Generator], Iterator[Edit]]


def lost_blanks(text: str, share: float, random: np.random.Generator) -> Iterator[Edit]:
    """Deletions of a share of the runs of white space."""
    for match in _BLANKS.finditer(text):
        if random.random() < share:
            yield Edit(match.start(), match.end(), "")


_EDITS: dict[str, Edits] = {
    "typo": partial(word_edits, change=typo),
    "swap": partial(word_edits, change=swap),
    "case": partial(word_edits, change=case),
    "homoglyph": partial(word_edits, change=homoglyph),
    "addspace": partial(word_edits, change=added_blank),
    "nospace": lost_blanks,
    "zh-shape": partial(character_edits, change=partial(_alike, SHAPE)),
    "zh-sound": partial(character_edits, change=partial(_alike, SOUND)),
    "zh-drop": partial(character_edits, change=lambda character, random: ""),
    "zh-double": partial(character_edits, change=lambda character, random: character * 2),
}


class Noise:
    """One kind of noise; its edits depend only on the seed and the text, not on the text's place in a file.

    Args:
        setting: `KIND` or `KIND=SHARE`, see `config.finetuning.KINDS`.

    Raises:
        UserError: the kind is unknown or the share invalid.
    """

    def __init__(self, setting: str, seed: int = 0):
        try:
            self._kind, self._share = noise_setting(setting)
        except ValueError as problem:
            raise UserError(str(problem)) from None
        self._seed = seed
        self._seen = self._changed = np.zeros(2, np.int64)  # Words, characters.

    def __call__(self, text: str) -> str:
        """The text with noise."""
        return self.edited(text).text

    def edited(self, text: str, kept: Sequence[tuple[int, int]] = ()) -> EditedText:
        """The text with noise, which can map spans of the original.

        Args:
            kept: parts of the text, (start, end), that must not become empty or blank.
        """
        key = hashlib.blake2b(f"{self._seed} {self._kind} {text}".encode("utf-8", "surrogatepass"), digest_size=8)
        random = np.random.default_rng(int.from_bytes(key.digest(), "big"))
        edits = list(_EDITS[self._kind](text, self._share, random))
        edited = EditedText(text, edits)
        for start, end in kept:
            first, last = edited.span(start, end)
            if not edited.text[first:last].strip():
                edits = [edit for edit in edits if edit.end <= start or edit.start >= end]
                edited = EditedText(text, edits)
        self._count(text, edits)
        return edited

    def shares(self) -> dict[str, float]:
        """The shares of `words` and `characters` actually changed so far.

        A word is a Chinese character or a run of other non-blanks. It is changed if one of its characters is, or a
        blank next to it. Characters are changed if they are replaced, deleted or added.
        """
        shares = self._changed / np.maximum(self._seen, 1)
        return dict(zip(("words", "characters"), shares.tolist()))

    def _count(self, text: str, edits: Sequence[Edit]) -> None:
        units = [match.span() for match in _UNIT.finditer(text)]
        changed, number = 0, 0
        for edit in edits:
            is_blank = not edit.text and not text[edit.start : edit.end].strip()
            while number < len(units):
                is_touched = _touches(edit, *units[number], is_blank)
                if not is_touched and units[number][1] > edit.start:
                    break
                changed, number = changed + is_touched, number + 1
        characters = sum(max(edit.end - edit.start, len(edit.text)) for edit in edits)
        self._seen = self._seen + (len(units), len(text))
        self._changed = self._changed + (changed, characters)


def changes_text(shares: Mapping[str, float]) -> str:
    """`Noise.shares` in words."""
    changed = " and ".join(f"{share:.1%} of the {units}" for units, share in shares.items())
    return f"which changes {changed}"


def _touches(edit: Edit, start: int, end: int, is_blank: bool) -> bool:
    """Whether an edit changes the word from `start` to `end`; deleting a blank changes both words next to it."""
    if edit.start == edit.end:
        return start < edit.start <= end
    return edit.start < end and start < edit.end or is_blank and (edit.end == start or edit.start == end)
