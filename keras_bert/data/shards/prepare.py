"""From documents to shards: drops duplicates, holds out a validation share, splits sentences and tokenizes."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

from keras_bert.core.errors import UserError
from keras_bert.core.files import join, make_folder
from keras_bert.core.terminal_bar import Bar, terminal_bar
from keras_bert.data.corpus.held_out import SIDES, TRAIN, VALIDATION, split_documents
from keras_bert.data.shards.document_tokenizer import BATCH_CHARACTERS, DocumentTokenizer
from keras_bert.data.shards.prepared_folder import UnfinishedWork, prepared_folder
from keras_bert.data.shards.shard_files import ShardWriter
from keras_bert.data.shards.shard_format import TokenizedDocuments
from keras_bert.data.shards.tokenizer_processes import Tag, all_cores, map_in_processes
from keras_bert.text.vocabulary import Vocabulary

_FEWER_WORKERS = "Give fewer --workers; the same command resumes where it stopped."
_BATCHES_WORTH_PROCESSES = 32  # Starting a process costs as much as tokenizing some 8 MB.
NO_TOKEN = "no token in it"
NO_DOCUMENTS = "The corpus: needs documents with text. Received: none. Check the input files."


@dataclass
class PrepareReport:
    """What was written, by side (`"train"`, `"validation"`), and what was left out.

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
        lines.append(f"[UNK]: {self.unknown_share:.3%} of all tokens")
        if self.phrase_tokens:
            lines.append(f"in phrases: {self.phrase_tokens.total() / max(self.tokens.total(), 1):.3%} of all tokens")
        lines += [
            f"dropped: {count:,} documents ({reason}), {count / read:.1%} of all"
            for reason, count in sorted(self.dropped.items())
        ]
        return "\n".join(lines)


def prepare(
    documents: Iterable[str],
    vocabulary: Vocabulary,
    lower_case: bool,
    folder: str | os.PathLike[str],
    validation_share: float,
    shard_megabytes: float = 16.0,
    workers: int = 0,
    word_marks: str | None = None,
    phrases: Sequence[str] = (),
    phrase_tags: Sequence[str] = (),
    inputs: Sequence[Any] = (),
    report: Callable[[str], object] | None = None,
    reading: Mapping[str, Any] | None = None,
    record: Callable[[], Mapping[str, Any]] | None = None,
    remedy: str = _FEWER_WORKERS,
    read: Sequence[str] = (),
) -> PrepareReport:
    """Writes `folder/train` and `folder/validation`, shard folders in the format of `shard_format`, and `vocab.txt`.

    The text is streamed: memory is a few batches, one shard of each side and at most 32 bytes per document. The same
    documents in the same order give the same bytes, whatever the number of workers. The work is done in
    `folder.partial`, which is renamed at the end. In a store, where renaming would copy every file, it is done in
    `folder` itself, and `vocab.txt` is written last. A process that was killed resumes after its finished shards when
    started again with the same arguments: it reads the text again, but tokenizes only the rest. A single document goes
    to train; validation is then empty.

    Args:
        documents: one string per document, paragraphs separated by blank lines; the same at every start.
        vocabulary: the pieces.
        lower_case: as for the tokenizer.
        folder: a folder that does not exist or is empty.
        validation_share: share of documents held out, between 0 and 1.
        shard_megabytes: size of a shard in million bytes.
        workers: processes that tokenize; 0 for one per core. A short text is tokenized in this process.
        word_marks: `"jieba"` to write a file of `continuations` by Chinese words with each shard, or None.
        phrases, phrase_tags: phrases, and labels of words in an `AnnotatedText`, to mark in a file of `phrases` with
            each shard.
        inputs: JSON values that identify the source of `documents` (`Corpus.fingerprint`), so that resuming with
            another text is refused.
        report: receives a line of text if unfinished work is resumed.
        reading: JSON values that say how `documents` were read and filtered (`Corpus.settings`), so that resuming with
            others is refused.
        record: called after the last document; what it returns goes into `meta.json` as `corpus` (`Corpus.record`).
        remedy: what to do if a worker dies, as the caller's user can do it.
        read: the files that `documents` come from (`Corpus.local_files`), to show how far the work is.

    Returns:
        A report on the whole result, including what earlier starts did.

    Raises:
        UserError: the folder is not empty; no document has a token; the unfinished work is damaged or was started with
            other arguments; another process is preparing the same folder; or a worker died.
    """
    tokenizer = DocumentTokenizer(vocabulary, lower_case, word_marks, tuple(phrases), tuple(phrase_tags))
    settings = prepare_settings(tokenizer, validation_share, shard_megabytes)
    settings = {"runner": None, **settings, "inputs": inputs, "reading": dict(reading or {}) or None}
    with prepared_folder(folder, vocabulary, settings, report) as (work, check):
        if work.shards() and report:
            report(f"Resuming in {work.folder}: {work.shards():,} shards are finished.")
        preparation = _Preparation(work, tokenizer, shard_megabytes, check)
        with terminal_bar("Tokenized", "documents", read=read) as bar:
            return preparation.run(documents, validation_share, workers, record, remedy, bar)


