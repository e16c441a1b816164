"""The encoder and the pretraining model as Keras objects, and the identities of the paper."""

import functools
from typing import get_args

import keras
import numpy as np
import pytest
import tensorflow as tf
from tiny import NO_DROPOUT, SIZES, pretraining_batch, random_model, random_weights, tiny_config, without_dropout

from keras_bert.config.replacement import ReplacementConfig
from keras_bert.export.network import encode
from keras_bert.layers.dropout import dropout_key
from keras_bert.layers.encoder_block import activation
from keras_bert.layers.tensors import gather_positions
from keras_bert.models.albert.kind import AlbertConfig
from keras_bert.models.bert.config import Activation, BertConfig
from keras_bert.models.bert.encoder import BertEncoder
from keras_bert.models.distilbert.kind import DistilbertConfig
from keras_bert.models.electra.kind import ElectraConfig
from keras_bert.models.electra.pretraining import ElectraForPreTraining
from keras_bert.models.elmo.kind import ElmoConfig
from keras_bert.models.encoder_decoder import EncoderDecoder
from keras_bert.models.kind import kind_of_config
from keras_bert.models.pretraining import BertForPreTraining
from keras_bert.models.roberta_prelayernorm.kind import RobertaPreLayerNormConfig
from keras_bert.models.t5.kind import T5Config
from keras_bert.models.xlnet.encoder import XlnetEncoder
from keras_bert.models.xlnet.kind import XlnetConfig
from keras_bert.tasks.classification.network import BertForSequenceClassification
from keras_bert.tasks.seq2seq.network import BertForConditionalGeneration
from keras_bert.tasks.span_pairs.network import BertForSpanPairs

TINY = {**SIZES, **NO_DROPOUT, "num_hidden_layers": 3}

# What transformers' functions make of -2, 0.5 and 12.
ACTIVATED = {
    ("gelu", "gelu_python"): (-0.0455, 0.345731, 12.0),
    ("gelu_10",): (-0.0455, 0.345731, 10.0),
    ("gelu_new", "gelu_pytorch_tanh", "gelu_python_tanh", "gelu_fast", "gelu_accurate"): (-0.045402, 0.345714, 12.0),
    ("quick_gelu",): (-0.064341, 0.350388, 12.0),
    ("relu",): (0.0, 0.5, 12.0),
    ("relu2",): (0.0, 0.25, 144.0),
    ("relu6",): (0.0, 0.5, 6.0),
    ("leaky_relu",): (-0.02, 0.5, 12.0),
    ("silu", "swish"): (-0.238406, 0.31123, 11.999926),
    ("mish",): (-0.252501, 0.375245, 12.0),
    ("hardswish",): (-0.333333, 0.291667, 12.0),
    ("sigmoid",): (0.119203, 0.622459, 0.999994),
    ("tanh",): (-0.964028, 0.462117, 1.0),
    ("linear",): (-2.0, 0.5, 12.0),
}


@pytest.fixture(scope="module")
def model():
    return random_model()


@pytest.fixture(scope="module")
def batch():
    return pretraining_batch(tiny_config())


