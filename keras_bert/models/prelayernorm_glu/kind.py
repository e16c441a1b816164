"""RoBERTa-PreLayerNorm with gated feed-forward networks, GEGLU (Shazeer 2020)."""

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal

from keras_bert.models.roberta_prelayernorm.kind import RobertaPreLayerNorm, RobertaPreLayerNormConfig
from keras_bert.models.sizes import Part
from keras_bert.models.tensor_names import ENCODER, TensorName, dense, for_layers


@dataclass
class PreLayerNormGluConfig(RobertaPreLayerNormConfig):
    """A RoBERTa-PreLayerNorm whose feed-forward networks are gated: `output(hidden_act(gate(x)) * intermediate(x))`.

    `intermediate_size` is the width of an ungated network with as many parameters: gated ones have two thirds of it, in
    multiples of 8.
    """

    model_type: Literal["prelayernorm-glu"] = "prelayernorm-glu"  # type: ignore[assignment]

    @property
    def feed_forward_width(self) -> int:
        return 8 * max(1, round(self.intermediate_size / 12))


class PreLayerNormGlu(RobertaPreLayerNorm):
    """RoBERTa-PreLayerNorm with gated feed-forward networks. Only this package has such models."""

    model_type, title, config = "prelayernorm-glu", "RoBERTa-PreLayerNorm with GLU", PreLayerNormGluConfig
    encoder = "keras_bert.models.prelayernorm_glu.encoder:PreLayerNormGluEncoder"
    class_prefix = "PreLayerNormGlu"
    in_transformers = False
    token_head_act = None

    def parts(self, config: Any) -> dict[str, list[TensorName]]:
        of_plain = super().parts(config)
        stored = f"{self.stored_prefix}encoder.layer.{{i}}.intermediate.gate"
        gates = dense("encoder.blocks.{i}.gate", stored, "bert/encoder/layer_{i}/intermediate/gate")
        return {**of_plain, ENCODER: [*of_plain[ENCODER], *for_layers(gates, config.num_blocks)]}

    def encoder_table(self, config: Any) -> list[Part]:
        H, L, W = config.hidden_size, config.num_hidden_layers, config.feed_forward_width
        gated = {
            "feed-forward kernels": Part("feed-forward kernels", f"{L} layers · 3·H·{W:,}", L * 3 * H * W),
            "feed-forward biases": Part("feed-forward biases", f"{L} layers · (H + 2·{W:,})", L * (H + 2 * W)),
        }
        return [gated.get(part.name, part) for part in super().encoder_table(config)]

    def inner_kept(self, config: Any) -> float:
        return 2 * config.feed_forward_width / config.intermediate_size

    def training_flops(self, config: Any, sequence_length: int, predictions_per_sequence: int) -> int:
        # As many products as three kernels of this width have.
        plain = dataclasses.replace(config, intermediate_size=config.feed_forward_width * 3 // 2)
        return super().training_flops(plain, sequence_length, predictions_per_sequence)


KINDS = (PreLayerNormGlu(),)
