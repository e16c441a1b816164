"""What the files of `torch.save` in tests/goldens/torch_save hold; tools/goldens writes them from this."""

import numpy as np

from keras_bert.models.bert.config import BertConfig
from keras_bert.models.tensor_names import ENCODER, MASKED_LM_HEAD, parts

BERT_CONFIG = {
    "model_type": "bert",
    "architectures": ["BertForMaskedLM"],
    "vocab_size": 60,
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 12,
    "max_position_embeddings": 16,
}

# Tensors: PyTorch's name of their dtype, their shape, and how they lie in their storage.
KINDS = {
    "plain": ("float32", (3, 4), "whole"),
    "transposed": ("float32", (4, 3), "transposed"),
    "part": ("float32", (2, 2), "part"),
    "parameter": ("float32", (5,), "parameter"),
    "repeated_row": ("float32", (1, 6), "expanded"),
    "number": ("float32", (), "whole"),
    "empty": ("float32", (0, 3), "whole"),
    "double": ("float64", (2, 3), "whole"),
    "half": ("float16", (7,), "whole"),
    "bfloat": ("bfloat16", (2, 5), "whole"),
    "long": ("int64", (3,), "whole"),
    "byte": ("uint8", (3,), "whole"),
    "truth": ("bool", (2,), "whole"),
}


def numbers(name, shape):
    """Float32 numbers that follow from name and shape: sums of few powers of 2, exact in every kind of float."""
    first = sum(name.encode()) % 13
    count = int(np.prod(shape))
    return (((np.arange(count) * 7 + first) % 31 - 15) / 16).astype("float32").reshape(shape)


def bert_shapes():
    """`{Hugging Face's name: shape}` of a BERT with a masked LM head, of `BERT_CONFIG`."""
    config = BERT_CONFIG
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    rows = {"word": config["vocab_size"], "position": config["max_position_embeddings"], "token_type": 2}
    shapes = {}
    sizes = {key: value for key, value in config.items() if isinstance(value, int)}
    for part in (ENCODER, MASKED_LM_HEAD):
        for tensor in parts(BertConfig(**sizes))[part]:
            name = tensor.huggingface.name
            if name.endswith("embeddings.weight"):
                shapes[name] = (rows[name.split(".")[2].removesuffix("_embeddings")], hidden)
            elif "LayerNorm" in name:
                shapes[name] = (hidden,)
            elif name == "cls.predictions.bias":
                shapes[name] = (config["vocab_size"],)
            else:
                out = inner if ".intermediate." in name else hidden
                into = inner if ".output.dense" in name and ".attention." not in name else hidden
                shapes[name] = (out, into) if name.endswith("weight") else (out,)
    return shapes
