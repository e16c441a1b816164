"""ALBERT: its sizes, its loss, what its layers share, and how files hold it."""

import dataclasses
import json
import os

import keras
import numpy as np
import pytest
import tensorflow as tf
from goldens import Golden, read_tensors, run_peer, write_again
from tiny import SIZES, VOCABULARY, pretraining_batch, random_weights, write_random

from keras_bert.checkpoints.model_folder import open_model_folder
from keras_bert.checkpoints.writing import convert_folder, write_model_folder
from keras_bert.config.recipes import find_config
from keras_bert.core.errors import UserError
from keras_bert.export.network import encode
from keras_bert.inference.loading import load
from keras_bert.layers.dropout import dropout_key
from keras_bert.models import sizes
from keras_bert.models.albert.encoder import AlbertEncoder
from keras_bert.models.albert.kind import SHARINGS, AlbertConfig
from keras_bert.models.bert.config import BertConfig
from keras_bert.models.pretraining import BertForPreTraining, PretrainingObjective
from keras_bert.tasks.classification.head import ClassificationConfig
from keras_bert.tasks.classification.network import BertForSequenceClassification

TINY = {**SIZES, "embedding_size": 8, "num_hidden_layers": 4, "num_hidden_groups": 2, "inner_group_num": 2}


def tiny_albert(**changes):
    return AlbertConfig(**{**TINY, **changes})


def test_base_has_as_many_parameters_as_googles():
    config = BertConfig.from_file(find_config("models", "albert-base"))
    assert config == AlbertConfig()
    assert sizes.total(sizes.encoder_parts(config)) == 11_683_584


@pytest.mark.parametrize("sharing", SHARINGS)
def test_the_table_counts_what_the_model_has(sharing):
    config = tiny_albert(sharing=sharing)
    model = BertForPreTraining(config)
    encoder, heads = sizes.encoder_parts(config), sizes.head_parts(config)
    assert sizes.total(encoder) == model.encoder.count_params()
    assert sizes.total(encoder) + sizes.total(heads) == model.count_params()
    trained = sum(int(np.prod(variable.shape)) for variable in model.trainable_variables)
    assert trained == model.count_params()


@pytest.mark.parity
def test_the_pretraining_loss_is_transformers(goldens):
    """Masked LM and sentence order, on a model with two groups of two layers of two blocks."""
    theirs = Golden(goldens, "albert")
    batch = {**theirs.batch, "sentence_order_labels": theirs.batch["next_sentence_labels"]}
    batch["example_weights"] = np.ones(len(theirs.real), "float32")
    objective = PretrainingObjective(VOCABULARY.mask_id, terms=("mlm", "sop"))
    sums, counts = objective.sums(load(theirs.path).model(batch), batch), objective.counts(batch)
    total = sum(float(sums[term]["loss"] / counts[term]) for term in objective.terms)
    np.testing.assert_allclose(total, theirs.outputs["loss"], rtol=1e-4)


@pytest.mark.parametrize("sharing", SHARINGS)
def test_layers_share_what_the_setting_says(sharing):
    """Four layers in two groups of two, with two blocks each: which blocks have the same weights."""
    blocks = AlbertEncoder(tiny_albert(sharing=sharing)).blocks
    assert len(blocks) == 8
    owners = {"attention": [0, 1, 0, 1, 4, 5, 4, 5], "ffn": [0, 1, 0, 1, 4, 5, 4, 5]}
    for half, layer in (("attention", "attention"), ("ffn", "output_layer_norm")):
        expected = owners[half] if sharing in (half, "all") else list(range(8))
        layers = [getattr(block, layer) for block in blocks]
        assert [layers.index(one) for one in layers] == expected
    assert len({id(block.attention_dropout) for block in blocks}) == 8


def test_shared_blocks_drop_out_different_values():
    """With one mask for all blocks of a group, dropout would silence the same units at every depth."""
    encoder = AlbertEncoder(tiny_albert(hidden_dropout_prob=0.5))
    states, drawn = np.ones((1, 4, 16), "float32"), []
    with dropout_key(tf.constant([1, 2], tf.uint32)):
        for block in encoder.blocks[:3]:
            drawn.append(np.array(block.attention_dropout(states, training=True)) == 0)
    assert not np.array_equal(drawn[0], drawn[2])


