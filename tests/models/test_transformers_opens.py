"""What is written here opens in transformers under each of its classes, with nothing missing and equal outputs.

Live: transformers opens all folders in one process of its own. That they are what transformers itself writes is proved
without it by test_transformers_folders.py.
"""

import json
import os

import numpy as np
import pytest
from goldens import ENCODER_INPUTS, Golden, load_arrays, outputs_in, read_tensors, run_peer, write_again

from keras_bert.checkpoints.model_folder import open_model_folder
from keras_bert.checkpoints.writing import write_model_folder
from keras_bert.inference.loading import load
from keras_bert.models.kind import bert_counterpart
from keras_bert.models.tensor_names import model_variables
from keras_bert.tasks.kind import kind_of_head, task_kinds
from keras_bert.tasks.tagging.head import FeatureTaggingConfig

HEAD = FeatureTaggingConfig(("O", "B-X"), "weighted_all", 8)
# (golden folder, class of transformers, beginnings of the tensors that this class has no place for)
CASES = [
    ("pretraining", "BertForPreTraining", ()),
    ("pretraining", "BertModel", ("cls.",)),
    ("pretraining", "BertForMaskedLM", ("cls.seq_relationship.", "bert.pooler.")),
    ("encoder", "BertModel", ()),
    ("encoder", "AutoModel", ()),
    ("causal", "BertLMHeadModel", ("cls.seq_relationship.", "bert.pooler.")),
    ("spans", "BertForQuestionAnswering", ()),
    ("tags", "BertForTokenClassification", ()),
    ("choice", "BertForMultipleChoice", ()),
    ("single_label", "BertForSequenceClassification", ()),
    ("multi_label", "BertForSequenceClassification", ()),
    ("regression", "BertForSequenceClassification", ()),
    ("next_sentence", "BertForNextSentencePrediction", ()),
    ("albert", "AlbertForPreTraining", ()),
    ("albert", "AlbertModel", ("predictions.", "sop_classifier.")),
    ("albert_encoder", "AutoModel", ()),
    ("albert_spans", "AlbertForQuestionAnswering", ()),
    ("albert_tags", "AlbertForTokenClassification", ()),
    ("albert_choice", "AlbertForMultipleChoice", ()),
    ("albert_classes", "AlbertForSequenceClassification", ()),
    ("roberta", "RobertaForMaskedLM", ()),
    ("roberta_encoder", "AutoModel", ()),
    ("roberta_spans", "RobertaForQuestionAnswering", ()),
    ("roberta_tags", "RobertaForTokenClassification", ()),
    ("roberta_choice", "RobertaForMultipleChoice", ()),
    ("roberta_classes", "RobertaForSequenceClassification", ()),
    ("xlm-roberta", "XLMRobertaForMaskedLM", ()),
    ("xlm-roberta_encoder", "AutoModel", ()),
    ("xlm-roberta_spans", "XLMRobertaForQuestionAnswering", ()),
    ("xlm-roberta_tags", "XLMRobertaForTokenClassification", ()),
    ("xlm-roberta_choice", "XLMRobertaForMultipleChoice", ()),
    ("xlm-roberta_classes", "XLMRobertaForSequenceClassification", ()),
    ("camembert", "CamembertForMaskedLM", ()),
    ("xlnet", "XLNetLMHeadModel", ()),
    ("xlnet_encoder", "AutoModel", ()),
    ("xlnet_spans", "XLNetForQuestionAnsweringSimple", ()),
    ("xlnet_tags", "XLNetForTokenClassification", ()),
    ("xlnet_choice", "XLNetForMultipleChoice", ()),
    ("xlnet_classes", "XLNetForSequenceClassification", ()),
    ("electra", "ElectraForPreTraining", ()),
    ("electra", "ElectraModel", ("discriminator_predictions.",)),
    ("electra_generator", "ElectraForMaskedLM", ()),
    ("electra_encoder", "AutoModel", ()),
    ("electra_spans", "ElectraForQuestionAnswering", ()),
    ("electra_tags", "ElectraForTokenClassification", ()),
    ("electra_choice", "ElectraForMultipleChoice", ()),
    ("electra_classes", "ElectraForSequenceClassification", ()),
    ("roberta-prelayernorm", "RobertaPreLayerNormForMaskedLM", ()),
    ("roberta-prelayernorm_encoder", "AutoModel", ()),
    ("roberta-prelayernorm_classes", "RobertaPreLayerNormForSequenceClassification", ()),
    ("distilbert", "DistilBertForMaskedLM", ()),
    ("distilbert_encoder", "AutoModel", ()),
    ("distilbert_spans", "DistilBertForQuestionAnswering", ()),
    ("distilbert_tags", "DistilBertForTokenClassification", ()),
    ("distilbert_choice", "DistilBertForMultipleChoice", ()),
    ("distilbert_classes", "DistilBertForSequenceClassification", ()),
]


