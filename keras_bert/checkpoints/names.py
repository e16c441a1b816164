"""The table of names: where each tensor of BERT is in Keras, in Hugging Face's files and in Google's.

A dense kernel is [in, out] in Keras and in Google's files, [out, in] in Hugging Face's.

A new kind of task brings the parts that this table lacks (`TaskKind.tensors`): the attribute of the models that have
the part, and the three names of each tensor.
"""

import dataclasses
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from keras_bert.task_kinds import task_kinds

if TYPE_CHECKING:
    import keras


@dataclasses.dataclass(frozen=True)
class StoredName:
    """A tensor in a file.

    Attributes:
        name: its name in the file.
        transposed: whether the file stores the transpose of ours.
        also: other names under which a file may store the same tensor again.
    """

    name: str
    transposed: bool = False
    also: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class TensorName:
    """One tensor. `{i}` in a name stands for the index of the layer.

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


def _dense(attribute: str, huggingface: str, google: str) -> tuple[TensorName, ...]:
    return (
        TensorName(
            f"{attribute}.kernel", StoredName(f"{huggingface}.weight", transposed=True), StoredName(f"{google}/kernel")
        ),
        TensorName(f"{attribute}.bias", StoredName(f"{huggingface}.bias"), StoredName(f"{google}/bias")),
    )


def _output_layer(attribute: str, huggingface: str, google: str) -> tuple[TensorName, ...]:
    """An output layer. Google's code makes these without `tf.layers.dense`, with weights [out, in]."""
    return (
        TensorName(
            f"{attribute}.kernel",
            StoredName(f"{huggingface}.weight", transposed=True),
            StoredName(f"{google}output_weights", transposed=True),
        ),
        TensorName(f"{attribute}.bias", StoredName(f"{huggingface}.bias"), StoredName(f"{google}output_bias")),
    )


def _layer_norm(attribute: str, huggingface: str, google: str) -> tuple[TensorName, ...]:
    return (
        TensorName(f"{attribute}.gamma", StoredName(f"{huggingface}.weight"), StoredName(f"{google}/gamma")),
        TensorName(f"{attribute}.beta", StoredName(f"{huggingface}.bias"), StoredName(f"{google}/beta")),
    )


def _embedding(name: str, also: tuple[str, ...] = ()) -> TensorName:
    return TensorName(
        f"encoder.embeddings.{name}",
        StoredName(f"bert.embeddings.{name}.weight", also=also),
        StoredName(f"bert/embeddings/{name}"),
    )


def _in_block(
    tensors: Callable[[str, str, str], tuple[TensorName, ...]], attribute: str, huggingface: str, google: str
) -> tuple[TensorName, ...]:
    return tensors(
        f"encoder.blocks.{{i}}.{attribute}",
        f"bert.encoder.layer.{{i}}.{huggingface}",
        f"bert/encoder/layer_{{i}}/{google}",
    )


_EMBEDDINGS = (
    # Also the decoder of the masked LM, which is tied to it.
    _embedding("word_embeddings", also=("cls.predictions.decoder.weight",)),
    _embedding("position_embeddings"),
    _embedding("token_type_embeddings"),
    *_layer_norm("encoder.embeddings.layer_norm", "bert.embeddings.LayerNorm", "bert/embeddings/LayerNorm"),
)

_BLOCK = (
    *_in_block(_dense, "attention.query", "attention.self.query", "attention/self/query"),
    *_in_block(_dense, "attention.key", "attention.self.key", "attention/self/key"),
    *_in_block(_dense, "attention.value", "attention.self.value", "attention/self/value"),
    *_in_block(_dense, "attention.output_projection", "attention.output.dense", "attention/output/dense"),
    *_in_block(_layer_norm, "attention_layer_norm", "attention.output.LayerNorm", "attention/output/LayerNorm"),
    *_in_block(_dense, "intermediate", "intermediate.dense", "intermediate/dense"),
    *_in_block(_dense, "output_dense", "output.dense", "output/dense"),
    *_in_block(_layer_norm, "output_layer_norm", "output.LayerNorm", "output/LayerNorm"),
)

_MASKED_LM_HEAD = (
    *_dense("mlm_head.transform", "cls.predictions.transform.dense", "cls/predictions/transform/dense"),
    *_layer_norm("mlm_head.layer_norm", "cls.predictions.transform.LayerNorm", "cls/predictions/transform/LayerNorm"),
    TensorName(
        "mlm_head.bias",
        StoredName("cls.predictions.bias", also=("cls.predictions.decoder.bias",)),
        StoredName("cls/predictions/output_bias"),
    ),
)


_SPAN_BOUNDARY_HEAD = (
    *(
        name
        for number in (0, 1)
        for tensors, layer, stored in (
            (_dense, f"denses.{number}", f"dense_{number}"),
            (_layer_norm, f"layer_norms.{number}", f"LayerNorm_{number}"),
        )
        for name in tensors(
            f"sbo_head.{layer}", f"keras_bert.span_boundary.{stored}", f"keras_bert/span_boundary/{stored}"
        )
    ),
    *(
        TensorName(
            f"sbo_head.{name}",
            StoredName(f"keras_bert.span_boundary.{name}"),
            StoredName(f"keras_bert/span_boundary/{name}"),
        )
        for name in ("position_embeddings", "bias")
    ),
)