@pytest.mark.parametrize("sharing", SHARINGS)
def test_every_sharing_is_written_and_opens_again(sharing, tmp_path):
    """In both formats, with equal weights; what several groups of a file share is one tensor again."""
    model = BertForPreTraining(tiny_albert(sharing=sharing))
    folder = write_random(tmp_path / "model", model)
    opened = open_model_folder(folder)
    assert opened.config == model.config
    convert_folder(opened, "google", tmp_path / "google", VOCABULARY)
    for path in (folder, tmp_path / "google"):
        again = load(path)
        assert again.config == model.config and not again.report.made_new and not again.report.unused
        for ours, theirs in zip(model.trainable_variables, again.model.trainable_variables, strict=True):
            np.testing.assert_array_equal(ours, theirs)
    fields = json.loads((tmp_path / "model" / "config.json").read_text("utf-8"))
    assert fields["num_hidden_groups"] == (2 if sharing == "all" else 4) and ("sharing" in fields) == (sharing != "all")
    groups = {name.split(".")[3] for name in read_tensors(folder) if "albert_layer_groups" in name}
    assert len(groups) == fields["num_hidden_groups"]


def test_copies_that_differ_are_refused(tmp_path):
    """Another program, which does not know what is shared, writes such copies when it fine-tunes."""
    import safetensors.numpy

    folder = str(tmp_path / "model")
    write_model_folder(folder, BertForPreTraining(tiny_albert(sharing="ffn")), VOCABULARY, lower_case=True)
    file = os.path.join(folder, "model.safetensors")
    tensors = safetensors.numpy.load_file(file)
    name = "albert.encoder.albert_layer_groups.1.albert_layers.0.ffn.weight"
    tensors[name] = tensors[name] + 1
    safetensors.numpy.save_file(tensors, file)
    with pytest.raises(UserError, match=f"needs {name} equal to .*groups.0.*, to which the model ties it"):
        load(folder)


# Variables of albert_base's model.ckpt-best (google-research/albert, modeling.py and run_pretraining.py).
_BLOCK = "bert/encoder/transformer/group_0/inner_group_0"
GOOGLES = {
    "bert/embeddings/word_embeddings",
    "bert/embeddings/position_embeddings",
    "bert/embeddings/token_type_embeddings",
    "bert/embeddings/LayerNorm/gamma",
    "bert/embeddings/LayerNorm/beta",
    "bert/pooler/dense/kernel",
    "bert/pooler/dense/bias",
    "bert/encoder/embedding_hidden_mapping_in/kernel",
    "bert/encoder/embedding_hidden_mapping_in/bias",
    *(
        f"{_BLOCK}/{layer}/{weight}"
        for layer in (
            "attention_1/self/query",
            "attention_1/self/key",
            "attention_1/self/value",
            "attention_1/output/dense",
            "ffn_1/intermediate/dense",
            "ffn_1/intermediate/output/dense",
        )
        for weight in ("kernel", "bias")
    ),
    *(f"{_BLOCK}/{norm}/{weight}" for norm in ("LayerNorm", "LayerNorm_1") for weight in ("gamma", "beta")),
    "cls/predictions/transform/dense/kernel",
    "cls/predictions/transform/dense/bias",
    "cls/predictions/transform/LayerNorm/gamma",
    "cls/predictions/transform/LayerNorm/beta",
    "cls/predictions/output_bias",
    "cls/seq_relationship/output_weights",
    "cls/seq_relationship/output_bias",
}


def test_googles_files_have_googles_names_and_say_gelu_for_gelu_new(tmp_path):
    model = BertForPreTraining(tiny_albert(num_hidden_groups=1, inner_group_num=1))
    folder = write_random(tmp_path / "model", model)
    google = str(tmp_path / "google")
    convert_folder(open_model_folder(folder), "google", google, VOCABULARY)
    names = {name for name, _ in tf.train.list_variables(os.path.join(google, "model.ckpt-best"))}
    assert names == GOOGLES
    fields = json.loads((tmp_path / "google" / "albert_config.json").read_text("utf-8"))
    assert fields["hidden_act"] == "gelu" and "model_type" not in fields
    checkpoint, name = os.path.join(google, "model.ckpt-best"), f"{_BLOCK}/ffn_1/intermediate/dense/kernel"
    kernel = tf.train.load_variable(checkpoint, name)
    np.testing.assert_array_equal(kernel, model.encoder.blocks[0].intermediate.kernel)


