"""Which tokens continue a word: Chinese words by jieba, all others by their pieces.

Whole-word masking of Chinese masks what a segmenter holds for a word, although every character is a token of its own.
"""

import logging
import tempfile
import warnings
from functools import cache

import numpy as np

from keras_bert import extras
from keras_bert.text.character_table import IDEOGRAPH_RANGES

JIEBA = "jieba"


def require_jieba():
    """Raises `UserError` where the package is not installed."""
    extras.require(JIEBA, "Marking Chinese words")


def continuation_marks(texts, tokens, lengths, starts, vocabulary):
    """uint8 `[tokens]`: 1 where a token continues the word that the token before it began.

    A piece with "##" does, and an ideograph that jieba puts into one word with the ideograph before it.

    Args:
        texts: list of str, the texts of the tokens.
        tokens: ids of all texts, one after the other: int `[tokens]`.
        lengths: tokens of each text: int `[texts]`.
        starts: where each token begins in its text, in code points: int `[tokens]`.
        vocabulary: the `Vocabulary` of the ids.
    """
    text_starts = np.cumsum([0, *map(len, texts)])
    characters = np.frombuffer("".join(texts).encode("utf-32-le"), "<u4")
    is_ideograph = np.zeros(len(characters), bool)
    for first, last in IDEOGRAPH_RANGES:
        is_ideograph |= (characters >= first) & (characters <= last)
    begins_word = np.zeros(len(characters) + 1, bool)
    for text, first in zip(texts, text_starts):
        begins_word[first] = True
        if is_ideograph[first : first + len(text)].any():
            begins_word[first + np.cumsum([len(word) for word in _segmenter().cut(text)])] = True
    joins_previous = is_ideograph & ~begins_word[:-1]
    joins_previous[1:] &= is_ideograph[:-1]
    places = starts + np.repeat(text_starts[:-1], lengths)
    return (vocabulary.is_continuation[tokens] | joins_previous[places]).astype(np.uint8)


@cache
def _segmenter():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Of its source's escape sequences and of pkg_resources.
        import jieba

    jieba.setLogLevel(logging.WARNING)
    segmenter = jieba.Tokenizer()
    # Its cache in the common folder for temporary files may be of another release, or anybody's.
    with tempfile.TemporaryDirectory() as folder:
        segmenter.tmp_dir = folder
        segmenter.initialize()
    return segmenter
