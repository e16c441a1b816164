"""Marks the tokens that continue a word: Chinese words by jieba, all others by their pieces.

Whole-word masking of Chinese masks the words of a segmenter, although every character is a token of its own.
"""

import logging
import tempfile
import warnings
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from keras_bert import extras
from keras_bert.text.character_table import IDEOGRAPH_RANGES
from keras_bert.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    import jieba

JIEBA = "jieba"


def require_jieba() -> None:
    """Raises `UserError` if jieba is not installed."""
    extras.require(JIEBA, "Marking Chinese words")


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
        texts: the texts of the tokens.
        tokens: the ids of all texts, concatenated: `[tokens]`.
        lengths: the number of tokens of each text: `[texts]`.
        starts: the offset of each token in its text, in code points: `[tokens]`.
        vocabulary: the vocabulary of the ids.
    """
    from keras_bert.text.words import continues_word  # TensorFlow, which the other functions do without.

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
    """The share of ideographs in the characters of texts, white space not counted; 0 if there are none."""
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
        warnings.simplefilter("ignore")  # About escape sequences in its source, and about pkg_resources.
        import jieba

    jieba.setLogLevel(logging.WARNING)
    segmenter = jieba.Tokenizer()
    # Its cache in the shared temporary folder may come from another release or another user.
    with tempfile.TemporaryDirectory() as folder:
        segmenter.tmp_dir = folder
        segmenter.initialize()
    return segmenter
