"""Where each tensor of a T5 is in transformers' files."""

from keras_bert.models.tensor_names import DECODER, ENCODER, LM_HEAD, StoredName, TensorName, for_layers, with_slashes

_EMBEDDINGS, _OUTPUT = "shared.weight", "lm_head.weight"
_ATTENTION = (("query", "q"), ("key", "k"), ("value", "v"), ("output_projection", "o"))
_PLAIN = (("inner", "wi"), ("output_dense", "wo"))
_GATED = (("gate", "wi_0"), ("inner", "wi_1"), ("output_dense", "wo"))


def t5_parts(encoder_layers: int, decoder_layers: int, is_gated: bool, is_tied: bool) -> dict[str, list[TensorName]]:
    """The names by part; an output layer tied to the word embeddings is not a part."""
    also = (f"{ENCODER}.embed_tokens.weight", f"{DECODER}.embed_tokens.weight", *([_OUTPUT] if is_tied else []))
    words = _named("encoder.embeddings.word_embeddings", _EMBEDDINGS, also=also)
    parts = {
        ENCODER: [words, *_stack(ENCODER, encoder_layers, is_gated)],
        DECODER: _stack(DECODER, decoder_layers, is_gated),
    }
    return parts if is_tied else {**parts, LM_HEAD: [_named("lm_head.kernel", _OUTPUT)]}


def _named(attribute: str, name: str, transposed: bool = False, also: tuple[str, ...] = ()) -> TensorName:
    google = StoredName(with_slashes(name.removesuffix(".weight")))
    return TensorName(attribute, StoredName(name, transposed, also=also), google)


def _stack(stack: str, layers: int, is_gated: bool) -> list[TensorName]:
    """The tensors of the encoder or the decoder."""
    block, stored = f"{stack}.blocks.{{i}}", f"{stack}.block.{{i}}.layer"
    attentions = [("attention", "SelfAttention")]
    if stack == DECODER:
        attentions.append(("cross_attention", "EncDecAttention"))
    rows = [
        _named(f"{stack}.relative_bias.bias", f"{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"),
        _named(f"{stack}.norm.scale", f"{stack}.final_layer_norm.weight"),
    ]
    for place, (attribute, name) in enumerate(attentions):
        rows += [
            _named(f"{block}.{attribute}.{ours}.kernel", f"{stored}.{place}.{name}.{theirs}.weight", transposed=True)
            for ours, theirs in _ATTENTION
        ]
        rows.append(_named(f"{block}.{attribute}_norm.scale", f"{stored}.{place}.layer_norm.weight"))
    feed_forward = f"{stored}.{len(attentions)}"
    rows += [
        _named(f"{block}.feed_forward.{ours}.kernel", f"{feed_forward}.DenseReluDense.{theirs}.weight", transposed=True)
        for ours, theirs in (_GATED if is_gated else _PLAIN)
    ]
    rows.append(_named(f"{block}.feed_forward_norm.scale", f"{feed_forward}.layer_norm.weight"))
    return for_layers(rows, layers)
