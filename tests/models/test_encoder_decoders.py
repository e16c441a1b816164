"""BART and T5 compute what transformers' do; what only one of them has is in test_bart.py and test_t5.py."""

import json

import numpy as np
import pytest
import tensorflow as tf
from goldens import load_arrays, run_peer, write_again

from keras_bert.core.errors import UserError
from keras_bert.models.bert.config import BertConfig
from keras_bert.models.encoder_decoder import EncoderDecoder

WITH_LOGITS = {
    "bart": "BartForConditionalGeneration",
    "t5": "T5ForConditionalGeneration",
    "t5_gated": "T5ForConditionalGeneration",
}


@pytest.mark.parity
@pytest.mark.parametrize("case", [*WITH_LOGITS, "bart_model"])
def test_states_and_logits_are_transformers(opened, case):
    """With rows of several lengths on both sides, for a T5 some beyond the last bucket. `bart` has scaled embeddings
    and a bias of its own, a T5's heads have widths of their own, and the output layer of `t5_gated` is not the word
    embeddings, as in T5 1.1.
    """
    golden, loaded, inputs = opened(case)
    assert isinstance(loaded.model, EncoderDecoder)
    if case.startswith("t5"):
        assert not loaded.report.made_new and not loaded.report.unused
    outputs = loaded.model(inputs)
    states = np.stack(loaded.encoder(inputs)["hidden_states"])
    real, targets = inputs["input_mask"] > 0, inputs["decoder_mask"] > 0
    np.testing.assert_allclose(states[:, real], golden.outputs["encoder_states"][:, real], rtol=1e-5, atol=1e-5)
    last = golden.outputs["decoder_states"][-1]
    np.testing.assert_allclose(outputs["decoder_states"].numpy()[targets], last[targets], rtol=1e-5, atol=1e-5)
    if case in WITH_LOGITS:
        logits = golden.outputs["logits"]
        np.testing.assert_allclose(outputs["logits"].numpy()[targets], logits[targets], rtol=1e-4, atol=1e-4)


@pytest.mark.parity
@pytest.mark.parametrize("case", WITH_LOGITS)
def test_token_by_token_gives_the_same_logits(opened, case):
    """In a row wider than the tokens written so far, for the relative positions of a T5. Rows of the cache can also
    change places between two steps, as beam search needs.
    """
    golden, loaded, inputs = opened(case)
    ids, model = inputs["decoder_input_ids"], loaded.model
    expected, targets = golden.outputs["logits"], inputs["decoder_mask"] > 0
    step, cache = tf.function(model.step), model.begin(inputs, width=ids.shape[1] + 3)
    order = np.arange(len(ids))
    for place in range(ids.shape[1]):
        logits, cache = step(tf.constant(ids[order, place]), tf.constant(place), cache)
        real = targets[order, place]
        np.testing.assert_allclose(logits.numpy()[real], expected[order, place][real], rtol=1e-4, atol=1e-4)
        order, cache = np.roll(order, 1), tf.nest.map_structure(lambda kept: tf.roll(kept, 1, axis=0), cache)
    assert step.experimental_get_tracing_count() == 1


@pytest.mark.live
@pytest.mark.parametrize("case", WITH_LOGITS)
def test_what_is_written_opens_in_transformers(opened, case, tmp_path):
    golden, loaded, _ = opened(case)
    write_again(str(tmp_path / "written"), loaded)
    job = {"folder": str(tmp_path / "written"), "kind": WITH_LOGITS[case], "golden": golden.file}
    (tmp_path / "jobs.json").write_text(json.dumps([{**job, "to": str(tmp_path / "opened.npz")}]))
    run_peer("of_encoder_decoders.py", "open", tmp_path / "jobs.json")
    found = load_arrays(tmp_path / "opened.npz")
    assert not found["missing"].size and not found["unexpected"].size
    # BART's attention is computed in another way there.
    np.testing.assert_allclose(found["outputs/logits"], golden.outputs["logits"], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "kind, fields, message",
    [
        ("bart", {"architectures": ["BartForSequenceClassification"]}, "whose head reads the decoder's states"),
        ("bart", {"architectures": ["BartForCausalLM"]}, "Received: BartForCausalLM, which is not supported"),
        ("bart", {"normalize_before": True}, "normalize_before True is not supported; BART has False"),
        ("bart", {"decoder_attention_heads": 7}, "hidden_size: needs a multiple of decoder_attention_heads (7)"),
        (
            "bart",
            {"decoder_start_token_id": -1},
            "decoder_start_token_id: needs an id from 0 to vocab_size - 1 (50264)",
        ),
        ("t5", {"architectures": ["T5ForSequenceClassification"]}, "whose head reads the decoder's states"),
        ("t5", {"architectures": ["T5ForNothing"]}, "Received: T5ForNothing, which is not supported"),
        ("t5", {"relative_attention_num_buckets": 6}, "relative_attention_num_buckets: needs a multiple of 4"),
        ("t5", {"feed_forward_proj": "gated-what"}, "hidden_act: needs one of"),
        ("t5", {"forced_bos_token_id": 32128}, "forced_bos_token_id: needs an id from 0 to vocab_size - 1 (32127)"),
    ],
)
def test_what_is_not_supported_is_one_line(kind, fields, message, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": kind, **fields}))
    with pytest.raises(UserError) as error:
        BertConfig.from_file(tmp_path / "config.json")
    assert message in str(error.value) and "\n" not in str(error.value)
