"""From documents to shards: duplicates out, a validation share held out, sentences split, pieces looked up."""

import os
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import chain, islice

from keras_bert.data.document_tokenizer import DocumentTokenizer
from keras_bert.data.held_out import SIDES, TRAIN, VALIDATION, split_documents
from keras_bert.data.shards import ShardWriter
from keras_bert.data.tokenizer_processes import all_cores, map_in_processes
from keras_bert.data.unfinished import UnfinishedWork
from keras_bert.errors import UserError
from keras_bert.files import (
    exists,
    is_file,
    is_folder,
    is_remote,
    join,
    list_folder,
    make_folder,
    move_folder,
    remove_file,
    remove_folder,
)
from keras_bert.locks import NAME, require_own, take_folder
from keras_bert.terminal_bar import terminal_bar

VOCABULARY_FILE = "vocab.txt"
_BATCH_CHARACTERS = 250_000
_BATCHES_WORTH_PROCESSES = 32  # Starting a process costs as much as tokenising some 8 MB.
_NO_TOKEN = "no token in it"


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
        read = self.documents.total() + self.dropped.total()
        lines = [
            f"{side}: {self.documents[side]:,} documents, {self.sentences[side]:,} sentences, "
            f"{self.tokens[side]:,} tokens"
            for side in SIDES
        ]
        lines.append(f"[UNK]: {self.unknown_share:.3%} of all tokens")
        lines += [
            f"dropped: {count:,} documents ({reason}), {count / read:.1%} of all"
            for reason, count in sorted(self.dropped.items())
        ]
        return "\n".join(lines)


def prepare(
    documents, vocabulary, lower_case, folder, validation_share,
    shard_megabytes=16.0, workers=0, word_marks=None, inputs=(), report=None,
):  # fmt: skip
    """Writes `folder/train` and `folder/validation`, shard folders in the format of `shard_format`, and `vocab.txt`.

    Streams: memory is a few batches, one shard of each side and at most 32 bytes a document. The same documents in
    the same order give the same bytes, whatever the number of workers. The work is done in `folder.partial`, which
    takes its name at the end; in a store, which would copy every file to rename it, in `folder`, where `vocab.txt`
    comes last. What was killed goes on from its finished shards when it is started again with the same arguments: the text is read again, but tokenised from there only. A single document is written to train;
    validation then is empty.

    Args:
        documents: iterable of strings, one document each, paragraphs separated by blank lines; the same at every start.
        vocabulary: the `Vocabulary`.
        lower_case: as for `WordPieceTokenizer`.
        folder: path that does not exist or is empty.
        validation_share: share of documents held out, between 0 and 1.
        shard_megabytes: size of a shard in million bytes.
        workers: processes that tokenise; 0 for one a core. Little text is tokenised in this one.
        word_marks: `"jieba"` for a file of `continuations` by Chinese words with each shard, or None.
        inputs: plain lists that tell what `documents` are read from (`Corpus.fingerprint`), so that another text is
            refused where an unfinished work goes on.
        report: takes a line of text where an unfinished work goes on.

    Returns:
        `PrepareReport`, of the whole.

    Raises:
        UserError: the folder holds something, no document has a token, an unfinished work was begun with other
            arguments or is damaged, another process prepares the same folder, or a worker died.
    """
    folder = os.fspath(folder).rstrip("/")
    settings = {
        "vocabulary": vocabulary.fingerprint,
        "lower_case": bool(lower_case),
        "validation_share": validation_share,
        "shard_megabytes": shard_megabytes,
        "word_marks": word_marks,
        "inputs": inputs,
    }
    tokenizer = DocumentTokenizer(vocabulary, lower_case, word_marks)
    report = report or (lambda line: None)
    # Beside the folder, which takes its name at the end; a store's has it from the beginning and may be a bucket.
    lock = take_folder(folder, join(folder, NAME) if is_remote(folder) else f"{folder}{NAME}", report)
    try:
        return _prepare(documents, tokenizer, folder, settings, workers, report, lambda: require_own(lock, folder))
    finally:
        lock.release()


def _prepare(documents, tokenizer, folder, settings, workers, report, check):
    # A kill between the new name and the end of the work leaves its record in the finished folder.
    in_place = is_remote(folder) or UnfinishedWork.is_in(folder)
    partial = folder if in_place else f"{folder}.partial"
    if not (in_place and UnfinishedWork.is_in(folder)):
        _check_is_empty(folder)
    work = UnfinishedWork(partial, settings)
    if work.shards():
        report(f"Going on in {partial}: {work.shards():,} shards are finished.")
    else:
        _clear(partial)
        if in_place:
            work.save()  # Else a folder whose first shard was cut short would be taken for someone else's.
    try:
        preparation = _Preparation(work, tokenizer, partial, settings["shard_megabytes"], check)
        prepared = preparation.run(documents, settings["validation_share"], workers)
        tokenizer.vocabulary.to_file(join(partial, VOCABULARY_FILE))
    except BaseException:
        if not work.shards():
            _clear(partial)
        raise
    if not in_place:
        move_folder(partial, folder, last=VOCABULARY_FILE)
    UnfinishedWork.remove(folder)
    return prepared


