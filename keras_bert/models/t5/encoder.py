"""T5's encoder (Raffel et al. 2020, section 2.1)."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_bert.layers.bucketed_bias import BucketedBias
from keras_bert.layers.dropout import Dropout
from keras_bert.layers.embeddings import WordEmbeddings
from keras_bert.layers.in_training import perturbed
from keras_bert.layers.pooling import mean_of_tokens
from keras_bert.layers.tensors import Batch, PlainLayer, Tensor, normal
from keras_bert.layers.visibility import as_bias, hidden_positions
from keras_bert.models.bert.encoder import ConfiguredEncoder
from keras_bert.models.t5.blocks import T5Block, t5_norm
from keras_bert.models.t5.kind import T5Config


@keras.saving.register_keras_serializable(package="keras_bert")
class T5Embeddings(WordEmbeddings):
    """Word embeddings whose initial values have the standard deviation `initializer_range` and are not truncated."""

    def make_initializer(self) -> Callable:
        return normal(self.initializer_range)


@keras.saving.register_keras_serializable(package="keras_bert")
class MeanPooler(PlainLayer):
    """The mean of a row's tokens: [batch, seq, hidden] and their mask [batch, seq] -> [batch, hidden]. No weights."""

    def call(self, states: Tensor, input_mask: Tensor) -> Tensor:
        return ops.cast(mean_of_tokens(states, input_mask), self.compute_dtype)


def make_bias(config: T5Config, both_sides: bool, policy: Any) -> BucketedBias:
    """The bias of relative positions that all blocks of an encoder or a decoder share."""
    return BucketedBias(
        config.num_attention_heads,
        config.relative_attention_num_buckets,
        config.relative_attention_max_distance,
        both_sides,
        config.initializer_factor * config.hidden_size**-0.5,
        dtype=policy,
        name="relative_bias",
    )


@keras.saving.register_keras_serializable(package="keras_bert")
class T5Encoder(ConfiguredEncoder):
    """A T5's encoder without its decoder (Raffel et al. 2020, section 2.1).

    Its inputs and outputs are those of a `BertEncoder`, with the following differences. There are no positions, only
    distances, and no segments: `input_type_ids` are ignored. `hidden_states` end with the norm of the last block's
    states, as in transformers.

    Args:
        with_pooler: whether to pool. As T5 has neither [CLS] nor a pooler, the pooled vector is the mean of the tokens.

    Attributes:
        recompute_every: must be 0.

    Example:
        config = keras_bert.T5Config(vocab_size=60, hidden_size=16, num_hidden_layers=2, num_attention_heads=2)
        ids = np.array([[7, 4, 1]], "int32")
        inputs = {"input_word_ids": ids, "input_mask": ids * 0 + 1, "input_type_ids": ids * 0}
        keras_bert.T5Encoder(config)(inputs)["sequence_output"]      # [1, 3, 16]
    """

    recomputes = False
    config: T5Config
    pooler: MeanPooler | None  # type: ignore[assignment]

    def __init__(self, config: T5Config, with_pooler: bool = True, **kwargs: Any) -> None:
        super().__init__(config, **kwargs)
        policy = self.dtype_policy
        self.embeddings = T5Embeddings(
            config.vocab_size,
            config.hidden_size,
            config.initializer_factor,
            config.hidden_dropout_prob,
            dtype=policy,
            name="embeddings",
        )
        self.relative_bias = make_bias(config, both_sides=True, policy=policy)
        self.blocks = [
            T5Block(config, dtype=policy, name=f"block_{index}") for index in range(config.num_hidden_layers)
        ]
        self.norm = t5_norm(config, policy, "norm")
        self.dropout = Dropout(config.hidden_dropout_prob, dtype=policy, name="dropout")
        self.pooler = MeanPooler(dtype=policy, name="pooler") if with_pooler else None
        self.build()

    def call(
        self, inputs: Batch, training: bool = False, return_attentions: bool = False, causal: bool | None = None
    ) -> dict[str, Any]:
        if causal:
            raise ValueError("causal: is not supported by a T5, whose encoder sees both sides.")
        self.require_inputs(inputs, "input_word_ids", "input_mask")
        hidden = perturbed(self.embeddings(inputs["input_word_ids"], training=training))
        seq = ops.shape(hidden)[1]
        padding = as_bias(hidden_positions(inputs["input_mask"], causal=False), self.compute_dtype)
        attention_bias = self.relative_bias.between(seq, seq) + padding
        hidden_states, attentions = [hidden], []
        for block in self.blocks:
            hidden, probabilities = block(hidden, attention_bias, training=training)
            hidden_states.append(hidden)
            attentions.append(probabilities)
        hidden_states[-1] = hidden = self.dropout(self.norm(hidden), training=training)
        outputs = {"sequence_output": hidden, "hidden_states": hidden_states}
        if self.pooler is not None:
            outputs["pooled_output"] = self.pooler(hidden, inputs["input_mask"])
        if return_attentions:
            outputs["attentions"] = attentions
        return outputs
