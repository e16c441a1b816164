"""Signatures of a model that finds words."""

from collections.abc import Sequence

import tensorflow as tf

from keras_bert.export.network import Network
from keras_bert.export.signature import Signature, TextInputs
from keras_bert.inputs.windows import given_words
from keras_bert.tasks.tagging.serving import TokenLogits, tagging_signatures, word_labeller

# The code points for which Python's str.isspace is true.
_BLANKS = (*range(0x09, 0x0E), *range(0x1C, 0x21), 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B))
_BLANKS += (0x2028, 0x2029, 0x202F, 0x205F, 0x3000)


def segmentation_signatures(
    labels: Sequence[str], text_inputs: TextInputs, network: Network, logits_of: TokenLogits
) -> dict[str, Signature]:
    """`serving_default` on strings; `words` and `tokens` as in `tagging_signatures`, on single characters.

    Outputs of `serving_default`: `segmented` string [batch], the text with a blank between its words; `words` string,
    `scores` float32 (the lowest probability among the labels of the word's characters), `starts` and `ends` int32
    (offsets in the text in code points), all [batch, words], padded with "" and 0; `num_words` int32 [batch]. Blanks in
    the text always separate words.

    Args:
        labels: their names, in the order of the logits.
        logits_of: function (the encoder's inputs) -> float32 [batch, seq, labels], the emissions of the CRF.
    """
    label_words = word_labeller(text_inputs, network, logits_of, has_crf=True)
    begins_word = tf.constant([label in ("B", "S") for label in labels])
    blanks = tf.constant(_BLANKS, tf.int32)

    def answer(texts: tf.Tensor) -> dict[str, tf.Tensor]:
        code_points = tf.strings.unicode_decode(texts, "UTF-8", errors="ignore")
        is_blank = tf.reduce_any(tf.equal(code_points.values[:, tf.newaxis], blanks), axis=1)
        places = _places(code_points)
        after_blank = tf.concat([[True], is_blank[:-1]], axis=0)[: tf.size(is_blank)]
        kept = ~is_blank
        row_of = tf.boolean_mask(tf.cast(code_points.value_rowids(), tf.int32), kept)
        counts = tf.math.bincount(row_of, minlength=tf.shape(texts)[0], maxlength=tf.shape(texts)[0])
        characters = tf.strings.unicode_encode(tf.boolean_mask(code_points.values, kept)[:, tf.newaxis], "UTF-8")
        by_text = tf.RaggedTensor.from_row_lengths(characters, counts, validate=False)
        label_ids, scores = label_words(given_words(text_inputs.tokenizer, by_text.to_tensor("")))
        first_of_row = tf.not_equal(row_of, tf.concat([[-1], row_of[:-1]], axis=0)[: tf.size(row_of)])
        begins = tf.gather(begins_word, label_ids) | first_of_row | tf.boolean_mask(after_blank, kept)
        firsts = tf.cast(tf.where(begins)[:, 0], tf.int32)
        words = tf.strings.reduce_join(tf.RaggedTensor.from_row_starts(characters, firsts, validate=False), axis=-1)
        least = tf.reduce_min(tf.RaggedTensor.from_row_starts(scores, firsts, validate=False), axis=-1)
        word_counts = tf.math.bincount(tf.gather(row_of, firsts), minlength=tf.size(counts), maxlength=tf.size(counts))
        offsets = tf.boolean_mask(places, kept)
        lasts = tf.concat([firsts[1:], tf.shape(characters)], axis=0) - 1
        lasts = lasts[: tf.size(firsts)]

        def of_texts(values: tf.Tensor) -> tf.RaggedTensor:
            return tf.RaggedTensor.from_row_lengths(values, word_counts, validate=False)

        return {
            "segmented": tf.strings.reduce_join(of_texts(words), axis=-1, separator=" "),
            "words": of_texts(words).to_tensor(""),
            "scores": of_texts(least).to_tensor(0.0),
            "starts": of_texts(tf.gather(offsets, firsts)).to_tensor(0),
            "ends": of_texts(tf.gather(offsets, lasts) + 1).to_tensor(0),
            "num_words": word_counts,
        }

    others = tagging_signatures(labels, text_inputs, network, logits_of, has_crf=True)
    return {**others, "serving_default": Signature(answer, (tf.TensorSpec([None], tf.string, name="text"),))}


def _places(texts: tf.RaggedTensor) -> tf.Tensor:
    """int32 [values]: the index of each value in its row."""
    starts = tf.gather(texts.row_starts(), texts.value_rowids())
    return tf.cast(tf.range(tf.size(starts, tf.int64)) - starts, tf.int32)
