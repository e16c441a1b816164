"""Adapters that peft writes, with the outputs of its models, and its outputs of adapters written here.

python tools/goldens/of_peft.py make FOLDER  writes CASE/base, CASE/adapter and CASE/outputs.npz for each of CASES
python tools/goldens/of_peft.py open FOLDER  adds CASE/again, an adapter written here, to CASE/base, and writes the
                                             outputs to CASE/again.npz
"""

import os
import sys
import warnings
from typing import Any

import arrays
import numpy as np
import peft
import torch
import transformers
from of_transformers import (
    PACKAGES,
    SMALL,
    SMALL_ALBERT,
    SMALL_ROBERTA,
    as_robertas,
    config_of,
    labelled,
    outputs_of,
    random_inputs,
    randomize,
    tokenizer_of,
)

OF_BERT = ["query", "key", "value", "attention.output.dense", "intermediate.dense", "output.dense"]
# (class, fields of the config, fields of the LoraConfig)
CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "classes": (
        "BertForSequenceClassification",
        labelled("a", "b", "c"),
        {"task_type": "SEQ_CLS", "target_modules": OF_BERT, "modules_to_save": ["pooler"]},
    ),
    "query_and_value": (
        "BertForSequenceClassification",
        labelled("no", "yes"),
        {"task_type": "SEQ_CLS", "target_modules": ["query", "value"], "use_rslora": True},
    ),
    "tags": ("BertForTokenClassification", labelled("O", "B-X"), {"task_type": "TOKEN_CLS", "target_modules": OF_BERT}),
    "spans": ("BertForQuestionAnswering", SMALL, {"task_type": "QUESTION_ANS", "target_modules": OF_BERT}),
    "choice": (
        "BertForMultipleChoice",
        SMALL,
        {"target_modules": OF_BERT, "modules_to_save": ["classifier", "pooler"]},
    ),
    "roberta": (
        "RobertaForSequenceClassification",
        {**SMALL_ROBERTA, "id2label": {0: "x", 1: "y"}},
        {"task_type": "SEQ_CLS", "target_modules": OF_BERT},
    ),
    "albert": (
        "AlbertForSequenceClassification",
        SMALL_ALBERT,
        {"target_modules": ["query", "attention.dense", "ffn"], "modules_to_save": ["classifier", "pooler"]},
    ),
}


def peft_outputs(model: Any, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The outputs of transformers' model with the adapter in it: peft's class for spans drops `token_type_ids`."""
    return outputs_of(model.base_model.model, inputs)


def base_of(folder: str, name: str) -> Any:
    """The model that a case's adapters add to."""
    kind = getattr(transformers, CASES[name][0])
    return kind.from_pretrained(os.path.join(folder, name, "base"), attn_implementation="eager").eval()


def make(folder: str) -> None:
    """Writes the base and an adapter of each of CASES, and the inputs and outputs of both together."""
    transformers.logging.disable_progress_bar()
    for seed, (name, (kind, fields, settings)) in enumerate(CASES.items()):
        base = os.path.join(folder, name, "base")
        plain = getattr(transformers, kind)(config_of(kind)(**fields, attn_implementation="eager"))
        randomize(plain, seed)
        plain.save_pretrained(base)
        tokenizer_of(kind).save_pretrained(base)
        model = peft.get_peft_model(base_of(folder, name), peft.LoraConfig(r=2, lora_alpha=3, **settings)).eval()
        rng = np.random.default_rng(seed)
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.requires_grad:
                    parameter.copy_(torch.tensor(rng.normal(0.0, 0.2, parameter.shape)))
        model.save_pretrained(os.path.join(folder, name, "adapter"))
        inputs = random_inputs(choices=2 if kind.endswith("ForMultipleChoice") else None)
        inputs = as_robertas(inputs) if kind.startswith("Roberta") else inputs
        stored = {f"inputs/{key}": value for key, value in inputs.items()}
        stored.update({f"outputs/{key}": value for key, value in peft_outputs(model, inputs).items()})
        arrays.save(os.path.join(folder, name, "outputs.npz"), [*PACKAGES, "peft"], stored)


def open_again(folder: str) -> None:
    """Writes the outputs of each base with the adapter `CASE/again`; missing and left-over tensors are errors."""
    transformers.logging.disable_progress_bar()
    for name in CASES:
        path = os.path.join(folder, name)
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message=".*adapter keys")
            model = peft.PeftModel.from_pretrained(base_of(folder, name), os.path.join(path, "again")).eval()
        stored = arrays.load(os.path.join(path, "outputs.npz"))
        inputs = {key.removeprefix("inputs/"): value for key, value in stored.items() if key.startswith("inputs/")}
        found = {f"outputs/{key}": value for key, value in peft_outputs(model, inputs).items()}
        arrays.save(os.path.join(path, "again.npz"), [*PACKAGES, "peft"], found)


if __name__ == "__main__":
    {"make": make, "open": open_again}[sys.argv[1]](sys.argv[2])
