"""Where shards end, and how one is written: what decides the bytes of a shard folder."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from keras_bert.data.shards.shard_format import (
    CONTINUATIONS,
    COUNTS,
    FORMAT,
    LARGEST_SHARD_MEGABYTES,
    OFFSET_DTYPE,
    PHRASES,
    kinds,
    token_dtype,
)
from keras_bert.data.shards.tokenized_documents import TokenizedDocuments, offsets
from keras_bert.errors import UserError
from keras_bert.files import join
from keras_bert.text.vocabulary import Vocabulary
from keras_bert.whole_files import atomic_write


def new_meta(
    vocabulary: Vocabulary, lower_case: bool, word_marks: str | None, phrase_marks: dict[str, Any] | None
) -> dict[str, Any]:
    """The `meta.json` of a folder without shards; for the arguments see `ShardWriter`."""
    return {
        "format": FORMAT,
        "vocabulary": vocabulary.fingerprint,
        "vocab_size": len(vocabulary),
        "lower_case": bool(lower_case),
        "token_dtype": token_dtype(len(vocabulary)).name,
        "documents": 0,
        "sentences": 0,
        "tokens": 0,
        "unknown_tokens": 0,
        "shards": [],
        **({"word_marks": word_marks} if word_marks else {}),
        **({"phrase_marks": phrase_marks, "phrase_tokens": 0} if phrase_marks else {}),
    }


def add_shard(meta: dict[str, Any], shard: dict[str, Any], counts: Mapping[str, int]) -> None:
    """Adds what `write_shard` returns to a `meta.json`; the shards in order."""
    meta["shards"].append(shard)
    for name, count in counts.items():
        meta[name] += count
    for name in COUNTS:
        meta[name] += shard[name]


def check_shard_size(shard_megabytes: float) -> None:
    """Raises `UserError` if no shard can have this size."""
    if not 0 < shard_megabytes <= LARGEST_SHARD_MEGABYTES:
        raise UserError(
            f"shard_megabytes: needs a size above 0 and at most {LARGEST_SHARD_MEGABYTES}. "
            f"Received: {shard_megabytes!r}."
        )


def shard_bytes(token_counts: np.ndarray, document_lengths: np.ndarray, token_bytes: int) -> np.ndarray:
    """The bytes of each document in a shard: int64 [documents], 0 for one without tokens.

    Args:
        token_counts: int64 [documents].
        document_lengths: int32 [documents], in sentences.
        token_bytes: bytes of a token.
    """
    return token_counts * token_bytes + OFFSET_DTYPE.itemsize * (document_lengths + 1) * (token_counts > 0)


class ShardCuts:
    """Decides where shards end: with the document that fills one. It sees the documents once, in order."""

    def __init__(self, shard_megabytes: float):
        """Raises `UserError` if no shard can have this size."""
        check_shard_size(shard_megabytes)
        self._full = shard_megabytes * 1e6
        self._bytes = 0

    def after(self, sizes: np.ndarray) -> Iterator[int]:
        """Yields the ends of shards among further documents with these `shard_bytes`, as places from 1 to their number.

        Sizes are exact, so that a shard ends after the same document however the documents are batched.
        """
        ends, start = np.cumsum(sizes), 0
        while True:
            last = int(np.searchsorted(ends, self._full - self._bytes + start)) + 1
            if last > len(ends):
                break
            yield last
            self._bytes, start = 0, int(ends[last - 1])
        if len(ends):
            self._bytes += int(ends[-1]) - start


def write_shard(
    folder: str,
    name: str,
    parts: Sequence[TokenizedDocuments],
    meta: dict[str, Any],
    unknown_id: int,
    work_folder: str | None = None,
) -> tuple[dict[str, Any], dict[str, int]]:
    """Writes the files of one shard, each complete or not at all.

    Args:
        folder: the shard folder.
        name: the shard's.
        parts: its documents; those without tokens are left out.
        meta: the folder's `meta.json`.
        unknown_id: the id of [UNK].
        work_folder: where the files are written before they are moved; the default is `folder`.

    Returns: (the shard's entry in `meta.json`, what it adds to the folder's `unknown_tokens` and `phrase_tokens`)
    """
    document_lengths = np.concatenate([part.document_lengths for part in parts])
    arrays = {
        "tokens": np.concatenate([part.tokens for part in parts]).astype(token_dtype(meta["vocab_size"]), copy=False),
        "sentences": offsets(np.concatenate([part.sentence_lengths for part in parts])),
        "documents": offsets(document_lengths[document_lengths > 0]),
    }
    if "word_marks" in meta:
        arrays[CONTINUATIONS] = np.concatenate([part.continuations for part in parts])
    if "phrase_marks" in meta:
        arrays[PHRASES] = np.concatenate([part.phrases for part in parts])
    shard: dict[str, Any] = {
        "name": name,
        "documents": arrays["documents"].size - 1,
        "sentences": arrays["sentences"].size - 1,
        "tokens": arrays["tokens"].size,
        "sha256": {},
    }
    for kind in kinds(meta):
        array = arrays[kind]
        data = (array.astype(OFFSET_DTYPE) if kind in ("sentences", "documents") else array).tobytes()
        shard["sha256"][kind] = hashlib.sha256(data).hexdigest()
        with atomic_write(join(folder, f"{name}.{kind}"), "wb", work_folder) as stream:
            stream.write(data)
    counts = {"unknown_tokens": int(np.count_nonzero(arrays["tokens"] == unknown_id))}
    if PHRASES in arrays:
        counts["phrase_tokens"] = int(np.count_nonzero(arrays[PHRASES]))
    return shard, counts
