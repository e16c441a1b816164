"""One table of names: where each tensor of BERT lives in Keras, in Hugging Face's files and in Google's.

A dense kernel is [in, out] here and in Google's files, [out, in] in Hugging Face's.

A new head is a part more in `PARTS`: the attribute of the models that have it, and its tensors' three names.
"""

import dataclasses
import types


@dataclasses.dataclass(frozen=True)
class StoredName:
    """A tensor in a file.

    Attributes:
        name: its name there.
        transposed: whether the file's copy is the transpose of ours.
        also: names under which a file may hold the same tensor again.
    """

    name: str
    transposed: bool = False
    also: tuple = ()


@dataclasses.dataclass(frozen=True)
class TensorName:
    """One tensor. `{i}` in a name stands for the layer's index.

    Attributes:
        attribute: the path of attributes from a model such as `BertForPreTraining` to the Keras variable.
        huggingface: its `StoredName` in model.safetensors.
        google: its `StoredName` in bert_model.ckpt.
    """

    attribute: str
    huggingface: StoredName
    google: StoredName

    def of_layer(self, index):
        def written_out(stored):
            return dataclasses.replace(stored, name=stored.name.format(i=index))

        return TensorName(self.attribute.format(i=index), written_out(self.huggingface), written_out(self.google))


def _dense(attribute, huggingface, google):
    return (
        TensorName(
            f"{attribute}.kernel", StoredName(f"{huggingface}.weight", transposed=True), StoredName(f"{google}/kernel")
        ),
        TensorName(f"{attribute}.bias", StoredName(f"{huggingface}.bias"), StoredName(f"{google}/bias")),
    )


def _output_layer(attribute, huggingface, google):
    """A last layer, which Google's code writes out by hand, with weights [out, in]."""
    return (
        TensorName(
            f"{attribute}.kernel",
            StoredName(f"{huggingface}.weight", transposed=True),
            StoredName(f"{google}output_weights", transposed=True),
        ),
        TensorName(f"{attribute}.bias", StoredName(f"{huggingface}.bias"), StoredName(f"{google}output_bias")),
    )


def _layer_norm(attribute, huggingface, google):
    return (
        TensorName(f"{attribute}.gamma", StoredName(f"{huggingface}.weight"), StoredName(f"{google}/gamma")),
        TensorName(f"{attribute}.beta", StoredName(f"{huggingface}.bias"), StoredName(f"{google}/beta")),
    )


def _embedding(name, also=()):
    return TensorName(
        f"encoder.embeddings.{name}",
        StoredName(f"bert.embeddings.{name}.weight", also=also),
        StoredName(f"bert/embeddings/{name}"),
    )


def _in_block(tensors, attribute, huggingface, google):
    return tensors(
        f"encoder.blocks.{{i}}.{attribute}", f"bert.encoder.layer.{{i}}.{huggingface}",
        f"bert/encoder/layer_{{i}}/{google}",
    )  # fmt: skip


_EMBEDDINGS = (
    # The masked LM's decoder is this table again.
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


def _own(attribute, name):
    """A tensor that neither Hugging Face's models nor Google's have, with its axes as in Keras."""
    return TensorName(
        f"tagger.{attribute}",
        StoredName(f"keras_bert.tagger.{name}"),
        StoredName(f"keras_bert/tagger/{name.replace('.', '/')}"),
    )


# The gates of an LSTM's tensors stand in Keras' order: input, forget, cell, output.
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
CLASSIFIER, SPAN_HEAD = "classifier", "qa_outputs"
FEATURE_TAGGER, SCALAR_MIX = "tagger", "tagger.mix"

# By the attribute of a model that has the part. A part is in a file whole or not at all.
PARTS = {
    ENCODER: (*_EMBEDDINGS, *_BLOCK),
    POOLER: _dense("encoder.pooler.dense", "bert.pooler.dense", "bert/pooler/dense"),
    MASKED_LM_HEAD: _MASKED_LM_HEAD,
    NEXT_SENTENCE_HEAD: _output_layer("nsp_head.classifier", "cls.seq_relationship", "cls/seq_relationship/"),
    # Of sequences, of tokens or of choices, as `architectures` in the config says; Google's own is of sequences.
    CLASSIFIER: _output_layer("classifier.dense", "classifier", ""),
    SPAN_HEAD: _output_layer("qa_outputs.dense", "qa_outputs", "cls/squad/"),
    # Of a BiLSTM over frozen features, and of the weights of its layers where it learns them.
    FEATURE_TAGGER: _FEATURE_TAGGER,
    SCALAR_MIX: (_own("mix.layer_weights", "mix.layer_weights"), _own("mix.gamma", "mix.gamma")),
}

# All that is not the network of the paper's figure 1, but trained for one objective or task.
HEADS = tuple(part for part in PARTS if part not in (ENCODER, POOLER))


def part_names(part, num_hidden_layers):
    """The `TensorName` of every tensor of a part of `PARTS`, layers written out."""
    rows = PARTS[part]
    of_all_layers = [row for row in rows if "{i}" not in row.attribute]
    of_each_layer = [row for row in rows if "{i}" in row.attribute]
    return [*of_all_layers, *(row.of_layer(index) for index in range(num_hidden_layers) for row in of_each_layer)]


def model_parts(model):
    """`{part: [(TensorName, Keras variable)]}` of a model with an `encoder`, or of a `BertEncoder` itself."""
    root = model if hasattr(model, "encoder") else types.SimpleNamespace(encoder=model)
    return {
        part: [(name, _follow(root, name.attribute)) for name in part_names(part, model.config.num_hidden_layers)]
        for part in PARTS
        if _follow(root, part) is not None
    }


def model_variables(model):
    """`[(TensorName, Keras variable)]` of all that a model has of the table."""
    return [pair for pairs in model_parts(model).values() for pair in pairs]


def _follow(target, attribute):
    """What lies at a path of attributes in which a number is a list's index; None where it ends."""
    for step in attribute.split("."):
        target = target[int(step)] if step.isdigit() else getattr(target, step, None)
    return target