@pytest.fixture(scope="module")
def tagger(goldens, tmp_path_factory):
    """(model, folder) of a tagger of ours, of which transformers knows only the encoder."""
    model_folder = open_model_folder(os.path.join(goldens, "encoder"))
    model = kind_of_head(HEAD).make_model(model_folder.config, HEAD)
    model_folder.load_into(model)
    folder, vocabulary = str(tmp_path_factory.mktemp("tagger") / "model"), load(model_folder.path).tokenizer.vocabulary
    write_model_folder(folder, model, vocabulary, lower_case=True, head=HEAD, task={"task": "ner"})
    return model, folder


def names_of_the_tagger(model):
    return {name.huggingface.name for name, _ in model_variables(model) if name.attribute.startswith("tagger.")}


@pytest.mark.parity
def test_a_tagger_is_an_encoder_and_tensors_under_our_name(tagger, goldens):
    model, folder = tagger
    theirs = Golden(goldens, "encoder")
    received, expected = read_tensors(folder), read_tensors(theirs.path)
    added = received.keys() - expected.keys()
    assert added == names_of_the_tagger(model) and all(name.startswith("keras_bert.") for name in added)
    for name, value in expected.items():
        np.testing.assert_array_equal(received[name], value, err_msg=name)
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as stream:
        assert json.load(stream)["architectures"] == ["BertModel"]
    features = model.frozen_features(theirs.encoder_batch).numpy()[:, :, -1]
    last = theirs.outputs["hidden_states"][-1]
    np.testing.assert_allclose(features[theirs.real], last[theirs.real], rtol=1e-5, atol=1e-5)


@pytest.fixture(scope="module")
def in_transformers(goldens, tagger, tmp_path_factory):
    """A function: the arrays that transformers made of a folder that ours wrote, under a class."""
    room = tmp_path_factory.mktemp("opened")
    written = {"tagger": tagger[1]}
    for name in dict.fromkeys(name for name, *_ in CASES):
        written[name] = str(room / name)
        write_again(written[name], load(os.path.join(goldens, name)))

    def job(name, kind):
        golden = Golden(goldens, "encoder" if name == "tagger" else name).file
        return {"folder": written[name], "kind": kind, "golden": golden, "to": str(room / f"{name}-{kind}.npz")}

    jobs = [job(name, kind) for name, kind, _ in CASES] + [job("tagger", "AutoModel")]
    (room / "jobs.json").write_text(json.dumps(jobs), "utf-8")
    run_peer("of_transformers.py", "open", room / "jobs.json")
    return lambda name, kind: load_arrays(room / f"{name}-{kind}.npz")


