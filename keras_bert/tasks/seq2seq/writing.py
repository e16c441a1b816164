"""How a model with a decoder writes texts."""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from keras_bert.config.finetuning import Seq2SeqConfig
from keras_bert.config.inference import DecodingConfig
from keras_bert.inference.decoding.decode import decode
from keras_bert.inference.decoding.steps import Decoded, DecoderTokens
from keras_bert.models.encoder_decoder import EncoderDecoder
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
