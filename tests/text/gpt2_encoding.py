"""GPT-2's encoder as it was published (encoder.py of openai/gpt-2), over bytes, without a cache."""

import functools
import re
import sys
import unicodedata


@functools.cache
def pattern():
    """GPT-2's expression. Python's has no Unicode classes, so they are spelled out."""
    classes = {"L": [], "N": [], "Z": [*range(9, 14), 0x85]}
    for code_point in range(sys.maxunicode + 1):
        classes.get(unicodedata.category(chr(code_point))[0], []).append(code_point)
    letters, numbers, spaces = ("".join(f"\\U{point:08x}" for point in points) for points in classes.values())
    return re.compile(
        f"'s|'t|'re|'ve|'m|'ll|'d| ?[{letters}]+| ?[{numbers}]+| ?[^{spaces}{letters}{numbers}]+"
        f"|[{spaces}]+(?![^{spaces}])|[{spaces}]+"
    )


def merged(part, merges):
    """The pieces of bytes, merged by `{(first, second): rank}`."""
    pieces = [part[place : place + 1] for place in range(len(part))]
    while len(pieces) > 1:
        rank, pair = min((merges.get(pair, len(merges)), pair) for pair in zip(pieces, pieces[1:]))
        if rank == len(merges):
            break
        joined, place = [], 0
        while place < len(pieces):
            if tuple(pieces[place : place + 2]) == pair:
                joined.append(pieces[place] + pieces[place + 1])
                place += 2
            else:
                joined.append(pieces[place])
                place += 1
        pieces = joined
    return pieces


def encode(text, ids, merges):
    """`[(id, start, end)]` of a text by `{bytes: id}`; offsets in code points, without a space at the beginning."""
    found = []
    for match in pattern().finditer(text):
        # The code point that each byte of the part belongs to.
        places = [place for place in range(match.start(), match.end()) for _ in text[place].encode()]
        first = 0
        for piece in merged(match.group().encode(), merges):
            last = first + len(piece)
            start, end = places[first], places[last - 1] + 1
            found.append((ids[piece], start + piece.startswith(b" "), end))
            first = last
    return found