@pytest.mark.live
@pytest.mark.parametrize("name, kind, heads", CASES)
def test_opens_with_equal_outputs(in_transformers, goldens, name, kind, heads):
    """Only what that class of transformers has no place for is left unused."""
    received = in_transformers(name, kind)
    assert not received["missing"].size and not received["mismatched"].size
    unexpected = received["unexpected"].tolist()
    assert all(tensor.startswith(heads) for tensor in unexpected) if heads else not unexpected
    ours, theirs = load(os.path.join(goldens, name)), Golden(goldens, name)
    outputs = outputs_in(received)
    for output, value in outputs.items():
        expected = theirs.outputs["mlm_logits" if (name, output) == ("pretraining", "logits") else output]
        # Its padding has a position of its own there, or is before the tokens.
        if name.startswith(("roberta", "xlm-roberta", "camembert", "xlnet")):
            at_tokens = value.ndim > 2 or output.endswith("_logits")
            if output == "hidden_states":
                value, expected = value[:, theirs.real], expected[:, theirs.real]
            elif at_tokens and value.shape[:2] == theirs.real.shape:
                value, expected = value[theirs.real], expected[theirs.real]
        elif name in ("pretraining", "encoder", "causal", "albert", "albert_encoder") and output not in (
            "pooled_output",
            "nsp_logits",
            "sop_logits",
        ):
            value, expected = value[..., theirs.real, :], expected[..., theirs.real, :]
        np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-5, err_msg=output)
    assert outputs and received["text_ids"].tolist() == ours.tokenizer([str(theirs.arrays["text"])]).to_list()[0]
    if name == "next_sentence":  # transformers has no names for its classes.
        return
    if hasattr(ours.head, "labels"):
        assert tuple(received["labels"]) == ours.head.labels
    if hasattr(ours.head, "problem_type"):
        assert received["problem_type"] == ours.head.problem_type


def assert_same_outputs(received, stored, name):
    """`received` has our names, `stored` transformers' names; outputs at padding do not count."""
    for output, expected in outputs_in(stored).items():
        value = np.array(received["mlm_logits" if output not in received else output])
        if expected.shape[-3:-1] == stored["inputs/attention_mask"].shape or output in ("start_logits", "end_logits"):
            real = stored["inputs/attention_mask"].astype(bool)
            per_token = (..., real, slice(None)) if expected.ndim > 2 else real
            value, expected = value[per_token], expected[per_token]
        np.testing.assert_allclose(value, expected, rtol=1e-4, atol=1e-5, err_msg=f"{name}: {output}")


@pytest.mark.live
def test_folders_of_every_make_open_and_are_written_again(tmp_path):
    """The head, the outputs and what is written again are transformers' own, or answers would be silently wrong."""
    run_peer("of_model_folders.py", "make", tmp_path)
    heads = {kind.head.architecture for kind in task_kinds() if kind.in_transformers}
    cases = {path.name: bert_counterpart((path / "class.txt").read_text()) for path in tmp_path.iterdir()}
    for name, kind in cases.items():
        folder, stored = tmp_path / name, load_arrays(tmp_path / name / "outputs.npz")
        loaded = load(folder)
        assert (loaded.head.architecture if loaded.head else None) == (kind if kind in heads else None), name
        assert bool(loaded.report.unused) == name.startswith("leftovers"), name
        batch = {ours: stored[f"inputs/{theirs}"] for theirs, ours in ENCODER_INPUTS.items()}
        outputs = dict(loaded.model(batch))
        if "outputs/hidden_states" in stored:
            outputs.update(loaded.encoder(batch))
        assert_same_outputs(outputs, stored, name)
        write_again(folder / "again", loaded)
    run_peer("of_model_folders.py", "open", tmp_path)
    for name in cases:
        stored, again = (load_arrays(tmp_path / name / f"{file}.npz") for file in ("outputs", "again"))
        assert not again["missing"].size, name
        assert_same_outputs(outputs_in(again), stored, name)
    assert len(cases) > 50


def test_every_head_is_opened():
    """Those of models with decoders in test_bart.py."""
    kinds = [kind for kind in task_kinds() if kind.in_transformers and not kind.writes_texts]
    architectures = {kind.head.architecture for kind in kinds}
    assert {kind for _, kind, _ in CASES} >= architectures


@pytest.mark.live
def test_a_tagger_of_ours_opens_as_a_bert_model(in_transformers, tagger, goldens):
    """Nothing is missing, and only the tensors under `keras_bert.` are left unused."""
    received, theirs = in_transformers("tagger", "AutoModel"), Golden(goldens, "encoder")
    assert received["kind"] == "BertModel" and not received["missing"].size and not received["mismatched"].size
    assert set(received["unexpected"]) == names_of_the_tagger(tagger[0])
    last, expected = outputs_in(received)["hidden_states"][-1], theirs.outputs["hidden_states"][-1]
    np.testing.assert_allclose(last[theirs.real], expected[theirs.real], rtol=1e-5, atol=1e-5)
