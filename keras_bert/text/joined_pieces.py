"""Pieces of WordPiece as text that a person would have written."""

import re
from collections.abc import Iterable

from keras_bert.text.tokenizer_json import CONTINUATION

# Ideographs are words of their own, between which Chinese and Japanese have no space; so have kana.
_IDEOGRAPH = r"[\u3001-\u30ff\u3400-\u9fff\uf900-\ufaff\uff01-\uff65]"
_NO_SPACE = (
    (re.compile(r" (?=[.,;:!?%)\]}’”»…])"), ""),
    (re.compile(r"(?<=[(\[{‘“«]) "), ""),
    # Of "don ' t" and "cat ' s", as the basic tokenizer splits them.
    (re.compile(r"(?<=\w) (['’]) (?=(?:s|t|d|m|re|ve|ll)\b)", re.IGNORECASE), r"\1"),
    (re.compile(r"(?<=\w) - (?=\w)"), "-"),
    (re.compile(rf"(?<={_IDEOGRAPH}) (?={_IDEOGRAPH})"), ""),
)


def joined_pieces(pieces: Iterable[str]) -> str:
    """Joins pieces to words and words to a text, without the spaces that English and Chinese do not write.

    The tokenizer does not keep spaces, so this is a guess: quotation marks that open and close alike stay apart.
    """
    text = " ".join(pieces).replace(f" {CONTINUATION}", "")
    for pattern, replacement in _NO_SPACE:
        text = pattern.sub(replacement, text)
    return text
