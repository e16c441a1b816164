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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from keras_bert.core.errors import UserError
from keras_bert.core.files import exists, join, read_file
from keras_bert.core.whole_files import write_file
from keras_bert.core.yaml_and_json import parse_json
from keras_bert.data.windows import offsets
from keras_bert.text.vocabulary import Vocabulary

FORMAT = 1
Meta: TypeAlias = dict[str, Any]  # The content of `meta.json`.
KINDS = ("tokens", "sentences", "documents")
CONTINUATIONS, PHRASES = "continuations", "phrases"
LARGEST_SHARD_MEGABYTES = 2048  # int32 offsets can address 2**31 tokens of two bytes.
COUNTS = ("documents", "sentences", "tokens")
OFFSET_DTYPE = np.dtype("<i4")
_REMEDY = "Run `prepare` again"
_PREFIX_SPACE = "prefix_space"


def token_dtype(vocab_size: int) -> np.dtype:
    """The smallest dtype of the format that can hold every id of the vocabulary."""
    return np.dtype("<u2") if vocab_size <= 2**16 else np.dtype("<u4")


def shard_name(number: int) -> str:
    """The names of a shard's files up to the period."""
    return f"{number:05d}"


def kinds(meta: Meta) -> tuple[str, ...]:
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
    if not exists(path):
        raise UserError(f"{path}: is missing. {_REMEDY}.")
    return read_file(path, f"{_REMEDY}.")


def read_meta(path: str) -> Meta:
    """The content of a `meta.json`. Raises `UserError` if it is missing, incomplete or has another format."""
    try:
        meta = parse_json(_read_bytes(path))
    except ValueError:
        raise UserError(f"{path}: is not JSON. {_REMEDY}.") from None
    if not isinstance(meta, dict) or meta.get("format") != FORMAT:
        received = meta.get("format") if isinstance(meta, dict) else type(meta).__name__
        raise UserError(f"{path}: needs format {FORMAT}. Received: {received!r}. {_REMEDY}.")
    if not is_complete(meta):
        raise UserError(f"{path}: is incomplete or altered. {_REMEDY}.")
    return meta


def is_complete(meta: Any) -> bool:
    """Whether a JSON value has the form of a `meta.json`, with counts that match its shards."""
    try:
        return (
            all(meta[count] == sum(shard[count] for shard in meta["shards"]) for count in COUNTS)
            and all(set(shard["sha256"]) == set(kinds(meta)) for shard in meta["shards"])
            and [shard["name"] for shard in meta["shards"]] == list(map(shard_name, range(len(meta["shards"]))))
            and meta["token_dtype"] == token_dtype(meta["vocab_size"]).name
            and {"vocabulary", "lower_case", "unknown_tokens"} <= set(meta)
        )
    except (AttributeError, KeyError, TypeError):
        return False


def check_vocabulary(path: str, meta: Meta, vocabulary: Vocabulary) -> None:
    """Raises `UserError` unless the shards were made with `vocabulary`."""
    if meta["vocabulary"] != vocabulary.fingerprint:
        raise UserError(
            f"{path}: needs the vocabulary it was made with, of {meta['vocab_size']} pieces, fingerprint "
            f"{meta['vocabulary']!r}. Received: one of {len(vocabulary)}, {vocabulary.fingerprint!r}. "
            "Give the vocabulary of the shards, or run `prepare` again."
        )


@dataclass
class TokenizedDocuments:
    """Tokenized documents, one after the other, as flat arrays.

    Attributes:
        tokens: integer `[tokens]`, the ids of all sentences, without special tokens.
        sentence_lengths: int32 `[sentences]`, each at least 1.
        document_lengths: int32 `[documents]`, the sentences of each document; 0 if it has no tokens.
        empty_sentences: int32 `[documents]`, how many sentences without tokens were dropped from each document.
        continuations: uint8 `[tokens]`, 1 for a token that continues the word of the token before it; or None.
        phrases: uint8 `[tokens]`, the marks of `text.marks`; or None.
    """

    tokens: np.ndarray
    sentence_lengths: np.ndarray
    document_lengths: np.ndarray
    empty_sentences: np.ndarray
    continuations: np.ndarray | None = None
    phrases: np.ndarray | None = None

    def __len__(self) -> int:
        """How many documents there are."""
        return len(self.document_lengths)

    def token_counts(self) -> np.ndarray:
        """Tokens of each document: int64 `[documents]`."""
        return np.diff(offsets(self.sentence_lengths)[offsets(self.document_lengths)])

    @classmethod
    def joined(cls, parts: Sequence["TokenizedDocuments"]) -> "TokenizedDocuments":
        """All documents of at least one part."""
        names = [name for name, array in vars(parts[0]).items() if array is not None]
        return cls(**{name: np.concatenate([vars(part)[name] for part in parts]) for name in names})

    def part(self, first: int, last: int) -> "TokenizedDocuments":
        """The documents from `first` up to but not including `last`."""
        sentences = offsets(self.document_lengths)[[first, last]]
        tokens = offsets(self.sentence_lengths)[sentences]
        return TokenizedDocuments(
            self.tokens[slice(*tokens)],
            self.sentence_lengths[slice(*sentences)],
            self.document_lengths[first:last],
            self.empty_sentences[first:last],
            None if self.continuations is None else self.continuations[slice(*tokens)],
            None if self.phrases is None else self.phrases[slice(*tokens)],
        )


