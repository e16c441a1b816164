"""From documents to shards: duplicates out, a validation share held out, sentences split, pieces looked up."""

import hashlib
import os
from array import array
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field

import numpy as np

from keras_bert.data.shards import ShardWriter
from keras_bert.errors import UserError
from keras_bert.files import join, list_folder, remove_folder, rename
from keras_bert.text.sentences import split_sentences

_HASHES = 2**64
_BATCH_CHARACTERS = 250_000
TRAIN, VALIDATION = "train", "validation"
DUPLICATE = "duplicate"


@dataclass
class PrepareReport:
    """What was written, by side (`"train"`, `"validation"`), and what was left out.

    `documents`, `sentences`, `tokens` and `unknown_tokens` count by side; `dropped` counts
    documents by reason; `empty_sentences` are those of which no piece was left.
    """

    documents: Counter = field(default_factory=Counter)
    sentences: Counter = field(default_factory=Counter)
    tokens: Counter = field(default_factory=Counter)
    unknown_tokens: Counter = field(default_factory=Counter)
    dropped: Counter = field(default_factory=Counter)
    empty_sentences: int = 0

    @property
    def unknown_share(self):
        """The share of [UNK] in all tokens, from 0 to 1."""
        return self.unknown_tokens.total() / max(self.tokens.total(), 1)

    def __str__(self):
        lines = [
            f"{side}: {self.documents[side]:,} documents, {self.sentences[side]:,} sentences, "
            f"{self.tokens[side]:,} tokens"
            for side in (TRAIN, VALIDATION)
        ]
        lines.append(f"[UNK]: {self.unknown_share:.3%} of all tokens")
        lines += [f"dropped: {count:,} documents ({reason})" for reason, count in sorted(self.dropped.items())]
        return "\n".join(lines)


def is_validation(text, share):
    """Whether a document is held out: a pure function of its text, true for `share` of all texts."""
    return _hash(text) < share * _HASHES


def split_documents(documents, share, dropped=None):
    """Sends every document to one side, exact duplicates out; the first of them stays.

    The side is `is_validation`'s, with one exception: where all documents fall on one side and
    there are two or more, the one nearest to the other side goes there, so that neither is empty.
    Until both sides have been seen that document is held back; otherwise the order stays.
    Memory is at most 32 bytes a document.

    Args:
        documents: iterable of strings.
        share: share of validation, between 0 and 1.
        dropped: a `Counter` in which duplicates are counted.

    Yields:
        (document, whether it is held out for validation)
    """
    if not 0.0 < share < 1.0:
        raise ValueError(f"share: needs a share between 0 and 1. Received: {share!r}.")
    seen = _HashSet()
    held = None  # (distance to the other side, document, side) while all documents were of one side.
    is_one_sided = True
    for document in documents:
        value = _hash(document)
        if not seen.add(value):
            if dropped is not None:
                dropped[DUPLICATE] += 1
            continue
        side = value < share * _HASHES
        if not is_one_sided:
            yield document, side
            continue
        candidate = (-value if side else value, document, side)
        if held is None:
            held = candidate
        elif held[2] != side:
            is_one_sided = False
            yield held[1:]
            yield document, side
        else:
            held, farther = sorted((held, candidate))
            yield farther[1:]
    if held is not None and is_one_sided:
        yield held[1], len(seen) > 1 and not held[2]


def training_documents(documents, share):
    """The documents that are not held out: the ones to learn a vocabulary from."""
    return (document for document, held_out in split_documents(documents, share) if not held_out)


