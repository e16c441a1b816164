"""The format of a shard folder, and checks that its `meta.json` is complete.

A folder has `meta.json`, written last, and these flat little-endian files for each shard:

    00000.tokens         uint16 if vocab_size <= 65536, else uint32: the ids of all sentences, without special tokens
    00000.sentences      int32 [sentences + 1]: where each sentence starts in the tokens
    00000.documents      int32 [documents + 1]: where each document starts in the sentences
    00000.continuations  uint8 [tokens]: 1 for a token that continues the word of the token before it;
                         only if `meta.json` has `word_marks`
    00000.phrases        uint8 [tokens]: 1 for the first token of a phrase, 2 for its other tokens, 0 outside of
                         phrases; only if `meta.json` has `phrase_marks`
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from keras_bert.errors import UserError
from keras_bert.files import exists, open_file
from keras_bert.text.vocabulary import Vocabulary

FORMAT = 1
KINDS = ("tokens", "sentences", "documents")
CONTINUATIONS, PHRASES = "continuations", "phrases"
LARGEST_SHARD_MEGABYTES = 2048  # int32 offsets can address 2**31 tokens of two bytes.
COUNTS = ("documents", "sentences", "tokens")
OFFSET_DTYPE = np.dtype("<i4")
_REMEDY = "Run `prepare` again"


def token_dtype(vocab_size: int) -> np.dtype:
    """The smallest dtype of the format that can hold every id of the vocabulary."""
    return np.dtype("<u2") if vocab_size <= 2**16 else np.dtype("<u4")


def shard_name(number: int) -> str:
    """What the files of a shard are called, up to the period."""
    return f"{number:05d}"


def kinds(meta: Mapping[str, Any]) -> tuple[str, ...]:
    """The kinds of files of each shard in a folder with this `meta.json`."""
    marks = {"word_marks": CONTINUATIONS, "phrase_marks": PHRASES}
    return (*KINDS, *(kind for key, kind in marks.items() if meta.get(key)))


def read_verified(path: str, sha256: str) -> bytes:
    """The bytes of a shard's file. Raises `UserError` if they do not match the checksum."""
    data = _read_bytes(path)
    if hashlib.sha256(data).hexdigest() != sha256:
        raise UserError(f"{path}: is not the file that meta.json describes (truncated or altered). {_REMEDY}.")
    return data


def _read_bytes(path: str) -> bytes:
    """The content of a file, local or remote."""
    if not exists(path):
        raise UserError(f"{path}: is missing. {_REMEDY}.")
    try:
        with open_file(path) as stream:
            return stream.read()
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror or error}). {_REMEDY}.") from None


def read_meta(path: str) -> dict[str, Any]:
    """The content of a `meta.json`. Raises `UserError` if it is missing, incomplete or has another format."""
    try:
        meta = json.loads(_read_bytes(path))
    except ValueError:
        raise UserError(f"{path}: is not JSON. {_REMEDY}.") from None
    if not isinstance(meta, dict) or meta.get("format") != FORMAT:
        received = meta.get("format") if isinstance(meta, dict) else type(meta).__name__
        raise UserError(f"{path}: needs format {FORMAT}. Received: {received!r}. {_REMEDY}.")
    try:
        complete = (
            all(meta[count] == sum(shard[count] for shard in meta["shards"]) for count in COUNTS)
            and all(set(shard["sha256"]) == set(kinds(meta)) for shard in meta["shards"])
            and [shard["name"] for shard in meta["shards"]] == list(map(shard_name, range(len(meta["shards"]))))
            and meta["token_dtype"] == token_dtype(meta["vocab_size"]).name
            and {"vocabulary", "lower_case", "unknown_tokens"} <= set(meta)
        )
    except (KeyError, TypeError):
        complete = False
    if not complete:
        raise UserError(f"{path}: is incomplete or altered. {_REMEDY}.")
    return meta


def check_vocabulary(path: str, meta: Mapping[str, Any], vocabulary: Vocabulary) -> None:
    """Raises `UserError` unless the shards were made with `vocabulary`."""
    made_with = (meta["vocab_size"], meta["vocabulary"])
    given = (len(vocabulary), vocabulary.fingerprint)
    if made_with[1] != given[1]:
        raise UserError(
            f"{path}: needs the vocabulary it was made with, of {made_with[0]} pieces, fingerprint {made_with[1]!r}. "
            f"Received: one of {given[0]}, {given[1]!r}. Give the vocabulary of the shards, or run `prepare` again."
        )
