"""BART: its files are transformers', and its encoder works alone.

That it computes what transformers' does is in test_encoder_decoders.py.
"""

import json
import os
import shutil

import numpy as np
import pytest
import safetensors.numpy
import tensorflow as tf
from coming_back import assert_a_keras_file_keeps
from goldens import COMMITTED, read_tensors, write_again
from tiny import SIZES, random_weights

import keras_bert
from keras_bert.checkpoints.adapter import write_adapter
from keras_bert.checkpoints.writing import convert_folder
from keras_bert.config.pretraining import PretrainConfig
from keras_bert.core.errors import UserError
from keras_bert.core.yaml_and_json import read_json
from keras_bert.export.network import encode
from keras_bert.models.bert.config import BertConfig
from keras_bert.models.encoder_decoder import EncoderDecoder
from keras_bert.models.kind import kind_of_config
from keras_bert.models.sizes import whole_model
from keras_bert.tasks.kind import kind_of_head
from keras_bert.tasks.sentence_vectors.task import SentenceVectorsConfig

ROOM = os.path.join(COMMITTED, "encoder_decoders")
CASES = ("bart", "bart_model")
TINY = {
    **SIZES,
    "model_type": "bart",
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "decoder_layers": 2,
    "decoder_attention_heads": 4,
    "decoder_ffn_dim": 24,
}


@pytest.mark.parity
@pytest.mark.parametrize("case", CASES)
def test_is_written_as_transformers_writes_it(opened, case, tmp_path):
    """Converted, and written from the model: names, values and the fields of config.json."""
    golden, loaded, _ = opened(case)
    convert_folder(loaded.folder, "huggingface", str(tmp_path / "converted"), loaded.tokenizer.vocabulary)
    write_again(str(tmp_path / "written"), loaded)
    expected = read_tensors(golden.path)
    for folder in ("converted", "written"):
        received = read_tensors(str(tmp_path / folder))
        if case == "bart_model" and folder == "written":  # An EncoderDecoder has it in any case.
            assert not received.pop("final_logits_bias").any()
        assert received.keys() == expected.keys()
        for name, value in expected.items():
            np.testing.assert_array_equal(received[name], value, err_msg=name)
    fields, theirs = (
        json.loads(open(os.path.join(path, "config.json")).read()) for path in (tmp_path / "converted", golden.path)
    )
    assert {**fields, "dtype": "float32", "transformers_version": theirs["transformers_version"]} == theirs
    again = keras_bert.load(str(tmp_path / "converted"))
    assert again.config == loaded.config and not again.report.unused
    ids = loaded.tokenizer([str(golden.arrays["text"])]).to_list()[0]
    assert ids == golden.arrays["text_ids"].tolist() and len(ids) > 5


@pytest.mark.parametrize(
    "aliases, removed",
    [
        (("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight"), False),
        (("model.decoder.embed_tokens.weight",), True),
    ],
)
def test_tied_words_may_have_other_names(aliases, removed, tmp_path):
    """Older files repeat the table, and converters keep any one of its names."""
    folder = str(tmp_path / "model")
    shutil.copytree(os.path.join(ROOM, "bart"), folder)
    tensors = safetensors.numpy.load_file(os.path.join(folder, "model.safetensors"))
    table = tensors.pop("model.shared.weight") if removed else tensors["model.shared.weight"]
    tensors |= dict.fromkeys(aliases, table)
    safetensors.numpy.save_file(tensors, os.path.join(folder, "model.safetensors"))
    loaded = keras_bert.load(folder)
    assert not loaded.report.made_new and not loaded.report.unused
    np.testing.assert_array_equal(loaded.encoder.embeddings.word_embeddings, table)


def test_how_texts_are_generated_is_read_and_kept(tmp_path):
    """In newer folders, generation_config.json says which token comes first, not config.json."""
    folder, copy = str(tmp_path / "model"), str(tmp_path / "copy")
    shutil.copytree(os.path.join(ROOM, "bart"), folder)
    said = {"forced_bos_token_id": 0, "num_beams": 4, "decoder_start_token_id": 2}
    (tmp_path / "model" / "generation_config.json").write_text(json.dumps(said))
    opened = keras_bert.open_model_folder(folder)
    assert opened.config.forced_bos_token_id == 0 and opened.config.forced_eos_token_id == 2
    convert_folder(opened, "huggingface", copy, opened.vocabulary)
    assert json.loads((tmp_path / "copy" / "generation_config.json").read_text()) == said
    assert keras_bert.open_model_folder(copy).config == opened.config


