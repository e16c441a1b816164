"""The arithmetic of a pretraining step against figures counted by hand."""

from tiny import tiny_config

from keras_bert.config.recipes import find_config
from keras_bert.models.bert.config import BertConfig
from keras_bert.models.sizes import training_flops


def test_a_small_model_counted_product_by_product():
    """H 16, F 32, V 60, 2 layers, 12 tokens, 3 predictions."""
    projection = 2 * 12 * 16 * 16  # Query, key, value and output: four a layer.
    scores = context = 2 * 12 * 12 * 16
    feed_forward = 2 * 12 * 16 * 32  # In, and as much out.
    masked_lm = 2 * 3 * 16 * 16 + 2 * 3 * 16 * 60
    next_sentence = 2 * 16 * 16 + 2 * 16 * 2
    forward = 2 * (4 * projection + scores + context + 2 * feed_forward) + masked_lm + next_sentence
    assert forward == 124_608
    assert training_flops(tiny_config(), 12, 3) == 3 * 124_608


def test_base_is_near_the_rule_of_six_flops_a_parameter_and_token():
    """85.1 million parameters in the layers' kernels; attention and the masked LM come on top."""
    config = BertConfig.from_file(find_config("models", "base"))
    counted = training_flops(config, 128, 20)
    assert 1.0 < counted / (6 * 12 * 12 * 768**2 * 128) < 1.1
    # The vocabulary's product for 20 positions instead of 128 is what the masked positions save.
    assert training_flops(config, 128, 128) - counted == 3 * 108 * (2 * 768**2 + 2 * 768 * 30522)
