"""BERT's tokenization in plain Python, from the published algorithm: what the tokenizer in the graph must equal.

BasicTokenizer and WordpieceTokenizer of google-research/bert's tokenization.py. Every character carries the place in
the text that it comes from, which gives the offsets that the original does not have.
"""

import unicodedata

IDEOGRAPHS = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)
MAX_CHARACTERS_PER_WORD = 200


def encode(data, ids, lower_case, strip_accents=None, split_chinese=True):
    """`(ids, starts, ends)` of bytes; `ids` maps pieces to ids. Offsets count code points of the decoded text."""
    encoded = []
    for word in basic_words(data.decode("utf-8", "ignore"), lower_case, strip_accents, split_chinese):
        pieces = word_pieces("".join(character for character, _ in word), ids)
        first = 0
        for piece in pieces:
            length = len(word) if piece == "[UNK]" else len(piece) - 2 * (first > 0)
            encoded.append((ids[piece], word[first][1], word[first + length - 1][1] + 1))
            first += length
    return tuple(list(column) for column in zip(*encoded)) if encoded else ([], [], [])


def basic_words(text, lower_case, strip_accents=None, split_chinese=True):
    """Words as lists of (character, place). The last two settings are of Hugging Face's BasicTokenizer."""
    strips = lower_case if strip_accents is None else strip_accents
    for token in _split_at_space(_clean(text, split_chinese)):
        lowered = _lower(token) if lower_case else token
        yield from _split_at_punctuation(_strip_accents(lowered) if strips else lowered)


def word_pieces(word, ids):
    """Greedy longest match first."""
    if len(word) > MAX_CHARACTERS_PER_WORD:
        return ["[UNK]"]
    pieces, start = [], 0
    while start < len(word):
        prefix = "##" if start else ""
        end = next((end for end in range(len(word), start, -1) if prefix + word[start:end] in ids), None)
        if end is None:
            return ["[UNK]"]
        pieces.append(prefix + word[start:end])
        start = end
    return pieces


def _clean(text, split_chinese):
    for place, character in enumerate(text):
        category = unicodedata.category(character)
        if character in "\0\ufffd" or (category in ("Cc", "Cf") and character not in "\t\n\r"):
            continue
        if split_chinese and any(first <= ord(character) <= last for first, last in IDEOGRAPHS):
            yield from ((" ", place), (character, place), (" ", place))
        else:
            yield (" " if character in " \t\n\r" or category == "Zs" else character), place


def _split_at_space(characters):
    """Python's str.split()."""
    word = []
    for character, place in characters:
        if not character.isspace():
            word.append((character, place))
        elif word:
            yield word
            word = []
    if word:
        yield word


def _lower(word):
    # lower() looks beyond a character only for the final sigma, and that keeps the length.
    lowered = "".join(character for character, _ in word).lower()
    places = [place for character, place in word for _ in character.lower()]
    return list(zip(lowered, places, strict=True))


def _strip_accents(word):
    """NFD, and no nonspacing marks."""
    decomposed = [(part, place) for character, place in word for part in unicodedata.normalize("NFD", character)]
    ordered = _canonical_order(decomposed)
    whole = "".join(character for character, _ in word)
    assert "".join(character for character, _ in ordered) == unicodedata.normalize("NFD", whole)
    return [(character, place) for character, place in ordered if unicodedata.category(character) != "Mn"]


def _canonical_order(characters):
    ordered, marks = [], []
    for character, place in characters:
        if unicodedata.combining(character):
            marks.append((character, place))
        else:
            ordered += sorted(marks, key=lambda mark: unicodedata.combining(mark[0])) + [(character, place)]
            marks = []
    return ordered + sorted(marks, key=lambda mark: unicodedata.combining(mark[0]))


def _split_at_punctuation(characters):
    word = []
    for character, place in characters:
        if _is_punctuation(character):
            yield from _split_at_space(word)
            yield [(character, place)]
            word = []
        else:
            word.append((character, place))
    yield from _split_at_space(word)


def _is_punctuation(character):
    code = ord(character)
    in_ascii = 33 <= code <= 47 or 58 <= code <= 64 or 91 <= code <= 96 or 123 <= code <= 126
    return in_ascii or unicodedata.category(character).startswith("P")
