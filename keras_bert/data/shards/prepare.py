"""From documents to shards: drops duplicates, holds out a validation share, splits sentences and tokenizes."""

import logging
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any, Protocol

from keras_bert.core.errors import UserError
from keras_bert.core.files import join
from keras_bert.core.runtime import all_cores
from keras_bert.core.terminal_bar import terminal_bar
from keras_bert.data.collocations import write_collocations
from keras_bert.data.corpus.held_out import SIDES, TRAIN, VALIDATION, split_documents
from keras_bert.data.shards.document_tokenizer import BATCH_CHARACTERS, DocumentTokenizer, Tag, map_in_processes
from keras_bert.data.shards.prepared_folder import prepared_folder
from keras_bert.data.shards.shard_files import ShardWriter
from keras_bert.data.shards.shard_format import Meta, TokenizedDocuments, check_shard_size, new_meta, token_dtype

_log = logging.getLogger(__name__)

_FEWER_WORKERS = "Give fewer --workers; the same command resumes where it stopped."
_BATCHES_WORTH_PROCESSES = 32  # Starting a process costs as much as tokenizing some 8 MB.
_MISFIT_SHARE = 0.5  # Of [UNK]; a fitting vocabulary leaves a few per cent.
_NO_TOKEN = "no token in it"


class Text(Protocol):
    """A source of documents, the same at every reading; `Corpus` is one."""

    def documents(self) -> Iterable[str]:
        """One string per document, paragraphs separated by blank lines."""

    def fingerprint(self) -> list[list[Any]]:
        """JSON values that identify the source, so that resuming with another text is refused."""

    def settings(self) -> dict[str, Any]:
        """JSON values that say how the documents are read and filtered, so that resuming with others is refused."""

    def local_files(self) -> list[str]:
        """The files that the documents come from, to show the progress; [] if they come from none."""

    def record(self) -> dict[str, Any]:
        """The value of `corpus` in `meta.json`, called after the last document; {} for none."""


@dataclass(frozen=True)
class ShardSettings:
    """The settings that the bytes of shards depend on, besides the text.

    Attributes:
        validation_share: share of documents held out, between 0 and 1.
        shard_megabytes: size of a shard in million bytes.
        collocations: how many collocations to learn, for `collocations.txt`; 0 for no such file.

    Raises:
        UserError: no shard can have this size.
    """

    tokenizer: DocumentTokenizer
    validation_share: float
    shard_megabytes: float = 16.0
    collocations: int = 0

    def __post_init__(self) -> None:
        check_shard_size(self.shard_megabytes)

    def record(self) -> dict[str, Any]:
        """The settings as JSON values."""
        return {
            "vocabulary": self.tokenizer.vocabulary.fingerprint,
            "lower_case": self.tokenizer.lower_case,
            "validation_share": self.validation_share,
            "shard_megabytes": self.shard_megabytes,
            "word_marks": self.tokenizer.word_marks,
            "phrase_marks": self.tokenizer.phrase_record(),
            **({} if self.tokenizer.prefix_space else {"prefix_space": False}),
            **({"collocations": self.collocations} if self.collocations else {}),
        }

    @property
    def token_bytes(self) -> int:
        """Bytes per token in a shard."""
        return token_dtype(len(self.tokenizer.vocabulary)).itemsize

    def new_meta(self) -> Meta:
        """The `meta.json` of a side without shards."""
        tokenizer = self.tokenizer
        marks = (tokenizer.word_marks, tokenizer.phrase_record())
        return new_meta(tokenizer.vocabulary, tokenizer.lower_case, *marks, tokenizer.prefix_space)

    def finish_meta(self, meta: Meta, text: Text) -> None:
        """Adds the entries that both sides share, once the whole text has been read."""
        meta["validation_share"] = self.validation_share
        if self.collocations:
            meta["collocations"] = self.collocations
        if record := text.record():
            meta["corpus"] = record

    def learn_collocations(self, folder: str) -> None:
        """Writes the collocations of the finished shards in `folder`, if any are wanted."""
        if self.collocations:
            write_collocations(folder, self.tokenizer.vocabulary, self.collocations)


