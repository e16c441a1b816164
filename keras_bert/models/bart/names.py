"""The names of BART's tensors in model.safetensors."""

from keras_bert.models.tensor_names import (
    DECODER,
    ENCODER,
    LM_HEAD,
    POOLER,
    StoredName,
    TensorName,
    dense,
    layer_norm,
)

# Other names under which files may hold the word embeddings.
_TIED = ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight")


def _named(attribute: str, name: str, also: tuple[str, ...] = ()) -> TensorName:
    return TensorName(attribute, StoredName(name, also=also), StoredName(name.replace(".", "/")))


def _dense(attribute: str, name: str) -> tuple[TensorName, ...]:
    return dense(attribute, name, name.replace(".", "/"))


def _layer_norm(attribute: str, name: str) -> tuple[TensorName, ...]:
    return layer_norm(attribute, name, name.replace(".", "/"))


def _attention(attribute: str, name: str) -> tuple[TensorName, ...]:
    parts = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output_projection": "out_proj"}
    return tuple(row for ours, theirs in parts.items() for row in _dense(f"{attribute}.{ours}", f"{name}.{theirs}"))


def _block(side: str) -> tuple[TensorName, ...]:
    """The tensors that layers of the encoder and of the decoder have."""
    block, layer = f"{side}.blocks.{{i}}", f"model.{side}.layers.{{i}}"
    return (
        *_attention(f"{block}.attention", f"{layer}.self_attn"),
        *_layer_norm(f"{block}.attention_layer_norm", f"{layer}.self_attn_layer_norm"),
        *_dense(f"{block}.intermediate", f"{layer}.fc1"),
        *_dense(f"{block}.output_dense", f"{layer}.fc2"),
        *_layer_norm(f"{block}.output_layer_norm", f"{layer}.final_layer_norm"),
    )


def _positioned(embeddings: str, side: str) -> tuple[TensorName, ...]:
    return (
        _named(f"{embeddings}.position_embeddings", f"model.{side}.embed_positions.weight"),
        *_layer_norm(f"{embeddings}.layer_norm", f"model.{side}.layernorm_embedding"),
    )


PARTS: dict[str, tuple[TensorName, ...]] = {
    ENCODER: (
        _named("encoder.embeddings.word_embeddings", "model.shared.weight", _TIED),
        *_positioned("encoder.embeddings.positioned", "encoder"),
        *_block("encoder"),
    ),
    POOLER: _dense("encoder.pooler.dense", "model.encoder.pooler.dense"),
    DECODER: (
        *_positioned("decoder.embeddings", "decoder"),
        *_block("decoder"),
        *_attention("decoder.blocks.{i}.cross_attention", "model.decoder.layers.{i}.encoder_attn"),
        *_layer_norm(
            "decoder.blocks.{i}.cross_attention_layer_norm", "model.decoder.layers.{i}.encoder_attn_layer_norm"
        ),
    ),
    LM_HEAD: (_named("lm_head.bias", "final_logits_bias"),),
}
