"""BART's embeddings: words, which encoder and decoder share, and positions, of which each has its own."""

import dataclasses
from typing import Any, TypeVar

import keras
from keras import ops

from keras_bert.layers.dropout import Dropout
from keras_bert.layers.embeddings import LookUp, WordEmbeddings
from keras_bert.layers.tensors import Tensor, new_layer_norm, new_table, truncated_normal
from keras_bert.models.bart.kind import BartConfig
from keras_bert.models.kind import config_from_mapping

_Layer = TypeVar("_Layer", bound="_MadeFromConfig")


class _MadeFromConfig(keras.layers.Layer):
    """A layer made from BART's config, which its own config holds as plain values."""

    config: BartConfig

    def get_config(self) -> dict[str, Any]:
        return {**keras.layers.Layer.get_config(self), "config": dataclasses.asdict(self.config)}

    @classmethod
    def from_config(cls: type[_Layer], config: dict[str, Any]) -> _Layer:
        return cls(**{**config, "config": config_from_mapping(config["config"])})


@keras.saving.register_keras_serializable(package="keras_bert")
class PositionedEmbeddings(_MadeFromConfig):
    """Sum of words [batch, seq, hidden] float32 and position embeddings, then LayerNorm and dropout.

    `first_place`, an int, an int32 scalar or int32 [batch, 1], is the first word's position.
    """

    def __init__(self, config: BartConfig, **kwargs: Any) -> None:
        super().__init__(autocast=False, **kwargs)  # Words and positions are added in float32.
        self.config = config
        self.layer_norm = new_layer_norm(config.layer_norm_eps, self.dtype_policy, "layer_norm")
        self.dropout = Dropout(config.hidden_dropout_prob, dtype=self.dtype_policy, name="dropout")

    def build(self, *input_shapes: tuple[int | None, ...]) -> None:
        config = self.config
        rows = config.first_position + config.max_position_embeddings
        self.position_embeddings = new_table(
            self, "position_embeddings", rows, config.hidden_size, truncated_normal(config.initializer_range)
        )
        self.layer_norm.build((None, None, config.hidden_size))

    def call(self, words: Tensor, first_place: Tensor | int = 0, training: bool = False) -> Tensor:
        seq, most = ops.shape(words)[1], self.config.max_position_embeddings
        if isinstance(seq, int) and seq > most:
            raise ValueError(
                f"The sequence needs at most max_position_embeddings ({most}) tokens. Received: {seq}. Truncate it or "
                "split it into windows."
            )
        places = self.config.first_position + first_place + ops.arange(seq, dtype="int32")
        embedded = words + ops.take(self.position_embeddings, places, axis=0)
        return self.dropout(self.layer_norm(ops.cast(embedded, self.compute_dtype)), training=training)


@keras.saving.register_keras_serializable(package="keras_bert")
class BartEmbeddings(_MadeFromConfig, WordEmbeddings):
    """The encoder's embeddings. There are no segments: `input_type_ids` are ignored."""

    def __init__(self, config: BartConfig, **kwargs: Any) -> None:
        super().__init__(config.vocab_size, config.hidden_size, config.initializer_range, 0.0, **kwargs)
        self.config = config
        self.scale = config.hidden_size**0.5 if config.scale_embedding else 1.0
        self.positioned = PositionedEmbeddings(config, dtype=self.dtype_policy, name="positioned")

    def build(self, *input_shapes: tuple[int | None, ...]) -> None:
        super().build(*input_shapes)
        self.positioned.build()

    def call(  # type: ignore[override]  # Called like BERT's.
        self, input_word_ids: Tensor, input_type_ids: Tensor | None = None, training: bool = False
    ) -> Tensor:
        return self.positioned(self.words(input_word_ids), training=training)

    def of_tokens(self, ids: Tensor, positions: Tensor, types: Tensor, look_up: LookUp) -> Tensor:
        """See `BertEmbeddings.of_tokens`."""
        words = look_up(self.word_embeddings.value, ids) * self.scale
        places = self.positioned.config.first_position + positions
        return self.positioned.layer_norm(words + look_up(self.positioned.position_embeddings.value, places))

    def words(self, input_word_ids: Tensor) -> Tensor:
        return super().words(input_word_ids) * self.scale
