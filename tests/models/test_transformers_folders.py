"""Folders of transformers open here, and what is written here is what transformers writes, for every class."""

import glob
import json
import os

import numpy as np
import pytest
from goldens import Golden, read_tensors, write_again

from keras_bert.config.finetuning import MULTI_LABEL, REGRESSION, SINGLE_LABEL
from keras_bert.inference.loading import load
from keras_bert.models.bert.config import BertConfig
from keras_bert.tasks.classification.head import ClassificationConfig, NextSentenceConfig
from keras_bert.tasks.multiple_choice.task import MultipleChoiceConfig
from keras_bert.tasks.question_answering.task import SpanExtractionConfig
from keras_bert.tasks.tagging.head import TokenClassificationConfig

pytestmark = pytest.mark.parity

HEADS = {
    "pretraining": None,
    "pretraining_gelu_new": None,
    "encoder": None,
    "spans": SpanExtractionConfig(),
    "tags": TokenClassificationConfig(("O", "B-PER", "I-PER")),
    "choice": MultipleChoiceConfig(),
    "single_label": ClassificationConfig(("against", "neutral", "for"), SINGLE_LABEL),
    "multi_label": ClassificationConfig(("sport", "politics"), MULTI_LABEL),
    "regression": ClassificationConfig(("similarity",), REGRESSION),
    # For these it writes no problem_type, and for two labels not even their names.
    "as_it_comes": ClassificationConfig(("LABEL_0", "LABEL_1"), SINGLE_LABEL),
    "three_labels": ClassificationConfig(("LABEL_0", "LABEL_1", "LABEL_2"), SINGLE_LABEL),
    "one_label": ClassificationConfig(("LABEL_0",), REGRESSION),
    "no_and_yes": ClassificationConfig(("no", "yes"), SINGLE_LABEL),
    "next_sentence": NextSentenceConfig(),
    "albert": None,
    "albert_encoder": None,
    "albert_spans": SpanExtractionConfig(),
    "albert_tags": TokenClassificationConfig(("O", "B-PER", "I-PER")),
    "albert_choice": MultipleChoiceConfig(),
    "albert_classes": ClassificationConfig(("against", "neutral", "for"), SINGLE_LABEL),
    "roberta": None,
    "roberta_encoder": None,
    "roberta_spans": SpanExtractionConfig(),
    "roberta_tags": TokenClassificationConfig(("O", "B-PER", "I-PER")),
    "roberta_choice": MultipleChoiceConfig(),
    "roberta_classes": ClassificationConfig(("against", "neutral", "for"), SINGLE_LABEL),
    "xlm-roberta": None,
    "xlm-roberta_encoder": None,
    "xlm-roberta_spans": SpanExtractionConfig(),
    "xlm-roberta_tags": TokenClassificationConfig(("O", "B-PER", "I-PER")),
    "xlm-roberta_choice": MultipleChoiceConfig(),
    "xlm-roberta_classes": ClassificationConfig(("against", "neutral", "for"), SINGLE_LABEL),
    "camembert": None,
    "xlnet": None,
    "xlnet_encoder": None,
    "xlnet_spans": SpanExtractionConfig(),
    "xlnet_tags": TokenClassificationConfig(("O", "B-PER", "I-PER")),
    "xlnet_choice": MultipleChoiceConfig(),
    "xlnet_classes": ClassificationConfig(("against", "neutral", "for"), SINGLE_LABEL),
    "electra": None,
    "electra_generator": None,
    "electra_encoder": None,
    "electra_spans": SpanExtractionConfig(),
    "electra_tags": TokenClassificationConfig(("O", "B-PER", "I-PER")),
    "electra_choice": MultipleChoiceConfig(),
    "electra_classes": ClassificationConfig(("against", "neutral", "for"), SINGLE_LABEL),
    "roberta-prelayernorm": None,
    "roberta-prelayernorm_encoder": None,
    "roberta-prelayernorm_classes": ClassificationConfig(("against", "neutral", "for"), SINGLE_LABEL),
    "distilbert": None,
    "distilbert_encoder": None,
    "distilbert_spans": SpanExtractionConfig(),
    "distilbert_tags": TokenClassificationConfig(("O", "B-PER", "I-PER")),
    "distilbert_choice": MultipleChoiceConfig(),
    "distilbert_classes": ClassificationConfig(("against", "neutral", "for"), SINGLE_LABEL),
}
each_folder = pytest.mark.parametrize("name", HEADS)

# What a folder says about the program that wrote it.
OF_THE_WRITER = ("transformers_version", "dtype", "_name_or_path")
# The fields of tokenizer_config.json that BERT's tokenizer reads.
OF_THE_TOKENIZER = (
    "do_lower_case",
    "tokenize_chinese_chars",
    "strip_accents",
    "tokenizer_class",
    "model_max_length",
    "unk_token",
    "sep_token",
    "pad_token",
    "cls_token",
    "mask_token",
)

OF_FAIRSEQS_TOKENIZER = ("bos_token", "eos_token", *OF_THE_TOKENIZER[3:])
TOKENIZER_FIELDS = {
    "distilbert": (*OF_THE_TOKENIZER, "model_input_names"),
    "roberta": ("add_prefix_space", *OF_FAIRSEQS_TOKENIZER),
    "roberta-prelayernorm": ("add_prefix_space", *OF_FAIRSEQS_TOKENIZER),
    "xlm-roberta": OF_FAIRSEQS_TOKENIZER,
    "camembert": OF_FAIRSEQS_TOKENIZER,
    "xlnet": ("do_lower_case", "keep_accents", "remove_space", *OF_FAIRSEQS_TOKENIZER),
}


