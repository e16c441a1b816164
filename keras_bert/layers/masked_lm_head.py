"""The masked LM head (paper, section 3.1, task 1; run_pretraining.py, `get_masked_lm_output`)."""

from typing import Any

import keras
from keras import ops

from keras_bert.layers.activations import activation
from keras_bert.layers.initializers import truncated_normal
from keras_bert.layers.tensors import Tensor


@keras.saving.register_keras_serializable(package="keras_bert")
class MaskedLMHead(keras.layers.Layer):
    """Dense, gelu, LayerNorm, then a decoder tied to the word embeddings, with its own bias.

    `embedding_size` is the width of the word embeddings where it is not `hidden_size` (ALBERT). If not `tied`, it has a
    `decoder` of its own in place of the word embeddings.

    Call arguments:
        sequence_output: [batch, seq, hidden].
        word_embeddings: [vocab, embedding], the encoder's table.
        positions: [batch, predictions] int32, where to predict; None for all positions. With 15% masked, this shrinks
            the largest matrix product of the step to less than a sixth.
    Returns: logits [batch, predictions or seq, vocab], float32.
    """

    def __init__(
        self,
        vocab_size: int,
        hidden_size: int,
        hidden_act: str = "gelu",
        initializer_range: float = 0.02,
        layer_norm_eps: float = 1e-12,
        embedding_size: int | None = None,
        tied: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.vocab_size = vocab_size
        self.hidden_size = hidden_size
        self.embedding_size = embedding_size or hidden_size
        self.tied = tied
        self.decoder = None
        self.hidden_act = hidden_act
        self.initializer_range = initializer_range
        self.layer_norm_eps = layer_norm_eps
        self.transform = keras.layers.Dense(
            self.embedding_size,
            kernel_initializer=truncated_normal(initializer_range),
            dtype=self.dtype_policy,
            name="transform",
        )
        self.activation = activation(hidden_act)
        self.layer_norm = keras.layers.LayerNormalization(
            epsilon=layer_norm_eps, dtype=self.dtype_policy, name="layer_norm"
        )

    def build(self, *input_shapes: tuple[int | None, ...]) -> None:
        self.transform.build((None, None, self.hidden_size))
        self.layer_norm.build((None, None, self.embedding_size))
        if not self.tied:
            self.decoder = self.add_weight(
                name="decoder",
                shape=(self.vocab_size, self.embedding_size),
                initializer=truncated_normal(self.initializer_range),
                autocast=False,
            )
        self.bias = self.add_weight(name="bias", shape=(self.vocab_size,), initializer="zeros", autocast=False)

    def call(self, sequence_output: Tensor, word_embeddings: Tensor, positions: Tensor | None = None) -> Tensor:
        if positions is not None:
            sequence_output = gather_positions(sequence_output, positions)
        transformed = self.layer_norm(self.activation(self.transform(sequence_output)))
        table = ops.cast(word_embeddings if self.decoder is None else self.decoder, self.compute_dtype)
        logits = ops.matmul(transformed, ops.transpose(table))
        return ops.cast(logits, "float32") + self.bias

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "vocab_size": self.vocab_size,
            "hidden_size": self.hidden_size,
            "hidden_act": self.hidden_act,
            "initializer_range": self.initializer_range,
            "layer_norm_eps": self.layer_norm_eps,
            "embedding_size": self.embedding_size,
            "tied": self.tied,
        }


def gather_positions(sequence: Tensor, positions: Tensor) -> Tensor:
    """Gathers [batch, seq, hidden] at [batch, predictions]: [batch, predictions, hidden]."""
    batch, seq, hidden = ops.shape(sequence)
    row_starts = ops.arange(batch, dtype="int32")[:, None] * seq
    flat = ops.take(ops.reshape(sequence, (-1, hidden)), ops.reshape(positions + row_starts, (-1,)), axis=0)
    return ops.reshape(flat, (batch, ops.shape(positions)[1], hidden))
