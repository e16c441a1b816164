"""The names of a model's trainable variables, and the part of the model that each belongs to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import keras
import tensorflow as tf

from keras_bert.models.tensor_names import lora_layers, model_variables

EMBEDDINGS = "embeddings"


def trainable_names(model: keras.Model) -> list[str]:
    """The attribute path of each trainable variable, such as `encoder.blocks.0.attention.query.kernel`.

    A generator's begin with `generator`. LoRA's are beside the kernel that they add to, such as
    `encoder.blocks.0.attention.query.lora_kernel_a`. A variable that is not in `models.tensor_names` has its Keras
    path, with dots.
    """
    known = {id(variable): name.attribute for name, variable in model_variables(model)}
    if (generator := getattr(model, "generator", None)) is not None:
        known |= {id(variable): f"generator.{name.attribute}" for name, variable in model_variables(generator)}
    for name, layer in lora_layers(model).items():
        owner = name.attribute.removesuffix(".kernel")
        known |= {id(layer.lora_kernel_a): f"{owner}.lora_kernel_a", id(layer.lora_kernel_b): f"{owner}.lora_kernel_b"}
    return [known.get(id(variable), variable.path.replace("/", ".")) for variable in model.trainable_variables]


def part_of(name: str) -> str:
    """`embeddings`, `block_0` and so on, `pooler`, or the attribute of a head, such as `mlm_head`."""
    first, *others = name.split(".")
    if first != "encoder" or not others:
        return first
    return f"block_{others[1]}" if others[0] == "blocks" else others[0]


def block_of(name: str) -> int | None:
    """The index of the encoder block that a variable is in; None for all others."""
    part, _, number = part_of(name).rpartition("_")
    return int(number) if part == "block" and number.isdecimal() else None


def gradient_parts(model: keras.Model) -> dict[str, list[int]]:
    """`{part: the numbers of its variables in model.trainable_variables}`."""
    parts: dict[str, list[int]] = {}
    for number, name in enumerate(trainable_names(model)):
        parts.setdefault(part_of(name), []).append(number)
    return parts


def gradient_norms(gradients: Sequence[tf.Tensor], parts: Mapping[str, Sequence[int]]) -> dict[str, tf.Tensor]:
    """`{part: float32 scalar}`; their squares sum to the square of the global norm."""
    return {part: tf.linalg.global_norm([gradients[number] for number in numbers]) for part, numbers in parts.items()}