def test_an_adapter_generates_as_its_recipe_says(tmp_path):
    """A converted adapter used to get the beams of its base model."""
    base, adapter = str(tmp_path / "base"), str(tmp_path / "adapter")
    shutil.copytree(os.path.join(ROOM, "bart"), base)
    (tmp_path / "base" / "generation_config.json").write_text(json.dumps({"num_beams": 7}))
    model = keras_bert.load(base).model
    model.encoder.enable_lora(2)
    own = {"max_target_length": 5, "beams": 2, "length_penalty": 1.0}
    write_adapter(adapter, model, base, base, {**read_json(f"{base}/config.json"), "keras_bert": own})
    opened = keras_bert.open_model_folder(adapter)
    convert_folder(opened, "huggingface", tmp_path / "copy", opened.vocabulary)
    assert read_json(tmp_path / "copy" / "generation_config.json")["num_beams"] == 2


def test_several_last_tokens_are_refused_by_the_name_of_their_file(tmp_path):
    """transformers takes a list and forces all of it; here it used to end in a traceback."""
    folder = tmp_path / "model"
    shutil.copytree(os.path.join(ROOM, "bart"), folder)
    (folder / "generation_config.json").write_text(json.dumps({"forced_eos_token_id": [2, 3]}))
    with pytest.raises(UserError, match=r"generation_config.json: forced_eos_token_id: needs a whole number.*\[2, 3\]"):
        keras_bert.open_model_folder(folder)


def test_how_an_adapters_base_generates_is_kept(tmp_path):
    """An adapter's folder has no generation_config.json; without the base's, transformers would write other texts."""
    base, adapter, copy = os.path.join(ROOM, "bart"), tmp_path / "adapter", tmp_path / "copy"
    adapter.mkdir()
    config = {"peft_type": "LORA", "r": 1, "lora_alpha": 1, "base_model_name_or_path": base}
    (adapter / "adapter_config.json").write_text(json.dumps(config))
    query = "base_model.model.model.decoder.layers.0.self_attn.q_proj"
    factors = {f"{query}.lora_A.weight": np.ones((1, 8), "f"), f"{query}.lora_B.weight": np.ones((8, 1), "f")}
    safetensors.numpy.save_file(factors, adapter / "adapter_model.safetensors")
    opened = keras_bert.open_model_folder(adapter)
    convert_folder(opened, "huggingface", copy, opened.vocabulary)
    with open(os.path.join(base, "generation_config.json"), encoding="utf-8") as stream:
        assert json.loads((copy / "generation_config.json").read_text()) == json.load(stream)


def test_a_task_is_learned_on_the_encoder_alone(opened, tmp_path):
    """Its folder names no class of transformers for the task, since there the decoder would read the text again."""
    golden, _, _ = opened("bart")
    task = keras_bert.load(golden.path, task="text", labels=["bad", "good"])
    folder = str(tmp_path / "classifier")
    write_again(folder, task)
    fields = json.loads(open(os.path.join(folder, "config.json")).read())
    assert fields["architectures"] == ["BartEncoder"]
    assert fields["keras_bert"]["architecture"] == "BertForSequenceClassification"
    tensors = read_tensors(folder)
    assert not any("decoder" in name for name in tensors) and "model.encoder.pooler.dense.weight" in tensors
    expected = read_tensors(golden.path)
    for name in tensors.keys() & expected.keys():
        np.testing.assert_array_equal(tensors[name], expected[name], err_msg=name)
    again = keras_bert.load(folder)
    assert not again.report.made_new and not again.report.unused
    text = ["The cat, hé."]
    assert again.predict(text)[0].probabilities == task.predict(text)[0].probabilities


