"""Finds words and phrases of a list given by the user."""

import re
from collections.abc import Iterable

from keras_bert.data.corpus.text_lines import read_whole_lines
from keras_bert.errors import UserError

_LETTERS = re.compile(r"[^\W\d_]+")
# Scripts that do not separate words: Thai, kana, Chinese characters.
_UNSEPARATED = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0002fa1f]")


class BadWords:
    """Words and phrases, found in any case.

    As for C4, what precedes and follows must not be a letter, digit or underscore, except in Chinese, Japanese and
    Thai, which do not separate words.

    Args:
        phrases: the words and phrases.
    """

    def __init__(self, phrases: Iterable[str]):
        phrases = list(dict.fromkeys(phrase.lower() for phrase in phrases))
        self._unseparated = [phrase for phrase in phrases if _UNSEPARATED.search(phrase)]
        # A regex of hundreds of alternatives is slow. Looking up the runs of letters of a text is fast, and few texts
        # have all those of a phrase.
        self._of_symbols: list[str] = []
        self._of_letters: dict[str, list[tuple[frozenset[str], str]]] = {}
        for phrase in phrases:
            runs = _LETTERS.findall(phrase)
            if _UNSEPARATED.search(phrase):
                continue
            if runs:
                self._of_letters.setdefault(max(runs, key=len), []).append((frozenset(runs), phrase))
            else:
                self._of_symbols.append(phrase)

    @classmethod
    def from_file(cls, path: str) -> "BadWords":
        """Reads one word or phrase from each line. Raises `UserError` if the file is missing, not UTF-8 or empty."""
        phrases = [line.strip().removeprefix("\ufeff") for line in read_whole_lines(path)]
        phrases = [phrase for phrase in phrases if phrase]
        if not phrases:
            raise UserError(f"{path}: needs a word or phrase on each line. Received: an empty file.")
        return cls(phrases)

    def is_in(self, text: str) -> bool:
        """Whether the text has one of them."""
        text = text.lower()
        if any(phrase in text for phrase in self._unseparated):
            return True
        runs = set(_LETTERS.findall(text))
        candidates = [
            phrase
            for longest in self._of_letters.keys() & runs
            for needed, phrase in self._of_letters[longest]
            if needed <= runs
        ]
        return any(_stands_alone(phrase, text) for phrase in (*candidates, *self._of_symbols))


def _stands_alone(phrase: str, text: str) -> bool:
    return phrase in text and re.search(rf"(?<!\w){re.escape(phrase)}(?!\w)", text) is not None
