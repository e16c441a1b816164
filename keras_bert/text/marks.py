"""Marks the tokens that continue a word, and the tokens of phrases.

jieba finds Chinese words, because whole-word masking of Chinese masks a segmenter's words, although every character is
a token of its own. Pieces show all other words. Phrases come from a user's list, or are words with given labels.

The marks of phrases are uint8 `[tokens]`: `BEGINS` at the first token of a phrase, `CONTINUES` at its other tokens, 0
outside of phrases. Phrases do not overlap.
"""

import logging
import tempfile
import warnings
from collections import deque
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from keras_bert.core import imports
from keras_bert.core.errors import UserError
from keras_bert.core.files import StrPath, read_file
from keras_bert.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    import jieba

JIEBA = "jieba"
# Unicode code points; BERT's tokenizer makes each of these characters a word of its own.
IDEOGRAPH_RANGES = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


def require_jieba() -> None:
    """Raises `UserError` if jieba is not installed."""
    imports.require(JIEBA, "Marking Chinese words")


def continuation_marks(
    texts: Sequence[str],
    tokens: npt.NDArray[np.integer],
    lengths: npt.NDArray[np.integer],
    starts: npt.NDArray[np.integer],
    vocabulary: Vocabulary,
) -> npt.NDArray[np.uint8]:
    """`[tokens]`: 1 if a token continues the word of the token before it.

    It does if it is a piece with "##", or an ideograph that jieba joins to the ideograph before it.

    Args:
        tokens: the ids of all texts, concatenated: `[tokens]`.
        lengths: the number of tokens of each text: `[texts]`.
        starts: the offset of each token in its text, in code points: `[tokens]`.
    """
    from keras_bert.text.characters import continues_word  # Imports TensorFlow, which the other functions do not need.

    text_starts = np.cumsum([0, *map(len, texts)])
    ideographs = _ideographs("".join(texts))
    begins_word = np.zeros(len(ideographs) + 1, bool)
    for text, first in zip(texts, text_starts):
        begins_word[first] = True
        if ideographs[first : first + len(text)].any():
            begins_word[first + np.cumsum([len(word) for word in _segmenter().cut(text)])] = True
    joins_previous = ideographs & ~begins_word[:-1]
    joins_previous[1:] &= ideographs[:-1]
    places = starts + np.repeat(text_starts[:-1], lengths)
    return (continues_word(vocabulary, tokens).numpy() | joins_previous[places]).astype(np.uint8)


def is_ideograph(vocabulary: Vocabulary) -> npt.NDArray[np.bool_]:
    """`[vocab_size]`, true for a token that is a single ideograph."""
    return np.array([len(token) == 1 and _ideographs(token)[0] for token in vocabulary.tokens], bool)


def ideograph_share(texts: Iterable[str]) -> float:
    """The share of ideographs among the texts' characters, not counting spaces and line breaks; 0 if there are none."""
    found = characters = 0
    for text in texts:
        found += int(np.count_nonzero(_ideographs(text)))
        characters += len(text) - sum(map(text.count, " \n"))
    return found / max(characters, 1)


def _ideographs(text: str) -> npt.NDArray[np.bool_]:
    """`[characters]`, true for an ideograph."""
    characters = np.frombuffer(text.encode("utf-32-le", "replace"), "<u4")
    found = np.zeros(len(characters), bool)
    for first, last in IDEOGRAPH_RANGES:
        found |= (characters >= first) & (characters <= last)
    return found


@cache
def _segmenter() -> "jieba.Tokenizer":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # jieba's import warns of escape sequences in its source and of pkg_resources.
        import jieba

    jieba.setLogLevel(logging.WARNING)
    segmenter = jieba.Tokenizer()
    # jieba's cache in the shared temporary folder may come from another release or another user.
    with tempfile.TemporaryDirectory() as folder:
        segmenter.tmp_dir = folder
        segmenter.initialize()
    return segmenter


BEGINS, CONTINUES = 1, 2


