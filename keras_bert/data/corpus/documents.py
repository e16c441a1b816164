"""Reads documents from users' corpora: plain text, WikiExtractor's files, JSON lines or a TFDS data set."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import TYPE_CHECKING

from keras_bert import files
from keras_bert.config.pretraining import TFDS_PREFIX
from keras_bert.data.corpus.plain_text import plain_documents
from keras_bert.data.corpus.text_lines import Unreadable, read_lines
from keras_bert.data.corpus.wikipedia import wiki_documents
from keras_bert.errors import UserError
from keras_bert.globs import expand

if TYPE_CHECKING:
    from keras_bert.data.corpus.tfds_text import TfdsText


@dataclass
class CorpusReport:
    """The result of reading a corpus: how many documents were read, and what was left out and why.

    Attributes:
        documents: how many documents were read.
        dropped: documents left out, counted by reason.
        skipped: {file: why it, or the rest of it after a damaged place, was not read}.
        books: plain-text files in which many paragraphs were joined into one document.
    """

    documents: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    skipped: dict[str, str] = field(default_factory=dict)
    books: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [f"dropped: {count:,} documents ({reason})" for reason, count in sorted(self.dropped.items())]
        lines += [f"skipped: {path} ({reason})" for path, reason in self.skipped.items()]
        if self.books:
            lines.append(f"read as books, paragraphs joined: {len(self.books):,} files, the first {self.books[0]}")
        return "\n".join(lines)


class Corpus:
    """Text in files or TFDS data sets, which can be read any number of times.

    Attributes:
        paths: the files and `tfds:` entries in reading order.
        report: on the latest reading, complete once that has ended.
    """

    paths: list[str]
    report: CorpusReport

    def __init__(self, entries: Iterable[str]):
        """`entries`: files, folders, globs and `tfds:NAME[/CONFIG][:SPLIT]`. Raises `UserError` if one is missing."""
        groups = ([entry] if is_tfds(entry) else expand([entry]) for entry in entries)
        self.paths = list(dict.fromkeys(chain.from_iterable(groups)))
        self.report = CorpusReport()

    def documents(self) -> Iterator[str]:
        """Iterates over the documents, from the first; see `read_documents`."""
        self.report = CorpusReport()
        return read_documents(self.paths, self.report)

    def fingerprint(self) -> list[list[str | int | None]]:
        """`[path, size]` for each path, to notice changed text without reading it."""
        return [list(_fingerprint(path)) for path in self.paths]


def is_tfds(entry: str) -> bool:
    """Whether an entry names a TFDS data set rather than files."""
    return str(entry).startswith(TFDS_PREFIX)


def read_documents(paths: Iterable[str], report: CorpusReport | None = None) -> Iterator[str]:
    """Iterates over the documents of files, in order, holding one document and one block of the file in memory.

    The format is detected from the start of the file: `<doc` is WikiExtractor's, `{` is JSON lines with a `text`
    field, anything else is plain text. Compression (.gz, .bz2, .xz) is detected from the content too. Plain text has
    blank lines between documents; see `plain_documents` for books. In the result, blank lines separate the paragraphs
    of a document. A file that cannot be read to its end is named in the report; documents before the damage are kept.

    Args:
        paths: files, local or remote (`keras_bert.globs.expand` makes them from patterns), and `tfds:` entries.
        report: filled in while reading.

    Yields:
        One string per document, without surrounding white space.

    Raises:
        UserError: TFDS cannot prepare an entry; or, at the end, no file held a document.
    """
    report = CorpusReport() if report is None else report
    paths = list(paths)
    for path in paths:
        before = report.documents
        try:
            for document, reason in _candidates(path, report):
                if reason:
                    report.dropped[reason] += 1
                else:
                    assert document is not None
                    report.documents += 1
                    yield document
        except Unreadable as problem:
            report.skipped[str(path)] = str(problem)
        else:
            if report.documents == before:
                report.skipped[str(path)] = "no document in it"
    if not report.documents:
        reasons = [f"{path}: {reason}" for path, reason in islice(report.skipped.items(), 3)]
        raise UserError(
            f"The corpus: needs text. Received: {len(paths)} files without a usable document "
            f"({'; '.join(reasons)}). Give plain text with blank lines between documents, "
            "WikiExtractor's files or JSON lines with a `text` field."
        )


def _candidates(path: str, report: CorpusReport) -> Iterator[tuple[str | None, str | None]]:
    """`(document, None)` or `(anything, the reason to leave it out)`."""
    if is_tfds(path):
        return _tfds_documents(path)
    lines = read_lines(path)
    first = next((line for line in lines if line.strip()), None)
    if first is None:
        raise Unreadable("empty")
    lines = chain([first], lines)
    if first.lstrip().startswith("<doc "):
        return wiki_documents(lines)
    if first.lstrip().startswith("{"):
        return _json_documents(lines)
    documents, is_book = plain_documents(lines)
    if is_book:
        report.books.append(str(path))
    return ((document, None) for document in documents)


def _json_documents(lines: Iterable[str]) -> Iterator[tuple[str | None, str | None]]:
    for line in lines:
        if not line.strip():
            continue
        try:
            text = json.loads(line)["text"].strip()
            text.encode("utf-8")
        except UnicodeEncodeError:
            yield None, "text with half a surrogate pair"
        except (KeyError, TypeError, AttributeError):
            yield None, "no text field"
        except (ValueError, RecursionError):
            yield None, "a line that is not JSON"
        else:
            yield text, None if text else "empty"


def _tfds_documents(entry: str) -> Iterator[tuple[str | None, str | None]]:
    for text in _tfds_text(entry).dataset().as_numpy_iterator():
        try:
            text = text.decode("utf-8").strip()
        except UnicodeDecodeError:
            yield None, "not UTF-8"
        else:
            yield text, None if text else "empty"


def _tfds_text(entry: str) -> TfdsText:
    from keras_bert.data.corpus.tfds_text import TfdsText  # Imports TensorFlow.

    return TfdsText(entry)


def _fingerprint(path: str) -> tuple[str, int | None]:
    if is_tfds(path):
        text = _tfds_text(path)
        return text.name, text.size
    return str(path), files.size(path)
