"""Writes and reads shards: tokenized documents in the files that `shard_format` describes."""

from collections.abc import Iterator
from types import TracebackType

import numpy as np

from keras_bert.core.errors import UserError
from keras_bert.core.files import exists, join, make_folder
from keras_bert.core.whole_files import write_json
from keras_bert.data.shards.shard_format import (
    CONTINUATIONS,
    KINDS,
    OFFSET_DTYPE,
    Meta,
    ShardCuts,
    TokenizedDocuments,
    add_shard,
    check_vocabulary,
    kinds,
    read_meta,
    read_verified,
    shard_bytes,
    shard_name,
    token_dtype,
    write_shard,
)
from keras_bert.text.vocabulary import Vocabulary


class ShardWriter:
    """Writes documents into shards of about `shard_megabytes` million bytes.

    A context manager: `meta.json` is written when the block ends without an error, so a folder without it was never
    finished. Documents keep their order and are never split.

    Args:
        folder: created if needed.
        meta: `new_meta`, or the `meta` of a writer that was interrupted, whose shards are kept and new ones added.
        unknown_id: the id of [UNK], to count.
        shard_megabytes: size at which a shard is closed.

    Attributes:
        meta: the content of `meta.json` so far, which counts only finished shards.

    Raises:
        UserError: the folder already has shards, or the size is out of range.
    """

    def __init__(self, folder: str, meta: Meta, unknown_id: int, shard_megabytes: float):
        self._cuts = ShardCuts(shard_megabytes)
        if exists(join(folder, "meta.json")):
            raise UserError(f"{folder}: already has shards. Remove the folder or give another.")
        make_folder(folder)
        self.folder = folder
        self.meta = meta
        self._unknown_id = unknown_id
        self._parts: list[TokenizedDocuments] = []

    def add_documents(self, documents: TokenizedDocuments) -> int:
        """Adds documents, skipping those without a token. Returns how many of them are in finished shards."""
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
        first = 0
        token_bytes = token_dtype(self.meta["vocab_size"]).itemsize
        sizes = shard_bytes(documents.token_counts(), documents.document_lengths, token_bytes)
        for last in self._cuts.after(sizes):
            self._parts.append(documents.part(first, last))
            self._finish_shard()
            first = last
        if first < len(documents):
            self._parts.append(documents.part(first, len(documents)))
        return first

    def __enter__(self) -> "ShardWriter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            if self._cuts.pending:
                self._finish_shard()
            write_json(join(self.folder, "meta.json"), self.meta)

    def _finish_shard(self) -> None:
        name = shard_name(len(self.meta["shards"]))
        add_shard(self.meta, *write_shard(self.folder, name, self._parts, self.meta, self._unknown_id))
        self._parts = []


# However large the corpus, no more shards than this are sampled.
_MOST_SAMPLED = 64


class ShardSet:
    """An open shard folder.

    Attributes:
        meta: the content of `meta.json`.
        names: the names of the shards, in order.
    """

    def __init__(self, folder: str, meta: Meta):
        self.folder = folder
        self.meta = meta
        self._shards = {shard["name"]: shard for shard in meta["shards"]}
        self.names = list(self._shards)

    @classmethod
    def open(cls, folder: str, vocabulary: Vocabulary | None = None, verify: bool = True) -> "ShardSet":
        """Opens a folder that `ShardWriter` finished.

        Args:
            vocabulary: if given, must be the vocabulary of the shards.
            verify: whether to check all checksums now; methods that read files check those in any case.

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
        """The path of a shard's file; `kind` is one of `shard_format.kinds` of this folder's `meta`."""
        if kind not in kinds(self.meta):
            raise ValueError(f"kind: needs one of {', '.join(kinds(self.meta))}. Received: {kind!r}.")
        return join(self.folder, f"{name}.{kind}")

    def read(self, name: str) -> tuple[np.ndarray, ...]:
        """The arrays of one shard: tokens [tokens], sentences [sentences + 1], documents [documents + 1]."""
        dtypes = (token_dtype(self.meta["vocab_size"]), OFFSET_DTYPE, OFFSET_DTYPE)
        return tuple(np.frombuffer(self._verified(name, kind), dtype) for kind, dtype in zip(KINDS, dtypes))

    def continuations(self, name: str) -> np.ndarray | None:
        """The marks of the tokens that continue a word in one shard: uint8 [tokens]; None if it has none."""
        return np.frombuffer(self._verified(name, CONTINUATIONS), np.uint8) if self.has_word_marks else None

    def sample(self, most: int) -> Iterator[tuple[str, int]]:
        """Yields shards' names and how many tokens to read from the start of each, at most `most` in all.

        Up to 64 shards share these equally, as far as each has enough. They are spread evenly over the set, because its
        shards are in the order of the files.
        """
        wanted = min(len(self.names), _MOST_SAMPLED)
        places = np.linspace(0, len(self.names) - 1, wanted).round().astype(int)
        sizes = [shard["tokens"] for shard in self.meta["shards"]]
        left = most
        # Small shards come first, so that larger ones can make up for what they lack.
        for number, place in enumerate(sorted(places, key=lambda place: sizes[place])):
            count = min(sizes[place], -(-left // (wanted - number)))
            yield self.names[place], count
            left -= count

    def token_counts(self) -> np.ndarray:
        """How often each id occurs in all shards: int64 [vocab_size]. Reads and checks every file, as `verify` does."""
        counts = np.zeros(self.meta["vocab_size"], np.int64)
        for name in self.names:
            content = {kind: self._verified(name, kind) for kind in kinds(self.meta)}
            counts += np.bincount(np.frombuffer(content["tokens"], token_dtype(counts.size)), minlength=counts.size)
        return counts

    def _verified(self, name: str, kind: str) -> bytes:
        return read_verified(self.path(name, kind), self._shards[name]["sha256"][kind])
