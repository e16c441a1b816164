"""The table of names: where each tensor of a model is in Keras, in Hugging Face's files and in Google's.

A dense kernel is [in, out] in Keras and in Google's files, [out, in] in Hugging Face's.

Every kind of model names its encoder, its pooler and its own pretraining heads (`ModelKind.parts`); other pretraining
heads have the names of their terms (`Term.tensors`), and every kind of task names its head (`TaskKind.tensors`). The
names of both are the same in every kind of model.
"""

import dataclasses
import types
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from keras_bert.models.bert.config import BertConfig
from keras_bert.models.kind import kind_of_config
from keras_bert.models.term import all_terms
from keras_bert.tasks.kind import task_kinds

if TYPE_CHECKING:
    import keras


@dataclasses.dataclass(frozen=True)
class StoredName:
    """A tensor in a file.

    Attributes:
        name: its name in the file.
        transposed: whether the file stores the transpose of ours.
        also: other names under which a file may store the same tensor again.
        copies: other names under which the file always stores the same tensor, because the classes that open it have a
            separate tensor for each.
        may_differ: whether the file's tensors under the other names may have other values, which are ignored.
    """

    name: str
    transposed: bool = False
    also: tuple[str, ...] = ()
    copies: tuple[str, ...] = ()
    may_differ: bool = False


@dataclasses.dataclass(frozen=True)
class TensorName:
    """One tensor. In a table, `{i}` in a name stands for the index of the layer.

    Attributes:
        attribute: the attribute path from a model such as `BertForPreTraining` to the Keras variable.
        huggingface: its name in model.safetensors.
        google: its name in bert_model.ckpt.
    """

    attribute: str
    huggingface: StoredName
    google: StoredName

    def of_layer(self, index: int) -> "TensorName":
        """The name with `{i}` replaced by `index`."""

        def filled_in(stored: StoredName) -> StoredName:
            return dataclasses.replace(stored, name=stored.name.format(i=index))

        return TensorName(self.attribute.format(i=index), filled_in(self.huggingface), filled_in(self.google))

    def with_copies(self, others: Iterable["TensorName"]) -> "TensorName":
        """This name, with those of `others` as its copies in both formats."""
        others = list(others)
        huggingface = dataclasses.replace(self.huggingface, copies=tuple(name.huggingface.name for name in others))
        google = dataclasses.replace(self.google, copies=tuple(name.google.name for name in others))
        return TensorName(self.attribute, huggingface, google)


def for_layers(rows: Iterable[TensorName], layers: int) -> list[TensorName]:
    """All rows: first those without `{i}`, then the others for each layer."""
    rows = tuple(rows)
    shared = [row for row in rows if "{i}" not in row.attribute]
    per_layer = [row for row in rows if "{i}" in row.attribute]
    return [*shared, *(row.of_layer(index) for index in range(layers) for row in per_layer)]


def embeddings(kind: str, config: BertConfig, head: str) -> tuple[TensorName, ...]:
    """The embeddings in the files of a kind of model such as "bert"; see `decoder` for `head`."""
    decoder_too = (f"{head}.decoder.weight",) if config.tie_word_embeddings else ()
    return (
        _table(kind, "word_embeddings", decoder_too),
        _table(kind, "position_embeddings"),
        _table(kind, "token_type_embeddings"),
        *layer_norm("encoder.embeddings.layer_norm", f"{kind}.embeddings.LayerNorm", "bert/embeddings/LayerNorm"),
    )


def _table(kind: str, name: str, also: tuple[str, ...] = ()) -> TensorName:
    """A table of the embeddings; `also` are its other names."""
    return TensorName(
        f"encoder.embeddings.{name}",
        StoredName(f"{kind}.embeddings.{name}.weight", also=also),
        StoredName(f"bert/embeddings/{name}"),  # ALBERT's too.
    )


def decoder(config: BertConfig, head: str) -> tuple[TensorName, ...]:
    """The output layer of a masked LM; `head` is the prefix of the masked LM's names in Hugging Face's files.

    Its kernel is the word embeddings, unless config.json unties them; transformers then has a second, unused bias.
    """
    weight, bias, of_decoder = f"{head}.decoder.weight", f"{head}.bias", f"{head}.decoder.bias"
    google_bias = StoredName("cls/predictions/output_bias")
    if config.tie_word_embeddings:
        return (TensorName("mlm_head.bias", StoredName(bias, also=(of_decoder,)), google_bias),)
    return (
        TensorName("mlm_head.decoder", StoredName(weight), StoredName("keras_bert/masked_lm/decoder")),
        TensorName("mlm_head.bias", StoredName(of_decoder, copies=(bias,), may_differ=True), google_bias),
    )


