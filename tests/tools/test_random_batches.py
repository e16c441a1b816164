"""Benchmarks compare models on batches that are the same on both sides."""

import numpy as np
import pytest
from keras import ops

import keras_bert
from keras_bert.layers.relative_attention import hidden_by_order
from tools.random_batches import for_transformers, make_batch, predictions_of

SIZES = {"vocab_size": 1100, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}


def batches(config):
    batch = make_batch(config, 3, 20, predictions_of(config, 20))
    return batch, for_transformers(config, batch)


def test_transformers_hides_the_tokens_that_we_hide():
    """Otherwise one side would predict tokens that it has read."""
    batch, theirs = batches(keras_bert.XlnetConfig(**SIZES))
    hidden = ops.convert_to_numpy(hidden_by_order(batch["permutation_ranks"]))
    np.testing.assert_array_equal(theirs["perm_mask"], hidden)
    np.testing.assert_array_equal(theirs["target_mapping"].argmax(-1), batch["masked_lm_positions"])
    predicted = np.take_along_axis(batch["permutation_ranks"], batch["masked_lm_positions"], axis=1)
    assert (predicted >= 0).all() and (batch["permutation_ranks"] >= 0).sum() == predicted.size


def test_transformers_predicts_the_masked_tokens_that_we_predict():
    batch, theirs = batches(keras_bert.BertConfig(**SIZES))
    rows, places = np.nonzero(theirs["labels"] != -100)
    np.testing.assert_array_equal(places.reshape(3, -1), batch["masked_lm_positions"])
    np.testing.assert_array_equal(theirs["labels"][rows, places].reshape(3, -1), batch["masked_lm_ids"])
    np.testing.assert_array_equal(theirs["next_sentence_label"], batch["next_sentence_labels"])


@pytest.mark.parametrize(("kind", "targets"), [("BartConfig", 20), ("T5Config", 6)])
def test_decoders_predict_as_many_tokens_as_in_pretraining(kind, targets):
    """A T5 predicts only spans, which is cheaper; a BART predicts the whole text."""
    config = getattr(keras_bert, kind)(**SIZES, **({"decoder_attention_heads": 2} if kind == "BartConfig" else {}))
    batch, theirs = batches(config)
    assert batch["target_ids"].shape == theirs["labels"].shape == (3, targets)
    np.testing.assert_array_equal(batch["decoder_input_ids"][:, 1:], batch["target_ids"][:, :-1])
    assert (batch["decoder_input_ids"][:, 0] == config.decoder_start_token_id).all()


def test_a_generator_is_given_the_draws_of_its_replacements():
    """A benchmark of an ELECTRA used to end in a traceback; transformers has nothing to compare it with."""
    config = keras_bert.ElectraConfig(**SIZES)
    batch = make_batch(config, 3, 20, predictions_of(config, 20))
    draws = batch["replacement_draws"]
    assert draws.shape == batch["masked_lm_ids"].shape and 0 <= draws.min() < draws.max() < 1
    with pytest.raises(SystemExit, match="no class of a generator"):
        for_transformers(config, batch)
