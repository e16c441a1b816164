"""Small folders of every make, as transformers writes them, with the outputs of its models. See `__main__.py`.

python tools/goldens/of_model_folders.py make FOLDER  writes a folder for each of CASES, and outputs.npz in it
python tools/goldens/of_model_folders.py open FOLDER  opens what was written of each as FOLDER/CASE/again, and writes
                                                      its outputs to again.npz beside it

They are made when the tests run, not committed: every activation, every head, with causal attention too, untied
decoders, one segment, tensors left over from other heads, no `architectures`, shards, pytorch_model.bin, half
precision, names of 2019.
"""

import json
import os
import sys
from collections.abc import Callable
from typing import Any

import arrays
import numpy as np
import safetensors.torch
import torch
import transformers
from of_transformers import (
    PACKAGES,
    SMALL,
    SMALL_ALBERT,
    SMALL_CAMEMBERT,
    SMALL_ROBERTA,
    SMALL_XLM_ROBERTA,
    as_robertas,
    config_of,
    is_robertas,
    outputs_of,
    random_inputs,
    randomize,
    tokenizer_of,
)
from transformers.activations import ACT2FN

Tensors = dict[str, torch.Tensor]

CAUSAL = {"is_decoder": True, "use_cache": False}
UNTIED = {"tie_word_embeddings": False}
# Keras has no such function, or it has weights; these are refused.
NOT_HERE = ("laplace", "prelu", "sqrtsoftplus", "xielu")
HEADS = ("PreTraining", "MaskedLM", "NextSentencePrediction", "SequenceClassification", "TokenClassification")
HEADS += ("QuestionAnswering", "MultipleChoice")


def leftovers(tensors: Tensors) -> Tensors:
    """Adds heads of other tasks."""
    stray = {"classifier": 3, "qa_outputs": 2}
    added = {f"{name}.weight": torch.ones(rows, SMALL["hidden_size"]) for name, rows in stray.items()}
    return {**tensors, **added, **{f"{name}.bias": torch.ones(rows) for name, rows in stray.items()}}


def names_of_2019(tensors: Tensors) -> Tensors:
    """Renames to gamma and beta, and adds the prefix of a wrapper."""
    pairs = (("LayerNorm.weight", "LayerNorm.gamma"), ("LayerNorm.bias", "LayerNorm.beta"))
    return {f"module.{_replaced(name, pairs)}": value for name, value in tensors.items()}


def _replaced(name: str, pairs: tuple[tuple[str, str], ...]) -> str:
    for old, new in pairs:
        name = name.replace(old, new)
    return name


# (class, fields of the config, changes to the folder: `tensors` changed, `config` fields left out, `file` format)
Case = tuple[str, dict[str, Any], dict[str, Any]]
CASES: dict[str, Case] = {
    **{
        f"activation_{name}": ("BertForMaskedLM", {**SMALL, "hidden_act": name}, {})
        for name in ACT2FN
        if name not in NOT_HERE
    },
    **{f"plain_{head}": (f"BertFor{head}", SMALL, {}) for head in HEADS},
    **{f"causal_{head}": (f"BertFor{head}", {**SMALL, **CAUSAL}, {}) for head in HEADS if head != "MaskedLM"},
    "causal_encoder": ("BertModel", {**SMALL, **CAUSAL}, {}),
    "causal_lm": ("BertLMHeadModel", {**SMALL, **CAUSAL}, {}),
    "causal_lm_untied": ("BertLMHeadModel", {**SMALL, **CAUSAL, **UNTIED}, {}),
    "untied": ("BertForPreTraining", {**SMALL, **UNTIED}, {}),
    "untied_classifier": ("BertForSequenceClassification", {**SMALL, **UNTIED}, {}),
    "untied_albert": ("AlbertForPreTraining", {**SMALL_ALBERT, **UNTIED}, {}),
    "untied_roberta": ("RobertaForMaskedLM", {**SMALL_ROBERTA, **UNTIED}, {}),
    **{f"roberta_{head}": (f"RobertaFor{head}", SMALL_ROBERTA, {}) for head in HEADS if head not in HEADS[:3]},
    "roberta_torch": ("RobertaForSequenceClassification", SMALL_ROBERTA, {"file": "torch"}),
    **{f"xlm_{head}": (f"XLMRobertaFor{head}", SMALL_XLM_ROBERTA, {}) for head in HEADS if head not in HEADS[:3]},
    **{f"camembert_{head}": (f"CamembertFor{head}", SMALL_CAMEMBERT, {}) for head in HEADS if head not in HEADS[:3]},
    "camembert_encoder": ("CamembertModel", SMALL_CAMEMBERT, {}),
    "untied_xlm": ("XLMRobertaForMaskedLM", {**SMALL_XLM_ROBERTA, **UNTIED}, {}),
    "one_segment": ("BertForSequenceClassification", {**SMALL, "type_vocab_size": 1}, {}),
    "leftovers": ("BertForMaskedLM", SMALL, {"tensors": leftovers}),
    "leftovers_encoder": ("BertModel", SMALL, {"tensors": leftovers}),
    "multi_label": ("BertForSequenceClassification", {**SMALL, "problem_type": "multi_label_classification"}, {}),
    **{
        f"unnamed_{head}": (f"BertFor{head}", SMALL, {"config": ("architectures",)})
        for head in HEADS
        if head != "MultipleChoice"  # The tensors are a regression's.
    },
    "shards": ("BertForPreTraining", SMALL, {"file": "shards"}),
    "torch": ("BertForPreTraining", SMALL, {"file": "torch"}),
    "torch_legacy": ("BertForTokenClassification", SMALL, {"file": "torch_legacy"}),
    "float16": ("BertForPreTraining", SMALL, {"file": "float16"}),
    "bfloat16": ("BertForQuestionAnswering", SMALL, {"file": "bfloat16"}),
    "names_of_2019": ("BertForPreTraining", SMALL, {"tensors": names_of_2019, "file": "torch"}),
}


