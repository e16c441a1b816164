"""The report on reading a corpus: how many documents were read, and what was left out and why."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keras_bert.data.corpus.filters import Filtered

LONGEST_DOCUMENT = 1_000_000  # In characters. Longer documents are cut, so that memory stays bounded.
_UNITS = {"citation_markers": "markers", "repeated_spans": "sentences"}


@dataclass
class CorpusReport:
    """The result of reading a corpus: how many documents were read, and what was left out and why.

    Attributes:
        documents: how many documents were read and kept.
        cuts: how often a document was cut in two, because it was longer than `LONGEST_DOCUMENT`.
        dropped: documents left out for other reasons than a filter, counted by reason.
        skipped: {file: why it was not read, or not beyond a damaged place}.
        books: plain-text files in which many paragraphs were joined into one document.
        broken_lines: broken lines and rows of tables that were skipped, counted by reason.
        first_broken: {reason: file and line of the first one}.
        filtered: documents left out, counted by filter.
        lines: how many lines the filters looked at.
        removed: lines (for `citation_markers`: markers, for `repeated_spans`: sentences) removed, counted by filter.
    """

    documents: int = 0
    cuts: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    skipped: dict[str, str] = field(default_factory=dict)
    books: list[str] = field(default_factory=list)
    broken_lines: Counter[str] = field(default_factory=Counter)
    first_broken: dict[str, str] = field(default_factory=dict)
    filtered: Counter[str] = field(default_factory=Counter)
    lines: int = 0
    removed: Counter[str] = field(default_factory=Counter)

    def add_broken_line(self, reason: str, where: str) -> None:
        """Counts a broken line; `where` names its file and line."""
        self.broken_lines[reason] += 1
        self.first_broken.setdefault(reason, where)

    def add_filtered(self, filtered: Filtered) -> None:
        """Adds the counts of a filtered document."""
        self.lines += filtered.lines
        self.removed.update(filtered.removed)
        if filtered.dropped_by:
            self.filtered[filtered.dropped_by] += 1

    def add(self, other: CorpusReport) -> None:
        """Adds the report on the files that follow in the corpus."""
        self.documents += other.documents
        self.cuts += other.cuts
        self.lines += other.lines
        self.books += other.books
        self.skipped.update(other.skipped)
        for name in ("dropped", "broken_lines", "filtered", "removed"):
            getattr(self, name).update(getattr(other, name))
        self.first_broken = {**other.first_broken, **self.first_broken}

    def counts(self) -> dict[str, Any]:
        """Nonzero counts of what was dropped, for `meta.json`."""
        names = ("cuts", "dropped", "broken_lines", "filtered", "lines", "removed")
        values = {name: getattr(self, name) for name in names}
        return {
            name: dict(sorted(value.items())) if isinstance(value, Counter) else value
            for name, value in values.items()
            if value
        }

    def __str__(self) -> str:
        lines = [f"dropped: {count:,} documents ({reason})" for reason, count in sorted(self.dropped.items())]
        if self.cuts:
            lines.append(
                f"cut: documents of over {LONGEST_DOCUMENT:,} characters, {self.cuts:,} times, between sentences"
            )
        lines += [
            f"skipped: {count:,} broken lines ({reason}), the first {self.first_broken[reason]}"
            for reason, count in sorted(self.broken_lines.items())
        ]
        seen = self.documents + self.filtered.total()
        lines += [
            f"filtered: {count:,} documents ({name}), {count / seen:.1%} of all"
            for name, count in sorted(self.filtered.items())
        ]
        for name, count in sorted(self.removed.items()):
            unit = _UNITS.get(name, "lines")
            share = f", {count / self.lines:.1%} of all" if unit == "lines" else ""
            lines.append(f"filtered: {count:,} {unit} ({name}){share}")
        lines += [f"skipped: {path} ({reason})" for path, reason in self.skipped.items()]
        if self.books:
            lines.append(f"read as books, paragraphs joined: {len(self.books):,} files, the first {self.books[0]}")
        return "\n".join(lines)
