"""Masked LM with Keras' `fit`: the masks and the step of pretraining."""

import numpy as np
import pytest
import tensorflow as tf
from tiny import VOCABULARY, random_weights, without_dropout

import keras_bert
from keras_bert.config.objectives import MaskingConfig
from keras_bert.core.errors import UserError
from keras_bert.data.batches.masking import DynamicMasking
from keras_bert.inference.preprocessing import Preprocessor
from keras_bert.models.pretraining import BertForPreTraining, PretrainingObjective
from keras_bert.text.tokenizer_files import TokenizerSettings
from keras_bert.text.tokenizers import make_tokenizer
from keras_bert.training.step import Step

TEXTS = ["w1 w2 w3 w4 w5 w6", "w7 w8", "", "w1 w2 w3 " * 9, "w9 w10 w11 w12"]


def preprocessor(length="fixed"):
    return Preprocessor(make_tokenizer(VOCABULARY, TokenizerSettings()), 16, length=length)


def dataset(texts=TEXTS):
    return tf.data.Dataset.from_tensor_slices(texts)


def make_model():
    model = BertForPreTraining(without_dropout())
    random_weights(model)
    return model


@pytest.mark.parametrize("unit", ["token", "word"])
def test_the_masks_are_those_of_dynamic_masking(unit):
    masked_lm = keras_bert.MaskedLM(preprocessor(), 0.3, unit, seed=7)
    batches = list(masked_lm.batches(dataset(), 5, epochs=2))
    inputs = preprocessor()(TEXTS)
    expected = DynamicMasking(MaskingConfig(share=0.3, unit=unit), 5, VOCABULARY, 7)
    lengths = tf.reduce_sum(inputs["input_mask"], axis=1)
    for epoch, (received, ids, weights) in enumerate(batches):
        wanted = expected(inputs["input_word_ids"], lengths, tf.range(5, dtype=tf.int64), epoch)
        wanted |= {name: inputs[name] for name in ("input_mask", "input_type_ids")}
        for name, values in {**received, "masked_lm_ids": ids, "masked_lm_weights": weights}.items():
            np.testing.assert_array_equal(values, wanted[name])
    assert np.any(batches[0][0]["masked_lm_positions"] != batches[1][0]["masked_lm_positions"])


def test_batches_come_without_a_warning(monkeypatch, caplog):
    """AutoGraph would ask users to report its failure to the TensorFlow team."""
    monkeypatch.setattr(tf.get_logger(), "handlers", [caplog.handler])
    next(iter(keras_bert.MaskedLM(preprocessor()).batches(dataset(), 5)))
    assert not caplog.records


@pytest.mark.slow
def test_batches_do_not_change_the_masks_and_pairs_have_two_segments():
    masked_lm = keras_bert.MaskedLM(preprocessor())
    whole = [np.concatenate(values) for values in zip(*(ids for _, ids, _ in masked_lm.batches(dataset(), 5)))]
    parts = [ids for _, batch, _ in masked_lm.batches(dataset(), 2) for ids in batch]
    np.testing.assert_array_equal(np.ravel(whole), np.ravel(parts))
    pairs = tf.data.Dataset.from_tensor_slices((TEXTS, TEXTS[::-1]))
    ((inputs, _, _),) = masked_lm.batches(pairs, 8)
    assert inputs["input_type_ids"].numpy().max() == 1


@pytest.mark.slow
def test_a_step_of_fit_is_the_step_of_pretraining():
    masked_lm = keras_bert.MaskedLM(preprocessor(), 0.3)
    fitted, stepped = make_model(), make_model()
    rate = keras_bert.WarmupDecay(1e-2, warmup_steps=2, total_steps=10)
    model = masked_lm.model(fitted)
    model.compile(keras_bert.AdamW(rate, global_clipnorm=0.5), masked_lm.loss(), jit_compile=False)
    history = model.fit(masked_lm.batches(dataset(), 5), verbose=0).history

    masked_lm.model(stepped)  # Freezes what is not trained.
    objective = PretrainingObjective(VOCABULARY.mask_id, terms=("mlm",))
    step = Step(tf.distribute.get_strategy(), stepped, objective, keras_bert.AdamW(rate), 0.5)
    step.optimizer.build(stepped.trainable_variables)
    ((inputs, ids, weights),) = masked_lm.batches(dataset(), 5)
    batch = {**inputs, "masked_lm_ids": ids, "masked_lm_weights": weights}
    results = step.train(batch, tf.constant(0, tf.int64))
    assert float(results["grad_norm"]) > 0.5
    assert int(model.optimizer.iterations) == 1
    loss = results["sums"]["mlm"]["loss"] / results["counts"]["mlm"]
    np.testing.assert_allclose(history["loss"][0], loss, rtol=1e-5)
    initial = make_model().get_weights()
    assert any(np.any(before != after) for before, after in zip(initial, fitted.get_weights(), strict=True))
    for received, expected in zip(fitted.get_weights(), stepped.get_weights(), strict=True):
        np.testing.assert_allclose(received, expected, rtol=0, atol=1e-5)


@pytest.mark.slow
def test_the_loss_falls():
    masked_lm = keras_bert.MaskedLM(preprocessor())
    model = masked_lm.model(BertForPreTraining(without_dropout()))
    model.compile(
        keras_bert.AdamW(keras_bert.WarmupDecay(1e-2, warmup_steps=2, total_steps=60)),
        masked_lm.loss(),
        jit_compile=False,
    )
    texts = dataset(["w1 w2 w3 w4 w5 w6 w7 w8"] * 8)
    losses = model.fit(masked_lm.batches(texts, 8, epochs=None), epochs=3, steps_per_epoch=20, verbose=0).history
    assert losses["loss"][-1] < 0.7 * losses["loss"][0]


def test_what_cannot_be_trained_is_refused():
    with pytest.raises(ValueError, match="length='fixed'"):
        keras_bert.MaskedLM(preprocessor("longest"))
    with pytest.raises(ValueError, match="preprocessor: needs a Preprocessor. Received: 'WordPieceTokenizer'."):
        keras_bert.MaskedLM(preprocessor().tokenizer)
    with pytest.raises(ValueError, match="token, word, ngram, span"):
        keras_bert.MaskedLM(preprocessor(), unit="phrase")
    with pytest.raises(UserError, match="steps_per_epoch"):
        keras_bert.MaskedLM(preprocessor()).batches(dataset().filter(lambda text: True), 2)
    with pytest.raises(ValueError, match="texts: needs a Dataset. Received: 'list'."):
        keras_bert.MaskedLM(preprocessor()).batches(["a text"], 2)
    with pytest.raises(ValueError, match="batch_size: needs a value above 0. Received: 0."):
        keras_bert.MaskedLM(preprocessor()).batches(dataset(), 0)
    with pytest.raises(ValueError, match="epochs: needs a whole number. Received: 'x'."):
        keras_bert.MaskedLM(preprocessor()).batches(dataset(), 2, "x")
    with pytest.raises(ValueError, match="share: needs a finite number. Received: 'a'."):
        keras_bert.MaskedLM(preprocessor(), share="a")
    with pytest.raises(ValueError, match="seed: needs a whole number from 0 to 4294967295. Received: -1."):
        keras_bert.MaskedLM(preprocessor(), seed=-1)
    with pytest.raises(UserError, match="BertEncoder"):
        keras_bert.MaskedLM(preprocessor()).model(keras_bert.BertEncoder(without_dropout()))
