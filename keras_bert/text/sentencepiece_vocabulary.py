"""The pieces of a SentencePiece model, read from its file without the sentencepiece package.

A model file is a protocol buffer (sentencepiece_model.proto): field 1 is a piece, whose field 1 is its text and field 3
its type.
"""

import hashlib
from collections.abc import Iterator, Sequence

import numpy as np

from keras_bert.core.errors import UserError
from keras_bert.core.files import StrPath, open_file
from keras_bert.core.program import PROGRAM
from keras_bert.core.whole_files import atomic_write
from keras_bert.text.vocabulary import CLS, MASK, SEP, Vocabulary

WORD_START = "▁"
PAD, UNK = "<pad>", "<unk>"
_NORMAL, _UNKNOWN, _USER_DEFINED = 1, 2, 4


class SentencePieceVocabulary(Vocabulary):
    """The pieces of a SentencePiece model in the order of their ids (Kudo 2018; ALBERT's are of the unigram kind).

    Attributes:
        model: the content of the model's file.
        is_piece: `[vocab_size]`, true for a piece that texts can be split into, but not for a special token.
        word_start_id: the id of the piece that is nothing but the mark of a word's start; -1 if there is none.
    """

    file_name = "spiece.model"

    def __init__(self, model: bytes, source: StrPath = "vocabulary") -> None:
        """`source` names the origin of the model in messages.

        Raises:
            UserError: it is not a SentencePiece model, or lacks a special token.
        """
        self.model = model
        try:
            pieces = list(_pieces(model))
        except (IndexError, UnicodeDecodeError, ValueError):
            raise UserError(f"{source}: is not a complete SentencePiece model. Fetch or write it again.") from None
        self.tokens = [text for text, _ in pieces]
        self.num_pieces = len(self.tokens)
        self.ids = {token: index for index, token in enumerate(self.tokens)}
        types = np.array([kind for _, kind in pieces])
        special = [name for name in (PAD, UNK, CLS, SEP, MASK) if name not in self.ids]
        if special:
            raise UserError(
                f"{source}: needs {PAD} {UNK} {CLS} {SEP} {MASK}. Received: {len(pieces)} pieces without "
                f"{' '.join(special)}. Learn a vocabulary with: {PROGRAM} vocab --kind sentencepiece"
            )
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = (
            self.ids[name] for name in (PAD, UNK, CLS, SEP, MASK)
        )
        self.is_piece = np.isin(types, (_NORMAL, _USER_DEFINED))
        # Punctuation is a word of its own, as in BERT.
        has_letters = [any(character.isalnum() for character in token) for token in self.tokens]
        self.is_continued = np.array(has_letters) & self.is_piece
        begins = np.array([token.startswith(WORD_START) for token in self.tokens])
        self.is_continuation = self.is_continued & ~begins
        self.word_start_id = self.ids.get(WORD_START, -1)
        self.fingerprint = hashlib.sha256(self._file_bytes()).hexdigest()

    def to_file(self, path: StrPath) -> None:
        """Writes the model's file."""
        with atomic_write(path, "wb") as stream:
            stream.write(self._file_bytes())

    @classmethod
    def from_file(cls, path: StrPath) -> "SentencePieceVocabulary":
        """Reads a model's file. Raises `UserError`."""
        try:
            with open_file(path) as stream:
                return cls(stream.read(), source=path)
        except OSError as error:
            raise UserError(f"{path}: cannot be read ({error.strerror or error}). Give a spiece.model.") from None

    def appended(self, text: str, piece: str) -> str:
        if not piece.startswith(WORD_START):
            return text.rstrip() + piece
        return text + (" " if text and not text[-1].isspace() else "") + piece.removeprefix(WORD_START)

    def continued(self, text: str, pieces: Sequence[str]) -> str:
        added = "".join(pieces).replace(WORD_START, " ")
        return text + (added.removeprefix(" ") if not text or text[-1].isspace() else added)

    def _file_bytes(self) -> bytes:
        return self.model


def _pieces(model: bytes) -> Iterator[tuple[str, int]]:
    """`(text, type)` of each piece."""
    for number, value in _fields(model):
        if number == 1 and isinstance(value, bytes):
            fields = dict(_fields(value))
            text, kind = fields.get(1, b""), fields.get(3, _NORMAL)
            if not isinstance(text, bytes) or not isinstance(kind, int):
                raise ValueError("a piece with other fields")
            yield text.decode("utf-8"), kind


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
