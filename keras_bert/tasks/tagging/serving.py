"""Signatures of a model that labels words."""

from collections.abc import Callable, Sequence

import tensorflow as tf

from keras_bert.export.network import Network
from keras_bert.export.signature import Signature, TextInputs, signatures_of_texts_and_tokens
from keras_bert.inputs.rows import padded_rows
from keras_bert.inputs.windows import TextWords, begins_word, given_words, split_texts, word_windows
from keras_bert.tasks.tagging.crf_decoding import decode, decode_ragged

WORDS = "words"

TokenLogits = Callable[[dict[str, tf.Tensor]], tf.Tensor]
WordLabels = Callable[[TextWords], tuple[tf.Tensor, tf.Tensor]]


def word_labeller(text_inputs: TextInputs, network: Network, logits_of: TokenLogits, has_crf: bool) -> WordLabels:
    """Function (words) -> (int32 [words], their labels; float32 [words], the probabilities of these).

    The arguments are those of `tagging_signatures`.
    """

    def label(found: TextWords) -> tuple[tf.Tensor, tf.Tensor]:
        windows = word_windows(found.words, text_inputs.reading.max_length, text_inputs.vocabulary)
        inputs = padded_rows([windows.spans], text_inputs.vocabulary, text_inputs.lengths)
        logits = network.by_parts(logits_of, inputs)
        of_words = tf.gather_nd(logits, tf.stack([windows.window, windows.column], axis=1))
        if not has_crf:
            return _best(of_words)
        by_text = tf.RaggedTensor.from_row_splits(of_words, found.words.row_splits, validate=False)
        labels, marginals = decode_ragged(by_text, network.run(lambda model: model.crf.scores()))
        return labels, tf.gather(marginals, labels, batch_dims=1)

    return label


def _best(logits: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """(the most probable labels, their probabilities), [...] each."""
    return tf.argmax(logits, axis=-1, output_type=tf.int32), tf.reduce_max(tf.nn.softmax(logits), axis=-1)


def tagging_signatures(
    labels: Sequence[str], text_inputs: TextInputs, network: Network, logits_of: TokenLogits, has_crf: bool
) -> dict[str, Signature]:
    """`serving_default` on strings, `words` on pre-split words, `tokens` on the encoder's inputs.

    Outputs of `serving_default` and `words`: `labels` string, `scores` float32 (the probability of the label), `starts`
    and `ends` int32 (offsets in the text in code points; for pre-split words, as if joined by single spaces), all
    [batch, words], padded with "" and 0; `num_words` int32 [batch]. Outputs of `tokens`: `labels` string and `scores`
    float32 [batch, seq], `logits` float32 [batch, seq, labels].

    A CRF decodes the words of a text together, and the scores are marginal probabilities. In its `tokens`, a word
    begins at each token that is not special and does not continue a word (##); other tokens have the label "" and the
    score 0.

    Args:
        labels: their names, in the order of the logits.
        network: the network of a `BertForTokenClassification`, a `BertFeatureTagger` or a `BertCrfTagger`.
        logits_of: function (the encoder's inputs) -> float32 [batch, seq, labels].
        has_crf: whether the logits are the emissions of a CRF in the network.
    """
    names = tf.constant(list(labels))
    label_words = word_labeller(text_inputs, network, logits_of, has_crf)

    def answer_words(found: TextWords) -> dict[str, tf.Tensor]:
        labels, scores = label_words(found)
        return {
            "labels": found.by_text(tf.gather(names, labels), ""),
            "scores": found.by_text(scores, 0.0),
            "starts": found.by_text(found.starts, 0),
            "ends": found.by_text(found.ends, 0),
            "num_words": found.counts,
        }

    def answer(inputs: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        logits = logits_of(inputs)
        if not has_crf:
            labels, scores = _best(logits)
            return {"labels": tf.gather(names, labels), "scores": scores, "logits": logits}
        begins = begins_word(text_inputs.vocabulary, inputs["input_word_ids"]) & (inputs["input_mask"] > 0)
        labels, marginals = decode(logits, begins, network.run(lambda model: model.crf.scores()))
        scores = tf.gather(marginals, labels, batch_dims=2)
        named = tf.where(begins, tf.gather(names, labels), "")
        return {"labels": named, "scores": tf.where(begins, scores, 0.0), "logits": logits}

    return {
        **signatures_of_texts_and_tokens(
            text_inputs, lambda texts: answer_words(split_texts(text_inputs.tokenizer, texts)), answer
        ),
        WORDS: Signature(
            lambda words: answer_words(given_words(text_inputs.tokenizer, words)),
            (tf.TensorSpec([None, None], tf.string, name=WORDS),),
            {WORDS: lambda word, length: [word] * max(1, length - 2)},
        ),
    }
