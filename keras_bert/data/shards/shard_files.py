"""Writes and reads shards: tokenized documents in the files that `shard_format` describes."""

import hashlib
import json
from collections.abc import Sequence
from types import TracebackType
from typing import Any

import numpy as np

from keras_bert.data.shards.shard_format import (
    CONTINUATIONS,
    COUNTS,
    FORMAT,
    KINDS,
    LARGEST_SHARD_MEGABYTES,
    OFFSET_DTYPE,
    PHRASES,
    check_vocabulary,
    kinds,
    read_meta,
    read_verified,
    token_dtype,
)
from keras_bert.data.shards.tokenized_documents import TokenizedDocuments, offsets
from keras_bert.errors import UserError
from keras_bert.files import exists, join, make_folder
from keras_bert.text.vocabulary import Vocabulary
from keras_bert.whole_files import atomic_write


class ShardWriter:
    """Writes documents into shards of about `shard_megabytes` million bytes.

    A context manager: `meta.json` is written when the block ends without an error, so a folder without it was never
    finished. Documents keep their order and are never split.

    Args:
        folder: the shard folder; created if needed.
        vocabulary: the vocabulary of the ids.
        lower_case: the tokenizer's setting, recorded in `meta.json`.
        shard_megabytes: size at which a shard is closed.
        word_marks: the origin of the documents' `continuations` (`"jieba"`), recorded in `meta.json`; None if they have
            none.
        phrase_marks: the origin of the documents' `phrases`, JSON values recorded in `meta.json`; None if they have
            none.
        finished: the `meta` of a writer that was interrupted; its shards are kept and new ones added.

    Attributes:
        folder: the shard folder.
        meta: the content of `meta.json` so far, which counts finished shards.

    Raises:
        UserError: the folder already has shards, or the size is out of range.
    """

    folder: str
    meta: dict[str, Any]

    def __init__(
        self,
        folder: str,
        vocabulary: Vocabulary,
        lower_case: bool,
        shard_megabytes: float = 16.0,
        word_marks: str | None = None,
        phrase_marks: dict[str, Any] | None = None,
        finished: dict[str, Any] | None = None,
    ):
        if not 0 < shard_megabytes <= LARGEST_SHARD_MEGABYTES:
            raise UserError(
                f"shard_megabytes: needs a size above 0 and at most {LARGEST_SHARD_MEGABYTES}. "
                f"Received: {shard_megabytes!r}."
            )
        if exists(join(folder, "meta.json")):
            raise UserError(f"{folder}: already has shards. Remove the folder or give another.")
        make_folder(folder)
        self.folder = folder
        self._dtype = token_dtype(len(vocabulary))
        self._unknown_id = vocabulary.ids["[UNK]"]
        self._shard_bytes = shard_megabytes * 1e6
        self.meta = finished or {
            "format": FORMAT,
            "vocabulary": vocabulary.fingerprint,
            "vocab_size": len(vocabulary),
            "lower_case": bool(lower_case),
            "token_dtype": self._dtype.name,
            "documents": 0,
            "sentences": 0,
            "tokens": 0,
            "unknown_tokens": 0,
            "shards": [],
            **({"word_marks": word_marks} if word_marks else {}),
            **({"phrase_marks": phrase_marks, "phrase_tokens": 0} if phrase_marks else {}),
        }
        self._parts: list[TokenizedDocuments] = []
        self._bytes = 0

    def add(self, document: Sequence[Sequence[int]]) -> None:
        """Adds one document: its sentences, each a non-empty sequence of token ids."""
        lengths = np.array([len(sentence) for sentence in document], np.int32)
        if not lengths.size or 0 in lengths:
            raise ValueError(f"document: needs sentences of at least one token. Received lengths: {lengths.tolist()}.")
        tokens = np.concatenate([np.asarray(sentence) for sentence in document])
        self.add_documents(TokenizedDocuments(tokens, lengths, np.array([lengths.size]), np.zeros(1, np.int32)))

    def add_documents(self, documents: TokenizedDocuments) -> int:
        """Adds documents, skipping those without a token.

        Returns: how many of them are in finished shards.
        """
        ids = documents.tokens
        if ids.size and (ids.dtype.kind not in "iu" or ids.min() < 0 or ids.max() >= self.meta["vocab_size"]):
            raise ValueError(
                f"document: needs whole-number ids from 0 to {self.meta['vocab_size'] - 1}. "
                f"Received: {ids.dtype.name} from {ids.min()} to {ids.max()}."
            )
        if (documents.continuations is not None) != ("word_marks" in self.meta):
            raise ValueError("document: needs continuations if word_marks was given, and none otherwise.")
        if (documents.phrases is not None) != ("phrase_marks" in self.meta):
            raise ValueError("document: needs phrases if phrase_marks was given, and none otherwise.")
        sizes = documents.token_counts() * self._dtype.itemsize
        ends = np.cumsum(sizes + OFFSET_DTYPE.itemsize * (documents.document_lengths + 1) * (sizes > 0))
        first = start = 0
        while True:
            # Sizes are exact, so that a shard ends after the same document however the documents are batched.
            last = int(np.searchsorted(ends, self._shard_bytes - self._bytes + start)) + 1
            if last > len(documents):
                break
            self._parts.append(documents.part(first, last))
            self._finish_shard()
            first, start = last, int(ends[last - 1])
        if first < len(documents):
            self._parts.append(documents.part(first, len(documents)))
            self._bytes += int(ends[-1]) - start
        return first

    def __enter__(self) -> "ShardWriter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            self._finish_shard()
            with atomic_write(join(self.folder, "meta.json")) as stream:
                stream.write(json.dumps(self.meta, indent=2) + "\n")

    def _finish_shard(self) -> None:
        document_lengths = np.concatenate([part.document_lengths for part in self._parts] or [np.zeros(0, np.int32)])
        document_lengths = document_lengths[document_lengths > 0]
        if document_lengths.size:
            self._write_shard(
                {
                    "tokens": np.concatenate([part.tokens for part in self._parts]).astype(self._dtype, copy=False),
                    "sentences": offsets(np.concatenate([part.sentence_lengths for part in self._parts])),
                    "documents": offsets(document_lengths),
                }
            )
        self._parts, self._bytes = [], 0

    def _write_shard(self, arrays: dict[str, np.ndarray]) -> None:
        shard: dict[str, Any] = {
            "name": f"{len(self.meta['shards']):05d}",
            "documents": arrays["documents"].size - 1,
            "sentences": arrays["sentences"].size - 1,
            "tokens": arrays["tokens"].size,
            "sha256": {},
        }
        self.meta["unknown_tokens"] += int(np.count_nonzero(arrays["tokens"] == self._unknown_id))
        if "word_marks" in self.meta:
            arrays[CONTINUATIONS] = np.concatenate([part.continuations for part in self._parts])
        if "phrase_marks" in self.meta:
            arrays[PHRASES] = np.concatenate([part.phrases for part in self._parts])
            self.meta["phrase_tokens"] += int(np.count_nonzero(arrays[PHRASES]))
        for kind in kinds(self.meta):
            array = arrays[kind]
            data = (array.astype(OFFSET_DTYPE) if kind in ("sentences", "documents") else array).tobytes()
            shard["sha256"][kind] = hashlib.sha256(data).hexdigest()
            with atomic_write(join(self.folder, f"{shard['name']}.{kind}"), "wb") as stream:
                stream.write(data)
        self.meta["shards"].append(shard)
        for count in COUNTS:
            self.meta[count] += shard[count]


