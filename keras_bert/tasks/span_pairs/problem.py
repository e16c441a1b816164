"""Classifying two spans of texts as a task for fine-tuning."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import tensorflow as tf

from keras_bert.config.reading import TRUNCATE
from keras_bert.core.errors import UserError
from keras_bert.data.batches.token_rows import TokenRows, joined_rows
from keras_bert.data.windows import offsets, windows
from keras_bert.inputs.rows import flat_rows
from keras_bert.tasks.answer_files import json_line
from keras_bert.tasks.classification.answers import plain_answers, submission_lines
from keras_bert.tasks.classification.problem import TextLayout, TextRowsProblem
from keras_bert.tasks.classification.scores import predictions
from keras_bert.tasks.noise import Noise
from keras_bert.tasks.span_pairs.data import SpanPair, SpanPairReader, columns_of
from keras_bert.tasks.span_pairs.serving import SPAN_ENDS, SPAN_STARTS, span_rows
from keras_bert.tasks.span_pairs.task import SpanPairConfig, SpanPairTask
from keras_bert.tasks.task import Window


class SpanPairProblem(TextRowsProblem):
    """A `SpanPairTask`. The answers are float64 [examples, labels], the logits.

    The rows' extras hold `span_starts` and `span_ends`, int32 [examples, 2], which are columns of the row.

    Raises:
        UserError: examples are malformed, a span does not fit into a row, or settings do not fit.
    """

    long = (TRUNCATE,)

    task: SpanPairTask
    head: SpanPairConfig

    def _new_head(self) -> SpanPairConfig:
        bilstm_size = self._config.head.bilstm_size
        return SpanPairConfig(self.task.labels or (), reads_cls=self.task.reads_cls, bilstm_size=bilstm_size)

    def windows(self, split: str, labelled: bool = False) -> Iterator[Window[SpanPair]]:
        reader = SpanPairReader(self.task, split, self._source, labels=labelled)
        for pairs in windows(reader, lambda pair: sum(map(len, pair.texts))):
            yield Window(pairs, reader.origin)
        self.notes += reader.notes

    def lines(self, split: str, window: Window[SpanPair], answers: np.ndarray) -> Iterator[str]:
        """The lines of a submission or, without one, a JSON object per example, with its texts and spans."""
        if self.submission(split):
            numbers = _numbers(window.examples)
            yield from submission_lines(self.task, numbers, predictions(self.head, answers), is_json=True)
            return
        for pair, answer in zip(window.examples, plain_answers(self.head, answers), strict=True):
            row = {} if pair.number is None else {"idx": pair.number}
            yield json_line({**row, **dict(zip(self.task.texts, pair.texts)), "spans": pair.spans, **answer})

    def lay_out(self, windows: Iterable[Window[SpanPair]]) -> TextLayout:
        parts, labels, origin = [], [], ""
        for window in windows:
            pairs = [_noisy(pair, self.noise) for pair in window.examples] if self.noise else window.examples
            parts.append(self._rows_of(pairs))
            labels += [pair.label for pair in pairs]
            origin = window.origin
        rows, is_hidden = joined_rows(parts), labels[0] is None
        rows.extra["labels"] = np.zeros(len(labels), np.int32) if is_hidden else np.array(labels, np.int32)
        found = None if is_hidden else rows.extra["labels"]
        return TextLayout(rows=rows, origin=origin, examples=np.arange(len(rows), dtype=np.int32), labels=found)

    def _rows_of(self, pairs: Sequence[SpanPair]) -> TokenRows:
        """The rows of examples, with the columns of their spans."""
        texts, starts, ends = columns_of(pairs)
        longest = self._config.input.max_length
        with tf.device("CPU"):
            columns = [tf.constant(column, tf.string) for column in texts]
            found = span_rows(self._tokenizer, columns, tf.constant(starts), tf.constant(ends), longest)
            rows = flat_rows(found.segments, self._tokenizer.vocabulary)
        is_whole = found.is_whole.numpy()
        if not is_whole.all():
            pair = pairs[int(is_whole.argmin())]
            spans = " and ".join(repr(text[start:end]) for text, (start, end) in _with_texts(pair))
            raise UserError(
                f"{pair.place}: needs both spans among the first {longest} tokens, special tokens included. Received: "
                f"{spans}. Raise input.max_length."
            )
        extra = {SPAN_STARTS: found.starts.numpy(), SPAN_ENDS: found.ends.numpy()}
        last_segment = self._tokenizer.vocabulary.row_pattern.last_segment
        bounds = offsets(rows.lengths.numpy())
        return TokenRows(rows.ids.numpy(), bounds, rows.second_starts.numpy(), extra, last_segment=last_segment)


def _with_texts(pair: SpanPair) -> Iterator[tuple[str, tuple[int, int]]]:
    """(text, span) of both spans."""
    return zip(itertools.cycle(pair.texts), pair.spans)


def _noisy(pair: SpanPair, noise: Noise) -> SpanPair:
    """The example with noise in its texts; the spans move with the words they mark."""
    if len(pair.texts) == 1:
        edited = [noise.edited(pair.texts[0], pair.spans)] * 2
    else:
        edited = [noise.edited(text, [span]) for text, span in _with_texts(pair)]
    first, second = (one.span(*span) for one, span in zip(edited, pair.spans))
    return pair._replace(texts=tuple(one.text for one in edited[: len(pair.texts)]), spans=(first, second))


def _numbers(pairs: Sequence[SpanPair]) -> list[int]:
    """The numbers of the examples in a submission. Raises `UserError` if one has none."""
    for pair in pairs:
        if pair.number is None:
            raise UserError(f"{pair.place}: needs an idx to identify it in the submission. Received: none.")
    return [pair.number for pair in pairs]
