"""Converts texts, or pairs of texts, into rows of tokens of bounded length."""

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from keras_bert.config.finetuning import InputConfig
from keras_bert.config.reading import ReadingConfig
from keras_bert.data.batches.token_rows import GrowingArray, TokenRows
from keras_bert.data.windows import offsets
from keras_bert.inputs.rows import PieceSpans, flat_rows
from keras_bert.inputs.windows import fit_rows
from keras_bert.text.tokenizers import Tokenizer

_TEXTS_AT_ONCE = 4096


class SequenceRows:
    """Collects rows of [CLS] text [SEP], or of [CLS] first [SEP] second [SEP], some examples at a time.

    Keeps only the tokens, in two bytes each if the vocabulary has at most 65,536.

    Args:
        input_config: the maximum length of a row, and how longer texts are handled.
    """

    def __init__(self, tokenizer: Tokenizer, input_config: InputConfig | ReadingConfig) -> None:
        self._tokenizer, self._input_config = tokenizer, input_config
        self._ids = GrowingArray(np.uint16 if len(tokenizer.vocabulary) <= 1 << 16 else np.int32)
        self._lengths, self._second_starts = GrowingArray(np.int32), GrowingArray(np.int32)
        self._examples, self._count = GrowingArray(np.int32), 0

    def add(self, texts: Sequence[Sequence[str]]) -> None:
        """Adds the rows of examples: one or two lists of texts, of equal length."""
        for begin in range(0, len(texts[0]), _TEXTS_AT_ONCE):
            self._add([column[begin : begin + _TEXTS_AT_ONCE] for column in texts])

    def _add(self, texts: Sequence[Sequence[str]]) -> None:
        input_config = self._input_config
        with tf.device("CPU"):
            columns = [PieceSpans.of(self._tokenizer(column)) for column in texts]
            vocabulary = self._tokenizer.vocabulary
            segments, examples = fit_rows(
                columns, input_config.max_length, input_config.long, input_config.stride, vocabulary
            )
            rows = flat_rows(segments, vocabulary)
        count = len(texts[0])
        self._ids.extend(rows.ids.numpy())
        self._lengths.extend(rows.lengths.numpy())
        self._second_starts.extend(rows.second_starts.numpy())
        self._examples.extend(self._count + (np.arange(count) if examples is None else examples.numpy()))
        self._count += count

    def rows(self) -> TokenRows:
        """The rows of all examples, without `extra`."""
        starts = offsets(self._lengths.array())
        last_segment = self._tokenizer.vocabulary.row_pattern.last_segment
        return TokenRows(self._ids.array(), starts, self._second_starts.array(), {}, last_segment=last_segment)

    def examples(self) -> np.ndarray:
        """The example of each row, int32 [rows]: 0, 1, …, n - 1, repeated where a long one has several rows."""
        return self._examples.array()