def test_padding_never_changes_a_real_token(model, batch):
    """The same rows cut to their own length, and with other ids under the padding, give the same vectors."""
    full = model.encoder(batch)
    scribbled = {**batch, "input_word_ids": np.where(batch["input_mask"] == 1, batch["input_word_ids"], 7)}
    other = model.encoder(scribbled)
    for row, length in enumerate(batch["input_mask"].sum(axis=1)):
        alone = model.encoder(
            {name: batch[name][row : row + 1, :length] for name in batch if name.startswith("input_")}
        )
        for received in (other["sequence_output"][row, :length], alone["sequence_output"][0]):
            np.testing.assert_allclose(received, full["sequence_output"][row, :length], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(alone["pooled_output"][0], full["pooled_output"][row], rtol=1e-5, atol=1e-6)


CAUSAL = {"attention": "causal"}


@pytest.mark.parametrize(
    "config",
    [
        BertConfig(**TINY),
        BertConfig(**TINY, **CAUSAL),
        BertConfig(**TINY, **CAUSAL, pools_cls=True),
        RobertaPreLayerNormConfig(**TINY),
        AlbertConfig(**TINY, embedding_size=8),
        DistilbertConfig(**TINY),
    ],
    ids=["bert", "causal", "causal, pools [CLS]", "pre-norm", "albert", "distilbert"],
)
@pytest.mark.parametrize("recompute_every", [0, 1])
def test_states_at_positions_are_those_of_all(config, recompute_every):
    """In the export too. The last block computes no other states, whose gradients would be 0 anyway."""
    encoder = kind_of_config(config).make_encoder(config)
    rng = np.random.default_rng(0)
    for variable in encoder.trainable_variables:
        variable.assign(variable + rng.normal(0.0, 0.2, variable.shape))
    encoder.recompute_every = recompute_every
    batch = {name: tf.constant(value) for name, value in pretraining_batch(config).items()}
    positions = batch["masked_lm_positions"]

    def found(**options):
        with tf.GradientTape() as tape, dropout_key(tf.constant([1, 2], tf.uint32)):
            outputs = encoder(batch, training=True, **options)
            states = outputs["sequence_output"]
            read = states if options else gather_positions(states, positions)
            loss = tf.reduce_sum(read**2) + tf.reduce_sum(outputs["pooled_output"] * 3.0)
        gradients = map(tf.convert_to_tensor, tape.gradient(loss, encoder.trainable_variables))
        return outputs["pooled_output"], read, list(gradients), outputs

    *whole, _ = found()
    *narrow, outputs = found(positions=positions)
    tf.nest.map_structure(lambda *pair: np.testing.assert_allclose(*pair, rtol=1e-4, atol=2e-5), narrow, whole)
    assert outputs["hidden_states"][-1].shape[1] == 1 + positions.shape[1]
    for keeps_padding in (False, True):
        served = encode(encoder, batch, keeps_padding, only_pooled=True)["pooled_output"]
        np.testing.assert_allclose(served, whole[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("wrong", [-1, 12])
@pytest.mark.parametrize("terms", [(), ("sbo",)])
def test_a_position_beyond_the_row_is_refused(batch, terms, wrong):
    """It would read a state of the row before or after."""
    positions = batch["masked_lm_positions"].copy()
    positions[1, 0] = wrong
    model = BertForPreTraining(tiny_config(), terms=terms)
    with pytest.raises(ValueError, match=f"positions: needs positions from 0 to 11. Received: {wrong}"):
        model({**batch, "masked_lm_positions": positions})


def test_what_no_head_reads_is_not_computed(batch, monkeypatch):
    """A classifier reads [CLS]; pretraining reads the masked tokens, unless a term of the loss reads the others too."""
    config, widths = tiny_config(), {}

    def measured(name, call, states):
        widths[name] = states.shape[1]
        return call(states)

    models = {
        "classes": BertForSequenceClassification(config, 2),
        "mlm": BertForPreTraining(config),
        "match": BertForPreTraining(config, terms=("match",)),
        "teacher": BertForPreTraining(config, mapped_size=8),
    }
    for name, model in models.items():
        layer = model.encoder.blocks[-1].output_layer_norm
        monkeypatch.setattr(layer, "call", functools.partial(measured, name, layer.call))
        model(batch)
    assert widths == {"classes": 1, "mlm": 1 + 3, "match": 12, "teacher": 12}


def test_every_activation_is_that_of_transformers():
    """Keras has other functions of the same names, such as leaky_relu, with which answers would be silently wrong."""
    assert sorted(name for names in ACTIVATED for name in names) == sorted(get_args(Activation))
    for names, expected in ACTIVATED.items():
        for name in names:
            received = activation(name)(np.array([-2.0, 0.5, 12.0], "float32"))
            np.testing.assert_allclose(received, expected, rtol=0, atol=2e-6, err_msg=name)


def test_a_keras_file_opens_without_custom_objects(model, batch, tmp_path):
    for part, output in ((model, "mlm_logits"), (model.encoder, "pooled_output")):
        path = tmp_path / f"{output}.keras"
        part.save(path)
        again = keras.saving.load_model(path)
        np.testing.assert_array_equal(again(batch)[output], part(batch)[output])


@pytest.mark.slow
def test_encoder_inside_a_functional_model(batch):
    """A user's own Keras model around the encoder trains by `fit`."""
    inputs = {name: keras.Input((None,), dtype="int32", name=name) for name in batch if name.startswith("input_")}
    pooled = BertEncoder(tiny_config(num_hidden_layers=1))(inputs)["pooled_output"]
    classifier = keras.Model(inputs, keras.layers.Dense(2)(pooled))
    classifier.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    before = classifier.get_weights()
    features = {name: batch[name] for name in inputs}
    classifier.fit(features, batch["next_sentence_labels"], epochs=1, verbose=0)
    changed = [not np.array_equal(old, new) for old, new in zip(before, classifier.get_weights(), strict=True)]
    assert sum(changed) >= len(changed) - 2  # the keys' biases get no gradient


def test_bfloat16_computes_low_and_keeps_variables_in_float32(batch):
    model = BertForPreTraining(without_dropout(), dtype="mixed_bfloat16")
    reference = BertForPreTraining(without_dropout())
    random_weights(model)
    random_weights(reference)
    assert {variable.dtype for variable in model.trainable_variables} == {"float32"}
    outputs = model(batch)
    assert model.encoder(batch)["sequence_output"].dtype == tf.bfloat16
    assert outputs["mlm_logits"].dtype == outputs["nsp_logits"].dtype == tf.float32
    np.testing.assert_allclose(outputs["mlm_logits"], reference(batch)["mlm_logits"], atol=0.1)


def test_a_missing_input_is_named(model, batch):
    with pytest.raises(ValueError, match="Missing: input_type_ids"):
        model.encoder({name: batch[name] for name in ("input_word_ids", "input_mask")})


@pytest.mark.parametrize("config", [ElmoConfig, T5Config, XlnetConfig])
def test_a_missing_input_of_other_kinds_is_named(config):
    """It used to be a bare KeyError."""
    config = config(**TINY)
    encoder = kind_of_config(config).make_encoder(config)
    with pytest.raises(ValueError, match="Encoder: needs input_word_ids, input_mask.*Missing: input_mask"):
        encoder({name: np.ones((1, 4), "int32") for name in ("input_word_ids", "input_type_ids")})


@pytest.mark.parametrize(
    ("make", "given", "missing"),
    [
        (lambda: EncoderDecoder(T5Config(**TINY)), (), "decoder_input_ids"),
        (lambda: BertForConditionalGeneration(T5Config(**TINY)), (), "decoder_input_ids"),
        (lambda: XlnetEncoder(XlnetConfig(**TINY)), ("permutation_ranks",), "masked_lm_positions"),
        (lambda: BertForSpanPairs(BertConfig(**TINY), 2), ("span_starts",), "span_ends"),
        (lambda: ElectraForPreTraining(ElectraConfig(**TINY), ReplacementConfig("random")), (), "replacement_draws"),
    ],
)
def test_a_missing_input_of_its_own_is_named(make, given, missing):
    """It used to be a bare KeyError."""
    names = ("input_word_ids", "input_mask", "input_type_ids", *given)
    with pytest.raises(ValueError, match=f"needs .*{missing}.* Missing: {missing}"):
        make()({name: np.ones((1, 4), "int32") for name in names})


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"hidden_size": 18}, "hidden_size: needs a multiple"), ({"hidden_act": "prelu"}, "hidden_act: needs one of")],
)
def test_impossible_configs_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        tiny_config(**changes)
