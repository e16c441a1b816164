"""Texts with two spans: WiC's and WSC's, from SuperGLUE's files and TensorFlow Datasets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from keras_bert.core.errors import UserError
from keras_bert.data.tables.rows import Row
from keras_bert.data.tables.tables import read_table
from keras_bert.tasks.labels import BadCell, LabelReader, bad_cell_at, check_text, is_whole
from keras_bert.tasks.sources import Source, TfdsSource, split_file
from keras_bert.tasks.span_pairs.task import WSC, SpanPairTask

_WIC_COLUMNS = ("sentence1", "sentence2", "start1", "end1", "start2", "end2")
_WSC_TARGET = ("span1_index", "span1_text", "span2_index", "span2_text")
_WORD = re.compile(r"\S+")

Span = tuple[int, int]  # (start, end) in code points; the end is exclusive.


class SpanPair(NamedTuple):
    """One example.

    Attributes:
        place: the line or the example, for messages.
        texts: one or two texts.
        spans: the two spans, both in the text, or one in each text of a pair.
        label: the id of its label; None if hidden.
        number: its number in a submission; None if it has none.
    """

    place: str
    texts: tuple[str, ...]
    spans: tuple[Span, Span]
    label: int | None
    number: Any


class SpanPairReader:
    """Iterates over the examples of one split.

    Attributes:
        origin: the file or data set, for messages.
        notes: what looks odd in the rows read so far, one line each.

    Raises:
        UserError: the examples cannot be read; also while iterating, naming the line.
    """

    def __init__(self, task: SpanPairTask, split: str, source: Source, labels: bool = True):
        self._task, self._split = task, task.splits[split]
        self._labels = LabelReader(task) if labels and self._split.labelled is not False else None
        self.notes: list[str] = []
        self._is_wsc = task.texts == WSC.texts
        if isinstance(source, TfdsSource):
            self.origin, self._rows = _tfds_rows(task, split, source, self._is_wsc)
        else:
            self.origin = split_file(task, split, source)
            wanted = ("text", "target") if self._is_wsc else _WIC_COLUMNS
            self._rows = read_table(self.origin, wanted, ("label", "idx"), format="jsonl", optional_in_rows=True)

    def __iter__(self) -> Iterator[SpanPair]:
        first: SpanPair | None = None
        for row in self._rows:
            with bad_cell_at(row.place):
                pair = self._pair(row)
            first = first or pair
            if (pair.label is None) != (first.label is None):
                unlabelled = pair if pair.label is None else first
                raise UserError(f"{unlabelled.place}: needs a label, as other rows have. Received: none.")
            yield pair
        if first is None:
            raise UserError(f"{self.origin}: needs at least one example. Received: none.")

    def _pair(self, row: Row) -> SpanPair:
        *cells, label, number = row.cells
        if self._is_wsc:
            text = check_text(cells[0])
            spans = [self._words(row.place, text, cells[1], which) for which in (1, 2)]
            texts: tuple[str, ...] = (text,)
        else:
            first, second, *places = cells
            texts = (check_text(first), check_text(second))
            spans = [_span(texts[which], places[2 * which], places[2 * which + 1], which + 1) for which in (0, 1)]
        is_read = label is not None or self._split.labelled
        found = self._labels.read(label) if self._labels and is_read else None
        return SpanPair(row.place, texts, (spans[0], spans[1]), found, number)  # type: ignore[arg-type]

    def _words(self, place: str, text: str, target: object, which: int) -> Span:
        """The span of WSC that begins at a given word: its text there or, if the text differs, as many words."""
        values = target if isinstance(target, dict) else {}
        index, wanted = values.get(f"span{which}_index"), values.get(f"span{which}_text")
        words, matches = check_text(wanted, f"a text span{which}_text").split(), list(_WORD.finditer(text))
        if not words or not is_whole(index) or not 0 <= index <= len(matches) - len(words):
            raise BadCell(
                f"needs span{which}_index, the number of a word from 0, with the words of span{which}_text from there "
                f"on in its text of {len(matches)} words. Received: {index!r} and {wanted!r:.60}"
            )
        start, end = matches[index].start(), matches[index + len(words) - 1].end()
        # Leave out other characters of these words, such as a comma.
        found = re.compile(r"\s+".join(map(re.escape, words)), re.IGNORECASE).search(text, start, end)
        if not found and not self.notes:
            self.notes.append(
                f"{place}: span{which}_text {wanted!r:.60} is {text[start:end]!r:.60} in the text; the text's own "
                "words are used. Further differences are not reported."
            )
        return found.span() if found else (start, end)


def _span(text: str, start: object, end: object, which: int) -> Span:
    if not is_whole(start) or not is_whole(end) or not 0 <= start < end <= len(text) or not text[start:end].strip():
        raise BadCell(
            f"needs start{which} and end{which}, the places of a word in the {len(text)} characters of "
            f"sentence{which}. Received: {start!r} and {end!r}"
        )
    return start, end


def _tfds_rows(task: SpanPairTask, split: str, source: TfdsSource, is_wsc: bool) -> tuple[str, Iterable[Row]]:
    """(the origin, the rows in the form of a file's)."""
    assert task.tfds is not None
    table, name = source.table(task.tfds.name), str(task.splits[split].tfds)
    columns = ("text", *_WSC_TARGET) if is_wsc else _WIC_COLUMNS
    rows: Iterable[Row] = table.examples(name, (*columns, "label", "idx"), "idx")
    if is_wsc:
        rows = (
            row._replace(cells=(row.cells[0], dict(zip(_WSC_TARGET, row.cells[1:])), *row.cells[-2:])) for row in rows
        )
    return f"{table.name} {name}", rows


def columns_of(pairs: Sequence[SpanPair]) -> tuple[list[list[str]], list[list[int]], list[list[int]]]:
    """(one or two lists of texts; the starts and the ends of their two spans, [examples, 2] each)."""
    texts = [list(column) for column in zip(*(pair.texts for pair in pairs))]
    starts, ends = ([[span[end] for span in pair.spans] for pair in pairs] for end in (0, 1))
    return texts, starts, ends