def new_meta(
    vocabulary: Vocabulary,
    lower_case: bool,
    word_marks: str | None,
    phrase_marks: dict[str, Any] | None,
    prefix_space: bool = True,
) -> Meta:
    """The `meta.json` of a folder without shards.

    Args:
        lower_case, prefix_space: the tokenizer's settings; the latter is recorded only if it is false.
        word_marks: the origin of the documents' `continuations` (`"jieba"`); None if they have none.
        phrase_marks: the origin of the documents' `phrases`, JSON values; None if they have none.
    """
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
        **({} if prefix_space else {_PREFIX_SPACE: False}),
        **({"word_marks": word_marks} if word_marks else {}),
        **({"phrase_marks": phrase_marks, "phrase_tokens": 0} if phrase_marks else {}),
    }


def spaced_shards(meta: Meta) -> bool:
    """The tokenizer's `prefix_space`, which `meta.json` records only if it is false."""
    return bool(meta.get(_PREFIX_SPACE, True))


def add_shard(meta: Meta, shard: dict[str, Any], counts: Mapping[str, int]) -> None:
    """Adds the results of `write_shard` to a `meta.json`; shards must be added in order."""
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
    """
    return token_counts * token_bytes + OFFSET_DTYPE.itemsize * (document_lengths + 1) * (token_counts > 0)


class ShardCuts:
    """Decides where shards end: with the document that fills one. It sees the documents once, in order.

    Attributes:
        pending: bytes after the end of the last shard.
    """

    def __init__(self, shard_megabytes: float):
        """Raises `UserError` if no shard can have this size."""
        check_shard_size(shard_megabytes)
        self.pending = 0
        self._full = shard_megabytes * 1e6

    def after(self, sizes: np.ndarray) -> Iterator[int]:
        """Yields where shards end among further documents with these `shard_bytes`: one past the last document of each.

        Sizes are exact, so that a shard ends after the same document however the documents are batched.
        """
        ends, start = np.cumsum(sizes), 0
        while True:
            last = int(np.searchsorted(ends, self._full - self.pending + start)) + 1
            if last > len(ends):
                break
            yield last
            self.pending, start = 0, int(ends[last - 1])
        if len(ends):
            self.pending += int(ends[-1]) - start


def write_shard(
    folder: str,
    name: str,
    parts: Sequence[TokenizedDocuments],
    meta: Meta,
    unknown_id: int,
    work_folder: str | None = None,
) -> tuple[dict[str, Any], dict[str, int]]:
    """Writes the files of one shard, each complete or not at all.

    Args:
        name: from `shard_name`.
        parts: its documents; those without tokens are left out.
        meta: the folder's `meta.json`.
        work_folder: for temporary files with names of their own, where several processes may write the same shard.

    Returns: (the shard's entry in `meta.json`, what it adds to the folder's `unknown_tokens` and `phrase_tokens`)
    """
    documents = TokenizedDocuments.joined(parts)
    arrays: dict[str, Any] = {
        "tokens": documents.tokens.astype(token_dtype(meta["vocab_size"]), copy=False),
        "sentences": offsets(documents.sentence_lengths).astype(OFFSET_DTYPE),
        "documents": offsets(documents.document_lengths[documents.document_lengths > 0]).astype(OFFSET_DTYPE),
        CONTINUATIONS: documents.continuations,
        PHRASES: documents.phrases,
    }
    shard: dict[str, Any] = {
        "name": name,
        "documents": arrays["documents"].size - 1,
        "sentences": arrays["sentences"].size - 1,
        "tokens": arrays["tokens"].size,
        "sha256": {},
    }
    for kind in kinds(meta):
        data = arrays[kind].tobytes()
        shard["sha256"][kind] = hashlib.sha256(data).hexdigest()
        write_file(join(folder, f"{name}.{kind}"), data, work_folder)
    counts = {"unknown_tokens": int(np.count_nonzero(arrays["tokens"] == unknown_id))}
    if PHRASES in kinds(meta):
        counts["phrase_tokens"] = int(np.count_nonzero(arrays[PHRASES]))
    return shard, counts