def prepare(documents, tokenizer, folder, validation_share, shard_megabytes=16.0):
    """Writes `folder/train` and `folder/validation`, shard folders in the format of `shards.py`.

    Streams: memory is one batch, one shard of each side and at most 32 bytes a document. The same
    documents in the same order give the same bytes. The work is done in `folder.partial`, which
    takes its name at the end. A single document is written to train; validation then is empty.

    Args:
        documents: iterable of strings, one document each, paragraphs separated by blank lines.
        tokenizer: the `WordPieceTokenizer`; called with many sentences at once.
        folder: path that does not exist or is empty.
        validation_share: share of documents held out, between 0 and 1.
        shard_megabytes: size of a shard in million bytes.

    Returns:
        `PrepareReport`.

    Raises:
        UserError: the folder holds something, or no document has a token.
    """
    _check_is_empty(folder)
    partial = os.fspath(folder).rstrip("/") + ".partial"
    remove_folder(partial)
    try:
        report = _write_shards(documents, tokenizer, partial, validation_share, shard_megabytes)
    except BaseException:
        remove_folder(partial)
        raise
    remove_folder(folder)
    rename(partial, folder)
    return report


def _check_is_empty(folder):
    try:
        names = list_folder(folder)
    except NotADirectoryError:
        raise UserError(f"{folder}: needs a folder. Received: a file. Give another path.") from None
    if names:
        raise UserError(
            f"{folder}: needs a folder that is new or empty. Received: one that holds {names[0]}. "
            "Remove it or give another."
        )


def _write_shards(documents, tokenizer, folder, validation_share, shard_megabytes):
    report = PrepareReport()
    with ExitStack() as stack:
        writers = {
            side: stack.enter_context(
                ShardWriter(join(folder, side), tokenizer.vocabulary, tokenizer.lower_case, shard_megabytes)
            )
            for side in (TRAIN, VALIDATION)
        }
        for batch in _batches(split_documents(documents, validation_share, report.dropped)):
            _write_batch(batch, tokenizer, writers, report)
    for side, writer in writers.items():
        for count in ("documents", "sentences", "tokens", "unknown_tokens"):
            getattr(report, count)[side] = writer.meta[count]
    if not report.documents.total():
        raise UserError("The corpus: needs documents with text. Received: none. Check the files given.")
    return report


def _batches(documents):
    """Lists of (sentences, side), of about `_BATCH_CHARACTERS` together."""
    batch, characters = [], 0
    for document, held_out in documents:
        batch.append((split_sentences(document), VALIDATION if held_out else TRAIN))
        characters += len(document)
        if characters >= _BATCH_CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def _write_batch(batch, tokenizer, writers, report):
    sentences = [sentence for document, _ in batch for sentence in document]
    if sentences:
        pieces = tokenizer(sentences)
        ids, splits = np.asarray(pieces.values), np.asarray(pieces.row_splits)
    first = 0
    for document, side in batch:
        last = first + len(document)
        rows = [ids[splits[row] : splits[row + 1]] for row in range(first, last)]
        first = last
        filled = [row for row in rows if row.size]
        report.empty_sentences += len(rows) - len(filled)
        if filled:
            writers[side].add(filled)
        else:
            report.dropped["no token in it"] += 1


def _hash(text):
    """64 bits of the text's BLAKE2 hash."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8"), digest_size=8).digest(), "little")


class _HashSet:
    """A set of 64-bit hashes by open addressing: at most 32 bytes each, the old table while it grows included.

    Python's own set takes some 80. Two different documents of six million meet with a chance of one in a million.
    """

    def __init__(self):
        self._table = array("Q", bytes(8 * 1024))
        self._length = 0

    def __len__(self):
        return self._length

    def add(self, value):
        """Adds a hash and says whether it was new."""
        value = value or 1  # 0 marks a free place.
        if 4 * self._length >= 3 * len(self._table):
            old = self._table
            self._table = array("Q", bytes(16 * len(old)))
            for earlier in old:
                if earlier:
                    self._table[self._place(earlier)] = earlier
        place = self._place(value)
        if self._table[place]:
            return False
        self._table[place] = value
        self._length += 1
        return True

    def _place(self, value):
        """Where a hash stands, or the free place where it belongs."""
        mask = len(self._table) - 1
        place = value & mask
        while self._table[place] not in (0, value):
            place = (place + 1) & mask
        return place