def prepare_settings(tokenizer: DocumentTokenizer, validation_share: float, shard_megabytes: float) -> dict[str, Any]:
    """What the bytes of the shards depend on, besides the text: JSON values."""
    return {
        "vocabulary": tokenizer.vocabulary.fingerprint,
        "lower_case": tokenizer.lower_case,
        "validation_share": validation_share,
        "shard_megabytes": shard_megabytes,
        "word_marks": tokenizer.word_marks,
        "phrase_marks": tokenizer.phrase_record(),
    }


class _Preparation:
    """One pass over the documents, resuming after the finished shards of `work`."""

    def __init__(
        self,
        work: UnfinishedWork,
        tokenizer: DocumentTokenizer,
        shard_megabytes: float,
        check: Callable[[], None],
    ):
        self._work = work
        self._tokenizer = tokenizer
        self._folder = work.folder
        self._shard_megabytes = shard_megabytes
        self._check = check
        # Counts what is written or still held by the writers; `work` counts finished shards only.
        self._counts = {side: _side_counts(work.sides[side]) for side in SIDES}

    def run(
        self,
        documents: Iterable[str],
        validation_share: float,
        workers: int,
        record: Callable[[], Mapping[str, Any]] | None,
        remedy: str,
        bar: Bar,
    ) -> PrepareReport:
        report = PrepareReport()
        make_folder(self._folder)
        with ExitStack() as stack:
            writers = {side: stack.enter_context(self._writer(side)) for side in SIDES}
            batches = self._batches(split_documents(documents, validation_share, report.dropped))
            # Batches are read ahead of the work on them, so each has where the reading stood.
            placed = (((side, bar.position()), batch) for side, batch in batches)
            for (side, position), tokenized in _tokenized(self._tokenizer, placed, workers, remedy):
                self._write(side, writers[side], tokenized)
                bar.update(len(tokenized), position)
            of_all: dict[str, Any] = {"validation_share": validation_share}
            if record and (values := record()):
                of_all["corpus"] = dict(values)
            for writer in writers.values():
                writer.meta.update(of_all)
        for side, writer in writers.items():
            for count in ("documents", "sentences", "tokens", "unknown_tokens"):
                getattr(report, count)[side] = writer.meta[count]
            if "phrase_tokens" in writer.meta:
                report.phrase_tokens[side] = writer.meta["phrase_tokens"]
        if not report.documents.total():
            raise UserError(NO_DOCUMENTS)
        report.empty_sentences = sum(counts["empty_sentences"] for counts in self._counts.values())
        if empty := sum(counts["empty_documents"] for counts in self._counts.values()):
            report.dropped[NO_TOKEN] = empty
        return report

    def _writer(self, side: str) -> ShardWriter:
        progress = self._work.sides[side]
        return ShardWriter(
            join(self._folder, side),
            self._tokenizer.vocabulary,
            self._tokenizer.lower_case,
            self._shard_megabytes,
            self._tokenizer.word_marks,
            self._tokenizer.phrase_record(),
            progress.get("meta"),
        )

    def _batches(self, documents: Iterable[tuple[str, bool]]) -> Iterator[tuple[str, list[str]]]:
        """(side, documents of that side) with about `BATCH_CHARACTERS` each, without the finished documents."""
        finished = {side: counts["documents"] for side, counts in self._counts.items()}
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

    def _write(self, side: str, writer: ShardWriter, tokenized: TokenizedDocuments) -> None:
        counts = self._counts[side]
        finished = writer.add_documents(tokenized)
        if finished:
            _add(counts, tokenized.part(0, finished))
            self._work.sides[side] = {"meta": writer.meta, **counts}
            self._check()
            self._work.save()
        _add(counts, tokenized.part(finished, len(tokenized)))


def _side_counts(progress: dict[str, Any]) -> dict[str, int]:
    return {key: progress.get(key, 0) for key in ("documents", "empty_sentences", "empty_documents")}


def _add(counts: dict[str, int], tokenized: TokenizedDocuments) -> None:
    counts["documents"] += len(tokenized)
    counts["empty_sentences"] += int(tokenized.empty_sentences.sum())
    counts["empty_documents"] += int((tokenized.document_lengths == 0).sum())


def _tokenized(
    tokenizer: DocumentTokenizer, batches: Iterator[tuple[Tag, list[str]]], workers: int, remedy: str
) -> Iterator[tuple[Tag, TokenizedDocuments]]:
    """(tag, tokenized documents) of each batch, in order."""
    workers = workers or all_cores()
    first = list(islice(batches, _BATCHES_WORTH_PROCESSES))
    batches = chain(first, batches)
    if workers > 1 and len(first) == _BATCHES_WORTH_PROCESSES:
        yield from map_in_processes(tokenizer, batches, workers, remedy)
    else:
        yield from ((tag, tokenizer(batch)) for tag, batch in batches)