def read_phrases(path: StrPath) -> list[str]:
    """The phrases in a file, one per line, without duplicates. Raises `UserError` if it has none or cannot be read."""
    try:
        lines = read_file(path, "Give a file of phrases.").decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: needs UTF-8. Received: an invalid byte at {error.start}. Convert the file.") from None
    phrases = list(dict.fromkeys(line.strip() for line in lines if line.strip()))
    if not phrases:
        raise UserError(f"{path}: needs phrases, one per line. Received: none.")
    return phrases


class PhraseMatcher:
    """An Aho-Corasick automaton over token ids (Aho and Corasick 1975): one pass finds all phrases.

    Matching ids also finds a phrase in capitals or with accents, if the tokenizer ignores these.

    Args:
        phrases: the ids of each phrase; empty ones are ignored.
    """

    def __init__(self, phrases: Iterable[Sequence[int]]):
        self._next: list[dict[int, int]] = [{}]
        # For each state: the lengths of the phrases that end there.
        self._found: list[tuple[int, ...]] = [()]
        for phrase in phrases:
            state = 0
            for token in phrase:
                if token not in self._next[state]:
                    self._next[state][token] = len(self._next)
                    self._next.append({})
                    self._found.append(())
                state = self._next[state][token]
            if state:
                self._found[state] = (len(phrase),)
        # For each state: the state of its longest proper suffix that begins a phrase.
        self._fallback = [0] * len(self._next)
        waiting = deque(self._next[0].values())
        while waiting:
            state = waiting.popleft()
            self._found[state] += self._found[self._fallback[state]]
            for token, following in self._next[state].items():
                waiting.append(following)
                self._fallback[following] = self._step(self._fallback[state], token)

    def marks(
        self, tokens: npt.NDArray[np.integer], lengths: npt.NDArray[np.integer], is_piece: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.uint8]:
        """The marks of texts: uint8 `[tokens]`. Where phrases overlap, the first and longest is marked.

        Args:
            tokens: the ids of all texts, concatenated: `[tokens]`.
            lengths: the number of tokens of each text: `[texts]`. No phrase extends over two texts.
            is_piece: the tokens that continue a word: `[tokens]`. No phrase begins or ends inside a word, and a text
                begins with a word in any case.
        """
        marks = np.zeros(len(tokens), np.uint8)
        is_inside = np.append(is_piece, False)
        is_inside[[0, *np.cumsum(lengths)]] = False
        inside, ids, first = is_inside.tolist(), tokens.tolist(), 0
        for length in lengths.tolist():
            last, state, matches = first + length, 0, []
            for place in range(first, last):
                state = self._step(state, ids[place])
                if state and self._found[state]:
                    end = place + 1
                    if not inside[end]:
                        matches += [(end - size, -end) for size in self._found[state] if not inside[end - size]]
            free = first
            for start, minus_end in sorted(matches):
                if start >= free:
                    free = -minus_end
                    marks[start:free] = CONTINUES
                    marks[start] = BEGINS
            first = last
        return marks

    def _step(self, state: int, token: int) -> int:
        following = self._next[state].get(token)
        while following is None and state:
            state = self._fallback[state]
            following = self._next[state].get(token)
        return following or 0


def marks_of_ranges(
    ranges: Sequence[Sequence[tuple[int, int]]], lengths: npt.NDArray[np.integer], starts: npt.NDArray[np.integer]
) -> npt.NDArray[np.uint8]:
    """The marks of phrases given as ranges of characters: uint8 `[tokens]`.

    Args:
        ranges: start and end of each phrase in each text, in code points, ascending.
        lengths: the number of tokens of each text: `[texts]`.
        starts: the offset of each token in its text, in code points: `[tokens]`.
    """
    marks = np.zeros(len(starts), np.uint8)
    text_ends = np.cumsum(lengths)
    for text, phrases in enumerate(ranges):
        first, last = text_ends[text] - lengths[text], text_ends[text]
        for begin, end in phrases:
            place, after = first + np.searchsorted(starts[first:last], (begin, end))
            marks[place:after] = CONTINUES
            marks[place : min(place + 1, after)] = BEGINS
    return marks