@dataclass
class PrepareReport:
    """The counts of what was written, by side (`"train"`, `"validation"`), and of what was left out.

    Attributes:
        documents, sentences, tokens, unknown_tokens: counts by side.
        phrase_tokens: tokens in phrases by side; empty if no phrases were marked.
        dropped: documents left out, counted by reason.
        empty_sentences: sentences without any token, which were left out.
    """

    documents: Counter[str] = field(default_factory=Counter)
    sentences: Counter[str] = field(default_factory=Counter)
    tokens: Counter[str] = field(default_factory=Counter)
    unknown_tokens: Counter[str] = field(default_factory=Counter)
    phrase_tokens: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    empty_sentences: int = 0

    @classmethod
    def of(
        cls, metas: Mapping[str, Meta], duplicates: Mapping[str, int], left_out: Mapping[str, int]
    ) -> "PrepareReport":
        """The report on finished shards.

        Args:
            metas: `{side: meta.json}`.
            duplicates: documents that were dropped before they had a side, by reason.
            left_out: how many `empty_documents` and `empty_sentences` had no token.

        Raises:
            UserError: there is no document.
        """
        names = ("documents", "sentences", "tokens", "unknown_tokens", "phrase_tokens")
        counts = {name: Counter({side: meta[name] for side, meta in metas.items() if name in meta}) for name in names}
        if not counts["documents"].total():
            raise UserError("The corpus: needs documents with text. Received: none. Check the input files.")
        dropped = Counter(duplicates) + Counter({_NO_TOKEN: left_out["empty_documents"]})
        return cls(**counts, dropped=dropped, empty_sentences=left_out["empty_sentences"])

    @property
    def unknown_share(self) -> float:
        """The share of [UNK] in all tokens, from 0 to 1."""
        return self.unknown_tokens.total() / max(self.tokens.total(), 1)

    def __str__(self) -> str:
        read = self.documents.total() + self.dropped.total()
        lines = [
            f"{side}: {self.documents[side]:,} documents, {self.sentences[side]:,} sentences, "
            f"{self.tokens[side]:,} tokens"
            for side in SIDES
        ]
        misfit = ": the vocabulary does not fit the text" if self.unknown_share > _MISFIT_SHARE else ""
        lines.append(f"[UNK]: {self.unknown_share:.3%} of all tokens{misfit}")
        if self.phrase_tokens:
            lines.append(f"in phrases: {self.phrase_tokens.total() / max(self.tokens.total(), 1):.3%} of all tokens")
        lines += [
            f"dropped: {count:,} documents ({reason}), {count / read:.1%} of all"
            for reason, count in sorted(self.dropped.items())
        ]
        return "\n".join(lines)


