"""BERT's exact tokenization without TensorFlow: one file of plain Python, with its data beside it.

It imports only the standard library and needs character_table.npz, the table of `characters.py`, in its own folder. A
LiteRT export contains copies of both, with this file as tokenizer.py.
"""

import array
import ast
import bisect
import json
import os
import sys
import unicodedata
import zipfile
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "character_table.npz")
SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
MAX_CHARACTERS_PER_WORD = 200  # max_input_chars_per_word in tokenization.py; a longer word is one [UNK]

# Kinds of characters. The order matters: up to BOUNDARY_MARK they are deleted, up to SPACE they belong to no word,
# from PUNCTUATION each is a word of its own, and from SIGMA the look-up alone is not enough.
DELETED = 0  # control characters, NUL, U+FFFD, stripped accents
BOUNDARY_MARK = 1  # a stripped mark of combining class 0: deleted, but combining marks do not move across it
SPACE = 2
LETTER = 3  # anything that words consist of, including digits and symbols
PUNCTUATION = 4
IDEOGRAPH = 5
SIGMA = 6  # capital sigma, whose lower case depends on its neighbors
EXPANDS = 7  # its character field is an index into `expansions`

# Properties of a character for the final-sigma rule.
UNCASED, CASED, CASE_IGNORABLE = 0, 1, 2

# One int32 holds, from its lowest bit: kind (3 bits), order (6), casing (2), character (21).
KIND_MASK = 0x7
ORDER_SHIFT, ORDER_MASK = 3, 0x3F
CASING_SHIFT, CASING_MASK = 9, 0x3
CHARACTER_SHIFT, CHARACTER_MASK = 11, 0x1FFFFF

_Characters = list[tuple[int, int]]  # (table entry, index of the code point that it comes from)

# Letters that Unicode's categories do not show: the joiners and letters in circles or squares.
WORD_RANGES = ((0x200C, 0x200D), (0x24B6, 0x24E9), (0x1F130, 0x1F149), (0x1F150, 0x1F169), (0x1F170, 0x1F189))

SPACES = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))


class AddedToken(NamedTuple):
    """A token that is matched whole in texts, as in Hugging Face's `tokenizers`.

    Attributes:
        content: the token.
        id: its id.
        single_word: whether a letter, digit, mark or underscore next to it prevents the match.
        lstrip, rstrip: whether it takes the spaces before or after it.
        normalized: whether it is normalized and looked for in the normalized text, not in the text as given.
        special: whether it is a special token; has no effect here.
    """

    content: str
    id: int
    single_word: bool = False
    lstrip: bool = False
    rstrip: bool = False
    normalized: bool = True
    special: bool = False


FLAGS = AddedToken._fields[2:]


def added_token(index: "int | str", fields: "Mapping[str, Any]") -> AddedToken:
    """A token from its fields in Hugging Face's files. Raises `KeyError`, `TypeError` or `ValueError`."""
    flags = {name: fields[name] for name in FLAGS if name in fields and fields[name] is not None}
    for name, value in flags.items():
        if value not in (True, False):
            raise ValueError(f"{name}: needs true or false. Received: {value!r}.")
    flags.setdefault("normalized", not flags.get("special"))
    if not isinstance(content := fields["content"], str) or isinstance(index, float):
        raise TypeError(content)
    return AddedToken(content, int(index), **{name: bool(value) for name, value in flags.items()})


def beside_pieces(added: "Iterable[AddedToken]", pieces: "Container[str]") -> "list[AddedToken]":
    """The added tokens except BERT's special tokens among the pieces, which transformers lists but which are words."""
    return [token for token in added if token.content not in SPECIAL_TOKENS or token.content not in pieces]


def pack(character: int, kind: int, order: int = 0, casing: int = UNCASED) -> int:
    """A table entry; `character` is a code point or, for EXPANDS, an index."""
    return character << CHARACTER_SHIFT | casing << CASING_SHIFT | order << ORDER_SHIFT | kind


def strips(lower_case: bool, strip_accents: "bool | None") -> bool:
    """Whether accents are stripped; None: only if texts are lower-cased, as in BERT."""
    return lower_case if strip_accents is None else strip_accents


def stored_prefix(lower_case: bool, strip_accents: "bool | None") -> str:
    """The prefix of the names of a setting's arrays in character_table.npz."""
    prefix = "uncased_" if lower_case else "cased_"
    other = strips(lower_case, strip_accents) != lower_case
    return ("accented_" if lower_case else "stripped_") + prefix if other else prefix


