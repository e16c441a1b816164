"""Byte-level BPE without TensorFlow: one file of plain Python, with its data beside it.

Like `standalone_tokenizer.py`, it imports only the standard library. It needs character_classes.npz, the classes of
Unicode's characters, in its own folder, because `unicodedata`'s classes change with the version of Python. A LiteRT
export of a model such as RoBERTa contains copies of both, with this file as tokenizer.py.
"""

import array
import ast
import functools
import heapq
import json
import os
import re
import sys
import zipfile
from collections.abc import Iterable, Iterator, Sequence

FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "character_classes.npz")
OTHER, LETTER, NUMBER, SPACE = range(4)  # Unicode's \p{L} and \p{N}, and \s with the property White_Space.
CLS, PAD, SEP, UNK, MASK = SPECIAL_TOKENS = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
BLANK = "Ġ"  # A space.
_KEPT_PARTS = 1 << 16


@functools.cache
def byte_characters() -> "dict[int, str]":
    """The character that files write for each byte: itself if it is printable Latin-1, else one from U+0100 on."""
    printable = {*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)}
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: chr(byte if byte in printable else 0x100 + others.index(byte)) for byte in range(256)}


class StandaloneByteTokenizer:
    """Splits texts into the pieces of byte-level BPE, with the same ids and offsets as `BytePieceTokenizer`.

    `tokenize` adds no special tokens, and `<mask>` in a text is text.

    Args:
        tokens: the pieces and special tokens in the order of their ids.
        merges: the pairs of pieces to join, earlier pairs first; each comes after the merges that make its parts.
        prefix_space: whether a text is read as if a space came before it, unless it begins with one.

    Attributes:
        ids: the id of each piece.
    """

    def __init__(
        self, tokens: "Sequence[str]", merges: "Iterable[tuple[str, str]]", prefix_space: bool = False
    ) -> None:
        self.tokens = list(tokens)
        self.ids = {token: index for index, token in enumerate(self.tokens)}
        self.prefix_space = prefix_space
        self._byte_ids = [self.ids[character] for character in byte_characters().values()]
        # By the ids of a pair: the rank of its merge, and the id of the result.
        self._joined = {
            (self.ids[first], self.ids[second]): (rank, self.ids[first + second])
            for rank, (first, second) in enumerate(merges)
        }
        self._pattern = parts_pattern()
        self._pieces_of: dict[str, list[int]] = {}

    @classmethod
    def from_folder(cls, folder: str) -> "StandaloneByteTokenizer":
        """The tokenizer of an export or a model folder: its vocab.json, merges.txt and tokenizer_config.json."""
        with open(os.path.join(folder, "vocab.json"), encoding="utf-8") as stream:
            ids = json.load(stream)
        with open(os.path.join(folder, "tokenizer_config.json"), encoding="utf-8") as stream:
            config = json.load(stream)
        merges = read_merges(os.path.join(folder, "merges.txt"))
        return cls(sorted(ids, key=ids.__getitem__), merges, bool(config.get("add_prefix_space")))

    def tokenize(self, text: "str | bytes") -> "list[int]":
        """The ids of a text's pieces. Bytes that are not UTF-8 are skipped."""
        text, _ = self._read(text)
        return [piece for match in self._pattern.finditer(text) for piece in self._split(match.group())]

    def tokenize_with_offsets(self, text: "str | bytes") -> "tuple[list[int], list[int], list[int]]":
        """`(ids, starts, ends)`: each piece comes from `text[start:end]`, in code points of the valid UTF-8.

        Offsets exclude a piece's leading blank. A piece of some bytes of a character has that character's offsets.
        """
        text, added = self._read(text)
        found = list(self._pieces(text))
        starts = [max(start - added, 0) for _, start, _ in found]
        return [piece for piece, _, _ in found], starts, [max(end - added, 0) for _, _, end in found]

    def encode(
        self, text: "str | bytes", second: "str | bytes | None" = None, max_length: int = 512
    ) -> "dict[str, list[list[int]]]":
        """The model's inputs for a text or a pair, as one row each: <s> text </s>, or <s> text </s></s> second </s>.

        A text that is too long loses pieces at its end; in a pair, the longer text does, or the second if they are
        equally long. `max_length` includes special tokens; `ValueError` if they do not fit.
        """
        rows = [self.tokenize(part) for part in (text, second) if part is not None]
        room = max_length - 2 * len(rows)
        if room < 0:
            raise ValueError(f"max_length: needs at least 2, 4 for a pair. Received: {max_length}. Give more.")
        while sum(map(len, rows)) > room:
            (rows[0] if len(rows) == 1 or len(rows[0]) > len(rows[1]) else rows[1]).pop()
        ids = [self.ids[CLS], *rows[0], self.ids[SEP]]
        types = [0] * len(ids)
        for row in rows[1:]:
            ids += [self.ids[SEP], *row, self.ids[SEP]]
            types += [0, *[1] * (len(row) + 1)]
        return {"input_word_ids": [ids], "input_mask": [[1] * len(ids)], "input_type_ids": [types]}

    def _read(self, text: "str | bytes") -> "tuple[str, int]":
        """`(the text of valid UTF-8, 1 if a space was put before it)`."""
        if isinstance(text, str):
            text = text.encode("utf-8", "ignore")  # Without lone surrogates, which UTF-8 cannot hold.
        text = text.decode("utf-8", "ignore")
        gets_space = self.prefix_space and text != "" and not text.startswith(" ")
        return (" " + text, 1) if gets_space else (text, 0)

    def _pieces(self, text: str) -> "Iterator[tuple[int, int, int]]":
        """`(id, start, end)` of each piece."""
        for match in self._pattern.finditer(text):
            part = match.group()
            # The code point of each byte of the part.
            places = [place for place, character in enumerate(part, match.start()) for _ in character.encode()]
            first = 0
            for piece in self._split(part):
                token = self.tokens[piece]
                last = first + len(token)
                yield piece, places[first] + token.startswith(BLANK), places[last - 1] + 1
                first = last

    def _split(self, part: str) -> "list[int]":
        """The ids of a part's pieces."""
        found = self._pieces_of.get(part)
        if found is None:
            if len(self._pieces_of) == _KEPT_PARTS:
                self._pieces_of.clear()
            found = self._pieces_of[part] = self._merged(part.encode())
        return found

    def _merged(self, part: bytes) -> "list[int]":
        """The ids of a part's bytes after all merges: lower ranks first and, among equal pairs, the leftmost."""
        ids = [self._byte_ids[byte] for byte in part]
        size, gone = len(ids), -1
        before, after = list(range(-1, size - 1)), list(range(1, size + 1))
        queue: list[tuple[int, int]] = []  # (rank, place of the first of the pair)

        def merge_at(first: int) -> "tuple[int, int] | None":
            """The rank and the result of merging the piece at `first` with the next; None if they do not merge."""
            return self._joined.get((ids[first], ids[after[first]])) if after[first] < size else None

        def offer(first: int) -> None:
            if first >= 0 and (merge := merge_at(first)):
                heapq.heappush(queue, (merge[0], first))

        for place in range(size):
            offer(place)
        while queue:
            rank, first = heapq.heappop(queue)
            merge = merge_at(first)
            if merge is None or merge[0] != rank:  # One of the pair has been joined with another.
                continue
            second = after[first]
            ids[first], ids[second] = merge[1], gone
            after[first] = after[second]
            if after[second] < size:
                before[after[second]] = first
            offer(before[first])
            offer(first)
        return [piece for piece in ids if piece != gone]