def test_exact_gelu_is_not_written_to_googles_format(tmp_path):
    folder = str(tmp_path / "model")
    write_model_folder(folder, BertForPreTraining(tiny_albert(hidden_act="gelu")), VOCABULARY, lower_case=True)
    with pytest.raises(UserError, match="hidden_act: needs gelu_new for Google's format"):
        convert_folder(open_model_folder(folder), "google", tmp_path / "google", VOCABULARY)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"sharing": "some"}, "sharing: needs one of all, attention, ffn, none"),
        ({"num_hidden_groups": 5}, r"num_hidden_groups: needs 1 to num_hidden_layers \(4\)"),
        ({"attention": "causal"}, "attention: needs bidirectional for an ALBERT"),
        ({"classifier_dropout_prob": 1.0}, "classifier_dropout_prob: needs a rate"),
    ],
)
def test_settings_that_do_not_fit_are_refused(changes, message):
    with pytest.raises(UserError, match=message):
        BertConfig.from_mapping({**TINY, "model_type": "albert", **changes})


def test_what_google_does_not_say_is_as_in_xxlarge(tmp_path):
    """A config.json with transformers' own defaults names no size."""
    (tmp_path / "config.json").write_text('{"model_type": "albert"}', "utf-8")
    config = BertConfig.from_file(str(tmp_path / "config.json"))
    assert (config.hidden_size, config.num_attention_heads, config.intermediate_size) == (4096, 64, 16384)


@pytest.mark.parametrize("sharing", ["all", "none"])
def test_serving_computes_what_the_encoder_does(sharing):
    encoder = AlbertEncoder(tiny_albert(sharing=sharing))
    random_weights(encoder)
    batch = pretraining_batch(encoder.config)
    inputs = {name: tf.constant(batch[name]) for name in ("input_word_ids", "input_mask", "input_type_ids")}
    served, expected = encode(encoder, inputs), encoder(inputs)
    real = batch["input_mask"] > 0
    np.testing.assert_allclose(served["sequence_output"][real], expected["sequence_output"][real], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(served["pooled_output"], expected["pooled_output"], rtol=1e-4, atol=1e-5)
    assert len(expected["hidden_states"]) == 9


def test_a_task_has_its_own_dropout_and_survives_keras_serialization():
    config = tiny_albert()
    model = BertForSequenceClassification(config, 2)
    assert model.classifier.dropout_prob == 0.1 and config.hidden_dropout_prob == 0.0
    again = keras.models.model_from_json(model.to_json())
    assert type(again.encoder) is AlbertEncoder and dataclasses.asdict(again.config) == dataclasses.asdict(config)


def test_a_classifier_is_an_albert_for_sequence_classification(tmp_path):
    head, folder = ClassificationConfig(("no", "yes"), "single_label_classification"), str(tmp_path / "model")
    model = BertForSequenceClassification(tiny_albert(), 2)
    write_model_folder(folder, model, VOCABULARY, lower_case=True, head=head)
    fields = json.loads((tmp_path / "model" / "config.json").read_text("utf-8"))
    assert fields["architectures"] == ["AlbertForSequenceClassification"]
    loaded = load(folder)
    assert loaded.head == head and set(loaded.predict(["w1 w2"])[0].probabilities) == {"no", "yes"}
    card = (tmp_path / "model" / "README.md").read_text("utf-8")
    assert "An ALBERT (`AlbertForSequenceClassification`)" in card and "- albert" in card


@pytest.mark.live
def test_transformers_opens_every_sharing_with_equal_outputs(goldens, tmp_path):
    golden = Golden(goldens, "albert")
    loaded, jobs = load(golden.path), []
    models = {}
    for sharing in SHARINGS:
        loaded.model = models[sharing] = BertForPreTraining(dataclasses.replace(loaded.config, sharing=sharing))
        random_weights(loaded.model)
        write_again(str(tmp_path / sharing), loaded)
        to = str(tmp_path / f"{sharing}.npz")
        folder = str(tmp_path / sharing)
        jobs.append({"folder": folder, "kind": "AlbertForPreTraining", "golden": golden.file, "to": to})
    (tmp_path / "jobs.json").write_text(json.dumps(jobs), "utf-8")
    run_peer("of_transformers.py", "open", tmp_path / "jobs.json")
    for sharing, model in models.items():
        with np.load(tmp_path / f"{sharing}.npz") as received:
            assert not received["missing"].size and not received["unexpected"].size
            outputs = model(golden.encoder_batch)
            np.testing.assert_allclose(received["outputs/sop_logits"], outputs["sop_logits"], rtol=1e-4, atol=1e-4)
            logits = np.array(outputs["mlm_logits"])[golden.real]
            np.testing.assert_allclose(received["outputs/prediction_logits"][golden.real], logits, rtol=1e-4, atol=1e-4)