def make(folder: str) -> None:
    """Writes the folder of each of CASES, its class in `class.txt`, and the inputs and outputs of its model."""
    transformers.logging.disable_progress_bar()
    for seed, (name, (kind, fields, changes)) in enumerate(CASES.items()):
        config_class = config_of(kind)
        model = getattr(transformers, kind)(config_class(**fields, attn_implementation="eager")).eval()
        randomize(model, seed)
        file, path = changes.get("file", "safetensors"), os.path.join(folder, name)
        if file in ("float16", "bfloat16"):
            model.to(getattr(torch, file))
        model.save_pretrained(path, max_shard_size=4000 if file == "shards" else "1GB")
        model.to(torch.float32)  # Of the rounded weights.
        tokenizer_of(kind).save_pretrained(path)
        rewrite(path, changes, file)
        with open(os.path.join(path, "class.txt"), "w", encoding="utf-8") as stream:
            stream.write(kind)
        inputs = random_inputs(choices=2 if kind.endswith("ForMultipleChoice") else None)
        if is_robertas(kind):
            inputs = as_robertas(inputs)
        elif config_class(**fields).type_vocab_size == 1:
            inputs["token_type_ids"] *= 0
        stored = {f"inputs/{key}": value for key, value in inputs.items()}
        stored.update({f"outputs/{key}": value for key, value in outputs_of(model, inputs).items()})
        arrays.save(os.path.join(path, "outputs.npz"), PACKAGES, stored)


def rewrite(path: str, changes: dict[str, Any], file: str) -> None:
    """Changes what `save_pretrained` wrote."""
    change: Callable[[Tensors], Tensors] = changes.get("tensors", dict)
    weights = os.path.join(path, "model.safetensors")
    if "tensors" in changes or file.startswith("torch"):
        tensors = change(safetensors.torch.load_file(weights))
        if file.startswith("torch"):
            os.unlink(weights)
            is_zip = file == "torch"
            torch.save(tensors, os.path.join(path, "pytorch_model.bin"), _use_new_zipfile_serialization=is_zip)
        else:
            safetensors.torch.save_file(tensors, weights, metadata={"format": "pt"})
    if "config" in changes:
        config_file = os.path.join(path, "config.json")
        with open(config_file, encoding="utf-8") as stream:
            fields = json.load(stream)
        with open(config_file, "w", encoding="utf-8") as stream:
            json.dump({key: value for key, value in fields.items() if key not in changes["config"]}, stream)


def open_again(folder: str) -> None:
    """Opens `CASE/again` under the class that the case had, and writes its outputs, and what it lacks, to again.npz."""
    transformers.logging.disable_progress_bar()
    for name, (kind, _, _) in CASES.items():
        path = os.path.join(folder, name)
        model, info = getattr(transformers, kind).from_pretrained(
            os.path.join(path, "again"), output_loading_info=True, attn_implementation="eager"
        )
        stored = arrays.load(os.path.join(path, "outputs.npz"))
        inputs = {key.removeprefix("inputs/"): value for key, value in stored.items() if key.startswith("inputs/")}
        found = {f"outputs/{key}": value for key, value in outputs_of(model.eval(), inputs).items()}
        found["missing"] = np.array(sorted(map(str, info["missing_keys"])))
        arrays.save(os.path.join(path, "again.npz"), PACKAGES, found)


if __name__ == "__main__":
    {"make": make, "open": open_again}[sys.argv[1]](sys.argv[2])
