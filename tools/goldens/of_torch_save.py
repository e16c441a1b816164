"""Files written by `torch.save`. See `__main__.py`.

python tools/goldens/of_torch_save.py make FOLDER

`*.bin` have today's layout, a zip archive; `*_legacy.bin` the one before PyTorch 1.6. `bert` is the state dict of a
BERT from 2019 (`LayerNorm.gamma`, decoder tied to the embeddings); `kinds` has a tensor of each dtype and each memory
layout; tests/support/torch_files.py lists the contents of both. `module_*` are saved in other ways.
"""

import collections
import os
import sys
from collections.abc import Sequence

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [ROOT, os.path.join(ROOT, "tests", "support")]

import arrays
import torch
from torch_files import KINDS, bert_shapes, numbers

_OLD_NAMES = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}


def bert() -> "collections.OrderedDict[str, torch.Tensor]":
    """A BERT's state dict with the names of 2019."""
    tensors = collections.OrderedDict()
    for name, shape in bert_shapes().items():
        old = name
        for new, before in _OLD_NAMES.items():
            old = old.replace(new, before)
        tensors[old] = torch.from_numpy(numbers(name, shape))
    tensors["cls.predictions.decoder.weight"] = tensors["bert.embeddings.word_embeddings.weight"]
    tensors["bert.embeddings.position_ids"] = torch.arange(16).expand((1, -1))
    tensors._metadata = collections.OrderedDict(
        {"": {"version": 1}, "bert": {"version": 1}}
    )  # As in a module's state dict.
    return tensors


def kinds() -> dict[str, torch.Tensor]:
    """A tensor for each entry of `KINDS`."""
    return {name: tensor(name, *kind) for name, kind in KINDS.items()}


def tensor(name: str, dtype: str, shape: Sequence[int], layout: str) -> torch.Tensor:
    """A tensor with a dtype and a memory layout: `transposed`, `part`, `parameter`, `expanded` or contiguous."""
    values = torch.from_numpy(numbers(name, shape)).to(getattr(torch, dtype))
    if layout == "transposed":
        return values.T.contiguous().T
    if layout == "part":
        whole = torch.zeros(5, 6, dtype=values.dtype)
        whole[2:4, 1:5:2] = values
        return whole[2:4, 1:5:2]
    if layout == "parameter":
        return torch.nn.Parameter(values)
    return values[0].expand(shape) if layout == "expanded" else values


def module() -> dict[str, torch.Tensor]:
    """A module's state dict, plus a non-contiguous view and other dtypes."""
    torch.manual_seed(0)
    state = torch.nn.TransformerEncoderLayer(4, 2, 8).state_dict()
    state["strange"] = torch.randn(6, 5, 4)[1:5:2, :, 1].permute(1, 0)
    state["half"] = torch.randn(3, 3).half()
    state["new"] = torch.zeros(2, dtype=torch.uint16)
    return state


def make(folder: str) -> None:
    """Writes every file to `folder`/torch_save, and the values of `module` to module.npz."""
    folder = os.path.join(folder, "torch_save")
    os.makedirs(folder, exist_ok=True)
    for name, tensors in (("bert", bert()), ("kinds", kinds())):
        for layout, is_zip in (("", True), ("_legacy", False)):
            torch.save(tensors, os.path.join(folder, f"{name}{layout}.bin"), _use_new_zipfile_serialization=is_zip)
    state = module()
    # PyTorch before 1.6 had no uint16.
    older = {name: value for name, value in state.items() if name != "new"}
    for name, values, options in (
        ("today", state, {}),
        ("protocol_4", state, {"pickle_protocol": 4}),
        ("wrapped", {"epoch": 3, "state_dict": state, "lr": 1e-4, "done": None}, {}),
        ("legacy", older, {"_use_new_zipfile_serialization": False}),
    ):
        torch.save(values, os.path.join(folder, f"module_{name}.bin"), **options)
    expected = {name: value.float().numpy() for name, value in state.items()}
    arrays.save(os.path.join(folder, "module.npz"), ["torch"], expected)


if __name__ == "__main__":
    {"make": make}[sys.argv[1]](sys.argv[2])
