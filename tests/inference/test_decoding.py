"""Greedy search and beam search in the graph."""

import json
import os

import numpy as np
import pytest
import tensorflow as tf
from goldens import Golden, load_arrays, under
from plain_decoding import Table, plain_answers

import keras_bert
from keras_bert.config.inference import DecodingConfig
from keras_bert.inference.decoding.decode import decode
from keras_bert.inference.decoding.steps import DecoderTokens

TOKENS = DecoderTokens(start=2, end=2, padding=1)


@pytest.fixture(scope="module")
def arrays(goldens):
    return load_arrays(os.path.join(goldens, "decoding.npz"))


@pytest.mark.parity
def test_answers_and_scores_are_those_of_transformers_generate(arrays):
    """For every case of tools/goldens/of_decoding.py: beams, penalties, ways to stop, forbidden and forced tokens."""
    table = Table(arrays["of_tokens"], arrays["of_rows"], arrays["of_places"])
    _require_answers(arrays, lambda tokens, settings: decode(table.step, table.cache(), tokens, settings))


@pytest.mark.parity
def test_a_bart_answers_as_transformers_generate_does(arrays, goldens):
    """With padding on the encoder's side, and both sides' caches following their beams."""
    golden = Golden(os.path.join(goldens, "encoder_decoders"), "bart")
    model = keras_bert.load(golden.path).model
    inputs = {name: golden.batch[name] for name in ("input_word_ids", "input_mask")}
    inputs["input_type_ids"] = 0 * inputs["input_mask"]

    def answer(tokens, settings):
        return decode(model.step, model.begin(inputs, settings.max_tokens), tokens, settings)

    _require_answers(under("bart/", arrays), answer)


def _require_answers(arrays, answer):
    for number, case in enumerate(map(json.loads, arrays["cases"])):
        settings = {"max_tokens": 10, **case}
        found = answer(DecoderTokens(*settings.pop("tokens")), DecodingConfig(**settings))
        for name, value in found._asdict().items():
            expected = arrays[f"{number}/{name}"]
            np.testing.assert_allclose(value, expected, rtol=2e-6, atol=1e-5, err_msg=f"{name}, {case}")


@pytest.mark.parametrize(
    "settings",
    [
        {"no_repeat_ngram": 2, "min_tokens": 3},
        {"beams": 6, "n_best": 6, "length_penalty": 0.7, "no_repeat_ngram": 2},
        {"beams": 3, "n_best": 2, "length_penalty": -0.7, "early_stopping": "never", "min_tokens": 2, "last_token": 2},
        {"beams": 3, "n_best": 3, "length_penalty": 1.3, "early_stopping": True, "first_token": 4},
    ],
    ids=str,
)
def test_answers_are_those_of_a_plain_search_of_each_row(settings):
    settings = DecodingConfig(8, **settings)
    for seed in range(2):
        table = Table.random(seed)
        found = decode(table.step, table.cache(), TOKENS, settings)
        answers = zip(*(value.numpy() for value in found), strict=True)
        for row in range(table.rows):
            for score, ids in plain_answers(table, row, TOKENS, settings):
                given, given_score = next(answers)
                assert given.tolist() == ids + [1] * (8 - len(ids))
                assert given_score == pytest.approx(score, rel=1e-5)
        assert next(answers, None) is None


def _same(logits, ids):
    return tf.tile(tf.constant(logits)[None], [len(ids), 1])


@pytest.mark.parametrize("beams", [1, 3])
def test_nothing_is_computed_after_every_row_has_ended(beams):
    places = []

    def step(ids, place, cache):
        places.append(int(place))
        return _same([0.0, 0.0, 9.0 if place == 4 else 0.0, 1.0], ids), cache

    settings = DecodingConfig(50, beams=beams, min_tokens=4, early_stopping=True)
    found = decode(step, tf.zeros([2]), TOKENS, settings)
    assert found.ids.numpy()[:, 3:6].tolist() == [[3, 2, 1]] * 2
    assert places == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"min_tokens": 51}, r"min_tokens: needs at most max_tokens \(50\). Received: 51."),
        ({"beams": 2, "n_best": 3}, r"n_best: needs at most beams \(2\). Received: 3."),
        ({"early_stopping": "ever"}, "early_stopping: needs true, false or never. Received: 'ever'."),
    ],
)
def test_settings_that_contradict_each_other_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        DecodingConfig(**settings)


@pytest.mark.usefixtures("rewritten_graphs")  # Last, because graphs stay rewritten in this file.
@pytest.mark.parametrize("settings", [{"beams": 3, "n_best": 2}, {}], ids=str)
def test_a_graph_of_any_number_of_rows_answers_as_eager_code_does(settings, tmp_path):
    table, settings = Table.random(5), DecodingConfig(8, **settings)

    class Served(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.int32)], autograph=False)
        def answer(self, rows):
            cache = {"row": rows, "before": tf.zeros_like(rows)}
            return decode(table.step, cache, TOKENS, settings)._asdict()

    tf.saved_model.save(Served(), str(tmp_path))
    served = tf.saved_model.load(str(tmp_path)).answer(table.cache()["row"])
    for name, value in decode(table.step, table.cache(), TOKENS, settings)._asdict().items():
        np.testing.assert_allclose(served[name], value, rtol=1e-6, err_msg=name)
