"""One table of names: where each tensor of BERT lives in Keras, Hugging Face's files and Google's.

A dense kernel is [in, out] here and in Google's files, [out, in] in Hugging Face's.
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class TensorName:
    """One tensor. `{i}` in a name stands for the layer's index.

    Attributes:
        attribute: the path of attributes from a `BertForPreTraining` to the Keras variable.
        huggingface: its name in model.safetensors.
        transposed: whether Hugging Face's copy is the transpose of ours.
    """

    attribute: str
    huggingface: str
    transposed: bool = False


def _dense(attribute, huggingface):
    return [
        TensorName(f"{attribute}.kernel", f"{huggingface}.weight", transposed=True),
        TensorName(f"{attribute}.bias", f"{huggingface}.bias"),
    ]


def _layer_norm(attribute, huggingface):
    return [
        TensorName(f"{attribute}.gamma", f"{huggingface}.weight"),
        TensorName(f"{attribute}.beta", f"{huggingface}.bias"),
    ]


_EMBEDDINGS = [
    TensorName("encoder.embeddings.word_embeddings", "bert.embeddings.word_embeddings.weight"),
    TensorName("encoder.embeddings.position_embeddings", "bert.embeddings.position_embeddings.weight"),
    TensorName("encoder.embeddings.token_type_embeddings", "bert.embeddings.token_type_embeddings.weight"),
    *_layer_norm("encoder.embeddings.layer_norm", "bert.embeddings.LayerNorm"),
]

_BLOCK = [
    *_dense("encoder.blocks.{i}.attention.query", "bert.encoder.layer.{i}.attention.self.query"),
    *_dense("encoder.blocks.{i}.attention.key", "bert.encoder.layer.{i}.attention.self.key"),
    *_dense("encoder.blocks.{i}.attention.value", "bert.encoder.layer.{i}.attention.self.value"),
    *_dense("encoder.blocks.{i}.attention.output_projection", "bert.encoder.layer.{i}.attention.output.dense"),
    *_layer_norm("encoder.blocks.{i}.attention_layer_norm", "bert.encoder.layer.{i}.attention.output.LayerNorm"),
    *_dense("encoder.blocks.{i}.intermediate", "bert.encoder.layer.{i}.intermediate.dense"),
    *_dense("encoder.blocks.{i}.output_dense", "bert.encoder.layer.{i}.output.dense"),
    *_layer_norm("encoder.blocks.{i}.output_layer_norm", "bert.encoder.layer.{i}.output.LayerNorm"),
]

_POOLER = _dense("encoder.pooler.dense", "bert.pooler.dense")

_MASKED_LM_HEAD = [
    *_dense("mlm_head.transform", "cls.predictions.transform.dense"),
    *_layer_norm("mlm_head.layer_norm", "cls.predictions.transform.LayerNorm"),
    TensorName("mlm_head.bias", "cls.predictions.bias"),
]

_NEXT_SENTENCE_HEAD = _dense("nsp_head.classifier", "cls.seq_relationship")


def pretraining_names(num_hidden_layers):
    """The `TensorName` of every tensor of a `BertForPreTraining`, layers written out."""
    blocks = [
        TensorName(name.attribute.format(i=i), name.huggingface.format(i=i), name.transposed)
        for i in range(num_hidden_layers)
        for name in _BLOCK
    ]
    return [*_EMBEDDINGS, *blocks, *_POOLER, *_MASKED_LM_HEAD, *_NEXT_SENTENCE_HEAD]


def huggingface_variables(model):
    """`[(TensorName, Keras variable)]` of a `BertForPreTraining`."""
    names = pretraining_names(model.config.num_hidden_layers)
    return [(name, _variable(model, name.attribute)) for name in names]


def _variable(model, attribute):
    """The variable at a path of attributes in which a number is a list's index."""
    target = model
    for step in attribute.split("."):
        target = target[int(step)] if step.isdigit() else getattr(target, step)
    return target