class StandaloneTokenizer:
    """Splits texts into the pieces of a vocabulary, with the same ids and offsets as `WordPieceTokenizer`.

    `tokenize` adds no special tokens, and `[MASK]` in a text becomes the words `[`, `mask`, `]`.

    Args:
        tokens: the pieces in the order of their ids.
        lower_case: whether texts are lower-cased and, by default, lose their accents; must match the vocabulary.
        strip_accents: whether accents are removed; None: only if texts are lower-cased.
        split_chinese: whether every ideograph is a word of its own.
        max_characters_per_word: a longer word is one [UNK].
        added: tokens that are matched whole, besides the pieces or among them.

    Attributes:
        ids: the id of each piece.

    Example:
        tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "cat", "##s"]
        keras_bert.StandaloneTokenizer(tokens).tokenize("Cats")
    """

    def __init__(
        self,
        tokens: "list[str]",
        lower_case: bool = True,
        strip_accents: "bool | None" = None,
        split_chinese: bool = True,
        max_characters_per_word: int = MAX_CHARACTERS_PER_WORD,
        added: "Iterable[AddedToken]" = (),
    ) -> None:
        self.ids = {token: index for index, token in enumerate(tokens)}
        added = sorted(added, key=lambda token: token.id)
        self.tokens = [*tokens, *(token.content for token in added if token.id >= len(tokens))]
        self._longest = max(len(token) for token in tokens)
        self._max_characters_per_word = max_characters_per_word
        self._changes_characters = lower_case or bool(strip_accents)
        self._table = _Table(stored_prefix(lower_case, strip_accents), split_chinese)
        self._entries: dict[str, int] = {}
        self.tokens_as_given = AddedTokens({token.content: token for token in added if not token.normalized})
        normalized = {self._text_of(self._normalized(token.content))[0]: token for token in added if token.normalized}
        self.tokens_normalized = AddedTokens({content: token for content, token in normalized.items() if content})

    @classmethod
    def from_folder(cls, folder: str) -> "StandaloneTokenizer":
        """The tokenizer of an export or a model folder: its vocab.txt and tokenizer_config.json."""
        with open(os.path.join(folder, "tokenizer_config.json"), encoding="utf-8") as stream:
            config = json.load(stream)
        listed = (added_token(index, fields) for index, fields in (config.get("added_tokens_decoder") or {}).items())
        tokens = read_tokens(os.path.join(folder, "vocab.txt"))
        return cls(
            tokens,
            config.get("do_lower_case", True),
            config.get("strip_accents"),
            config.get("tokenize_chinese_chars", True),
            config.get("max_input_chars_per_word", MAX_CHARACTERS_PER_WORD),
            beside_pieces(listed, tokens),
        )

    def tokenize(self, text: "str | bytes") -> "list[int]":
        """The ids of a text's pieces. Bytes that are not UTF-8 are skipped."""
        return [piece for piece, _, _ in self._pieces(text)]

    def tokenize_with_offsets(self, text: "str | bytes") -> "tuple[list[int], list[int], list[int]]":
        """`(ids, starts, ends)`: each piece comes from `text[start:end]`, in code points of the valid UTF-8."""
        found = list(self._pieces(text))
        return [piece for piece, _, _ in found], [start for _, start, _ in found], [end for _, _, end in found]

    def encode(
        self, text: "str | bytes", second: "str | bytes | None" = None, max_length: int = 512
    ) -> "dict[str, list[list[int]]]":
        """The model's inputs for a text or a pair, as one row each: [CLS] text [SEP], or [CLS] text [SEP] second [SEP].

        A text that is too long loses pieces at its end; in a pair, the longer text does, or the second if they are
        equally long (run_classifier.py). `max_length` includes special tokens; `ValueError` if they do not fit.
        """
        rows = [self.tokenize(part) for part in (text, second) if part is not None]
        room = max_length - 1 - len(rows)
        if room < 0:
            raise ValueError(f"max_length: needs at least 2, 3 for a pair. Received: {max_length}. Give more.")
        while sum(map(len, rows)) > room:
            (rows[0] if len(rows) == 1 or len(rows[0]) > len(rows[1]) else rows[1]).pop()
        ids, types = [self.ids["[CLS]"]], [0]
        for number, row in enumerate(rows):
            ids += [*row, self.ids["[SEP]"]]
            types += [number] * (len(row) + 1)
        return {"input_word_ids": [ids], "input_mask": [[1] * len(ids)], "input_type_ids": [types]}

    def _pieces(self, text: "str | bytes") -> "Iterator[tuple[int, int, int]]":
        """`(id, start, end)` of each piece."""
        if isinstance(text, str):
            text = text.encode("utf-8", "ignore")  # Without lone surrogates, which UTF-8 cannot hold.
        text = text.decode("utf-8", "ignore")
        for first, last, added in self.tokens_as_given.cut(text):
            if added is not None:
                yield added, first, last
                continue
            for piece, start, end in self._pieces_between(text[first:last]):
                yield piece, first + start, first + end

    def _pieces_between(self, text: str) -> "Iterator[tuple[int, int, int]]":
        """Like `_pieces`, for a text without tokens that are matched as given."""
        unknown = self.ids["[UNK]"]
        for word, sources, added in self._words(text):
            if added is not None:
                yield added, sources[0], sources[-1] + 1
                continue
            pieces = self._split(word)
            if pieces is None:
                yield unknown, sources[0], sources[-1] + 1
                continue
            first = 0
            for piece, length in pieces:
                last = first + length - 1
                yield piece, sources[first], sources[last] + 1
                first = last + 1

    def _split(self, word: str) -> "list[tuple[int, int]] | None":
        """`(id, characters)` of a word's pieces, the longest match first; None if it cannot be spelled."""
        if len(word) > self._max_characters_per_word:
            return None
        pieces, start = [], 0
        while start < len(word):
            prefix = "##" if start else ""
            for end in range(min(len(word), start + self._longest), start, -1):
                piece = self.ids.get(prefix + word[start:end])
                if piece is not None:
                    pieces.append((piece, end - start))
                    start = end
                    break
            else:
                return None
        return pieces

    def _words(self, text: str) -> "Iterator[tuple[str, list[int], int | None]]":
        """Each normalized word, the index in the text of each of its characters, and its id if it is an added token."""
        characters = self._normalized(text)
        if not self.tokens_normalized.tokens:
            yield from _split_words(characters)
            return
        normalized, places = self._text_of(characters)
        for first, last, added in self.tokens_normalized.cut(normalized):
            part = characters[bisect.bisect_left(places, first) : bisect.bisect_left(places, last)]
            if added is None:
                yield from _split_words(part)
            elif part:
                yield "", [source for _, source in part], added

    def _text_of(self, characters: _Characters) -> "tuple[str, list[int]]":
        """Normalized characters as a text, with spaces around ideographs, and the place of each character in it."""
        text, places = "", []
        for entry, _ in characters:
            kind, character = entry & KIND_MASK, chr(entry >> CHARACTER_SHIFT)
            places.append(len(text) + (kind == IDEOGRAPH))
            text += " " if kind == SPACE else f" {character} " if kind == IDEOGRAPH else character
        return text, places

    def _normalized(self, text: str) -> _Characters:
        entries = self._entries
        characters = []
        for source, character in enumerate(text):
            entry = entries.get(character)
            if entry is None:
                entry = entries[character] = self._table.entry(ord(character))
            characters.append((entry, source))
        if self._changes_characters and any(entry & KIND_MASK >= SIGMA for entry, _ in characters):
            characters = _above(characters, DELETED)
            characters = self._table.expanded(_with_lower_sigma(characters))
            characters = _with_marks_in_order(characters)
        return _above(characters, BOUNDARY_MARK)