def test_a_folder_of_vectors_does_not_promise_them_to_sentence_transformers(tmp_path):
    """It would open a BartModel, give its new decoder the text too, and pool the decoder's states."""
    folder, head = keras_bert.open_model_folder(os.path.join(ROOM, "bart")), SentenceVectorsConfig(("score",))
    model = kind_of_head(head).make_model(folder.config, head)
    task = {"task": "pairs-contrastive", "max_length": 12}
    keras_bert.write_model_folder(tmp_path, model, folder.vocabulary, lower_case=False, head=head, task=task)
    assert not (tmp_path / "modules.json").exists()
    assert "sentence-transformers" not in (tmp_path / "README.md").read_text(encoding="utf-8")
    assert keras_bert.load(tmp_path).encode(["The cat."]).shape == (1, 8)


def test_serving_and_saving_compute_what_the_model_does(tmp_path):
    config = BertConfig.from_mapping({**TINY, "scale_embedding": True})
    model = EncoderDecoder(config)
    random_weights(model)
    rng = np.random.default_rng(0)
    ids = rng.integers(4, 60, (3, 8)).astype("int32")
    mask = (np.arange(8) < np.array([[8], [5], [2]])).astype("int32")
    inputs = {"input_word_ids": ids, "input_mask": mask, "input_type_ids": 0 * ids}
    served = encode(model.encoder, {name: tf.constant(value) for name, value in inputs.items()})
    expected = model.encoder(inputs)["sequence_output"].numpy()
    np.testing.assert_allclose(served["sequence_output"].numpy()[mask > 0], expected[mask > 0], rtol=1e-4, atol=1e-5)
    inputs["decoder_input_ids"] = ids[:, :5]
    assert_a_keras_file_keeps(model, inputs, tmp_path)
    half = EncoderDecoder(config, dtype="mixed_bfloat16")
    for variable, value in zip(half.weights, model.weights):
        variable.assign(value)
    full = half(inputs)["logits"]
    stepped, _ = half.step(inputs["decoder_input_ids"][:, 0], 0, half.begin(inputs, width=4))
    assert full.dtype == stepped.dtype == tf.float32
    np.testing.assert_allclose(stepped, full[:, 0], atol=0.05)
    np.testing.assert_allclose(full, model(inputs)["logits"], atol=0.2)
    with pytest.raises(ValueError, match=r"at most max_position_embeddings \(24\) tokens. Received: 25"):
        model({**inputs, "decoder_input_ids": np.ones((3, 25), "int32")})
    with pytest.raises(ValueError, match=r"width: needs at most max_position_embeddings \(24\). Received: 25"):
        model.begin(inputs, width=25)
    with pytest.raises(ValueError, match="input_word_ids needs ids from 0 .* Received: 99"):
        model.step(np.array([99, 4, 4], "int32"), 0, model.begin(inputs, width=4))


def test_sizes_are_those_of_the_model():
    """bart-base has 139,420,416 parameters without the bias of its logits."""
    config = BertConfig.from_mapping(TINY)
    model = EncoderDecoder(config)
    assert whole_model(config) == sum(
        variable.value.numpy().size for variable in model.weights if "seed" not in variable.path
    )
    base = keras_bert.BartConfig()
    assert whole_model(base) == 139_420_416 + base.vocab_size
    # By hand, with 8 tokens of the text and 4 of the other: a layer of the encoder, two of the decoder, the output.
    encoder = 8 * 8 * 16**2 + 4 * 8**2 * 16 + 4 * 8 * 16 * 32
    own, cross = 8 * 4 * 16**2 + 4 * 4**2 * 16, 2 * (2 * 4 + 2 * 8) * 16**2 + 4 * 4 * 8 * 16
    expected = 3 * (encoder + 2 * (own + cross + 4 * 4 * 16 * 24) + 2 * 4 * 16 * 60)
    assert kind_of_config(config).training_flops(config, 8, 4) == expected


def test_commands_of_encoders_refuse_it(opened):
    _, loaded, _ = opened("bart")
    for call in (loaded.fill, loaded.generate):
        with pytest.raises(UserError, match="Received: a BART"):
            call(["The [MASK]."])
    with pytest.raises(UserError, match="objective.tokens: needs decoded for this model.model_type"):
        PretrainConfig.from_mapping({"model": {**TINY, "max_position_embeddings": 512}})
    with pytest.raises(ValueError, match="EncoderDecoder: needs a model with a decoder. Received: a BERT"):
        EncoderDecoder(BertConfig(hidden_size=4, num_attention_heads=1))
