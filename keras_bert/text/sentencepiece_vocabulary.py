"""The pieces of a SentencePiece model, read from its file without the sentencepiece package.

A model file is a protocol buffer (sentencepiece_model.proto): field 1 is a piece, whose field 1 is its text and field 3
its type.
"""

import base64
import binascii
import hashlib
import os
import re
import struct
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from keras_bert.core import imports
from keras_bert.core.errors import UserError
from keras_bert.core.files import StrPath, is_file, join, open_file, read_file
from keras_bert.core.program import PROGRAM
from keras_bert.core.yaml_and_json import read_json
from keras_bert.text.tokenizer_files import (
    GENERIC,
    TOKENIZER,
    TOKENIZER_CONFIG,
    TokenizerSettings,
    no_casing_note,
    read_flag,
    unigrams,
)
from keras_bert.text.vocabulary import CLS, MASK, SEP, Vocabulary, require_pieces

_Own = TypeVar("_Own", bound="SentencePieceVocabulary")

WORD_START = "▁"
PAD, UNK = "<pad>", "<unk>"
_QUOTES = "fold_quotes"  # Our own field: whether texts' `` and '' become ".
_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED = 1, 2, 3, 4
_UNIGRAM, _BPE = 1, 2
_FIRST_BYTES = 256
# The normalizers that run before the model's own, by their types in tokenizer.json.
_NORMALIZERS = ("NFKD", "StripAccents", "Lowercase")


def require_sentencepiece() -> None:
    """Raises `UserError` if the package that learns models is not installed. Using a model does not need it."""
    imports.require("sentencepiece", "Learning a SentencePiece model")


