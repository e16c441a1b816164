"""What is written here opens in transformers under each of its classes, with nothing missing and equal outputs."""

import numpy as np
import pytest
from tiny import pretraining_batch, random_model, random_weights, without_dropout

from keras_bert.checkpoints.model_folder import write_model_folder
from keras_bert.checkpoints.names import model_variables
from keras_bert.config.feature_tagging import FeatureTaggingConfig
from keras_bert.models.encoder import BertEncoder
from keras_bert.models.heads import model_with_head
from keras_bert.text.vocabulary import SPECIAL_TOKENS, Vocabulary

pytestmark = pytest.mark.parity("torch", "transformers")


@pytest.fixture(scope="module")
def model():
    return random_model()


def test_an_encoder_with_a_tagger_of_ours_opens_as_a_bert_model(tmp_path):
    """Nothing is missing, and not used are only the tensors under `keras_bert.`."""
    import torch
    import transformers

    head = FeatureTaggingConfig(("O", "B-X"), "weighted_all", 8)
    tagger = model_with_head(without_dropout(), head)
    random_weights(tagger)
    vocabulary = Vocabulary([*SPECIAL_TOKENS, *(f"w{number}" for number in range(55))])
    write_model_folder(str(tmp_path / "tagger"), tagger, vocabulary, lower_case=True, head=head, task={"task": "ner"})
    theirs, info = transformers.AutoModel.from_pretrained(str(tmp_path / "tagger"), output_loading_info=True)
    assert type(theirs).__name__ == "BertModel" and not info["missing_keys"] and not info["mismatched_keys"]
    ours = {name.huggingface.name for name, _ in model_variables(tagger) if name.attribute.startswith("tagger.")}
    assert set(info["unexpected_keys"]) == ours and all(name.startswith("keras_bert.") for name in ours)
    batch = pretraining_batch(tagger.config)
    names = {"input_ids": "input_word_ids", "attention_mask": "input_mask", "token_type_ids": "input_type_ids"}
    with torch.no_grad():
        states = theirs.eval()(**{name: torch.tensor(batch[ours]).long() for name, ours in names.items()})[0].numpy()
    real = batch["input_mask"].astype(bool)
    features = tagger.frozen_features({name: batch[name] for name in names.values()}).numpy()[:, :, -1]
    np.testing.assert_allclose(features[real], states[real], rtol=1e-5, atol=1e-5)


@pytest.fixture(scope="module")
def folders(model, tmp_path_factory):
    """Of the whole model, and of its encoder alone."""
    vocabulary = Vocabulary([*SPECIAL_TOKENS, *(f"w{number}" for number in range(55))])
    encoder = BertEncoder(model.config)
    random_weights(encoder)
    written = {}
    for name, part in (("whole", model), ("encoder", encoder)):
        written[name] = str(tmp_path_factory.mktemp("folders") / name)
        write_model_folder(written[name], part, vocabulary, lower_case=True)
    return written


@pytest.mark.parametrize(
    "folder, kind, heads",
    [
        ("whole", "BertModel", ("cls.",)),
        ("whole", "BertForPreTraining", ()),
        ("whole", "BertForMaskedLM", ("cls.seq_relationship.", "bert.pooler.")),
        ("encoder", "BertModel", ()),
        ("encoder", "AutoModel", ()),
    ],
)
def test_opens_with_equal_outputs(folders, model, folder, kind, heads):
    """Not used is only what that class of transformers has no place for."""
    import torch
    import transformers

    theirs, info = getattr(transformers, kind).from_pretrained(folders[folder], output_loading_info=True)
    assert not info["missing_keys"] and not info["mismatched_keys"]
    assert all(name.startswith(heads) for name in info["unexpected_keys"]) if heads else not info["unexpected_keys"]
    batch = pretraining_batch(model.config)
    names = {"input_ids": "input_word_ids", "attention_mask": "input_mask", "token_type_ids": "input_type_ids"}
    with torch.no_grad():
        outputs = theirs.eval()(
            **{name: torch.tensor(batch[ours]).long() for name, ours in names.items()}, output_hidden_states=True
        )
    real = batch["input_mask"].astype(bool)
    encoder_inputs = {name: batch[name] for name in names.values()}
    encoded, ours = model.encoder(encoder_inputs), model(encoder_inputs)
    for received, expected in zip(encoded["hidden_states"], outputs.hidden_states, strict=True):
        np.testing.assert_allclose(received.numpy()[real], expected.numpy()[real], rtol=1e-5, atol=1e-5)
    if "pooler_output" in outputs:
        np.testing.assert_allclose(encoded["pooled_output"], outputs.pooler_output, rtol=1e-5, atol=1e-5)
    for name in ("logits", "prediction_logits"):
        if name in outputs:
            np.testing.assert_allclose(ours["mlm_logits"].numpy()[real], outputs[name].numpy()[real], atol=1e-4)
    if "seq_relationship_logits" in outputs:
        np.testing.assert_allclose(ours["nsp_logits"], outputs.seq_relationship_logits, atol=1e-4)
