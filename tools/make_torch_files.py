"""Writes the small files of `torch.save` that tests/checkpoints reads without PyTorch.

    pip install torch==2.13.0
    python tools/make_torch_files.py

`golden_torch_*.bin` are of today's layout, a zip archive; `golden_torch_*_legacy.bin` of that before PyTorch 1.6.
`golden_torch_bert*` is the state dict of a BERT as of 2019 (`LayerNorm.gamma`, the decoder tied to the embeddings);
`golden_torch_kinds*` has a tensor of each kind of number and each way to lie in a storage. What is in them stands in
tests/support/torch_files.py; the committed ones are of PyTorch 2.13.0.
"""

import collections
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [ROOT, os.path.join(ROOT, "tests", "support")]

import torch
from torch_files import KINDS, bert_shapes, numbers

_OLD_NAMES = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}


def bert():
    tensors = collections.OrderedDict()
    for name, shape in bert_shapes().items():
        old = name
        for new, before in _OLD_NAMES.items():
            old = old.replace(new, before)
        tensors[old] = torch.from_numpy(numbers(name, shape))
    tensors["cls.predictions.decoder.weight"] = tensors["bert.embeddings.word_embeddings.weight"]
    tensors["bert.embeddings.position_ids"] = torch.arange(16).expand((1, -1))
    tensors._metadata = collections.OrderedDict({"": {"version": 1}, "bert": {"version": 1}})  # As a module's has it.
    return tensors


def kinds():
    return {name: tensor(name, *of_it) for name, of_it in KINDS.items()}


def tensor(name, dtype, shape, lies):
    values = torch.from_numpy(numbers(name, shape)).to(getattr(torch, dtype))
    if lies == "transposed":
        return values.T.contiguous().T
    if lies == "part":
        whole = torch.zeros(5, 6, dtype=values.dtype)
        whole[2:4, 1:5:2] = values
        return whole[2:4, 1:5:2]
    if lies == "parameter":
        return torch.nn.Parameter(values)
    return values[0].expand(shape) if lies == "expanded" else values


def main():
    folder = os.path.join(ROOT, "tests", "checkpoints")
    for name, tensors in (("bert", bert()), ("kinds", kinds())):
        for layout, is_zip in (("", True), ("_legacy", False)):
            path = os.path.join(folder, f"golden_torch_{name}{layout}.bin")
            torch.save(tensors, path, _use_new_zipfile_serialization=is_zip)
            print(f"{os.path.relpath(path, ROOT)}: {os.path.getsize(path):,} bytes, PyTorch {torch.__version__}")


if __name__ == "__main__":
    main()
