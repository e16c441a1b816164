"""The names of an ELMo's tensors. The gates of an LSTM are in the order of Keras: input, forget, cell, output."""

from keras_bert.checkpoints.names import (
    ENCODER,
    MASKED_LM_HEAD,
    POOLER,
    StoredName,
    TensorName,
    dense,
    for_layers,
    layer_norm,
)
from keras_bert.config.elmo import ElmoConfig


def _named(attribute: str, name: str) -> TensorName:
    return TensorName(attribute, StoredName(name), StoredName(name.replace(".", "/")))


_PARTS: dict[str, tuple[TensorName, ...]] = {
    ENCODER: (
        _named("encoder.embeddings.word_embeddings", "elmo.embeddings.word_embeddings.weight"),
        *(
            _named(f"encoder.blocks.{{i}}.{way}.cell.{weight}", f"elmo.encoder.layer.{{i}}.{way}.{weight}")
            for way in ("forward", "backward")
            for weight in ("kernel", "recurrent_kernel", "bias")
        ),
    ),
    POOLER: dense("encoder.pooler.dense", "elmo.pooler.dense", "elmo/pooler/dense"),
    # Of both language models, with the word embeddings as the decoder's kernel.
    MASKED_LM_HEAD: (
        *dense("mlm_head.transform", "lm_head.transform.dense", "lm_head/transform/dense"),
        *layer_norm("mlm_head.layer_norm", "lm_head.transform.LayerNorm", "lm_head/transform/LayerNorm"),
        _named("mlm_head.bias", "lm_head.bias"),
    ),
}


def elmo_parts(config: ElmoConfig) -> dict[str, list[TensorName]]:
    """`ModelKind.parts` of an ELMo."""
    return {part: for_layers(rows, config.num_hidden_layers) for part, rows in _PARTS.items()}
