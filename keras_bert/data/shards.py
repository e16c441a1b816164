"""The shard format: tokenised documents in flat little-endian files that a reader maps or loads whole.

A folder holds `meta.json`, written last, and per shard three files:

    00000.tokens      uint16 while vocab_size <= 65536, else uint32: the ids of all sentences, no special tokens
    00000.sentences   int32 [sentences + 1]: where each sentence begins in the tokens
    00000.documents   int32 [documents + 1]: where each document begins in the sentences
"""

import hashlib
import json

import numpy as np

from keras_bert.errors import UserError
from keras_bert.files import atomic_write, exists, join, make_folder, open_file

FORMAT = 1
KINDS = ("tokens", "sentences", "documents")
LARGEST_SHARD_MEGABYTES = 2048  # int32 offsets reach 2**31 tokens of two bytes.
_COUNTS = ("documents", "sentences", "tokens")
_OFFSET_DTYPE = np.dtype("<i4")
_REMEDY = "Run `prepare` again"


def token_dtype(vocab_size):
    """The narrowest dtype of the format that holds every id of the vocabulary."""
    return np.dtype("<u2") if vocab_size <= 2**16 else np.dtype("<u4")


class ShardWriter:
    """Writes documents into shards of about `shard_megabytes` million bytes.

    A context manager: `meta.json` is written when the block ends without an error, so a folder
    without it is one that was never finished. Documents keep their order and are never cut.

    Args:
        folder: path of the shard folder; made where it does not exist.
        vocabulary: the `Vocabulary` that the ids are of.
        lower_case: the tokenizer's setting, recorded in `meta.json`.
        shard_megabytes: size at which a shard is closed.

    Raises:
        UserError: the folder holds shards already, or the size is out of range.
    """

    def __init__(self, folder, vocabulary, lower_case, shard_megabytes=16.0):
        if not 0 < shard_megabytes <= LARGEST_SHARD_MEGABYTES:
            raise UserError(
                f"shard_megabytes: needs a size above 0 and at most {LARGEST_SHARD_MEGABYTES}. "
                f"Received: {shard_megabytes!r}."
            )
        if exists(join(folder, "meta.json")):
            raise UserError(f"{folder}: holds shards already. Remove the folder or give another.")
        make_folder(folder)
        self.folder = folder
        self._dtype = token_dtype(len(vocabulary))
        self._unknown_id = vocabulary.ids["[UNK]"]
        self._shard_bytes = shard_megabytes * 1e6
        self.meta = {
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
        }
        self._start_shard()

    def add(self, document):
        """Adds one document: a list of sentences, each a non-empty sequence of token ids."""
        lengths = [len(sentence) for sentence in document]
        if not lengths or 0 in lengths:
            raise ValueError(f"document: needs sentences of at least one token. Received lengths: {lengths}.")
        ids = np.concatenate([np.asarray(sentence) for sentence in document])
        if ids.dtype.kind not in "iu" or ids.min() < 0 or ids.max() >= self.meta["vocab_size"]:
            raise ValueError(
                f"document: needs whole-number ids from 0 to {self.meta['vocab_size'] - 1}. "
                f"Received: {ids.dtype.name} from {ids.min()} to {ids.max()}."
            )
        self._tokens.append(ids.astype(self._dtype))
        self._sentence_lengths.extend(lengths)
        self._document_lengths.append(len(lengths))
        self.meta["unknown_tokens"] += int(np.count_nonzero(ids == self._unknown_id))
        self._bytes += ids.size * self._dtype.itemsize + _OFFSET_DTYPE.itemsize * (len(lengths) + 1)
        if self._bytes >= self._shard_bytes:
            self._finish_shard()

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        if kind is None:
            self._finish_shard()
            with atomic_write(join(self.folder, "meta.json")) as stream:
                stream.write(json.dumps(self.meta, indent=2) + "\n")

    def _start_shard(self):
        self._tokens, self._sentence_lengths, self._document_lengths, self._bytes = [], [], [], 0

    def _finish_shard(self):
        if not self._document_lengths:
            return
        arrays = {
            "tokens": np.concatenate(self._tokens),
            "sentences": _offsets(self._sentence_lengths),
            "documents": _offsets(self._document_lengths),
        }
        shard = {
            "name": f"{len(self.meta['shards']):05d}",
            "documents": len(self._document_lengths),
            "sentences": len(self._sentence_lengths),
            "tokens": arrays["tokens"].size,
            "sha256": {},
        }
        for kind in KINDS:
            data = arrays[kind].tobytes()
            shard["sha256"][kind] = hashlib.sha256(data).hexdigest()
            with atomic_write(join(self.folder, f"{shard['name']}.{kind}"), "wb") as stream:
                stream.write(data)
        self.meta["shards"].append(shard)
        for count in _COUNTS:
            self.meta[count] += shard[count]
        self._start_shard()


