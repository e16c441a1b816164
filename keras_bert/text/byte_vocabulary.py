"""A vocabulary of byte-level BPE, like GPT-2's and RoBERTa's: its pieces can spell any text, so nothing is unknown.

Two files hold it: vocab.json maps pieces to ids, and merges.txt lists the pairs of pieces to join, in the order in
which they were learned. A tokenizer.json holds both. Files write each byte as a printable character.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from keras_bert.core.errors import UserError
from keras_bert.core.files import StrPath, is_file, join, parent, read_file
from keras_bert.core.program import PROGRAM
from keras_bert.core.whole_files import atomic_write, write_json
from keras_bert.core.yaml_and_json import read_if_there, read_json
from keras_bert.text.standalone_byte_tokenizer import BLANK, SPECIAL_TOKENS, byte_characters
from keras_bert.text.standalone_tokenizer import SPACES
from keras_bert.text.tokenizer_files import GENERIC, TOKENIZER, TOKENIZER_CONFIG, TokenizerSettings, in_order, read_flag
from keras_bert.text.vocabulary import RowPattern, Vocabulary, require_pieces

VOCABULARY_FILE, MERGES_FILE = "vocab.json", "merges.txt"
_ROBERTAS = ("RobertaTokenizer", "RobertaTokenizerFast", "BartTokenizer", "BartTokenizerFast")
_MERGES_HEADER = "#version: 0.2"


@functools.cache
def _bytes_of_characters() -> dict[str, int]:
    return {character: byte for byte, character in byte_characters().items()}


def piece_bytes(piece: str) -> bytes:
    """The bytes that a piece stands for. Raises `KeyError` for characters that stand for no byte."""
    return bytes(map(_bytes_of_characters().__getitem__, piece))


class ByteVocabulary(Vocabulary):
    """The pieces of byte-level BPE in the order of their ids (Radford et al. 2019, section 2.2).

    Attributes:
        merges: the pairs of pieces to join, earlier pairs first.
        bytes_of: the bytes of each piece; empty for a special token.
    """

    title = "a byte-level BPE vocabulary"
    file_name = VOCABULARY_FILE
    example_recipe = "roberta_mini"
    other_files = (MERGES_FILE,)
    tokenizer = "keras_bert.text.byte_pieces:BytePieceTokenizer"
    tokenizer_settings = ("prefix_space",)
    plain_tokenizer = "keras_bert.text.standalone_byte_tokenizer:StandaloneByteTokenizer"
    files_hold = "the pieces and their ids, and the pairs of pieces that are joined, the first before others"
    takes_new_words = False
    masks = rf"[{SPACES}]*(?:\[MASK\]|<mask>)"  # The masked piece includes the space before it.

    def __init__(
        self, tokens: Iterable[str], merges: Iterable[tuple[str, str]], source: StrPath = "vocabulary"
    ) -> None:
        """`tokens` are pieces and special tokens; `source` names their origin in messages.

        Raises:
            UserError: a special token or a byte is missing, or the merges name unknown pieces or cannot have been
                learned in this order.
        """
        self._set_tokens(tokens)
        self.merges = list(merges)
        require_pieces(SPECIAL_TOKENS, self.ids, source, f"Learn a vocabulary with: {PROGRAM} vocab --kind bytes")
        lost = [byte for byte, character in byte_characters().items() if character not in self.ids]
        if lost:
            raise UserError(
                f"{source}: needs a piece for each of 256 bytes. Received: {256 - len(lost)}. Fetch it again."
            )
        self.cls_id, self.pad_id, self.sep_id, self.unk_id, self.mask_id = (self.ids[name] for name in SPECIAL_TOKENS)
        _check_merges(self.merges, self.ids, source)
        pieces = {*byte_characters().values(), *(first + second for first, second in self.merges)}
        self.bytes_of = [piece_bytes(token) if token in pieces else b"" for token in self.tokens]
        # A byte beyond ASCII belongs to a letter more often than to anything else.
        self.is_continued = np.array([any(_is_word_byte(byte) for byte in content) for content in self.bytes_of])
        self.is_continuation = self.is_continued & ~np.array([token.startswith(BLANK) for token in self.tokens])
        self.fingerprint = hashlib.sha256(self._file_bytes() + _merges_bytes(self.merges)).hexdigest()

    @property
    def row_pattern(self) -> RowPattern:
        """The special tokens of rows: <s> first </s>, or <s> first </s></s> second </s>."""
        return RowPattern((self.cls_id,), (self.sep_id, self.sep_id), (self.sep_id,))

    @classmethod
    def is_file(cls, path: str) -> bool:
        if _name(path) == TOKENIZER and is_file(path):
            model = read_json(path).get("model")
            return isinstance(model, dict) and model.get("type") == "BPE"
        return _name(path).endswith(VOCABULARY_FILE)

    @classmethod
    def read(cls, path: StrPath) -> ByteVocabulary:
        content = read_json(path)
        if _name(path) == TOKENIZER:
            _require_gpt2s(content, path)
            model = content["model"]
            pieces = in_order(_with_added(model.get("vocab"), content, path), path)
            return cls(pieces, _listed_merges(model, path), path)
        return cls(in_order(content, path), _read_merges(merges_path(path)), path)

    @classmethod
    def read_settings(
        cls, folder: str, config: Mapping[str, Any], lower_case: bool | None
    ) -> tuple[TokenizerSettings, list[str]]:
        named = config.get("tokenizer_class") or _ROBERTAS[0]
        if named not in (*_ROBERTAS, *GENERIC):
            raise UserError(
                f"{join(folder, TOKENIZER_CONFIG)}: needs RoBERTa's tokenizer for {cls.file_name}. Received: {named}, "
                "which is not supported."
            )
        if lower_case:
            raise UserError(f"{folder}: needs text as it is for byte-level BPE. Received: lower case. Leave it out.")
        file = join(folder, TOKENIZER)
        content = read_if_there(file)
        if content and named in GENERIC:  # These follow tokenizer.json, even beside a vocab.json.
            _require_gpt2s(content, file)
        prefix_space = read_flag(config, "add_prefix_space", join(folder, TOKENIZER_CONFIG))
        if prefix_space is None:
            prefix_space = read_flag(_part(content, "pre_tokenizer", file), "add_prefix_space", file)
        return TokenizerSettings(lower_case=False, prefix_space=bool(prefix_space)), []

    def tokenizer_config(self, settings: TokenizerSettings, max_positions: int) -> dict[str, Any]:
        return {
            "add_prefix_space": settings.prefix_space,
            "tokenizer_class": _ROBERTAS[0],
            "model_max_length": max_positions,
            **self._special_token_fields(),
        }

    @classmethod
    def describe(cls, settings: TokenizerSettings) -> str:
        begins = "as if they began with a space" if settings.prefix_space else "as they are"
        return f"{cls.title}; texts are read {begins}."

    def require_supported(self, folder: str, path: str) -> None:
        self._refuse_added_tokens(folder, path)

    def padded(self, size: int) -> Vocabulary:
        padded = super().padded(size)
        assert isinstance(padded, ByteVocabulary)
        padded.bytes_of = [*self.bytes_of, *[b""] * (len(padded) - len(self))]
        return padded

    def to_file(self, path: StrPath) -> None:
        """Writes vocab.json, and merges.txt beside it."""
        with atomic_write(merges_path(path), "wb") as stream:
            stream.write(_merges_bytes(self.merges))
        write_json(path, {token: index for index, token in enumerate(self.tokens[: self.num_pieces])})

    def appended(self, text: str, piece: str) -> str:
        return self.continued(text.rstrip(), [piece])

    def continued(self, text: str, pieces: Sequence[str]) -> str:
        return text + b"".join(self.bytes_of[self.ids[piece]] for piece in pieces).decode("utf-8", "replace")

    def spellings(self) -> list[bytes]:
        return self.bytes_of

    def _file_bytes(self) -> bytes:
        return json.dumps(self.tokens[: self.num_pieces]).encode()


def _name(path: StrPath) -> str:
    return os.path.basename(os.fspath(path))


def _is_word_byte(byte: int) -> bool:
    return byte > 0x7F or chr(byte).isalnum()


def merges_path(path: StrPath) -> str:
    """The file of the merges of a vocab.json, whose name may have a prefix: gpt2-vocab.json has gpt2-merges.txt."""
    return join(parent(path), _name(path).removesuffix(VOCABULARY_FILE) + MERGES_FILE)


def _merges_bytes(merges: Iterable[tuple[str, str]]) -> bytes:
    return "".join(f"{line}\n" for line in (_MERGES_HEADER, *map(" ".join, merges))).encode("utf-8")


def _read_merges(path: str) -> list[tuple[str, str]]:
    try:
        lines = read_file(path, "It belongs to vocab.json.").decode("utf-8").split("\n")
    except UnicodeDecodeError:
        raise UserError(f"{path}: needs UTF-8. Received: other bytes. Fetch or write it again.") from None
    if lines[0].startswith("#version"):
        lines = lines[1:]
    return _pairs((line.rstrip("\r").split(" ") for line in lines if line), path)


def _listed_merges(model: Mapping[str, Any], path: StrPath) -> list[tuple[str, str]]:
    merges = model.get("merges") or []
    if not isinstance(merges, list):
        raise UserError(f"{path}: needs a list of merges. Received: {type(merges).__name__}. Fetch it again.")
    return _pairs((merge.split(" ") if isinstance(merge, str) else merge for merge in merges), path)


def _pairs(merges: Iterable[Any], path: StrPath) -> list[tuple[str, str]]:
    pairs = []
    for number, merge in enumerate(merges, start=1):
        if not isinstance(merge, list) or len(merge) != 2 or not all(isinstance(piece, str) for piece in merge):
            raise UserError(
                f"{path}: needs two pieces a merge. Received: {merge!r} as merge {number:,}. Fetch it again."
            )
        pairs.append((merge[0], merge[1]))
    return pairs


def _with_added(pieces: Any, content: Mapping[str, Any], path: StrPath) -> Any:
    """The pieces of a tokenizer.json, and the special tokens found only in its list of added tokens."""
    if not isinstance(pieces, dict):
        return pieces
    try:
        added = {token["content"]: token["id"] for token in content.get("added_tokens") or []}
    except (TypeError, KeyError):
        raise UserError(f"{path}: needs added_tokens with a content and an id each. Received: others.") from None
    return {**{token: added[token] for token in SPECIAL_TOKENS if token in added}, **pieces}


# Other fields of the model in a tokenizer.json, with the values that agree with GPT-2's encoder.
_MODEL_FIELDS = {
    "dropout": (None, 0),
    "continuing_subword_prefix": (None, ""),
    "end_of_word_suffix": (None, ""),
    "byte_fallback": (None, False),
    "ignore_merges": (None, False),
}


def _require_gpt2s(content: Mapping[str, Any], path: StrPath) -> None:
    """Raises `UserError` if a tokenizer.json does not split texts as GPT-2's encoder does."""
    wrong = ""
    if normalizer := _part(content, "normalizer", path):
        wrong = f"the normalizer {_types(normalizer)}"
    splitter = _part(content, "pre_tokenizer", path)
    if splitter.get("type") != "ByteLevel":
        wrong = f"the pre-tokenizer {_types(splitter)}"
    elif splitter.get("use_regex") is False:
        wrong = "the pre-tokenizer ByteLevel with use_regex false"
    model = _part(content, "model", path)
    for field, allowed in _MODEL_FIELDS.items():
        if model.get(field) not in allowed:
            wrong = f"{field} {model[field]!r}"
    if wrong:
        raise UserError(
            f"{path}: needs GPT-2's byte-level BPE. Received: {wrong}, which is not supported. Give a model with "
            "RoBERTa's tokenizer."
        )


