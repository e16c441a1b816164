"""The names of BART's tensors in model.safetensors."""

from keras_bert.models.tensor_names import (
    DECODER,
    ENCODER,
    LM_HEAD,
    POOLER,
    TensorName,
    dense,
    layer_norm,
    plain_tensor,
)

# Other names under which files may hold the word embeddings.
_TIED = ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight")


def _attention(attribute: str, name: str) -> tuple[TensorName, ...]:
    parts = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output_projection": "out_proj"}
    return tuple(row for ours, theirs in parts.items() for row in dense(f"{attribute}.{ours}", f"{name}.{theirs}"))


def _block(side: str) -> tuple[TensorName, ...]:
    """The tensors that layers of the encoder and of the decoder have."""
    block, layer = f"{side}.blocks.{{i}}", f"model.{side}.layers.{{i}}"
    return (
        *_attention(f"{block}.attention", f"{layer}.self_attn"),
        *layer_norm(f"{block}.attention_layer_norm", f"{layer}.self_attn_layer_norm"),
        *dense(f"{block}.intermediate", f"{layer}.fc1"),
        *dense(f"{block}.output_dense", f"{layer}.fc2"),
        *layer_norm(f"{block}.output_layer_norm", f"{layer}.final_layer_norm"),
    )


def _positioned(embeddings: str, side: str) -> tuple[TensorName, ...]:
    return (
        plain_tensor(f"{embeddings}.position_embeddings", f"model.{side}.embed_positions.weight"),
        *layer_norm(f"{embeddings}.layer_norm", f"model.{side}.layernorm_embedding"),
    )


PARTS: dict[str, tuple[TensorName, ...]] = {
    ENCODER: (
        plain_tensor("encoder.embeddings.word_embeddings", "model.shared.weight", _TIED),
        *_positioned("encoder.embeddings.positioned", "encoder"),
        *_block("encoder"),
    ),
    POOLER: dense("encoder.pooler.dense", "model.encoder.pooler.dense"),
    DECODER: (
        *_positioned("decoder.embeddings", "decoder"),
        *_block("decoder"),
        *_attention("decoder.blocks.{i}.cross_attention", "model.decoder.layers.{i}.encoder_attn"),
        *layer_norm(
            "decoder.blocks.{i}.cross_attention_layer_norm", "model.decoder.layers.{i}.encoder_attn_layer_norm"
        ),
    ),
    LM_HEAD: (plain_tensor("lm_head.bias", "final_logits_bias"),),
}
