"""Reads documents from users' corpora: text, tables, archives or TFDS data sets."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from keras_bert.config.corpus import SKIP, CorpusConfig
from keras_bert.config.pretraining import DATA_SETS, TFDS_PREFIX
from keras_bert.core import files, settings
from keras_bert.core.errors import UserError
from keras_bert.core.patterns import reached
from keras_bert.core.terminal_bar import Bar, terminal_bar
from keras_bert.data.corpus import formats
from keras_bert.data.corpus.corpus_report import LONGEST_DOCUMENT, CorpusReport
from keras_bert.data.corpus.filters import DocumentFilters
from keras_bert.data.corpus.formats import conllu_documents, plain_documents
from keras_bert.data.corpus.pages import article, mediawiki_documents, warc_documents, wiki_documents
from keras_bert.data.corpus.repeated_spans import RepeatedSpans, remove_repeated_spans
from keras_bert.data.corpus.text_lines import (
    Unreadable,
    beginning,
    binary,
    decoded_document,
    decoded_lines,
    read_chunks,
    stripped_document,
    until_damage,
)
from keras_bert.data.tables.hub_data import local_file
from keras_bert.data.tables.rows import BrokenRow, Reading
from keras_bert.data.tables.tables import file_rows, open_tfds_text, table_files
from keras_bert.text.sentences import divide_text

# Formats whose lines before any damage are kept, even if the last document is incomplete.
_LINES = {formats.PLAIN, formats.WIKI_EXTRACTOR, formats.CONLLU}


class Corpus:
    """Text in files or TFDS data sets, which can be read any number of times.

    Attributes:
        paths: the files and `tfds:` entries in reading order.
        report: the report on the latest reading, complete once that has ended.
    """

    def __init__(self, entries: Iterable[str], config: CorpusConfig | None = None):
        """`entries`: `tfds:NAME[/CONFIG][:SPLIT]` or sources of `table_files`. Raises `UserError` if one is missing."""
        groups = ([entry] if is_tfds(entry) else table_files(entry)[1] for entry in entries)
        self.paths = list(dict.fromkeys(path for group in groups for path in group))
        self.config = config or CorpusConfig()
        self.report = CorpusReport()
        self._filters = DocumentFilters(self.config.filters)
        self._spans: RepeatedSpans | None = None

    def documents(self, shown: str = "") -> Iterator[str]:
        """Iterates over the documents from the start, after a `check` of all files; see `read_documents`.

        With `filters.repeated_spans`, the first call reads the text twice. `shown`: the label of a progress bar; by
        default there is none.
        """
        self.check()
        self.report = CorpusReport()
        clean = self.config.filters.repeated_spans
        documents = self._without_repeated_spans(self.report) if clean else self._read(self.report)
        return iter(self._bar(shown, documents)) if shown else documents

    def require_without(self, *others: str | None) -> None:
        """Raises `UserError` if one of these files, such as a vocabulary, is part of the corpus; None is ignored."""
        paths = {files.real(path) for path in self.paths}
        for other in others:
            if other and files.real(other) in paths:
                raise UserError(
                    f"{other}: needs to be no part of the text. Received: a file that is read as text too. Move it, or "
                    "give files of text without it."
                )

    def local_files(self) -> list[str]:
        """The paths that are opened; [] if the corpus has TFDS data sets, which are not read as files."""
        return [] if any(map(is_tfds, self.paths)) else list(map(local_file, self.paths))

    def _bar(self, what: str, documents: Iterator[str]) -> Bar:
        return terminal_bar(what, "documents", over=documents, read=self.local_files())

    def check(self) -> None:
        """Raises `UserError` if the start of a file is not text, or a table lacks the column `config.text`."""
        for entry in filter(is_tfds, self.paths):
            open_tfds_text(entry, text=self.config.text)
        files.map_paths(self._check, [path for path in self.paths if not is_tfds(path)])

    def _check(self, path: str) -> None:
        try:
            kind, chunks = _open(path, self.config)
            if kind not in _LINES:
                next(_documents(path, kind, chunks, self.config, CorpusReport()), None)
        except Unreadable:
            pass  # Reading will put it in the report.

    def fingerprint(self) -> list[list[Any]]:
        """`[path, size, mark]` for each path, to notice changed text without reading all of it.

        The mark is from `files.content_mark`. A `tfds:` entry has `[name, size]`.
        """
        return files.map_paths(_fingerprint, self.paths)

    def settings(self) -> dict[str, Any]:
        """How the text is read and filtered; see `reading_settings`."""
        return reading_settings(self.config)

    def record(self) -> dict[str, Any]:
        """The non-default settings and the nonzero drop counts of the latest reading, for `meta.json`."""
        values = {"settings": self.settings(), **self.report.counts()}
        return {key: value for key, value in values.items() if value}

    def _read(self, report: CorpusReport) -> Iterator[str]:
        return read_documents(self.paths, report, self.config, self._filters)

    def _without_repeated_spans(self, report: CorpusReport) -> Iterator[str]:
        filters = self.config.filters
        if self._spans is None:
            spans = RepeatedSpans(filters.repeated_spans)
            for document in self._bar("Compared", self._read(CorpusReport())):
                spans.add(document)
            spans.close()
            self._spans = spans
        return remove_repeated_spans(self._read(report), self._spans.starts(), filters, report)


def require_without_written(setting: str, entries: Iterable[str], written: Iterable[str]) -> None:
    """Raises `UserError` if a file that a command writes would be part of its text, as with `.` for the text.

    Args:
        setting: what the entries were given as.
        entries: see `Corpus`.
        written: paths, which need not exist.
    """
    paths = list(map(files.real, written))
    for entry in entries:
        if not entry.startswith(DATA_SETS) and (own := reached(entry, paths)):
            raise UserError(
                f"{setting}: needs text without the files that are written. Received: {entry!r}, which takes in {own}. "
                "Give a folder or a glob without it, or another --output."
            )


def is_tfds(entry: str) -> bool:
    """Whether an entry names a TFDS data set rather than files."""
    return str(entry).startswith(TFDS_PREFIX)


def reading_settings(config: CorpusConfig) -> dict[str, Any]:
    """The non-default settings as `{dotted key: JSON value}`, without those that only a subclass of `CorpusConfig` has.

    `filters.bad_words` is the SHA-256 of the file. Raises `UserError` if it cannot be read.
    """
    given = settings.to_mapping(config)
    given = {field.name: given[field.name] for field in dataclasses.fields(CorpusConfig)}
    changed = settings.differences(settings.to_mapping(CorpusConfig()), given)
    values = {key: value for key, _, value in changed}
    path = config.filters.bad_words
    if path:
        try:
            values["filters.bad_words"] = files.sha256(path)
        except OSError as error:
            raise UserError(
                f"{path}: cannot be read ({error.strerror or error}). Give the list of bad words."
            ) from None
    return values


def read_documents(
    paths: Iterable[str],
    report: CorpusReport | None = None,
    config: CorpusConfig | None = None,
    filters: DocumentFilters | None = None,
) -> Iterator[str]:
    """Iterates over the documents of files, in order, holding one document and one block of the file in memory.

    The format is detected from the start of the file, and that of a table from its name too (see `formats`).
    Compression (.gz, .bz2, .xz, .zst) is detected from the content. Plain text has blank lines between documents; see
    `plain_documents` for books. In the result, blank lines separate the paragraphs of a document. A document of more
    than `LONGEST_DOCUMENT` characters is cut between sentences. A file that cannot be read to its end is named in the
    report; the whole lines or pages before the damage are kept.

    The documents of a file depend only on the file and `config`. `filters.repeated_spans`, which compares files, is
    left to `Corpus`.

    Args:
        paths: files, local or remote (`keras_bert.core.patterns.expand` makes them from patterns), and `tfds:` entries.
        report: filled in while reading.
        filters: the filters of `config`, if they have been made already.

    Yields:
        One string per document, without surrounding white space.

    Raises:
        UserError: TFDS cannot prepare an entry; a file is HTML, PDF or the like; a table lacks the column; a line of
            JSON or a row is broken and `config` does not skip it; or, at the end, no file held a document.
    """
    report = CorpusReport() if report is None else report
    config = config or CorpusConfig()
    filters = filters or DocumentFilters(config.filters)
    paths = list(paths)
    for path in paths:
        yield from read_source(str(path), report, config, filters)
    if not report.documents:
        raise no_documents(len(paths), report, config)


def no_documents(count: int, report: CorpusReport, config: CorpusConfig) -> UserError:
    """The error for a corpus of `count` files without any document."""
    if report.filtered:
        return UserError(
            f"The corpus: needs text. Received: {report.filtered.total():,} documents, none of which the filters keep "
            f"({', '.join(report.filtered)}). Change the filters."
        )
    reasons = [f"{path}: {reason}" for path, reason in islice(report.skipped.items(), 3)]
    files = "1 file" if count == 1 else f"{count:,} files"
    return UserError(
        f"The corpus: needs text. Received: {files} without a usable document "
        f"({'; '.join(reasons)}). Give plain text with blank lines between documents, a table with the column "
        f"{config.text!r}, or another format of docs/input.md."
    )


def read_source(
    path: str, report: CorpusReport, config: CorpusConfig, filters: DocumentFilters, must_open: bool = False
) -> Iterator[str]:
    """Iterates over the documents of one file or `tfds:` entry; see `read_documents`.

    With `must_open`, a file that the system or the store does not deliver raises `UserError` instead of being skipped,
    because with many machines this is often temporary.
    """
    before, filtered_before = report.documents, report.filtered.total()
    try:
        for document, reason in _candidates(path, config, report):
            if reason:
                report.dropped[reason] += 1
                continue
            assert document is not None
            for number, part in enumerate(divide_text(document, LONGEST_DOCUMENT)):
                report.cuts += number > 0
                filtered = filters(part)
                report.add_filtered(filtered)
                if filtered.text is not None:
                    report.documents += 1
                    yield filtered.text
    except Unreadable as problem:
        if must_open and problem.is_refused:
            raise UserError(f"{path}: {problem}. Make it readable, or leave it out.") from None
        kept = report.documents - before
        report.skipped[path] = f"{problem}; kept what comes before it, {kept:,} documents" if kept else str(problem)
    else:
        if (report.documents, report.filtered.total()) == (before, filtered_before):
            report.skipped[path] = "no document in it"


def _candidates(path: str, config: CorpusConfig, report: CorpusReport) -> Iterator[tuple[str | None, str | None]]:
    """`(document, None)` or `(anything, why it is left out)` for each document of a file or `tfds:` entry."""
    if is_tfds(path):
        return _tfds_documents(path, config)
    return _documents(path, *_open(path, config), config, report)


def _open(path: str, config: CorpusConfig) -> tuple[str, Iterator[bytes]]:
    """Return (the format of a file, an iterator over its blocks). Raises `Unreadable`."""
    start, chunks = beginning(read_chunks(local_file(path)))
    if not start:
        raise Unreadable("empty")
    kind = formats.TABLE if config.format else formats.format_of(path, start)
    if b"\0" in start and kind in _LINES:
        raise binary(start)
    return kind, chunks


def _documents(
    path: str, kind: str, chunks: Iterator[bytes], config: CorpusConfig, report: CorpusReport
) -> Iterator[tuple[str | None, str | None]]:
    match kind:
        case formats.TABLE:
            return _table_documents(path, chunks, config, report)
        case formats.MEDIAWIKI:
            return mediawiki_documents(chunks)
        case formats.WARC:
            return warc_documents(chunks, path)
    return _line_documents(path, kind, chunks, report)


def _table_documents(
    path: str, chunks: Iterator[bytes], config: CorpusConfig, report: CorpusReport
) -> Iterator[tuple[str | None, str | None]]:
    skip = report.add_broken_line if config.broken_lines == SKIP else None
    reading = Reading((config.text,), format=config.format, options="--text COLUMN (data.text)", skip=skip)
    try:
        for row in file_rows(path, chunks, reading):
            [cell] = row.cells
            if isinstance(cell, bytes):
                yield decoded_document(cell)
            elif cell is None:
                yield None, "empty"
            elif problem := _why_no_text(cell, config.text):
                message = f"{row.place}: needs text. Received: {problem}, {cell!r:.60}. Name its column with"
                reading.broken(problem, row.place, f"{message} {reading.options}.")
            else:
                yield stripped_document(cell)
    except BrokenRow as error:
        raise UserError(f"{error} Or give --broken-lines skip (data.broken_lines: skip) to count such rows.") from None


def _why_no_text(cell: object, column: str) -> str | None:
    """Why a cell holds no text that can be encoded; None if it does."""
    if not isinstance(cell, str):
        return f"{column!r} is not text"
    try:
        cell.encode("utf-8")
    except UnicodeEncodeError:
        return "text with half a surrogate pair"
    return None


def _line_documents(
    path: str, kind: str, chunks: Iterator[bytes], report: CorpusReport
) -> Iterator[tuple[str | None, str | None]]:
    damage: list[Unreadable] = []
    lines = until_damage(decoded_lines(chunks), damage)
    if kind == formats.WIKI_EXTRACTOR:
        yield from wiki_documents(lines)
    elif kind == formats.CONLLU:
        yield from ((document, None) for document in conllu_documents(lines, report))
    else:
        documents, is_book = plain_documents(lines, report)
        if is_book:
            report.books.append(path)
        yield from ((document, None) for document in documents)
    if damage:
        raise damage[0]


def _tfds_documents(entry: str, config: CorpusConfig) -> Iterator[tuple[str | None, str | None]]:
    source = open_tfds_text(entry, text=config.text)
    documents = map(decoded_document, source.dataset().as_numpy_iterator())
    if not source.has_headings:
        return documents
    return ((text, problem) if problem else article((text or "").split("\n")) for text, problem in documents)


def _fingerprint(path: str) -> list[Any]:
    if is_tfds(path):
        text = open_tfds_text(path)
        return [text.name, text.size]
    local = local_file(path)
    return [str(path), files.size(local), files.content_mark(local)]
