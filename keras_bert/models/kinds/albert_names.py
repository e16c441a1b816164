"""The names of ALBERT's tensors, by group of layers."""

import itertools
from collections.abc import Iterator

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
    layer_norm,
    output_layer,
)
from keras_bert.config.albert import AlbertConfig

_MAPPING = dense(
    "encoder.embeddings.mapping",
    "albert.encoder.embedding_hidden_mapping_in",
    "bert/encoder/embedding_hidden_mapping_in",
)

# Within a block: the functions that make the rows, and the layer's attribute and names.
_ATTENTION = (
    (dense, "attention.query", "attention.query", "attention_1/self/query"),
    (dense, "attention.key", "attention.key", "attention_1/self/key"),
    (dense, "attention.value", "attention.value", "attention_1/self/value"),
    (dense, "attention.output_projection", "attention.dense", "attention_1/output/dense"),
    (layer_norm, "attention_layer_norm", "attention.LayerNorm", "LayerNorm"),
)
_FFN = (
    (dense, "intermediate", "ffn", "ffn_1/intermediate/dense"),
    (dense, "output_dense", "ffn_output", "ffn_1/intermediate/output/dense"),
    (layer_norm, "output_layer_norm", "full_layer_layer_norm", "LayerNorm_1"),
)

_HEADS: dict[str, tuple[TensorName, ...]] = {
    POOLER: dense("encoder.pooler.dense", "albert.pooler", "bert/pooler/dense"),
    MASKED_LM_HEAD: (
        *dense("mlm_head.transform", "predictions.dense", "cls/predictions/transform/dense"),
        *layer_norm("mlm_head.layer_norm", "predictions.LayerNorm", "cls/predictions/transform/LayerNorm"),
    ),
    # Neither format has it.
    NEXT_SENTENCE_HEAD: dense(
        "nsp_head.classifier", "keras_bert.next_sentence.classifier", "keras_bert/next_sentence/classifier"
    ),
    # Google's code still calls it by what it took the place of.
    SENTENCE_ORDER_HEAD: output_layer("sop_head.dense", "sop_classifier.classifier", "cls/seq_relationship/"),
}


def albert_parts(config: AlbertConfig) -> dict[str, list[TensorName]]:
    """`ModelKind.parts` of an ALBERT."""
    blocks = [
        *_blocks(config, _ATTENTION, config.attention_groups),
        *_blocks(config, _FFN, config.ffn_groups),
    ]
    found = {ENCODER: [*embeddings("albert", config, "predictions"), *_MAPPING, *blocks]}
    found.update({part: list(rows) for part, rows in _HEADS.items()})
    found[MASKED_LM_HEAD] += decoder(config, "predictions")
    return found


def _blocks(config: AlbertConfig, rows: tuple, groups: int) -> Iterator[TensorName]:
    """The names of these layers, of which each of `groups` groups has one, in the first block of the group.

    Where files hold more groups, each one that belongs to the group holds a copy.
    """
    layers = range(config.num_hidden_layers)
    for _, of_group in itertools.groupby(layers, lambda layer: config.group_of(layer, groups)):
        members = list(of_group)
        stored = list(dict.fromkeys(config.group_of(layer, config.stored_groups) for layer in members))
        for inner in range(config.inner_group_num):
            block = f"encoder.blocks.{members[0] * config.inner_group_num + inner}"
            for make, attribute, huggingface, google in rows:
                # One list of names for each stored group: the first is the name, the others are copies.
                columns = (
                    make(
                        f"{block}.{attribute}",
                        f"albert.encoder.albert_layer_groups.{group}.albert_layers.{inner}.{huggingface}",
                        f"bert/encoder/transformer/group_{group}/inner_group_{inner}/{google}",
                    )
                    for group in stored
                )
                for first, *copies in zip(*columns):
                    yield first.with_copies(copies)