class ShardSet:
    """An open shard folder.

    Attributes:
        folder: its path.
        meta: the content of `meta.json`.
        names: the names of the shards in order.
    """

    folder: str
    meta: dict[str, Any]
    names: list[str]

    def __init__(self, folder: str, meta: dict[str, Any]):
        self.folder = folder
        self.meta = meta
        self._shards = {shard["name"]: shard for shard in meta["shards"]}
        self.names = list(self._shards)

    @classmethod
    def open(cls, folder: str, vocabulary: Vocabulary | None = None, verify: bool = True) -> "ShardSet":
        """Opens a folder that `ShardWriter` finished.

        Args:
            folder: the shard folder.
            vocabulary: the vocabulary to use with it, which must be that of the shards.
            verify: whether to check all checksums now; `read` checks them in any case.

        Raises:
            UserError: `meta.json` or a shard is missing, truncated or altered, or the vocabulary differs.
        """
        path = join(folder, "meta.json")
        meta = read_meta(path)
        if vocabulary is not None:
            check_vocabulary(path, meta, vocabulary)
        shards = cls(folder, meta)
        if verify:
            shards.verify()
        return shards

    @property
    def has_word_marks(self) -> bool:
        """Whether every shard has a file of kind `"continuations"`."""
        return bool(self.meta.get("word_marks"))

    @property
    def has_phrase_marks(self) -> bool:
        """Whether every shard has a file of kind `"phrases"`."""
        return bool(self.meta.get("phrase_marks"))

    def verify(self) -> None:
        """Raises `UserError` unless every file exists and matches its checksum."""
        for name in self.names:
            for kind in kinds(self.meta):
                self._verified(name, kind)

    def path(self, name: str, kind: str) -> str:
        """The path of a shard's file; `kind` is `"tokens"`, `"sentences"`, `"documents"` or `"continuations"`."""
        if kind not in kinds(self.meta):
            raise ValueError(f"kind: needs one of {', '.join(kinds(self.meta))}. Received: {kind!r}.")
        return join(self.folder, f"{name}.{kind}")

    def read(self, name: str) -> tuple[np.ndarray, ...]:
        """The arrays of one shard: tokens [tokens], sentences [sentences + 1], documents [documents + 1]."""
        dtypes = (token_dtype(self.meta["vocab_size"]), OFFSET_DTYPE, OFFSET_DTYPE)
        return tuple(np.frombuffer(self._verified(name, kind), dtype) for kind, dtype in zip(KINDS, dtypes))

    def token_counts(self) -> np.ndarray:
        """How often each id occurs in all shards: int64 [vocab_size]."""
        counts = np.zeros(self.meta["vocab_size"], np.int64)
        for name in self.names:
            counts += np.bincount(self.read(name)[0], minlength=counts.size)
        return counts

    def _verified(self, name: str, kind: str) -> bytes:
        """The bytes of a shard's file, checked against its checksum."""
        return read_verified(self.path(name, kind), self._shards[name]["sha256"][kind])
