"""BERT's vocabulary: one WordPiece for every id, one per line."""

import codecs
import copy
import hashlib
import itertools
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from keras_bert.core import settings
from keras_bert.core.errors import UserError
from keras_bert.core.files import StrPath, is_file, join, open_file, parent
from keras_bert.core.whole_files import atomic_write, write_json
from keras_bert.text.standalone_tokenizer import AddedToken
from keras_bert.text.tokenizer_json import (
    CONTINUATION,
    SPECIAL_TOKENS,
    TOKENIZER_CONFIG,
    read_added_tokens,
    read_pieces,
)

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


PAD, UNK, CLS, SEP, MASK = SPECIAL_TOKENS
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
        num_pieces: how many of the tokens WordPiece splits words into; then come those in `added` that are no pieces.
        added: tokens that are matched whole in texts, in the order of their ids.
        fingerprint: SHA-256 (hex) of the file that `to_file` writes and of `added`.

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
    num_pieces: int
    added: tuple[AddedToken, ...] = ()
    fingerprint: str

    def __init__(self, tokens: Iterable[str], source: StrPath = "vocabulary", added: Iterable[AddedToken] = ()) -> None:
        """`tokens` are the pieces; `added` are matched whole; `source` names the origin of both in messages.

        Raises:
            UserError: a row is empty, a piece is duplicated or unusable, a special token is missing, or an added token
                has the id of another.
        """
        self.tokens = list(tokens)
        self.num_pieces = len(self.tokens)
        self.added = tuple(sorted(added, key=lambda token: token.id))
        for token in self.added:
            if token.id == len(self.tokens):
                self.tokens.append(token.content)
            elif token.id > len(self.tokens) or self.tokens[token.id] != token.content:
                raise UserError(
                    f"{source}: needs a piece or an added token for every id. Received: {token.content!r} with id "
                    f"{token.id} after {self.num_pieces} pieces. Give each added token the id of its row."
                )
        _check(self.tokens, source)
        self.ids = {token: index for index, token in enumerate(self.tokens)}
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = (self.ids[name] for name in SPECIAL_TOKENS)
        self.is_continuation = np.array([token.startswith(CONTINUATION) for token in self.tokens])
        self.is_continuation[self.num_pieces :] = False
        self.is_continued = np.ones(len(self.tokens), bool)
        added_bytes = json.dumps(self._added_fields()).encode() if self.added else b""
        self.fingerprint = hashlib.sha256(self._file_bytes() + added_bytes).hexdigest()

    @classmethod
    def from_file(cls, path: StrPath) -> "Vocabulary":
        """Reads a `vocab.txt` or a `tokenizer.json`, with the added tokens in the files beside it, or a SentencePiece
        model (`.model`).

        Only "\\n" ends a line of vocab.txt: U+2028 and the like are pieces in BERT's own files.

        Raises:
            UserError: the file cannot be read, is not UTF-8, or holds no vocabulary.
        """
        if os.fspath(path).endswith(".model"):
            from keras_bert.text.sentencepiece_vocabulary import SentencePieceVocabulary

            return SentencePieceVocabulary.from_file(path)
        if os.fspath(path).endswith(".json"):
            pieces = read_pieces(path)
            return cls(pieces, path, read_added_tokens(path, pieces))
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
        return cls(tokens, path, read_added_tokens(path, tokens))

    def word_pieces(self) -> list[str]:
        """The pieces as tensorflow-text's WordPiece needs them: those that no word contains get names that no text has.

        It would let a piece with a space run over the end of a word.
        """
        return [
            f"{UNREACHABLE}{index}"
            if token in _NO_WORDS or index >= self.num_pieces or _IN_NO_WORD.search(token)
            else token
            for index, token in enumerate(self.tokens)
        ]

    def padded(self, size: int) -> "Vocabulary":
        """The vocabulary with rows that no text has, up to `size`: for a model whose table has more rows than pieces.

        They are in neither the file nor the fingerprint.
        """
        if size <= len(self):
            return self
        names = (name for name in map(unused_token, itertools.count()) if name not in self.ids)
        padded, added_rows = copy.copy(self), (0, size - len(self))
        padded.tokens = [*self.tokens, *itertools.islice(names, added_rows[1])]
        padded.ids = {token: index for index, token in enumerate(padded.tokens)}
        padded.is_continuation = np.pad(self.is_continuation, added_rows)
        padded.is_continued = np.pad(self.is_continued, added_rows, constant_values=self.is_continued.all())
        return padded

    def to_file(self, path: StrPath) -> None:
        """Writes a `vocab.txt`, and the added tokens into the `tokenizer_config.json` beside it."""
        if self.added:
            config = join(parent(path), TOKENIZER_CONFIG)
            fields = settings.read_json(config) if is_file(config) else {}
            write_json(config, {**fields, "added_tokens_decoder": self._added_fields()})
        with atomic_write(path, "wb") as stream:
            stream.write(self._file_bytes())

    def _added_fields(self) -> dict[str, dict[str, Any]]:
        fields = [token._asdict() for token in self.added]
        return {str(values.pop("id")): values for values in fields}

    def appended(self, text: str, piece: str) -> str:
        """A text with a piece after it; one that continues a word joins the word before it."""
        return text.rstrip() + piece[2:] if piece.startswith(CONTINUATION) else text + piece

    def continued(self, text: str, pieces: Sequence[str]) -> str:
        """A text, unchanged, with pieces after it as a person would have written them."""
        before, last = re.fullmatch(r"(.*?)(\S*)", text, re.DOTALL).groups()  # type: ignore[union-attr]
        # Joined to no word, pieces begin with a space, which the text has already or does not need.
        return before + joined_pieces([last, *pieces]).removeprefix("" if last else " ")

    def _file_bytes(self) -> bytes:
        return "".join(f"{token}\n" for token in self.tokens[: self.num_pieces]).encode("utf-8")

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