def dense(attribute: str, huggingface: str, google: str = "") -> tuple[TensorName, ...]:
    """A dense layer. Its name in Google's files is by default Hugging Face's with slashes."""
    google = google or with_slashes(huggingface)
    return (
        TensorName(
            f"{attribute}.kernel", StoredName(f"{huggingface}.weight", transposed=True), StoredName(f"{google}/kernel")
        ),
        TensorName(f"{attribute}.bias", StoredName(f"{huggingface}.bias"), StoredName(f"{google}/bias")),
    )


def output_layer(attribute: str, huggingface: str, google: str) -> tuple[TensorName, ...]:
    """An output layer. Google's code makes these without `tf.layers.dense`, with weights [out, in]."""
    return (
        TensorName(
            f"{attribute}.kernel",
            StoredName(f"{huggingface}.weight", transposed=True),
            StoredName(f"{google}output_weights", transposed=True),
        ),
        TensorName(f"{attribute}.bias", StoredName(f"{huggingface}.bias"), StoredName(f"{google}output_bias")),
    )


def layer_norm(attribute: str, huggingface: str, google: str = "") -> tuple[TensorName, ...]:
    """A LayerNorm; the default of `google` is that of `dense`."""
    google = google or with_slashes(huggingface)
    return (
        TensorName(f"{attribute}.gamma", StoredName(f"{huggingface}.weight"), StoredName(f"{google}/gamma")),
        TensorName(f"{attribute}.beta", StoredName(f"{huggingface}.bias"), StoredName(f"{google}/beta")),
    )


def own_tensor(attribute: str, name: str) -> TensorName:
    """A tensor that neither Hugging Face's nor Google's models have, stored in Keras' orientation."""
    return plain_tensor(attribute, f"keras_bert.{name}")


def plain_tensor(attribute: str, name: str, also: tuple[str, ...] = ()) -> TensorName:
    """A tensor stored in Keras' orientation, in Google's format under Hugging Face's name with slashes."""
    return TensorName(attribute, StoredName(name, also=also), StoredName(with_slashes(name)))


def with_slashes(name: str) -> str:
    """A dotted name in the style of Google's."""
    return name.replace(".", "/")


def bidirectional(attribute: str, name: str) -> tuple[TensorName, ...]:
    """The tensors of `layers.bilstm.bidirectional`.

    The gates are in Keras' order, for an LSTM: input, forget, cell, output.
    """
    return tuple(
        own_tensor(f"{attribute}.{direction}_layer.cell.{weight}", f"{name}.{direction}.{weight}")
        for direction in ("forward", "backward")
        for weight in ("kernel", "recurrent_kernel", "bias")
    )


def lstms(attribute: str, name: str) -> tuple[TensorName, ...]:
    """The tensors of `layers.bilstm.make_lstms`."""
    return tuple(row for index in (0, 1) for row in bidirectional(f"{attribute}.{index}", f"{name}.{index}"))


ENCODER, POOLER, MASKED_LM_HEAD, NEXT_SENTENCE_HEAD = "encoder", "encoder.pooler", "mlm_head", "nsp_head"
SENTENCE_ORDER_HEAD, REPLACED_TOKEN_HEAD, BILSTM = "sop_head", "rtd_head", "bilstm"
DECODER, LM_HEAD = "decoder", "lm_head"  # Of an `EncoderDecoder`.


def parts(config: BertConfig) -> dict[str, list[TensorName]]:
    """The names of all tensors that a model of this architecture can have, by part, which is the model's attribute.

    The parts are those of its kind, and the heads of the terms of the pretraining loss and of every task. A file has
    all tensors of a part or none.
    """
    of_kind = kind_of_config(config).parts(config)
    heads = {term.head: term.tensors() for term in all_terms() if term.has_head and term.head not in of_kind}
    for kind in task_kinds():
        heads |= kind.tensors
    heads[BILSTM] = lstms("bilstm.lstms", "bilstm")  # Between a trained encoder and any task's head.
    return {**of_kind, **{part: for_layers(rows, config.num_hidden_layers) for part, rows in heads.items()}}