@pytest.fixture(scope="module")
def opened(goldens):
    """A function: the `Golden` and the `LoadedModel` of a folder, opened once."""
    found = {}

    def open_once(name):
        if name not in found:
            golden = Golden(goldens, name)
            found[name] = golden, load(golden.path)
        return found[name]

    return open_once


def read_json(*path):
    with open(os.path.join(*path), encoding="utf-8") as stream:
        return json.load(stream)


def as_opened(config, defaults):
    """The fields that transformers has after opening this config.json."""
    fields = {**defaults, **config}
    number = config.get("num_labels")
    if number:  # Sets the names, or is their number.
        fields.setdefault("id2label", {str(index): f"LABEL_{index}" for index in range(number)})
        assert len(fields["id2label"]) == number
    fields["label2id"] = {label: int(index) for index, label in fields["id2label"].items()}
    return {key: value for key, value in fields.items() if key not in (*OF_THE_WRITER, "num_labels")}


def test_no_folder_is_left_out(goldens):
    folders = [name for name in os.listdir(goldens) if os.path.isfile(os.path.join(goldens, name, "golden.npz"))]
    assert sorted(folders) == sorted([*HEADS, "causal"])  # See test_causal_attention.py for that one.


def test_fields_that_a_config_leaves_out_are_as_in_transformers(goldens, tmp_path):
    """Otherwise the weights of such a folder would not fit, or would compute something else."""
    paths = glob.glob(os.path.join(goldens, "*config_defaults.json"))
    assert len(paths) == 11
    for path in paths:
        kind = read_json(path)["model_type"]
        (tmp_path / "config.json").write_text(json.dumps({"model_type": kind}))
        assert BertConfig.from_file(tmp_path / "config.json") == BertConfig.from_file(path), kind


@each_folder
def test_opens_with_its_head_and_equal_outputs(opened, name):
    golden, loaded = opened(name)
    assert loaded.head == HEADS[name]
    assert not loaded.report.made_new and not loaded.report.unused
    outputs = dict(loaded.model(golden.encoder_batch))
    for of_pretraining in outputs.keys() & {"mlm_logits", "rtd_logits"} if "logits" in golden.outputs else ():
        outputs["logits"] = outputs[of_pretraining]
    if "hidden_states" in golden.outputs:
        outputs.update(loaded.encoder(golden.encoder_batch))
    compared = 0
    for output, expected in golden.outputs.items():
        if output in outputs:
            received, compared = np.array(outputs[output]), compared + 1
            # RoBERTa's padding has a position of its own there, and XLNet's is before the tokens.
            of_tokens = name.partition("_")[0] in TOKENIZER_FIELDS and expected.shape[:2] == golden.real.shape
            if of_tokens:
                received, expected = received[golden.real], expected[golden.real]
            elif output in ("hidden_states", "mlm_logits"):
                received, expected = received[..., golden.real, :], expected[..., golden.real, :]
            np.testing.assert_allclose(received, expected, atol=1e-5, rtol=1e-5, err_msg=output)
    assert compared == len(
        [output for output in golden.outputs if not output.startswith(("gradients", "loss", "att", "streams"))]
    )


@each_folder
def test_the_tokenizer_is_its(opened, name):
    golden, loaded = opened(name)
    ids = loaded.tokenizer([str(golden.arrays["text"])]).to_list()[0]
    assert ids == golden.arrays["text_ids"].tolist() and len(ids) > 5


@each_folder
def test_is_written_as_transformers_writes_it(opened, name, tmp_path, goldens):
    """The names, shapes and values of the tensors, and every field of the configs."""
    golden, loaded = opened(name)
    folder = str(tmp_path / "ours")
    write_again(folder, loaded)
    ours, theirs = read_tensors(folder), read_tensors(golden.path)
    assert ours.keys() == theirs.keys()
    for tensor, expected in theirs.items():
        assert ours[tensor].dtype == expected.dtype
        np.testing.assert_array_equal(ours[tensor], expected, err_msg=tensor)
    kind = name.partition("_")[0]
    has_own_defaults = kind in ("albert", "electra", *TOKENIZER_FIELDS)
    defaults = read_json(goldens, f"{kind}_config_defaults.json" if has_own_defaults else "config_defaults.json")
    received, expected = (as_opened(read_json(path, "config.json"), defaults) for path in (folder, golden.path))
    # Gone from the newest transformers, which knows no other than absolute.
    received.pop("position_embedding_type", None)
    if type(HEADS[name]) is ClassificationConfig:
        expected["problem_type"] = expected["problem_type"] or HEADS[name].problem_type
        if HEADS[name].problem_type == REGRESSION:  # Ours alone: the number is the logit itself.
            assert received.pop("sentence_transformers") == {"activation_fn": "torch.nn.modules.linear.Identity"}
    assert received == expected
    received, expected = (read_json(path, "tokenizer_config.json") for path in (folder, golden.path))
    assert received == {key: expected[key] for key in TOKENIZER_FIELDS.get(kind, OF_THE_TOKENIZER)}