def _split_words(characters: _Characters) -> "Iterator[tuple[str, list[int], None]]":
    """Like `_words`, for characters without added tokens."""
    letters: list[str] = []
    sources: list[int] = []
    for entry, source in characters:
        kind = entry & KIND_MASK
        character = chr(entry >> CHARACTER_SHIFT)
        if kind == LETTER:
            letters.append(character)
            sources.append(source)
            continue
        if letters:
            yield "".join(letters), sources, None
            letters, sources = [], []
        if kind != SPACE:
            yield character, [source], None
    if letters:
        yield "".join(letters), sources, None


class AddedTokens:
    """Finds tokens in a text: leftmost first, and the longest at each place.

    Attributes:
        tokens: the tokens, keyed by the text to look for.
    """

    def __init__(self, tokens: "dict[str, AddedToken]") -> None:
        self.tokens = tokens
        self._lengths: dict[str, list[int]] = {}  # By the first character.
        for length in sorted(set(map(len, tokens)), reverse=True):
            for first in {content[0] for content in tokens if len(content) == length}:
                self._lengths.setdefault(first, []).append(length)

    def cut(self, text: str) -> "Iterator[tuple[int, int, int | None]]":
        """`(start, end, id)` of each token and, with None for the id, of the text before, between and after them."""
        found = list(self._found_in(text))
        done = 0
        for (start, end, token), bound in zip(found, [*(first for first, _, _ in found[1:]), len(text)]):
            while token.lstrip and start > done and text[start - 1] in SPACES:
                start -= 1
            while token.rstrip and end < bound and text[end] in SPACES:
                end += 1
            yield done, start, None
            yield start, end, token.id
            done = end
        yield done, len(text), None

    def _found_in(self, text: str) -> "Iterator[tuple[int, int, AddedToken]]":
        """`(start, end, token)` of each, without the spaces that it strips."""
        place = 0
        while self.tokens and place < len(text):
            lengths = self._lengths.get(text[place], ())
            content = next(filter(self.tokens.__contains__, (text[place : place + length] for length in lengths)), None)
            if content is None:
                place += 1
                continue
            token, end = self.tokens[content], place + len(content)
            if not token.single_word or not (
                _ends_word(text[max(place - 1, 0) : place]) or _ends_word(text[end : end + 1])
            ):
                yield place, end, token
            place = end


