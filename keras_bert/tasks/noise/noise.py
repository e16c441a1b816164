"""Adds noise to texts, as from hasty typing, to see how much a model's score drops or to make it drop less."""

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from keras_bert.config.noise import noise_setting
from keras_bert.errors import UserError
from keras_bert.tasks.noise import han, words
from keras_bert.tasks.noise.edits import Edit, EditedText

_UNIT = re.compile(rf"[{han.HAN}]|(?:(?![{han.HAN}])\S)+")  # A Chinese character, or what stands between blanks.
_BLANKS = re.compile(r"\s+")

Edits = Callable[[str, float, np.random.Generator], Iterator[Edit]]


def lost_blanks(text: str, share: float, random: np.random.Generator) -> Iterator[Edit]:
    """A share of the runs of white space is lost."""
    for match in _BLANKS.finditer(text):
        if random.random() < share:
            yield Edit(match.start(), match.end(), "")


_EDITS: dict[str, Edits] = {
    "typo": partial(words.word_edits, change=words.typo),
    "swap": partial(words.word_edits, change=words.swap),
    "case": partial(words.word_edits, change=words.case),
    "homoglyph": partial(words.word_edits, change=words.homoglyph),
    "addspace": partial(words.word_edits, change=words.added_blank),
    "nospace": lost_blanks,
    "zh-shape": partial(han.character_edits, change=han.look_alike),
    "zh-sound": partial(han.character_edits, change=han.sound_alike),
    "zh-drop": partial(han.character_edits, change=han.dropped),
    "zh-double": partial(han.character_edits, change=han.doubled),
}


class Noise:
    """One kind of noise. What it does to a text depends on the seed and the text alone, not on its place in a file.

    Args:
        setting: `KIND` or `KIND=SHARE`, see `config.noise.KINDS`.
        seed: of the noise.

    Raises:
        UserError: there is no such kind, or the share is not one.
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
        """The text with noise, which knows where its parts have moved.

        Args:
            text: the text.
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
        """What was really changed so far: the shares of the `words` and of the `characters`.

        A word is what stands between blanks, or a Chinese character. It is changed if a character of it is, or a blank
        beside it. Characters are changed if they are replaced, lost or added.
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
    """Whether an edit changes the word from `start` to `end`; one that loses a blank changes both words beside it."""
    if edit.start == edit.end:
        return start < edit.start <= end
    return edit.start < end and start < edit.end or is_blank and (edit.end == start or edit.start == end)