class SentencePieceVocabulary(Vocabulary):
    """The pieces of a SentencePiece model in the order of their ids (Kudo 2018; ALBERT's are of the unigram kind).

    Class attributes:
        model_title: the model that the tokenizer belongs to, in messages.
        class_name: its class in transformers.
        special_tokens: padding, unknown, [CLS], [SEP] and [MASK], as the model spells them.
        first_pieces: the special pieces with which a tokenizer.json begins.
        remedy: what to do about a model without them.
        first_bytes: an expression that occurs near the beginning of its files, if other kinds' have the same name.
        lower_cases: whether texts are lower-cased if no file says.

    Attributes:
        model: the content of the model's file.
        is_piece: `[vocab_size]`, true for a piece that texts can be split into, but not for a special token.
        word_start_id: the id of the piece that is only the mark of a word's start; -1 if there is none.
    """

    title = "a SentencePiece model"
    file_name = "spiece.model"
    tokenizer = "keras_bert.text.sentencepiece:SentencePieceTokenizer"
    tokenizer_settings: ClassVar[tuple[str, ...]] = ("lower_case", "quotes")
    plain_tokenizer = None
    takes_new_words = False
    example_recipe = "albert_mini"
    model_title: ClassVar[str] = "ALBERT"
    class_name: ClassVar[str] = "AlbertTokenizer"
    special_tokens: ClassVar[tuple[str, ...]] = (PAD, UNK, CLS, SEP, MASK)
    first_pieces: ClassVar[tuple[str, ...]] = special_tokens
    remedy: ClassVar[str] = f"Learn a vocabulary with: {PROGRAM} vocab --kind sentencepiece"
    first_bytes: ClassVar[bytes | None] = None
    lower_cases: ClassVar[bool] = True

    def __init__(self, model: bytes, source: StrPath = "vocabulary") -> None:
        """`source` names the origin of the model in messages.

        Raises:
            UserError: it is not a SentencePiece model, or lacks a special token.
        """
        self.model = model
        pieces = read_pieces(model, source)
        self._set_tokens(text for text, _ in pieces)
        require_pieces(self.special_tokens, self.ids, source, self.remedy)
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = (
            self.ids[name] for name in self.special_tokens
        )
        self._set_marks(np.array([kind for _, kind in pieces]))
        self.fingerprint = hashlib.sha256(self._file_bytes()).hexdigest()

    def _set_marks(self, types: npt.NDArray[np.integer]) -> None:
        """Sets which tokens are pieces, by their types, and which of these continue words."""
        self.is_piece = np.isin(types, (_NORMAL, _USER_DEFINED))
        # Punctuation is a word of its own, as in BERT.
        has_letters = [any(character.isalnum() for character in token) for token in self.tokens]
        self.is_continued = np.array(has_letters) & self.is_piece
        begins = np.array([token.startswith(WORD_START) for token in self.tokens])
        self.is_continuation = self.is_continued & ~begins
        self.word_start_id = self.ids.get(WORD_START, -1)

    @classmethod
    def is_file(cls, path: str) -> bool:
        if os.path.basename(path) == TOKENIZER and is_file(path):
            return cls._begins(unigrams(read_json(path)) or [])
        if cls.first_bytes is None:
            return path.endswith(".model")
        if not path.endswith(".model") or not is_file(path):
            return False
        with open_file(path) as stream:
            return re.search(cls.first_bytes, stream.read(_FIRST_BYTES), re.DOTALL) is not None

    @classmethod
    def read(cls: type[_Own], path: StrPath) -> _Own:
        if os.path.basename(os.fspath(path)) != TOKENIZER:
            return cls(read_file(path, "Give a spiece.model."), path)
        content = read_json(path)
        pieces = cls._own_pieces(content, path)
        charsmap = charsmap_in(content, path, cls.file_name, _NORMALIZERS)
        return cls(unigram_model(pieces, charsmap, len(cls.first_pieces), cls.first_pieces.index(UNK)), path)

    @classmethod
    def _begins(cls, pieces: Sequence[tuple[str, float]]) -> bool:
        return tuple(text for text, _ in pieces[: len(cls.first_pieces)]) == cls.first_pieces

    @classmethod
    def _own_pieces(cls, content: Mapping[str, Any], path: StrPath) -> list[tuple[str, float]]:
        """The pieces in a tokenizer.json. Raises `UserError` if they are not of this kind."""
        pieces = unigrams(content) or []
        if not cls._begins(pieces):
            raise UserError(f"{path}: needs {cls.model_title}'s pieces. Give {cls.file_name}.")
        return pieces

    @classmethod
    def read_settings(
        cls, folder: str, config: Mapping[str, Any], lower_case: bool | None
    ) -> tuple[TokenizerSettings, list[str]]:
        path = join(folder, TOKENIZER_CONFIG)
        named = config.get("tokenizer_class") or cls.class_name
        wrong = named if str(named).removesuffix("Fast") != cls.class_name and named not in GENERIC else None
        for field, own in (("keep_accents", False), ("remove_space", True)):
            if config.get(field) not in (None, own):
                wrong = f"{field} {config[field]}"
        if wrong:
            raise UserError(
                f"{path}: needs {cls.model_title}'s tokenizer for {cls.file_name}. Received: {wrong}, which is not "
                "supported."
            )
        configured = read_flag(config, "do_lower_case", path)
        is_configured = lower_case is not None or configured is not None
        notes = [no_casing_note(folder)] if cls.lower_cases and not is_configured else []
        by_files = cls.lower_cases if configured is None else configured
        is_lowered = by_files if lower_case is None else lower_case
        return TokenizerSettings(is_lowered, quotes=read_flag(config, _QUOTES, path) is not False), notes

    def tokenizer_config(self, settings: TokenizerSettings, max_positions: int) -> dict[str, Any]:
        return {
            "do_lower_case": settings.lower_case,
            "keep_accents": False,
            "remove_space": True,
            **({} if settings.quotes else {_QUOTES: False}),
            "tokenizer_class": self.class_name,
            "model_max_length": max_positions,
            **self._special_token_fields(),
        }

    @classmethod
    def describe(cls, settings: TokenizerSettings) -> str:
        cased = "are" if settings.lower_case else "are not"
        return f"{cls.title}; texts {cased} lower-cased, accents are stripped."

    def require_supported(self, folder: str, path: str) -> None:
        self._refuse_added_tokens(folder, path)

    def appended(self, text: str, piece: str) -> str:
        if not piece.startswith(WORD_START):
            return text.rstrip() + piece
        return text + (" " if text and not text[-1].isspace() else "") + piece.removeprefix(WORD_START)

    def continued(self, text: str, pieces: Sequence[str]) -> str:
        added = "".join(pieces).replace(WORD_START, " ")
        return text + (added.removeprefix(" ") if not text or text[-1].isspace() else added)

    def _spelling(self, token: str) -> str:
        return token.replace(WORD_START, " ")

    def _file_bytes(self) -> bytes:
        return self.model


def read_pieces(model: bytes, source: StrPath) -> list[tuple[str, int]]:
    """`(text, type)` of each piece of a model, which messages call `source`. Raises `UserError` if it is no model."""
    try:
        return list(_pieces(model))
    except (IndexError, UnicodeDecodeError, ValueError):
        raise UserError(f"{source}: is not a complete SentencePiece model. Fetch or write it again.") from None


def _pieces(model: bytes) -> Iterator[tuple[str, int]]:
    """`(text, type)` of each piece."""
    for number, value in _fields(model):
        if number == 1 and isinstance(value, bytes):
            fields = dict(_fields(value))
            text, kind = fields.get(1, b""), fields.get(3, _NORMAL)
            if not isinstance(text, bytes) or not isinstance(kind, int):
                raise ValueError("a piece with other fields")
            yield text.decode("utf-8"), kind


