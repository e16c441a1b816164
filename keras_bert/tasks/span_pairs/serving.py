"""Signatures of a model that classifies two spans of a text or of a pair of texts."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import tensorflow as tf

from keras_bert.config.reading import TRUNCATE
from keras_bert.export.network import Network
from keras_bert.export.signature import TOKENS, Signature, TextInputs, without_invalid
from keras_bert.inputs.rows import PieceSpans, padded_rows, segment_starts
from keras_bert.inputs.windows import fit_rows
from keras_bert.tasks.classification.serving import class_outputs
from keras_bert.tasks.span_pairs.task import SpanPairConfig
from keras_bert.text.tokenizers import Tokenizer


class SpanRows(NamedTuple):
    """Rows with two spans each.

    Attributes:
        segments: the pieces of each row, truncated.
        starts, ends: int32 [batch, 2], the first column of each span and one past the last, special tokens included.
        is_whole: bool [batch], whether both spans have pieces, all of them in the row.
    """

    segments: Sequence[PieceSpans]
    starts: tf.Tensor
    ends: tf.Tensor
    is_whole: tf.Tensor


def span_rows(
    tokenizer: Tokenizer, texts: Sequence[tf.Tensor], starts: tf.Tensor, ends: tf.Tensor, max_length: int
) -> SpanRows:
    """Lays out texts with two spans, or pairs of texts with a span in each.

    A span covers every piece that shares a character with it.

    Args:
        texts: strings [batch], of one or two columns.
        starts, ends: int32 [batch, 2], where the spans are in their texts, in code points, with exclusive ends.
        max_length: the maximum number of tokens of a row; longer texts are truncated at the end.
    """
    pieces = [tokenizer.tokenize_with_offsets(column) for column in texts]
    segments, _ = fit_rows(
        [PieceSpans.of(ids) for ids, _, _ in pieces], max_length, TRUNCATE, None, tokenizer.vocabulary
    )
    before = segment_starts(segments, tokenizer.vocabulary)
    places = []
    for number in (0, 1):
        of_text = min(number, len(texts) - 1)
        _, piece_starts, piece_ends = pieces[of_text]
        first = _counts(piece_ends, starts[:, number], tf.less_equal)
        last = _counts(piece_starts, ends[:, number], tf.less)
        start = before[of_text]
        is_inside = (starts[:, number] >= 0) & (last <= segments[of_text].lengths)
        places.append((start + first, start + last, (first < last) & is_inside))
    firsts, lasts, is_whole = (tf.stack(values, axis=1) for values in zip(*places))
    return SpanRows(segments, firsts, lasts, tf.reduce_all(is_whole, axis=1))


def _counts(values: tf.RaggedTensor, limits: tf.Tensor, compare: Callable[..., tf.Tensor]) -> tf.Tensor:
    """int32 [batch]: for how many values of each row `compare(value, limit of the row)` holds."""
    rows = values.value_rowids()
    is_counted = tf.cast(compare(values.values, tf.gather(limits, rows)), tf.int32)
    return tf.math.unsorted_segment_sum(is_counted, rows, tf.size(limits))


STARTS, ENDS = "starts", "ends"
SPAN_STARTS, SPAN_ENDS = "span_starts", "span_ends"


def span_pair_signatures(head: SpanPairConfig, text_inputs: TextInputs, network: Network) -> dict[str, Signature]:
    """`serving_default` on strings, `tokens` on the encoder's inputs, each with the positions of the spans.

    Inputs of `serving_default`: `text` [batch], or `text_a` and `text_b` for a span in each; `starts` and `ends` int32
    [batch, 2], the offsets of the two spans in their texts, in code points. `tokens` has `span_starts` and `span_ends`
    int32 [batch, 2], columns of the row. All ends are exclusive.

    Outputs: those of `classification_signatures` for a single label. A row with a span that is empty, begins before the
    text, or is not wholly within `max_length`, is answered with NaN and "".
    """

    def answer(inputs: dict[str, tf.Tensor], is_valid: tf.Tensor) -> dict[str, tf.Tensor]:
        outputs = network.encoded(inputs)
        logits = network.run(lambda model: model.classify(outputs, inputs))
        return without_invalid(class_outputs(head, logits), is_valid)

    def answer_texts(*columns: tf.Tensor) -> dict[str, tf.Tensor]:
        *texts, starts, ends = columns
        found = span_rows(text_inputs.tokenizer, texts, starts, ends, text_inputs.reading.max_length)
        inputs = padded_rows(found.segments, text_inputs.vocabulary, text_inputs.lengths)
        return answer({**inputs, SPAN_STARTS: found.starts, SPAN_ENDS: found.ends}, found.is_whole)

    def answer_tokens(*columns: tf.Tensor) -> dict[str, tf.Tensor]:
        *tokens, starts, ends = columns
        inputs, is_valid = text_inputs.from_tokens(*tokens)
        lengths = tf.reduce_sum(tf.cast(tf.not_equal(tokens[1], 0), tf.int32), axis=1)
        is_span = (starts >= 0) & (starts < ends) & (ends <= tf.expand_dims(lengths, 1))
        return answer({**inputs, SPAN_STARTS: starts, SPAN_ENDS: ends}, is_valid & tf.reduce_all(is_span, axis=1))

    names = ("text_a", "text_b") if text_inputs.reading.pair else ("text",)
    texts = tuple(tf.TensorSpec([None], tf.string, name=name) for name in names)
    return {
        # In the warm-up, both spans are the first word: its first character, or its token.
        "serving_default": Signature(
            answer_texts,
            (*texts, *_places(STARTS, ENDS)),
            {STARTS: lambda word, length: [0, 0], ENDS: lambda word, length: [1, 1]},
        ),
        "tokens": Signature(
            answer_tokens,
            (*TOKENS, *_places(SPAN_STARTS, SPAN_ENDS)),
            {SPAN_STARTS: lambda word, length: [1, 1], SPAN_ENDS: lambda word, length: [2, 2]},
        ),
    }


def _places(*names: str) -> tuple[tf.TensorSpec, ...]:
    return tuple(tf.TensorSpec([None, 2], tf.int32, name=name) for name in names)