def prepare(
    text: Text, settings: ShardSettings, folder: str | os.PathLike[str], workers: int = 0, remedy: str = _FEWER_WORKERS
) -> PrepareReport:
    """Writes `folder/train` and `folder/validation`, in the format of `shard_format`, and the vocabulary's file.

    The text is streamed: memory is a few batches, one shard of each side and at most 32 bytes per document, and then
    what `data.collocations` needs. The same documents in the same order give the same bytes, whatever the number of
    workers. The work is done in `folder.partial`, which is renamed at the end. In a store, where renaming would copy
    every file, it is done in `folder` itself, and the vocabulary is written last. A process that was killed resumes
    after its finished shards when started again with the same arguments: it reads the text again, but tokenizes only
    the rest. A single document goes to train; validation is then empty.

    Args:
        folder: a folder that does not exist or is empty.
        workers: processes that tokenize; 0 for one per core. A short text is tokenized in this process.
        remedy: advice for the caller's user if a worker dies.

    Returns:
        A report on the whole result, including what earlier starts did.

    Raises:
        UserError: the folder is not empty; no document has a token; the unfinished work is damaged or was started with
            other arguments; another process is preparing the same folder; or a worker died.
    """
    record = {"runner": None, **settings.record(), "inputs": text.fingerprint(), "reading": text.settings() or None}
    with prepared_folder(folder, settings.tokenizer.vocabulary, record) as (work, check):
        if work.shards():
            _log.info(f"Resuming in {work.folder}: {work.shards():,} shards are finished.")
        documents = text.documents()  # May read the whole text, so only once the folder is known to be free.
        # Counts what is written or still held by the writers; `work` counts finished shards only.
        names = ("documents", "empty_sentences", "empty_documents")
        counts = {side: Counter({name: work.sides[side].get(name, 0) for name in names}) for side in SIDES}
        duplicates: Counter[str] = Counter()
        with ExitStack() as stack:
            writers = {}
            for side in SIDES:
                meta = work.sides[side].get("meta") or settings.new_meta()
                unknown_id = settings.tokenizer.vocabulary.unk_id
                writer = ShardWriter(join(work.folder, side), meta, unknown_id, settings.shard_megabytes)
                writers[side] = stack.enter_context(writer)
            bar = stack.enter_context(terminal_bar("Tokenized", "documents", read=text.local_files()))
            batches = _batches(
                split_documents(documents, settings.validation_share, duplicates),
                {side: count["documents"] for side, count in counts.items()},
            )
            # Batches are read ahead of the work on them, so each carries the reader's position.
            placed = (((side, bar.position()), batch) for side, batch in batches)
            for (side, position), tokenized in _tokenized(settings.tokenizer, placed, workers, remedy):
                finished = writers[side].add_documents(tokenized)
                if finished:
                    _add(counts[side], tokenized.part(0, finished))
                    work.sides[side] = {"meta": writers[side].meta, **counts[side]}
                    check()
                    work.save()
                _add(counts[side], tokenized.part(finished, len(tokenized)))
                bar.update(len(tokenized), position)
            for writer in writers.values():
                settings.finish_meta(writer.meta, text)
        metas = {side: writer.meta for side, writer in writers.items()}
        settings.learn_collocations(work.folder)
        return PrepareReport.of(metas, duplicates, counts[TRAIN] + counts[VALIDATION])


def _batches(documents: Iterable[tuple[str, bool]], finished: dict[str, int]) -> Iterator[tuple[str, list[str]]]:
    """Yields `(side, documents)` with about `BATCH_CHARACTERS` each, without the documents in finished shards.

    Args:
        documents: `(document, whether it is held out)`.
        finished: how many documents of each side, the first ones, are in finished shards.
    """
    batches: dict[str, list[str]] = {side: [] for side in SIDES}
    characters: Counter[str] = Counter()
    for document, held_out in documents:
        side = VALIDATION if held_out else TRAIN
        if finished[side]:
            finished[side] -= 1
            continue
        batches[side].append(document)
        characters[side] += len(document)
        if characters[side] >= BATCH_CHARACTERS:
            yield side, batches[side]
            batches[side], characters[side] = [], 0
    yield from ((side, batch) for side, batch in batches.items() if batch)


def _add(counts: Counter[str], tokenized: TokenizedDocuments) -> None:
    counts["documents"] += len(tokenized)
    counts["empty_sentences"] += int(tokenized.empty_sentences.sum())
    counts["empty_documents"] += int((tokenized.document_lengths == 0).sum())


def _tokenized(
    tokenizer: DocumentTokenizer, batches: Iterator[tuple[Tag, list[str]]], workers: int, remedy: str
) -> Iterator[tuple[Tag, TokenizedDocuments]]:
    """Yields (tag, tokenized documents) for each batch, in order."""
    workers = workers or all_cores()
    first = list(islice(batches, _BATCHES_WORTH_PROCESSES))
    batches = chain(first, batches)
    if workers > 1 and len(first) == _BATCHES_WORTH_PROCESSES:
        yield from map_in_processes(tokenizer, batches, workers, remedy)
    else:
        yield from ((tag, tokenizer(batch)) for tag, batch in batches)
