"""BERT's vocabulary: one WordPiece for every id, one per line."""

import codecs
import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from keras_bert.errors import UserError
from keras_bert.files import StrPath, open_file
from keras_bert.text.joined_pieces import joined_pieces
from keras_bert.text.tokenizer_json import CONTINUATION, read_pieces
from keras_bert.whole_files import atomic_write

PAD, UNK, CLS, SEP, MASK = SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
MAX_PIECE_BYTES = 256  # the limit of tensorflow_text's WordPiece
UNREACHABLE = "\ufffd"  # Deleted from texts, so that no word contains it.

_UNUSED = re.compile(r"\[unused\d+\]")
# Spaces end words and control characters are deleted.
_NO_WORDS = {PAD, CLS, SEP, MASK, CONTINUATION}
_IN_NO_WORD = re.compile(rf"[\s\x00-\x1f\x7f-\x9f{UNREACHABLE}]")


def unused_token(number: int) -> str:
    """The name of a free slot, as in Google's files. No text is tokenized to it."""
    return f"[unused{number}]"


def is_unused(token: str) -> bool:
    """Whether a token is a free slot, `[unusedN]`."""
    return _UNUSED.fullmatch(token) is not None


class Vocabulary:
    """The pieces in the order of their ids.

    Attributes:
        tokens: the pieces; the id of a piece is its index.
        ids: the id of each piece.
        pad_id, unk_id, cls_id, sep_id, mask_id: ids of the special tokens.
        is_continuation: `[vocab_size]`, true for a piece that continues a word (`##ing`), if there is one before it.
        is_continued: `[vocab_size]`, true for a token whose word such a piece continues; see `words.continues_word`.
        fingerprint: SHA-256 (hex) of the file that `to_file` writes.

    Class attributes:
        file_name: what folders call that file.
    """

    file_name: ClassVar[str] = "vocab.txt"

    tokens: list[str]
    ids: dict[str, int]
    pad_id: int
    unk_id: int
    cls_id: int
    sep_id: int
    mask_id: int
    is_continuation: npt.NDArray[np.bool_]
    is_continued: npt.NDArray[np.bool_]
    word_start_id: int = -1
    fingerprint: str

    def __init__(self, tokens: Iterable[str], source: StrPath = "vocabulary") -> None:
        """`source` names the origin of the tokens in messages.

        Raises:
            UserError: a row is empty, a piece is duplicated or unusable, or a special token is missing.
        """
        self.tokens = list(tokens)
        _check(self.tokens, source)
        self.ids = {token: index for index, token in enumerate(self.tokens)}
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = (self.ids[name] for name in SPECIAL_TOKENS)
        self.is_continuation = np.array([token.startswith(CONTINUATION) for token in self.tokens])
        self.is_continued = np.ones(len(self.tokens), bool)
        self.fingerprint = hashlib.sha256(self._file_bytes()).hexdigest()

    @classmethod
    def from_file(cls, path: StrPath) -> "Vocabulary":
        """Reads a `vocab.txt`, a `tokenizer.json` or a SentencePiece model (`.model`).

        Only "\\n" ends a line of vocab.txt: U+2028 and the like are pieces in BERT's own files.

        Raises:
            UserError: the file cannot be read, is not UTF-8, or holds no vocabulary.
        """
        if os.fspath(path).endswith(".model"):
            from keras_bert.text.sentencepiece_vocabulary import SentencePieceVocabulary

            return SentencePieceVocabulary.from_file(path)
        if os.fspath(path).endswith(".json"):
            return cls(read_pieces(path), source=path)
        try:
            with open_file(path) as stream:
                content = stream.read()
        except OSError as error:
            raise UserError(f"{path}: cannot be read ({error.strerror or error}). Give a vocab.txt.") from None
        rows = content.removeprefix(codecs.BOM_UTF8).split(b"\n")
        if not rows[-1]:
            rows.pop()
        tokens = []
        for number, row in enumerate(rows, start=1):
            try:
                tokens.append(row.decode("utf-8").removesuffix("\r"))
            except UnicodeDecodeError:
                raise UserError(f"{path}: needs UTF-8. Received: {row!r} in line {number}. Convert the file.") from None
        return cls(tokens, source=path)

    def word_pieces(self) -> list[str]:
        """The pieces as tensorflow-text's WordPiece needs them: those that no word contains get names that no text has.

        It would let a piece with a space run over the end of a word.
        """
        return [
            f"{UNREACHABLE}{index}" if token in _NO_WORDS or _IN_NO_WORD.search(token) else token
            for index, token in enumerate(self.tokens)
        ]

    def to_file(self, path: StrPath) -> None:
        """Writes a `vocab.txt`."""
        with atomic_write(path, "wb") as stream:
            stream.write(self._file_bytes())

    def appended(self, text: str, piece: str) -> str:
        """A text with a piece after it; one that continues a word joins the word before it."""
        return text.rstrip() + piece[2:] if piece.startswith(CONTINUATION) else text + piece

    def continued(self, text: str, pieces: Sequence[str]) -> str:
        """A text, unchanged, with pieces after it as a person would have written them."""
        before, last = re.fullmatch(r"(.*?)(\S*)", text, re.DOTALL).groups()  # type: ignore[union-attr]
        # Joined to no word, pieces begin with a space, which the text has already or does not need.
        return before + joined_pieces([last, *pieces]).removeprefix("" if last else " ")

    def _file_bytes(self) -> bytes:
        return "".join(f"{token}\n" for token in self.tokens).encode("utf-8")

    def __len__(self) -> int:
        return len(self.tokens)


def _check(tokens: list[str], source: StrPath) -> None:
    if "" in tokens:
        empty = tokens.index("") + 1
        raise UserError(f"{source}: needs a piece in every line. Received: line {empty} is empty. Remove it.")
    twice = next((token for token, count in Counter(tokens).items() if count > 1), None)
    if twice is not None:
        lines = ", ".join(str(number) for number, token in enumerate(tokens, start=1) if token == twice)
        raise UserError(f"{source}: needs every piece once. Received: {twice!r} in lines {lines}. Keep one.")
    for number, token in enumerate(tokens, start=1):
        if "\0" in token or len(token.removeprefix(CONTINUATION).encode("utf-8")) > MAX_PIECE_BYTES:
            raise UserError(
                f"{source}: needs pieces of at most {MAX_PIECE_BYTES} bytes and without NUL. "
                f"Received: {token[:20]!r} in line {number}. Remove it."
            )
    missing = [name for name in SPECIAL_TOKENS if name not in tokens]
    if missing:
        raise UserError(
            f"{source}: needs {' '.join(SPECIAL_TOKENS)}. Received: {len(tokens)} pieces without {' '.join(missing)}. "
            "Give a BERT vocabulary, one piece per line."
        )