def _own(attribute: str, name: str) -> TensorName:
    """A tensor that neither Hugging Face's nor Google's models have, stored in Keras' orientation."""
    return TensorName(
        f"tagger.{attribute}",
        StoredName(f"keras_bert.tagger.{name}"),
        StoredName(f"keras_bert/tagger/{name.replace('.', '/')}"),
    )


# The gates of an LSTM are in the order of Keras: input, forget, cell, output.
_FEATURE_TAGGER = (
    *(
        _own(f"lstms.{index}.{direction}_layer.cell.{weight}", f"lstm.{index}.{direction}.{weight}")
        for index in (0, 1)
        for direction in ("forward", "backward")
        for weight in ("kernel", "recurrent_kernel", "bias")
    ),
    *_dense("tagger.classifier.dense", "keras_bert.tagger.classifier", "keras_bert/tagger/classifier"),
)

ENCODER, POOLER, MASKED_LM_HEAD, NEXT_SENTENCE_HEAD = "encoder", "encoder.pooler", "mlm_head", "nsp_head"
SENTENCE_ORDER_HEAD, SPAN_BOUNDARY_HEAD = "sop_head", "sbo_head"
CLASSIFIER, SPAN_HEAD = "classifier", "qa_outputs"
FEATURE_TAGGER, SCALAR_MIX = "tagger", "tagger.mix"

# By the attribute of the models that have the part. A file has all tensors of a part or none.
PARTS: dict[str, tuple[TensorName, ...]] = {
    ENCODER: (*_EMBEDDINGS, *_BLOCK),
    POOLER: _dense("encoder.pooler.dense", "bert.pooler.dense", "bert/pooler/dense"),
    MASKED_LM_HEAD: _MASKED_LM_HEAD,
    NEXT_SENTENCE_HEAD: _output_layer("nsp_head.classifier", "cls.seq_relationship", "cls/seq_relationship/"),
    # Hugging Face's BERT has neither of these. ALBERT's own name is sop_classifier.classifier.
    SENTENCE_ORDER_HEAD: _dense("sop_head.dense", "keras_bert.sop_classifier", "keras_bert/sop_classifier"),
    SPAN_BOUNDARY_HEAD: _SPAN_BOUNDARY_HEAD,
    # For sequences, tokens or choices, as the config's `architectures` says; Google's own is for sequences.
    CLASSIFIER: _output_layer("classifier.dense", "classifier", ""),
    SPAN_HEAD: _output_layer("qa_outputs.dense", "qa_outputs", "cls/squad/"),
    # A BiLSTM over frozen features, and its scalar mix of layers if it learns one.
    FEATURE_TAGGER: _FEATURE_TAGGER,
    SCALAR_MIX: (_own("mix.layer_weights", "mix.layer_weights"), _own("mix.gamma", "mix.gamma")),
}


def parts() -> dict[str, tuple[TensorName, ...]]:
    """`PARTS`, and what the registered kinds of tasks add."""
    return {**PARTS, **{part: rows for kind in task_kinds() for part, rows in kind.tensors.items()}}


def heads() -> tuple[str, ...]:
    """The parts outside the paper's figure 1, each trained for one objective or task."""
    return tuple(part for part in parts() if part not in (ENCODER, POOLER))


def part_names(part: str, num_hidden_layers: int) -> list[TensorName]:
    """The names of all tensors of a part of `parts()`, one for each layer where there is one for each."""
    rows = parts()[part]
    shared = [row for row in rows if "{i}" not in row.attribute]
    per_layer = [row for row in rows if "{i}" in row.attribute]
    return [*shared, *(row.of_layer(index) for index in range(num_hidden_layers) for row in per_layer)]


def model_parts(model: "keras.Model") -> "dict[str, list[tuple[TensorName, keras.Variable]]]":
    """The variables of a model with an `encoder`, or of a `BertEncoder` itself, by part of `parts()`."""
    root = model if hasattr(model, "encoder") else types.SimpleNamespace(encoder=model)
    return {
        part: [(name, _follow(root, name.attribute)) for name in part_names(part, model.config.num_hidden_layers)]
        for part in parts()
        if _follow(root, part) is not None
    }


def model_variables(model: "keras.Model") -> "list[tuple[TensorName, keras.Variable]]":
    """All variables of a model that are in the table."""
    return [pair for pairs in model_parts(model).values() for pair in pairs]


def _follow(target: Any, attribute: str) -> Any:
    """The object at an attribute path, in which a number is an index of a list; None if there is none."""
    for step in attribute.split("."):
        target = target[int(step)] if step.isdigit() else getattr(target, step, None)
    return target
