"""Signatures of a model that classifies two spans of a text or of a pair of texts."""

import tensorflow as tf

from keras_bert.config.heads import SpanPairConfig
from keras_bert.export.classification import class_outputs
from keras_bert.export.network import Network
from keras_bert.export.signature import Signature
from keras_bert.export.text_inputs import TOKENS, TextInputs, without_invalid
from keras_bert.inputs.segments import padded_rows
from keras_bert.inputs.span_columns import span_rows

STARTS, ENDS = "starts", "ends"
SPAN_STARTS, SPAN_ENDS = "span_starts", "span_ends"


def span_pair_signatures(head: SpanPairConfig, text_inputs: TextInputs, network: Network) -> dict[str, Signature]:
    """`serving_default` on strings, `tokens` on the encoder's inputs, each with the places of the spans.

    Inputs of `serving_default`: `text` [batch], or `text_a` and `text_b` for a span in each; `starts` and `ends` int32
    [batch, 2], the offsets of the two spans in their texts, in code points. `tokens` has `span_starts` and `span_ends`
    int32 [batch, 2], columns of the row. All ends are exclusive.

    Outputs: those of `classification_signatures` for a single label. A row with a span that is empty, or not wholly
    within `max_length`, is answered with NaN and "".

    Args:
        head: the labels.
        text_inputs: makes the model's inputs.
        network: the network of a `BertForSpanPairs`.
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
        "serving_default": Signature(answer_texts, (*texts, *_places(STARTS, ENDS))),
        "tokens": Signature(answer_tokens, (*TOKENS, *_places(SPAN_STARTS, SPAN_ENDS))),
    }


def _places(*names: str) -> tuple[tf.TensorSpec, ...]:
    return tuple(tf.TensorSpec([None, 2], tf.int32, name=name) for name in names)
