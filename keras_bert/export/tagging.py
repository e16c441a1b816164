"""Signatures of a model that labels words."""

import tensorflow as tf

from keras_bert.config.heads import FeatureTaggingConfig, TokenClassificationConfig
from keras_bert.export.network import Network
from keras_bert.export.signature import Signature
from keras_bert.export.text_inputs import TextInputs, token_signature
from keras_bert.inputs.segments import padded_rows
from keras_bert.inputs.word_windows import TextWords, given_words, split_texts, word_windows

WORDS = "words"


def tagging_signatures(
    head: TokenClassificationConfig, text_inputs: TextInputs, network: Network
) -> dict[str, Signature]:
    """`serving_default` on strings, `words` on pre-split words, `tokens` on the encoder's inputs.

    Outputs of `serving_default` and `words`: `labels` string, `scores` float32 (the probability of the label), `starts`
    and `ends` int32 (offsets in the text in code points; for pre-split words, as if joined by single spaces), all
    [batch, words], padded with "" and 0; `num_words` int32 [batch]. Outputs of `tokens`: `labels` string and `scores`
    float32 [batch, seq], `logits` float32 [batch, seq, labels].

    Args:
        head: the labels; a `FeatureTaggingConfig` for a tagger over features.
        text_inputs: makes the model's inputs.
        network: the network of a `BertForTokenClassification` or a `BertFeatureTagger`.
    """
    names = tf.constant(list(head.labels))

    def logits_of(inputs: dict[str, tf.Tensor]) -> tf.Tensor:
        if isinstance(head, FeatureTaggingConfig):
            return network.run(lambda model: model(inputs)["logits"])
        states = network.encoded(inputs)["sequence_output"]
        return network.run(lambda model: model.classifier(states))

    def best(logits: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        return tf.gather(names, tf.argmax(logits, axis=-1)), tf.reduce_max(tf.nn.softmax(logits), axis=-1)

    def answer_words(found: TextWords) -> dict[str, tf.Tensor]:
        windows = word_windows(found.words, text_inputs.reading.max_length - 2)
        logits = logits_of(padded_rows([windows.spans], text_inputs.vocabulary, text_inputs.lengths))
        labels, scores = best(tf.gather_nd(logits, tf.stack([windows.window, windows.column], axis=1)))
        return {
            "labels": found.by_text(labels, ""),
            "scores": found.by_text(scores, 0.0),
            "starts": found.by_text(found.starts, 0),
            "ends": found.by_text(found.ends, 0),
            "num_words": found.counts,
        }

    def answer(inputs: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        logits = logits_of(inputs)
        labels, scores = best(logits)
        return {"labels": labels, "scores": scores, "logits": logits}

    return {
        "serving_default": Signature(
            lambda texts: answer_words(split_texts(text_inputs.tokenizer, texts)),
            (tf.TensorSpec([None], tf.string, name="text"),),
        ),
        WORDS: Signature(
            lambda words: answer_words(given_words(text_inputs.tokenizer, words)),
            (tf.TensorSpec([None, None], tf.string, name=WORDS),),
        ),
        "tokens": token_signature(text_inputs, answer),
    }
