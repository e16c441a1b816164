"""BERT itself (Devlin et al. 2018)."""

from collections.abc import Callable, Collection
from typing import ClassVar

from keras_bert.models.bert.config import BertConfig
from keras_bert.models.kind import GoogleFiles, ModelKind
from keras_bert.models.sizes import Part, block_parts, embedding_parts, masked_lm_parts, training_flops
from keras_bert.models.tensor_names import (
    ENCODER,
    MASKED_LM_HEAD,
    NEXT_SENTENCE_HEAD,
    POOLER,
    TensorName,
    decoder,
    dense,
    embeddings,
    for_layers,
    layer_norm,
    output_layer,
    with_slashes,
)

# Within a block: the function that makes the rows, and the layer's attribute and name.
_BLOCK: tuple[tuple[Callable[[str, str, str], tuple[TensorName, ...]], str, str], ...] = (
    (dense, "attention.query", "attention.self.query"),
    (dense, "attention.key", "attention.self.key"),
    (dense, "attention.value", "attention.self.value"),
    (dense, "attention.output_projection", "attention.output.dense"),
    (layer_norm, "attention_layer_norm", "attention.output.LayerNorm"),
    (dense, "intermediate", "intermediate.dense"),
    (dense, "output_dense", "output.dense"),
    (layer_norm, "output_layer_norm", "output.LayerNorm"),
)


def blocks(kind: str, config: BertConfig) -> list[TensorName]:
    """The tensors of all blocks in the files of a kind of model such as "bert"."""
    rows = (
        row
        for make, attribute, name in _BLOCK
        for row in make(
            f"encoder.blocks.{{i}}.{attribute}",
            f"{kind}.encoder.layer.{{i}}.{name}",
            f"bert/encoder/layer_{{i}}/{with_slashes(name)}",
        )
    )
    return for_layers(rows, config.num_hidden_layers)


_HEAD = "cls.predictions"


class Bert(ModelKind):
    """BERT: every layer has its own weights, and the embeddings are as wide as the layers."""

    model_type, title, config = "bert", "BERT", BertConfig
    encoder = "keras_bert.models.bert.encoder:BertEncoder"
    class_prefix, stored_prefix = "Bert", "bert."
    google_files: ClassVar[GoogleFiles | None] = GoogleFiles("bert_config.json", "bert_model.ckpt")
    pretraining_heads: ClassVar[tuple[str, ...]] = ("nsp",)
    values_here: ClassVar = {
        "position_embedding_type": ("absolute",),
        "is_decoder": (False, True),
        "add_cross_attention": (False,),
        "is_encoder_decoder": (False,),
        "quantization_config": (),
        "pruned_heads": ({},),
        "auto_map": (),
    }

    def parts(self, config: BertConfig) -> dict[str, list[TensorName]]:
        return {
            ENCODER: [*embeddings("bert", config, _HEAD), *blocks("bert", config)],
            POOLER: [*dense("encoder.pooler.dense", "bert.pooler.dense")],
            MASKED_LM_HEAD: [
                *dense("mlm_head.transform", f"{_HEAD}.transform.dense"),
                *layer_norm("mlm_head.layer_norm", f"{_HEAD}.transform.LayerNorm"),
                *decoder(config, _HEAD),
            ],
            NEXT_SENTENCE_HEAD: [*output_layer("nsp_head.classifier", "cls.seq_relationship", "cls/seq_relationship/")],
        }

    def encoder_table(self, config: BertConfig) -> list[Part]:
        return [*embedding_parts(config), *block_parts(config)]

    def heads_table(self, config: BertConfig) -> list[Part]:
        return masked_lm_parts(config)

    def quoted_counts(self, config: BertConfig, exact: int) -> list[tuple[str, int, str]]:
        if type(config) is not BertConfig:
            return []
        # Tutorials count kernels, embeddings and LayerNorm. The estimate assumes 30,000 words and counts only the
        # kernels of each layer, with F = 4·H.
        left_out = {"attention biases", "feed-forward biases", "pooler"}
        weights = sum(part.count for part in self.encoder_table(config) if part.name not in left_out)
        rough = 30_000 * config.hidden_size + 12 * config.num_hidden_layers * config.hidden_size**2
        return [
            (
                "weights-only formula of tutorials",
                weights,
                f"{exact - weights:,} fewer than the encoder: omits dense biases and the pooler.",
            ),
            (
                "rough estimate 30k·H + 12·L·H²",
                rough,
                f"{abs(exact - rough):,} {'fewer' if rough < exact else 'more'}: assumes 30,000 words instead of "
                f"{config.vocab_size:,}; omits positions, segments, LayerNorm, biases and pooler.",
            ),
        ]

    def training_flops(self, config: BertConfig, sequence_length: int, predictions_per_sequence: int) -> int:
        return training_flops(config, sequence_length, predictions_per_sequence)

    def class_in_transformers(self, parts: Collection[str], config: BertConfig) -> str:
        # Only BERT's classes have a head for next sentence prediction, and BertLMHeadModel has none.
        predicts_next = NEXT_SENTENCE_HEAD in parts and bool(self.pretraining_heads)
        if config.is_causal and MASKED_LM_HEAD in parts and not (config.pools_cls and predicts_next):
            return "BertLMHeadModel"
        if predicts_next:
            return "BertForPreTraining" if MASKED_LM_HEAD in parts else "BertForNextSentencePrediction"
        return "BertForMaskedLM" if MASKED_LM_HEAD in parts else "BertModel"


KINDS = (Bert(),)