def _part(content: Mapping[str, Any], name: str, path: StrPath) -> dict[str, Any]:
    """The object of this name in a tokenizer.json; empty if there is none."""
    part = content.get(name) or {}
    if not isinstance(part, dict):
        raise UserError(f"{path}: needs a {name} that is an object. Received: {type(part).__name__}. Fetch it again.")
    return part


def _types(part: Mapping[str, Any]) -> str:
    """The type of a normalizer or a pre-tokenizer; for a sequence, with the types of its members."""
    members = part.get("normalizers") or part.get("pretokenizers")
    members = members if isinstance(members, list) else []
    inside = ", ".join(str(member.get("type")) for member in members if isinstance(member, dict))
    return f"{part.get('type')} of {inside}" if inside else str(part.get("type"))


def _check_merges(merges: Sequence[tuple[str, str]], ids: Mapping[str, int], source: StrPath) -> None:
    """Checks what `BytePieceTokenizer` relies on: the merges, in order, turn the bytes of each piece into that piece.

    That fails only if, on the way, the end of the piece's first part merges with the beginning of its second part.

    Raises:
        UserError: the merges do not fit the pieces, or cannot have been learned in this order.
    """
    rank_of = {pair: rank for rank, pair in enumerate(merges)}
    never = len(merges)
    # For each piece: the pieces at its beginning and end on the way, each with the rank of the merge that ends it.
    begins: dict[str, list[tuple[str, int]]] = {character: [] for character in byte_characters().values()}
    ends: dict[str, list[tuple[str, int]]] = {character: [] for character in byte_characters().values()}
    for rank, (first, second) in enumerate(merges):
        piece = first + second
        unknown = next((part for part in (first, second, piece) if part not in ids), None)
        if unknown is not None:
            raise UserError(
                f"{source}: needs merges of its pieces. Received: {unknown!r} in merge {rank + 1:,}, no piece. Give "
                "the pieces and merges of one model."
            )
        if first not in begins or second not in begins or piece in begins:
            raise UserError(
                f"{source}: needs each merge once, after those of its parts. Received: {first!r} {second!r}. "
                "Give the merges as they were learned."
            )
        for last, ended in (*ends[first], (first, never)):
            for start, begun in (*begins[second], (second, never)):
                # Among equal pairs, the leftmost is joined first.
                joined = rank_of.get((last, start), never)
                if joined < rank and joined < ended and joined <= begun:
                    raise UserError(
                        f"{source}: needs merges in an order that training can produce. Received: {first!r} "
                        f"{second!r}, but {last!r} {start!r} would merge first. Give the merges as they were learned."
                    )
        begins[piece] = [*begins[first], (first, rank)]
        ends[piece] = [*ends[second], (second, rank)]
