"""Decodes answers by the method that the settings choose."""

from keras_bert.config.inference import DecodingConfig
from keras_bert.inference.decoding.beams import search_with_beams
from keras_bert.inference.decoding.one_by_one import decode_one_by_one
from keras_bert.inference.decoding.steps import Cache, Decoded, DecoderTokens, Step, apart


def decode(step: Step, cache: Cache, tokens: DecoderTokens, settings: DecodingConfig) -> Decoded:
    """Decodes a model's answers for each row of a cache. Runs eagerly, in a `tf.function` and in a SavedModel.

    Stops when every row's answer has ended, and matches transformers' `generate` for the same logits.

    Args:
        step: the model; see `steps.Step`.
        cache: the cache before the first token, [rows, …], for the places 0 to `max_tokens` - 1. For beams it is
            repeated along the first axis, and reordered after each step except for tensors that the step returns
            unchanged, such as the encoder's outputs.
    """
    find = decode_one_by_one if settings.beams == 1 else search_with_beams
    return find(apart(step), cache, tokens, settings)
