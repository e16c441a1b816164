"""The names of BERT's tensors, by layer."""

from collections.abc import Callable

from keras_bert.checkpoints.names import (
    ENCODER,
    MASKED_LM_HEAD,
    NEXT_SENTENCE_HEAD,
    POOLER,
    SENTENCE_ORDER_HEAD,
    TensorName,
    decoder,
    dense,
    embeddings,
    for_layers,
    layer_norm,
    output_layer,
)
from keras_bert.config.bert import BertConfig


def _in_block(
    tensors: Callable[[str, str, str], tuple[TensorName, ...]], attribute: str, huggingface: str, google: str
) -> tuple[TensorName, ...]:
    return tensors(
        f"encoder.blocks.{{i}}.{attribute}",
        f"bert.encoder.layer.{{i}}.{huggingface}",
        f"bert/encoder/layer_{{i}}/{google}",
    )


_BLOCK = (
    *_in_block(dense, "attention.query", "attention.self.query", "attention/self/query"),
    *_in_block(dense, "attention.key", "attention.self.key", "attention/self/key"),
    *_in_block(dense, "attention.value", "attention.self.value", "attention/self/value"),
    *_in_block(dense, "attention.output_projection", "attention.output.dense", "attention/output/dense"),
    *_in_block(layer_norm, "attention_layer_norm", "attention.output.LayerNorm", "attention/output/LayerNorm"),
    *_in_block(dense, "intermediate", "intermediate.dense", "intermediate/dense"),
    *_in_block(dense, "output_dense", "output.dense", "output/dense"),
    *_in_block(layer_norm, "output_layer_norm", "output.LayerNorm", "output/LayerNorm"),
)

_MASKED_LM_HEAD = (
    *dense("mlm_head.transform", "cls.predictions.transform.dense", "cls/predictions/transform/dense"),
    *layer_norm("mlm_head.layer_norm", "cls.predictions.transform.LayerNorm", "cls/predictions/transform/LayerNorm"),
)

_PARTS: dict[str, tuple[TensorName, ...]] = {
    ENCODER: _BLOCK,
    POOLER: dense("encoder.pooler.dense", "bert.pooler.dense", "bert/pooler/dense"),
    MASKED_LM_HEAD: _MASKED_LM_HEAD,
    NEXT_SENTENCE_HEAD: output_layer("nsp_head.classifier", "cls.seq_relationship", "cls/seq_relationship/"),
    # Hugging Face's BERT does not have it. ALBERT's own name is sop_classifier.classifier.
    SENTENCE_ORDER_HEAD: dense("sop_head.dense", "keras_bert.sop_classifier", "keras_bert/sop_classifier"),
}


def bert_parts(config: BertConfig) -> dict[str, list[TensorName]]:
    """`ModelKind.parts` of a BERT."""
    head = "cls.predictions"
    found = {part: for_layers(rows, config.num_hidden_layers) for part, rows in _PARTS.items()}
    found[ENCODER] = [*embeddings("bert", config, head), *found[ENCODER]]
    found[MASKED_LM_HEAD] += decoder(config, head)
    return found