def _ends_word(character: str) -> bool:
    """Whether a character next to a `single_word` token prevents the match; "" does not."""
    if not character:
        return False
    category = unicodedata.category(character)
    return (
        category[0] in "LM"
        or category in ("Nd", "Nl", "Pc")
        or any(first <= ord(character) <= last for first, last in WORD_RANGES)
    )


def read_tokens(path: str) -> "list[str]":
    """The pieces in a vocab.txt. Only "\\n" ends a line: U+2028 and the like are pieces in BERT's own files."""
    with open(path, encoding="utf-8-sig", newline="\n") as stream:
        rows = stream.read().split("\n")
    return [row.removesuffix("\r") for row in (rows if rows[-1] else rows[:-1])]


class _Table:
    """The entries of code points; `CharacterTable` describes the arrays."""

    def __init__(self, prefix: str, split_chinese: bool) -> None:
        names = ("page_starts", "pages", "expansions", "expansion_splits")
        with zipfile.ZipFile(FILE) as archive:
            arrays = [_int32_array(archive.read(f"{prefix}{name}.npy")) for name in names]
        self._page_starts, self._pages, self._expansions, self._expansion_splits = arrays
        self._split_chinese = split_chinese

    def entry(self, code_point: int) -> int:
        start = self._page_starts[code_point >> 8]
        distance = self._pages[start + (code_point & 0xFF)]
        return self._checked((distance + (code_point << CHARACTER_SHIFT)) & 0xFFFFFFFF)

    def expanded(self, characters: _Characters) -> _Characters:
        """Replaces each character of kind EXPANDS with its expansion."""
        found = []
        for entry, source in characters:
            if entry & KIND_MASK != EXPANDS:
                found.append((entry, source))
                continue
            number = entry >> CHARACTER_SHIFT
            first, end = self._expansion_splits[number : number + 2]
            found += [(self._checked(other & 0xFFFFFFFF), source) for other in self._expansions[first:end]]
        return found

    def _checked(self, entry: int) -> int:
        """Turns an ideograph into a letter, unless ideographs are words of their own."""
        is_letter = not self._split_chinese and entry & KIND_MASK == IDEOGRAPH
        return entry - (IDEOGRAPH - LETTER) if is_letter else entry


def _int32_array(content: bytes) -> "array.array[int]":
    """The values of a one-dimensional .npy file of int32."""
    start = 10 + int.from_bytes(content[8:10], "little")  # After the magic, the version and the header's length.
    header = ast.literal_eval(content[10:start].decode("latin-1"))
    if content[:8] != b"\x93NUMPY\x01\x00" or header["descr"] != "<i4" or len(header["shape"]) != 1:
        raise ValueError(f"{FILE}: needs int32 arrays of one dimension. Received: {header}. Copy it again.")
    values = array.array("i", content[start:])
    if sys.byteorder == "big":
        values.byteswap()
    return values


def _above(characters: _Characters, kind: int) -> _Characters:
    """The characters of kinds above `kind`."""
    return [character for character in characters if character[0] & KIND_MASK > kind]


def _with_lower_sigma(characters: _Characters) -> _Characters:
    """Replaces Σ with σ, or with ς at the end of a word: after a cased letter and not before one (Unicode, table 3-17).

    Case-ignorable characters are skipped; a space or the end of the text is not cased.
    """
    casings = [entry >> CASING_SHIFT & CASING_MASK for entry, _ in characters]
    places = [place for place, casing in enumerate(casings) if casing != CASE_IGNORABLE]
    changed = list(characters)
    for number, place in enumerate(places):
        entry, source = characters[place]
        if entry & KIND_MASK == SIGMA:
            after = number > 0 and casings[places[number - 1]] == CASED
            before = number + 1 < len(places) and casings[places[number + 1]] == CASED
            changed[place] = (pack(ord("ς" if after and not before else "σ"), LETTER), source)
    return changed


def _with_marks_in_order(characters: _Characters) -> _Characters:
    """Sorts each run of combining marks by combining class, as NFD does (Unicode, definition D108)."""
    ordered: _Characters = []
    marks: _Characters = []

    def order(character: "tuple[int, int]") -> int:
        return character[0] >> ORDER_SHIFT & ORDER_MASK

    for character in characters:
        if order(character):
            marks.append(character)
        else:
            ordered += [*sorted(marks, key=order), character]
            marks = []
    return ordered + sorted(marks, key=order)