def bpe_model(pieces: Sequence[str], ranks: Sequence[int]) -> bytes:
    """The content of a model file of the BPE kind that takes texts as they are.

    Args:
        pieces: in the order of their ids; empty ones occur in no text.
        ranks: the rank of each piece; lower ranks are joined first.
    """
    unknown = pieces.index("")
    messages = [
        _piece(piece or f"<{index}>", -rank, _NORMAL if piece else _CONTROL if index != unknown else _UNKNOWN)
        for index, (piece, rank) in enumerate(zip(pieces, ranks, strict=True))
    ]
    messages.append(_field(2, _field(3, _BPE) + _field(40, unknown) + b"".join(_field(n, -1) for n in (41, 42, 43))))
    normalizer = _field(1, b"identity") + b"".join(_field(number, 0) for number in (3, 4, 5))
    return b"".join([*messages, _field(3, normalizer)])


def unigram_model(pieces: Sequence[tuple[str, float]], charsmap: bytes, special: int = 3, unknown: int = 0) -> bytes:
    """The content of a model file of the unigram kind.

    Args:
        pieces: the text and the score of each, in the order of their ids: first the special ones.
        charsmap: the table that normalizes texts, as the trainer compiles it.
        special: how many of the first pieces occur in no text.
        unknown: the id of <unk>, which is among them.
    """
    types = [_UNKNOWN if index == unknown else _CONTROL for index in range(special)]
    messages = [
        _piece(text, score, types[index] if index < len(types) else _NORMAL)
        for index, (text, score) in enumerate(pieces)
    ]
    return b"".join([*messages, _field(2, _field(3, _UNIGRAM)), _field(3, _field(2, charsmap))])


def has_charsmap(model: bytes) -> bool:
    """Whether a model normalizes texts; without a table, `unigram_model` writes one that does not."""
    return not model.endswith(_field(3, _field(2, b"")))


def charsmap_in(content: Mapping[str, Any], path: StrPath, file_name: str, others: Collection[str] = ()) -> bytes:
    """The table of the normalizer in a tokenizer.json, in SentencePiece's format; empty without one.

    Args:
        content: the content of the tokenizer.json at `path`.
        file_name: the name of the model file that the tokenizer.json was made from.
        others: the types of normalizers that the tokenizer runs before its model's.

    Raises:
        UserError: the normalizer does more than SentencePiece and `others` do, or is invalid.
    """
    normalizer = content.get("normalizer") or {}
    parts = normalizer.get("normalizers", [normalizer] if normalizer else []) if isinstance(normalizer, dict) else None
    if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
        raise UserError(
            f"{path}: needs normalizers that are objects. Received: others. Put {file_name} beside this file."
        )
    found = b""
    for part in parts:
        if part.get("type") == "Precompiled":
            try:
                found = base64.b64decode(part.get("precompiled_charsmap") or "", validate=True)
            except (binascii.Error, TypeError, ValueError):
                raise UserError(f"{path}: needs precompiled_charsmap in base64. Received: other text.") from None
        elif part.get("type") not in ("Strip", "Replace", *others):  # These treat white space as SentencePiece does.
            raise UserError(
                f"{path}: needs the normalizer of a SentencePiece model. Received: {part.get('type')}, which is not "
                f"supported. Put {file_name} beside this file."
            )
    return found


def _piece(text: str, score: float, kind: int) -> bytes:
    """A piece as a field of the model's message."""
    return _field(1, _field(1, text.encode()) + _varint_bytes(2 << 3 | 5) + struct.pack("<f", score) + _field(3, kind))


def _field(number: int, value: int | bytes) -> bytes:
    """A field of a protocol buffer's message."""
    if isinstance(value, int):
        return _varint_bytes(number << 3) + _varint_bytes(value)
    return _varint_bytes(number << 3 | 2) + _varint_bytes(len(value)) + value


def _varint_bytes(number: int) -> bytes:
    """A number as a varint; a negative one as its 64 bits."""
    number %= 1 << 64
    written = bytearray()
    while number > 0x7F:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*written, number])


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """`(number, value)` of each field of a protocol buffer's message; fixed-width numbers as bytes."""
    place = 0
    while place < len(message):
        tag, place = _varint(message, place)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value, place = _varint(message, place)
            yield number, value
            continue
        if wire == 2:
            length, place = _varint(message, place)
        elif wire in (1, 5):
            length = {1: 8, 5: 4}[wire]
        else:
            raise ValueError("an unknown type of field")
        if place + length > len(message):
            raise IndexError("a field that ends early")
        yield number, message[place : place + length]
        place += length


def _varint(message: bytes, place: int) -> tuple[int, int]:
    """`(number, the place after it)`."""
    number = shift = 0
    while True:
        byte = message[place]
        number |= (byte & 0x7F) << shift
        place += 1
        if byte < 0x80:
            return number, place
        shift += 7
        if shift > 63:
            raise ValueError("a number of more than 64 bits")
