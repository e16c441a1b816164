"""What was read from a file, as JSON: workers write it, and the report on the whole corpus is put together from it."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from keras_bert.data.corpus.corpus_report import CorpusReport
from keras_bert.data.pipeline.pieces import Piece


def reading_record(blocks: int, report: CorpusReport) -> dict[str, Any]:
    """The record of a file that has so many blocks."""
    return {"blocks": blocks, "report": vars(report)}


def one_per_file(read: Iterable[tuple[tuple, dict[str, Any]]]) -> list[dict[str, Any]]:
    """The record of each file in the order of the corpus, from `(piece, record)` of all pieces.

    All pieces of a file have the same record.
    """
    by_source = {Piece(*piece).source: record for piece, record in read}
    return [by_source[source] for source in sorted(by_source)]


def report_of(records: Iterable[dict[str, Any]]) -> CorpusReport:
    """The report on the reading of a corpus, from the record of each of its files in order."""
    report = CorpusReport()
    for record in records:
        of_file = CorpusReport()
        for name, value in record["report"].items():
            setattr(of_file, name, Counter(value) if isinstance(getattr(of_file, name), Counter) else value)
        report.add(of_file)
    return report