def pretraining_parts(config: BertConfig) -> set[str]:
    """The parts that a model for pretraining may have: those of its kind, and the heads of all terms of the loss."""
    return {*kind_of_config(config).parts(config), *(term.head for term in all_terms() if term.has_head)}


def heads(config: BertConfig) -> tuple[str, ...]:
    """The parts trained for one objective or task: all but the encoder, the pooler and the decoder with its LM head."""
    return tuple(part for part in parts(config) if part not in (ENCODER, POOLER, DECODER, LM_HEAD))


def encoder_of(model: "keras.Model") -> "keras.Model":
    """The encoder of a model with heads, or the model if it is an encoder alone."""
    return getattr(model, "encoder", model)


def model_parts(model: "keras.Model") -> "dict[str, list[tuple[TensorName, keras.Variable]]]":
    """The variables of a model with an `encoder`, or of an encoder itself, by part of `parts()`, without LoRA's."""
    root = _root(model)
    return {
        part: [(name, _variable(root, name.attribute)) for name in names]
        for part, names in parts(model.config).items()
        if _follow(root, part) is not None
    }


def model_variables(model: "keras.Model") -> "list[tuple[TensorName, keras.Variable]]":
    """All variables of a model that are in the table."""
    return [pair for pairs in model_parts(model).values() for pair in pairs]


def lora_layers(model: "keras.Model") -> "dict[TensorName, keras.layers.Dense]":
    """The dense layers of a model or an encoder that have LoRA, by the name of their kernel."""
    root, layers = _root(model), {}
    for name, _ in model_variables(model):
        owner, _, attribute = name.attribute.rpartition(".")
        layer = _follow(root, owner)
        if attribute == "kernel" and getattr(layer, "lora_enabled", False):
            layers[name] = layer
    return layers


def model_values(model: "keras.Model") -> dict[TensorName, np.ndarray]:
    """The weights of a model as plain layers would have them: with LoRA's additions, and dequantized.

    Raises:
        ValueError: a layer is quantized to a type other than int8.
    """
    root = _root(model)
    values = {}
    for name, variable in model_variables(model):
        owner, _, attribute = name.attribute.rpartition(".")
        layer = _follow(root, owner) if owner else root
        is_plain = not (getattr(layer, "quantization_mode", None) or getattr(layer, "lora_enabled", False))
        values[name] = variable.numpy() if is_plain or attribute != "kernel" else _plain_kernel(layer)
    return values


def _plain_kernel(dense: "keras.layers.Dense") -> np.ndarray:
    """The kernel [in, out] float32 of a dense layer with LoRA or in int8; `dense.kernel` adds LoRA before scaling."""
    kernel = dense._kernel.numpy()
    if dense.quantization_mode == "int8":
        kernel = kernel.astype(np.float32) / dense.kernel_scale.numpy()
    elif dense.quantization_mode is not None:
        raise ValueError(
            f"{dense.path}: needs float weights or int8 to be written. Received: {dense.quantization_mode}. "
            "Write the model before it is quantized."
        )
    if dense.lora_enabled:
        added = dense.lora_kernel_a.numpy() @ dense.lora_kernel_b.numpy()
        kernel = kernel + np.float32(dense.lora_alpha / dense.lora_rank) * added
    return kernel


def _root(model: "keras.Model") -> Any:
    """The object that attribute paths begin from."""
    return types.SimpleNamespace(encoder=model) if encoder_of(model) is model else model


def _variable(root: Any, attribute: str) -> "keras.Variable":
    """The variable at an attribute path. With LoRA, a layer's `kernel` is not the variable but a new sum."""
    owner, _, last = attribute.rpartition(".")
    is_sum = last == "kernel" and getattr(_follow(root, owner), "lora_enabled", False)
    return _follow(root, f"{owner}._kernel" if is_sum else attribute)


def _follow(target: Any, attribute: str) -> Any:
    """The object at an attribute path, in which a number is an index of a list; None if there is none."""
    for step in attribute.split("."):
        target = target[int(step)] if step.isdecimal() else getattr(target, step, None)
    return target
