"""BERT's vocabulary: one WordPiece for every id, one per line."""

import codecs
import copy
import hashlib
import itertools
import json
import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from keras_bert.core.errors import UserError
from keras_bert.core.files import StrPath, is_file, join, open_file, parent
from keras_bert.core.imports import named_class
from keras_bert.core.whole_files import atomic_write, write_json
from keras_bert.core.yaml_and_json import read_if_there
from keras_bert.text.standalone_tokenizer import SPECIAL_TOKENS, AddedToken, strips
from keras_bert.text.tokenizer_files import (
    CONTINUATION,
    TOKENIZER,
    TOKENIZER_CONFIG,
    TokenizerSettings,
    berts_tokenizer_config,
    read_added_tokens,
    read_berts_settings,
    read_pieces,
)

# Chinese and Japanese put no space between ideographs, which are words of their own here, nor between kana.
_IDEOGRAPH = r"[\u3001-\u30ff\u3400-\u9fff\uf900-\ufaff\uff01-\uff65]"
_NO_SPACE = (
    (re.compile(r" (?=[.,;:!?%)\]}’”»…])"), ""),
    (re.compile(r"(?<=[(\[{‘“«]) "), ""),
    # In "don ' t" and "cat ' s", as the basic tokenizer splits them.
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

_Own = TypeVar("_Own", bound="Vocabulary")

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


class RowPattern(NamedTuple):
    """The special tokens of a row.

    Attributes:
        start, between, end: their ids before the first segment, between two segments, and after the last.
        last_segment: the segment of the row's last token; None if it is the segment of the text before it.
    """

    start: tuple[int, ...]
    between: tuple[int, ...]
    end: tuple[int, ...]
    last_segment: int | None = None

    def special_tokens(self, segments: int) -> int:
        """How many special tokens a row of one or two segments has."""
        return len(self.start) + len(self.between) * (segments - 1) + len(self.end)


class Vocabulary:
    """The pieces in the order of their ids: BERT's WordPieces. Vocabularies of other tokenizers extend this class.

    Attributes:
        tokens: the pieces; the id of a piece is its index.
        ids: the id of each piece.
        pad_id, unk_id, cls_id, sep_id, mask_id: ids of the special tokens.
        is_continuation: `[vocab_size]`, true for a piece that continues a word (`##ing`), if there is one before it.
        is_continued: `[vocab_size]`, true for a token whose word such a piece continues; see `continues_word`.
        num_pieces: the number of tokens that WordPiece splits words into; tokens in `added` that are not pieces follow.
        added: tokens that are matched whole in texts, in the order of their ids.
        fingerprint: SHA-256 (hex) of the file that `to_file` writes and of `added`.

    Class attributes:
        title: what messages call such a vocabulary.
        file_name: the name of its file in a folder.
        other_files: the names of its other files on the hub.
        tokenizer: `module:class` of its tokenizer, whose arguments are the vocabulary and some `TokenizerSettings`.
        tokenizer_settings: the names of these settings.
        plain_tokenizer: `module:class` of its tokenizer in plain Python, which exports for LiteRT contain; None if it
            has none.
        files_hold: the content of the files, in words for their readers.
        takes_new_words: whether a model's vocabulary may be replaced by another of its kind.
        masks: a regular expression, in RE2's and Python's syntax, for a masked token in a text.
        example_recipe: a recipe that trains with such a vocabulary.

    Example:
        vocabulary = keras_bert.Vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "cat", "##s"])
        len(vocabulary), vocabulary.mask_id, vocabulary.tokens[5]      # (7, 4, "cat")
    """

    title: ClassVar[str] = "a WordPiece vocabulary"
    file_name: ClassVar[str] = "vocab.txt"
    other_files: ClassVar[tuple[str, ...]] = ()
    tokenizer: ClassVar[str] = "keras_bert.text.wordpiece:WordPieceTokenizer"
    tokenizer_settings: ClassVar[tuple[str, ...]] = (
        "lower_case",
        "strip_accents",
        "split_chinese",
        "max_characters_per_word",
    )
    plain_tokenizer: ClassVar[str | None] = "keras_bert.text.standalone_tokenizer:StandaloneTokenizer"
    files_hold: ClassVar[str] = "the pieces, one per line; the id is the line's number, from 0"
    takes_new_words: ClassVar[bool] = True
    masks: ClassVar[str] = r"\[MASK\]"
    example_recipe: ClassVar[str] = "wiki_mini"

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
        self._set_tokens(tokens)
        self.added = tuple(sorted(added, key=lambda token: token.id))
        for token in self.added:
            if token.id == len(self.tokens):
                self.tokens.append(token.content)
                self.ids[token.content] = token.id
            elif not 0 <= token.id < len(self.tokens) or self.tokens[token.id] != token.content:
                raise UserError(
                    f"{source}: needs a piece or an added token for every id. Received: {token.content!r} with id "
                    f"{token.id} after {self.num_pieces} pieces. Give each added token the id of its row."
                )
        _check(self.tokens, source)
        require_pieces(SPECIAL_TOKENS, self.ids, source, "Give a BERT vocabulary, one piece per line.")
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = (self.ids[name] for name in SPECIAL_TOKENS)
        self.is_continuation = np.array([token.startswith(CONTINUATION) for token in self.tokens])
        self.is_continuation[self.num_pieces :] = False
        self.is_continued = np.ones(len(self.tokens), bool)
        added_bytes = json.dumps(self._added_fields()).encode() if self.added else b""
        self.fingerprint = hashlib.sha256(self._file_bytes() + added_bytes).hexdigest()

    def _set_tokens(self, tokens: Iterable[str]) -> None:
        """Sets `tokens`, `num_pieces` and `ids`."""
        self.tokens = list(tokens)
        self.num_pieces = len(self.tokens)
        self.ids = {token: index for index, token in enumerate(self.tokens)}

    @property
    def row_pattern(self) -> RowPattern:
        """The special tokens of rows: [CLS] first [SEP], or [CLS] first [SEP] second [SEP]."""
        return RowPattern((self.cls_id,), (self.sep_id,), (self.sep_id,))

    @classmethod
    def from_file(cls: type[_Own], path: StrPath) -> _Own:
        """Reads a vocabulary of any kind: a `vocab.txt` or a `tokenizer.json` with the added tokens in the files
        beside it, a SentencePiece model (`.model`), or one of a kind added by `register_vocabulary`.

        A class of another kind than BERT's reads only its own, whatever the file's name.

        Raises:
            UserError: the file cannot be read, or holds no vocabulary.
        """
        kind: Any = vocabulary_kind(path) if cls is Vocabulary else cls
        return kind.read(path)

    @classmethod
    def is_file(cls, path: str) -> bool:
        """Whether this is a file of this kind, by its name or content. WordPiece takes what no other kind does."""
        return True

    @classmethod
    def read(cls, path: StrPath) -> "Vocabulary":
        """Reads a vocabulary of this kind.

        Only "\\n" ends a line of vocab.txt: U+2028 and the like are pieces in BERT's own files.

        Raises:
            UserError: the file cannot be read, is not UTF-8, or holds no vocabulary.
        """
        if os.fspath(path).endswith(".json"):
            pieces = read_pieces(path)
            return cls(pieces, path, read_added_tokens(path, pieces))
        try:
            with open_file(path) as stream:
                content = stream.read()
        except OSError as error:
            wanted = find_vocabulary(path) or _file_names()
            raise UserError(f"{path}: cannot be read ({error.strerror or error}). Give {wanted}.") from None
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

    @classmethod
    def read_settings(
        cls, folder: str, config: Mapping[str, Any], lower_case: bool | None
    ) -> tuple[TokenizerSettings, list[str]]:
        """`(the settings of the tokenizer in a Hugging Face folder, lines to show the user)`.

        Args:
            config: the content of its tokenizer_config.json; empty without the file.
            lower_case: the user's choice; None to follow the folder.

        Raises:
            UserError: the folder's tokenizer is not supported.
        """
        return read_berts_settings(folder, config, lower_case)

    def tokenizer_config(self, settings: TokenizerSettings, max_positions: int) -> dict[str, Any]:
        """The content of tokenizer_config.json."""
        return berts_tokenizer_config(settings, max_positions)

    @classmethod
    def describe(cls, settings: TokenizerSettings) -> str:
        """How the tokenizer treats texts, in the words of `inspect`."""
        cased = "are" if settings.lower_case else "are not"
        accents = "stripped" if strips(settings.lower_case, settings.strip_accents) else "kept"
        ideographs = "are split into single words" if settings.split_chinese else "stay together"
        return f"texts {cased} lower-cased, accents are {accents}, Chinese characters {ideographs}."

    def require_supported(self, folder: str, path: str) -> None:
        """Raises `UserError` if files beside the vocabulary's file, `path`, add something that is not supported."""

    def _refuse_added_tokens(self, folder: str, path: str) -> None:
        """`require_supported` for a kind without added tokens."""
        later = [token.content for token in read_added_tokens(path, self.tokens) if token.id >= len(self)]
        if later:
            raise UserError(
                f"{folder}: needs {self.title} without added tokens. Received: {later[0]!r} among {len(later)}, "
                "which is not supported."
            )

    def _special_token_fields(self) -> dict[str, str]:
        """The special tokens, including those at a sentence's ends, by transformers' names in tokenizer_config.json."""
        ids = {
            "bos_token": self.cls_id,
            "eos_token": self.sep_id,
            "unk_token": self.unk_id,
            "sep_token": self.sep_id,
            "pad_token": self.pad_id,
            "cls_token": self.cls_id,
            "mask_token": self.mask_id,
        }
        return {name: self.tokens[index] for name, index in ids.items()}

    def word_pieces(self) -> list[str]:
        """The pieces for tensorflow-text's WordPiece; pieces that no word contains are renamed to match no text.

        Otherwise, a piece with a space could match across the end of a word.
        """
        return [
            f"{UNREACHABLE}{index}"
            if token in _NO_WORDS or index >= self.num_pieces or _IN_NO_WORD.search(token)
            else token
            for index, token in enumerate(self.tokens)
        ]

    def padded(self, size: int) -> "Vocabulary":
        """The vocabulary with unused rows added up to `size`, for a model whose table has more rows than pieces.

        These rows are in neither the file nor the fingerprint.
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
        """Writes the vocabulary's file, and the added tokens into the `tokenizer_config.json` beside it."""
        if self.added:
            config = join(parent(path), TOKENIZER_CONFIG)
            write_json(config, {**read_if_there(config), "added_tokens_decoder": self._added_fields()})
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
        last = "" if not text or text[-1].isspace() else text.rsplit(maxsplit=1)[-1]
        # Pieces joined to no word begin with a space, which the text already has or does not need.
        return text[: len(text) - len(last)] + joined_pieces([last, *pieces]).removeprefix("" if last else " ")

    def spellings(self) -> list[bytes]:
        """The bytes that each token adds to a text, complete or incomplete UTF-8; empty for a special token.

        A text joined from them may begin with one blank too many.
        """
        special = {self.tokens[index] for index in (self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id)}
        return [b"" if token in special else self._spelling(token).encode("utf-8") for token in self.tokens]

    def _spelling(self, token: str) -> str:
        return token.removeprefix(CONTINUATION) if token.startswith(CONTINUATION) else f" {token}"

    def _file_bytes(self) -> bytes:
        return "".join(f"{token}\n" for token in self.tokens[: self.num_pieces]).encode("utf-8")

    def __len__(self) -> int:
        return len(self.tokens)


# The kinds of vocabularies in the package, as `module:class`. A file is of the last kind whose `is_file` accepts it.
_KINDS = (
    "keras_bert.text.vocabulary:Vocabulary",
    "keras_bert.text.sentencepiece_vocabulary:SentencePieceVocabulary",
    "keras_bert.text.xlnet_vocabulary:XlnetVocabulary",
    "keras_bert.text.t5_vocabulary:T5Vocabulary",
    "keras_bert.text.fairseq_vocabulary:FairseqVocabulary",
    "keras_bert.text.byte_vocabulary:ByteVocabulary",
)
_registered: list[type[Vocabulary]] = []


def register_vocabulary(kind: type[Vocabulary]) -> type[Vocabulary]:
    """Registers a kind of vocabulary. Raises `ValueError` if the name of its file is taken."""
    if kind.file_name in (other.file_name for other in vocabulary_kinds()):
        raise ValueError(f"{kind.file_name}: already registered.")
    _registered.append(kind)
    return kind


def unregister_vocabulary(kind: type[Vocabulary]) -> None:
    """Removes a kind from the registry."""
    _registered.remove(kind)


def vocabulary_kinds() -> list[type[Vocabulary]]:
    """Every kind of vocabulary, BERT's first."""
    return [*map(named_class, _KINDS), *_registered]


def vocabulary_kind(path: StrPath) -> type[Vocabulary]:
    """The kind of the vocabulary in a file, by its name or content."""
    return next(kind for kind in reversed(vocabulary_kinds()) if kind.is_file(os.fspath(path)))


def find_vocabulary(folder: StrPath) -> str | None:
    """The path of the vocabulary in a folder, by the names of its kinds; None if there is none."""
    return next(filter(is_file, (join(folder, kind.file_name) for kind in vocabulary_kinds())), None)


def vocabulary_file(folder: str) -> str:
    """Like `find_vocabulary`, or else tokenizer.json, which may hold one. Raises `UserError` for neither."""
    found, other = find_vocabulary(folder), join(folder, TOKENIZER)
    if found or is_file(other):
        return found or other
    raise UserError(f"{folder}: needs {_file_names()} and lacks them.")


def _file_names() -> str:
    """The names of the vocabulary files of all kinds, for messages."""
    return " or ".join(dict.fromkeys(kind.file_name for kind in vocabulary_kinds()))


def read_tokenizer_settings(folder: str, lower_case: bool | None = None) -> tuple[TokenizerSettings, list[str]]:
    """`(the settings of the tokenizer in a Hugging Face folder, lines to show the user)`; see `read_settings`."""
    config = read_if_there(join(folder, TOKENIZER_CONFIG))
    return vocabulary_kind(vocabulary_file(folder)).read_settings(folder, config, lower_case)


def infer_casing(path: str) -> tuple[bool, str]:
    """`(lower_case, a line that says why)`, inferred from a vocabulary without settings."""
    capital = first_capital(Vocabulary.from_file(path).tokens)
    if capital is None:
        return True, f"{path} has no piece with a capital letter, so the model is taken to be uncased."
    return False, f"{path} has pieces with capital letters ({capital}), so the model is taken to be cased."


def first_capital(tokens: Iterable[str]) -> str | None:
    """The first piece with a capital letter, without its mark; None in a vocabulary for lower-cased texts."""
    pieces = (token.removeprefix("##").removeprefix("▁") for token in tokens)
    # Special tokens such as [CLS] and <S> do not count, nor do symbols without lower case such as ℝ.
    return next((piece for piece in pieces if piece.isalpha() and piece != piece.lower()), None)


def _check(tokens: list[str], source: StrPath) -> None:
    if "" in tokens:
        empty = tokens.index("") + 1
        raise UserError(f"{source}: needs a piece in every line. Received: line {empty} is empty. Remove it.")
    twice = next((token for token, count in Counter(tokens).items() if count > 1), None)
    if twice is not None:
        lines = ", ".join(str(number) for number, token in enumerate(tokens, start=1) if token == twice)
        raise UserError(f"{source}: needs every piece once. Received: {twice!r} in lines {lines}. Keep one.")
    for number, token in enumerate(tokens, start=1):
        # JSON can hold a lone surrogate, which is not valid text.
        encoded = token.encode("utf-8", "ignore")
        size = len(encoded.removeprefix(CONTINUATION.encode()))
        if "\0" in token or size > MAX_PIECE_BYTES or encoded.decode("utf-8") != token:
            raise UserError(
                f"{source}: needs pieces of at most {MAX_PIECE_BYTES} bytes of UTF-8 and without NUL. "
                f"Received: {token[:20]!r} in line {number}. Remove it."
            )


def require_pieces(needed: Sequence[str], ids: Collection[str], source: StrPath, remedy: str) -> None:
    """Raises `UserError`, which ends with the `remedy`, if some of these pieces are not among the `ids`."""
    if missing := [name for name in needed if name not in ids]:
        raise UserError(
            f"{source}: needs {' '.join(needed)}. Received: {len(ids):,} pieces without {' '.join(missing)}. {remedy}"
        )