def read_merges(path: str) -> "list[tuple[str, str]]":
    """The pairs of pieces in a merges.txt."""
    with open(path, encoding="utf-8", newline="\n") as stream:
        lines = [line.rstrip("\r") for line in stream.read().split("\n")]
    pairs = [line.split(" ") for line in lines[lines[0].startswith("#version") :] if line]
    return [(first, second) for first, second in pairs]


@functools.cache
def parts_pattern() -> "re.Pattern[str]":
    """GPT-2's expression for the parts of a text that no merge crosses.

    Source: encoder.py of openai/gpt-2. Python's `re` has no Unicode classes, so they are spelled out.
    """
    classes = character_classes()
    spaces, numbers, letters = (
        "".join(
            f"\\U{run.start():08x}-\\U{run.end() - 1:08x}"
            for run in re.finditer(re.escape(bytes([kind])) + b"+", classes)
        )
        for kind in (SPACE, NUMBER, LETTER)
    )
    return re.compile(
        f"'s|'t|'re|'ve|'m|'ll|'d| ?[{letters}]+| ?[{numbers}]+| ?[^{spaces}{letters}{numbers}]+"
        f"|[{spaces}]+(?![^{spaces}])|[{spaces}]+"
    )


def character_classes() -> bytes:
    """The class of each code point."""
    with zipfile.ZipFile(FILE) as archive:
        starts, pages = (_array_bytes(archive.read(f"{name}.npy")) for name in ("page_starts", "pages"))
    page_starts = array.array("H", starts)
    if sys.byteorder == "big":
        page_starts.byteswap()
    page_size = 0x110000 // len(page_starts)
    return b"".join(pages[start : start + page_size] for start in page_starts)


def _array_bytes(content: bytes) -> bytes:
    """The values of a one-dimensional .npy file."""
    start = 10 + int.from_bytes(content[8:10], "little")  # After the magic, the version and the header's length.
    header = ast.literal_eval(content[10:start].decode("latin-1"))
    if content[:8] != b"\x93NUMPY\x01\x00" or header["descr"] not in ("<u2", "|u1") or len(header["shape"]) != 1:
        raise ValueError(
            f"{FILE}: needs arrays of uint16 and uint8 of one dimension. Received: {header}. Copy it again."
        )
    return content[start:]
