"""Signatures of a model that writes texts."""

from typing import Any

import tensorflow as tf

from keras_bert.config.finetuning import Seq2SeqConfig
from keras_bert.config.reading import read_own_field
from keras_bert.core.files import join
from keras_bert.export.network import Network
from keras_bert.export.signature import Signature, TextInputs, signatures_of_texts_and_tokens
from keras_bert.tasks.seq2seq.writing import written
from keras_bert.text.detokenizer import Detokenizer


def seq2seq_signatures(bert: Any, text_inputs: TextInputs, network: Network, n_best: int) -> dict[str, Signature]:
    """`serving_default` on strings, `tokens` on the encoder's inputs.

    Outputs: `written` string [batch, texts], the texts of each row, best first; and their `scores` float32, as in
    `WrittenText`. `tokens` gives `ids` int32 [batch, texts, tokens] too, padded after the end.

    Args:
        n_best: the most texts for a row; never more than there are beams.
    """
    settings = own_settings(bert.folder)
    n_best = min(n_best, settings.beams)
    detokenizer = Detokenizer(text_inputs.tokenizer)

    def answer(inputs: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        found = network.run(lambda model: written(model, inputs, settings, text_inputs.vocabulary, n_best))
        ids = tf.reshape(found.ids, [-1, n_best, found.ids.shape[1]])
        return {"written": detokenizer(ids), "scores": tf.reshape(found.scores, tf.shape(ids)[:2]), "ids": ids}

    def answer_texts(texts: tf.Tensor) -> dict[str, tf.Tensor]:
        answers = answer(text_inputs.from_texts(texts))
        return {name: answers[name] for name in ("written", "scores")}

    return signatures_of_texts_and_tokens(text_inputs, answer_texts, answer)


def own_settings(folder: Any) -> Seq2SeqConfig:
    """The settings with which a `ModelFolder`'s model was fine-tuned. Raises `UserError` for an invalid value."""
    return read_own_field(Seq2SeqConfig, folder.other_fields, join(folder.path, "config.json"))
