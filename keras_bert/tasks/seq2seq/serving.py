"""How a model with a decoder writes texts, and its signatures."""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from keras_bert.config.finetuning import Seq2SeqConfig
from keras_bert.config.inference import DecodingConfig
from keras_bert.config.reading import read_own_field
from keras_bert.core.files import join
from keras_bert.export.network import Network
from keras_bert.export.signature import Signature, TextInputs, signatures_of_texts_and_tokens
from keras_bert.inference.decoding.decode import decode
from keras_bert.inference.decoding.steps import Decoded, DecoderTokens
from keras_bert.models.encoder_decoder import EncoderDecoder
from keras_bert.text.detokenizer import Detokenizer
from keras_bert.text.vocabulary import Vocabulary


def written(
    model: EncoderDecoder, inputs: Mapping[str, tf.Tensor], settings: Seq2SeqConfig, vocabulary: Vocabulary, n_best: int
) -> Decoded:
    """The tokens of the best texts for each row of the encoder's inputs; those of one row are side by side.

    Args:
        settings: how texts are written.
        n_best: how many texts to write for each row, at most as many as beams.
    """
    config: Any = model.config
    tokens = DecoderTokens(config.decoder_start_token_id, vocabulary.sep_id, vocabulary.pad_id)
    decoding = DecodingConfig(
        max_tokens=min(settings.max_target_length, config.max_position_embeddings),
        min_tokens=settings.min_target_length,
        beams=settings.beams,
        length_penalty=settings.length_penalty,
        early_stopping=settings.early_stopping,
        no_repeat_ngram=settings.no_repeat_ngram,
        n_best=n_best,
        first_token=getattr(config, "forced_bos_token_id", None),  # Not every kind forces tokens.
        last_token=getattr(config, "forced_eos_token_id", None),
    )
    return decode(model.step, model.begin(dict(inputs), decoding.max_tokens), tokens, decoding)


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