def _clear(folder):
    """Removes what is in a folder, but for its lock, and then the folder where it is empty."""
    for name in list_folder(folder):
        if name != NAME:
            path = join(folder, name)
            remove_folder(path) if is_folder(path) else remove_file(path)
    if not list_folder(folder):
        remove_folder(folder)


def is_prepared(path):
    """Whether `prepare` wrote this folder, to its end."""
    return all(exists(join(path, side, "meta.json")) for side in SIDES) and exists(join(path, VOCABULARY_FILE))


def _check_is_empty(folder):
    if is_file(folder):
        raise UserError(f"{folder}: needs a folder. Received: a file. Give another path.")
    names = [name for name in list_folder(folder) if name != NAME]
    if names:
        raise UserError(
            f"{folder}: needs a folder that is new or empty. Received: one that holds {names[0]}. "
            "Remove it or give another."
        )


class _Preparation:
    """One run over the documents, from the finished shards of `work` on."""

    def __init__(self, work, tokenizer, folder, shard_megabytes, check):
        self._work = work
        self._tokenizer = tokenizer
        self._folder = folder
        self._shard_megabytes = shard_megabytes
        self._check = check
        # What is written or waits in the writers; `work` holds the same counts of finished shards alone.
        self._counts = {side: _side_counts(work.sides[side]) for side in SIDES}

    def run(self, documents, validation_share, workers):
        report = PrepareReport()
        make_folder(self._folder)
        with ExitStack() as stack:
            writers = {side: stack.enter_context(self._writer(side)) for side in SIDES}
            bar = stack.enter_context(terminal_bar("Tokenised", "documents"))
            batches = self._batches(split_documents(documents, validation_share, report.dropped))
            for side, tokenized in _tokenized(self._tokenizer, batches, workers):
                self._write(side, writers[side], tokenized)
                bar.update(len(tokenized))
        for side, writer in writers.items():
            for count in ("documents", "sentences", "tokens", "unknown_tokens"):
                getattr(report, count)[side] = writer.meta[count]
        if not report.documents.total():
            raise UserError("The corpus: needs documents with text. Received: none. Check the files given.")
        report.empty_sentences = sum(counts["empty_sentences"] for counts in self._counts.values())
        if empty := sum(counts["empty_documents"] for counts in self._counts.values()):
            report.dropped[_NO_TOKEN] = empty
        return report

    def _writer(self, side):
        progress = self._work.sides[side]
        return ShardWriter(
            join(self._folder, side),
            self._tokenizer.vocabulary,
            self._tokenizer.lower_case,
            self._shard_megabytes,
            self._tokenizer.word_marks,
            progress.get("meta"),
        )

    def _batches(self, documents):
        """(side, documents of that side), of about `_BATCH_CHARACTERS` together, finished ones left out."""
        finished = {side: counts["documents"] for side, counts in self._counts.items()}
        batches, characters = {side: [] for side in SIDES}, Counter()
        for document, held_out in documents:
            side = VALIDATION if held_out else TRAIN
            if finished[side]:
                finished[side] -= 1
                continue
            batches[side].append(document)
            characters[side] += len(document)
            if characters[side] >= _BATCH_CHARACTERS:
                yield side, batches[side]
                batches[side], characters[side] = [], 0
        yield from ((side, batch) for side, batch in batches.items() if batch)

    def _write(self, side, writer, tokenized):
        counts = self._counts[side]
        finished = writer.add_documents(tokenized)
        if finished:
            _add(counts, tokenized.part(0, finished))
            self._work.sides[side] = {"meta": writer.meta, **counts}
            self._check()
            self._work.save()
        _add(counts, tokenized.part(finished, len(tokenized)))


def _side_counts(progress):
    return {key: progress.get(key, 0) for key in ("documents", "empty_sentences", "empty_documents")}


def _add(counts, tokenized):
    counts["documents"] += len(tokenized)
    counts["empty_sentences"] += int(tokenized.empty_sentences.sum())
    counts["empty_documents"] += int((tokenized.document_lengths == 0).sum())


def _tokenized(tokenizer, batches, workers):
    """(side, `TokenizedDocuments`) of each batch, in order."""
    workers = workers or all_cores()
    first = list(islice(batches, _BATCHES_WORTH_PROCESSES))
    batches = chain(first, batches)
    if workers > 1 and len(first) == _BATCHES_WORTH_PROCESSES:
        yield from map_in_processes(tokenizer, batches, workers)
    else:
        yield from ((side, tokenizer(batch)) for side, batch in batches)