class ShardSet:
    """A shard folder, opened. `meta` is `meta.json`'s mapping, `names` the shards' names in order."""

    def __init__(self, folder, meta):
        self.folder = folder
        self.meta = meta
        self._shards = {shard["name"]: shard for shard in meta["shards"]}
        self.names = list(self._shards)

    @classmethod
    def open(cls, folder, vocabulary=None, verify=True):
        """Opens a folder that `ShardWriter` finished.

        Args:
            folder: path of the shard folder.
            vocabulary: the `Vocabulary` to be used with it; another than the shards' is refused.
            verify: whether every file is held against its checksum now; `read` does so in any case.

        Raises:
            UserError: `meta.json` or a shard is missing, truncated or altered, or the vocabulary differs.
        """
        path = join(folder, "meta.json")
        meta = _read_meta(path)
        if vocabulary is not None:
            _check_vocabulary(path, meta, vocabulary)
        shards = cls(folder, meta)
        if verify:
            for name in shards.names:
                for kind in KINDS:
                    shards._verified(name, kind)
        return shards

    def path(self, name, kind):
        """The path of a shard's file; `kind` is `"tokens"`, `"sentences"` or `"documents"`."""
        if kind not in KINDS:
            raise ValueError(f"kind: needs one of {', '.join(KINDS)}. Received: {kind!r}.")
        return join(self.folder, f"{name}.{kind}")

    def read(self, name):
        """One shard as arrays: tokens [tokens], sentences [sentences + 1], documents [documents + 1]."""
        dtypes = (token_dtype(self.meta["vocab_size"]), _OFFSET_DTYPE, _OFFSET_DTYPE)
        return tuple(np.frombuffer(self._verified(name, kind), dtype) for kind, dtype in zip(KINDS, dtypes))

    def token_counts(self):
        """How often each id occurs in all shards: int64 [vocab_size]."""
        counts = np.zeros(self.meta["vocab_size"], np.int64)
        for name in self.names:
            counts += np.bincount(self.read(name)[0], minlength=counts.size)
        return counts

    def _verified(self, name, kind):
        """The bytes of a shard's file, held against its checksum."""
        path = self.path(name, kind)
        data = _read_bytes(path)
        if hashlib.sha256(data).hexdigest() != self._shards[name]["sha256"][kind]:
            raise UserError(f"{path}: is not the file that meta.json describes (truncated or altered). {_REMEDY}.")
        return data


def _offsets(lengths):
    return np.concatenate([[0], np.cumsum(lengths)]).astype(_OFFSET_DTYPE)


def _read_bytes(path):
    """The whole of a file, local or remote."""
    if not exists(path):
        raise UserError(f"{path}: is missing. {_REMEDY}.")
    try:
        with open_file(path) as stream:
            return stream.read()
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror or error}). {_REMEDY}.") from None


def _read_meta(path):
    try:
        meta = json.loads(_read_bytes(path))
    except ValueError:
        raise UserError(f"{path}: is not JSON. {_REMEDY}.") from None
    if not isinstance(meta, dict) or meta.get("format") != FORMAT:
        received = meta.get("format") if isinstance(meta, dict) else type(meta).__name__
        raise UserError(f"{path}: needs format {FORMAT}. Received: {received!r}. {_REMEDY}.")
    try:
        complete = (
            all(meta[count] == sum(shard[count] for shard in meta["shards"]) for count in _COUNTS)
            and all(set(shard["sha256"]) == set(KINDS) for shard in meta["shards"])
            and [shard["name"] for shard in meta["shards"]] == [f"{n:05d}" for n in range(len(meta["shards"]))]
            and meta["token_dtype"] == token_dtype(meta["vocab_size"]).name
            and {"vocabulary", "lower_case", "unknown_tokens"} <= set(meta)
        )
    except (KeyError, TypeError):
        complete = False
    if not complete:
        raise UserError(f"{path}: is incomplete or altered. {_REMEDY}.")
    return meta


def _check_vocabulary(path, meta, vocabulary):
    made_with = (meta["vocab_size"], meta["vocabulary"])
    given = (len(vocabulary), vocabulary.fingerprint)
    if made_with != given:
        raise UserError(
            f"{path}: made with a vocabulary of {made_with[0]} pieces, fingerprint {made_with[1]!r}. "
            f"Received: one of {given[0]}, {given[1]!r}. Give the vocabulary of the shards, or run `prepare` again."
        )
