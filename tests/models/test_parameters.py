"""The parameter table and the arithmetic of a step against published counts, figures by hand and the built model."""

import pytest
from command_line import give
from tiny import tiny_config

from keras_bert.config.recipes import find_config
from keras_bert.models import sizes
from keras_bert.models.bert.config import BertConfig
from keras_bert.models.pretraining import BertForPreTraining
from keras_bert.models.sizes import training_flops, unread_flops

# Google's sizes: with the pooler, without heads.
PUBLISHED = {
    "tiny": 4_385_920,
    "mini": 11_170_560,
    "small": 28_763_648,
    "medium": 41_373_184,
    "base": 109_482_240,
    "large": 335_141_888,
    "base-chinese": 102_267_648,
    "base-multilingual": 177_853_440,
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_counts(name):
    config = BertConfig.from_file(find_config("models", name))
    assert sizes.total(sizes.encoder_parts(config)) == PUBLISHED[name]


@pytest.mark.parametrize("changes", [{}, {"num_hidden_layers": 3, "intermediate_size": 20, "type_vocab_size": 3}])
def test_every_part_is_what_the_model_holds(changes):
    """Every part of the table has its tensor, and every tensor is counted in a part."""
    config = tiny_config(**changes)
    model = BertForPreTraining(config)

    def held(*fragments, without=()):
        return sum(
            variable.value.numpy().size
            for variable in model.weights
            if all(part in variable.path for part in fragments) and not any(part in variable.path for part in without)
        )

    held_by_part = {
        "word embeddings": held("word_embeddings"),
        "position embeddings": held("position_embeddings"),
        "segment embeddings": held("token_type_embeddings"),
        "embedding LayerNorm": held("embeddings/layer_norm"),
        "attention kernels": held("/attention/", "kernel"),
        "attention biases": held("/attention/", "bias"),
        "attention LayerNorm": held("attention_layer_norm"),
        "feed-forward kernels": held("block_", "kernel", without=["/attention/"]),
        "feed-forward biases": held("block_", "bias", without=["/attention/"]),
        "feed-forward LayerNorm": held("output_layer_norm"),
        "pooler": held("pooler"),
        "masked LM transform": held("mlm_head/transform"),
        "masked LM LayerNorm": held("mlm_head/layer_norm"),
        "masked LM output bias": held("mlm_head/bias"),
        "next sentence head": held("nsp_head"),
    }
    parts = [*sizes.encoder_parts(config), *sizes.head_parts(config)]
    assert {part.name: part.count for part in parts} == held_by_part
    assert sizes.total(sizes.encoder_parts(config)) == model.encoder.count_params()
    assert sizes.total(parts) == model.count_params()


def test_inspect_prints_every_total_of_base():
    result = give("inspect", "base")
    for figure in ("109,482,240", "110,106,428", "108,808,704", "107,974,656", "23,440,896", "28,311,552", "673,536"):
        assert figure in result.output


@pytest.mark.parametrize(("name", "count"), [("roberta-base", 124_697_433), ("xlm-roberta-base", 278_295_186)])
def test_inspect_counts_no_pooler_where_pretraining_has_none(name, count):
    """The numbers of transformers' RobertaForMaskedLM and XLMRobertaForMaskedLM."""
    result = give("inspect", name)
    assert f"encoder and pretraining heads, without pooler{count:>32,}" in result.output


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


def test_the_last_block_is_counted_where_it_is_read():
    """Of 12 tokens, 3 predictions and [CLS] are read; 8 need no query, output, scores, context or feed-forward."""
    unread = 8 * (2 * 2 * 16 * 16 + 2 * 2 * 12 * 16 + 2 * 2 * 16 * 32)
    assert unread_flops(tiny_config(), 12, 4) == 3 * unread
    assert unread_flops(tiny_config(), 12, 12) == 0


def test_base_is_near_the_rule_of_six_flops_a_parameter_and_token():
    """85.1 million parameters in the layers' kernels; attention and the masked LM come on top."""
    config = BertConfig.from_file(find_config("models", "base"))
    counted = training_flops(config, 128, 20)
    assert 1.0 < counted / (6 * 12 * 12 * 768**2 * 128) < 1.1
    # The vocabulary's product for 20 positions instead of 128 is what the masked positions save.
    assert training_flops(config, 128, 128) - counted == 3 * 108 * (2 * 768**2 + 2 * 768 * 30522)
